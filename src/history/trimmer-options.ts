/** What a trimmer is made with. Wrong values are refused at once, by name. */
import { type FormatName, formatNames } from "../messages/index.ts";
import type { Store } from "../store/index.ts";
import type { Counter } from "../tokens/index.ts";
import type { Checkpoint } from "./checkpoint.ts";
import {
  callback,
  checkOptions,
  flag,
  having,
  invalid,
  type OptionCheck,
  oneOf,
  share,
  text,
  textList,
  whole,
} from "./option-checks.ts";
import { type PlaceholderStyle, placeholderStyles } from "./placeholders.ts";
import { type PolicyName, policyNames } from "./policies/policy.ts";

export interface TrimmerOptions {
  /** The model's limit, in tokens. */
  contextWindow: number;
  model?: string | undefined;
  /** `economic` unless given. */
  policy?: PolicyName | undefined;
  /** Absent: recognised from the messages. */
  format?: FormatName | undefined;
  /** Absent: the estimator of the model's family. */
  counter?: Counter | undefined;
  /** Tokens kept free for the answer; unless given 16,000, at most half of the window. */
  reserve?: number | undefined;
  /** Tokens of tools and system text that are in no request; 0 unless given. */
  prefixTokens?: number | undefined;
  /** Assistant turns that are trimmed last, 10 unless given. */
  keep?: number | undefined;
  /** Share of the budget at which the rfc policies trim, 0.8 unless given; the others take none. */
  threshold?: number | undefined;
  /** Tools whose calls and results stay as they are. Like `isPinned` and `placeholders` not for the rfc policies. */
  excludeTools?: readonly string[] | undefined;
  /** Whether a message of the history stays as it is. */
  isPinned?: ((message: object, index: number) => boolean) | undefined;
  /** What stands for trimmed content: `plain` unless given, or `descriptive`, with an id to recall it by. */
  placeholders?: PlaceholderStyle | undefined;
  /** Whether an epoch may come early when the provider's cache is lost anyway; true unless given. */
  trimWhenCold?: boolean | undefined;
  /** `readable` counts encrypted content by its readable text alone, for recorded sessions of another provider. */
  sealed?: "billed" | "readable" | undefined;
  /** Keeps checkpoints and trimmed content, by `sessionId`. */
  store?: Store | undefined;
  sessionId?: string | undefined;
  /** State to resume from, instead of the store's. */
  checkpoint?: Checkpoint | undefined;
}

/** Those without a default. */
type Optional = "model" | "format" | "counter" | "store" | "checkpoint";
/** The options with every default filled in. */
export type TrimmerSettings = Pick<TrimmerOptions, Optional> & {
  [Key in Exclude<keyof TrimmerOptions, Optional>]-?: Exclude<TrimmerOptions[Key], undefined>;
};

/** Every option with its default. */
export function settleOptions(options: TrimmerOptions): TrimmerSettings {
  checkTrimmerOptions(options);
  const { contextWindow } = options;
  whole("contextWindow", contextWindow);
  const settings: TrimmerSettings = {
    contextWindow,
    model: options.model,
    policy: options.policy ?? "economic",
    format: options.format,
    counter: options.counter,
    reserve: options.reserve ?? defaultReserve(contextWindow),
    prefixTokens: options.prefixTokens ?? 0,
    keep: options.keep ?? 10,
    threshold: options.threshold ?? defaultThreshold,
    excludeTools: options.excludeTools ?? [],
    isPinned: options.isPinned ?? (() => false),
    placeholders: options.placeholders ?? "plain",
    trimWhenCold: options.trimWhenCold ?? true,
    sealed: options.sealed ?? "billed",
    store: options.store,
    sessionId: options.sessionId ?? "default",
    checkpoint: options.checkpoint,
  };
  checkRoom(settings);
  return settings;
}

/** Tokens for the answer where nobody says: 16,000, more if longer answers are asked for, and at most half of the window. */
export function defaultReserve(contextWindow: number, longestAnswer = 0): number {
  return Math.min(Math.floor(contextWindow / 2), Math.max(16_000, longestAnswer));
}

/** Refuses what is no option of a trimmer, or has no meaning beside the others. Who wraps one passes checks of the options that it adds, and
 *  undefined for those that it does not take. */
export function checkTrimmerOptions(
  options: Partial<TrimmerOptions>,
  own: Readonly<Record<string, OptionCheck | undefined>> = {},
): void {
  checkOptions(options, { ...trimmerOptionChecks, ...own });
  const { policy = "economic", contextWindow, reserve } = options;
  const without = isRfc(policy) ? economicOnly : rfcOnly;
  for (const name of without) {
    if (isNoWish(options[name])) continue;
    const others = policyNames.filter((each) => isRfc(each) !== isRfc(policy)).join(", ");
    throw invalid(`${name} has no meaning for the policy ${policy}`, `It belongs to ${others}.`);
  }
  if (contextWindow !== undefined)
    checkRoom({ contextWindow, reserve: reserve ?? 0, prefixTokens: options.prefixTokens ?? 0 });
}

const defaultThreshold = 0.8;
const rfcOnly = ["threshold"] as const;
const economicOnly = ["excludeTools", "isPinned", "placeholders"] as const;

/** Absent or a default: callers may fill in all that they know. */
function isNoWish(value: unknown): boolean {
  const isEmpty = Array.isArray(value) && value.length === 0;
  return value === undefined || value === defaultThreshold || value === "plain" || isEmpty;
}

function isRfc(policy: PolicyName): boolean {
  return policy === "rfc" || policy === "rfc-headroom";
}

type Room = Pick<TrimmerSettings, "contextWindow" | "reserve" | "prefixTokens">;

function checkRoom({ contextWindow, reserve, prefixTokens }: Room): void {
  const tokens = reserve + prefixTokens;
  // A window of 0 that nothing is taken off is as it was asked for: each request is told to be too large.
  if (tokens === 0 || tokens < contextWindow) return;
  const taken = `reserve ${reserve} and prefixTokens ${prefixTokens}`;
  throw invalid(
    `contextWindow is ${contextWindow}, and ${taken} leave nothing for messages`,
    "Use the model's limit, or lower what is taken off it.",
  );
}

const trimmerOptionChecks: { readonly [Name in keyof TrimmerOptions]-?: OptionCheck } = {
  contextWindow: whole,
  model: text,
  policy: oneOf(policyNames),
  format: oneOf(formatNames),
  counter: having(["count"], 'Pass what createCounter("auto", { model }) gives.'),
  reserve: whole,
  prefixTokens: whole,
  keep: whole,
  threshold: share,
  excludeTools: textList,
  isPinned: callback,
  placeholders: oneOf(placeholderStyles),
  trimWhenCold: flag,
  sealed: oneOf(["billed", "readable"]),
  store: having(["get", "put", "list"], "Pass an open store, such as createMemoryStore()."),
  sessionId: text,
  // What is inside of one is told with its path.
  checkpoint: () => undefined,
};
