/** The options of a trimmer, their checks and their defaults. */

import { invalidArgument } from "../../core/errors.ts";
import { type FormatName, formatNames } from "../../core/messages/index.ts";
import type { Store } from "../../core/store/index.ts";
import { type ArgumentCheck, argumentChecks, checkOptions, type OptionChecks } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { Checkpoint } from "./checkpoint.ts";
import type { Pressure } from "./overflow.ts";
import type { PlaceholderStyle } from "./placeholders.ts";
import { isRfc, type PolicyName, policyNames } from "./policies/policy.ts";
import type { ContextMetadata } from "./rfc-context.ts";
import { boundaryIn } from "./rfc-metadata.ts";
import type { Summarise } from "./summary.ts";

/** The settings of `createTrimmer`. Only `contextWindow` is required. */
export interface TrimmerOptions {
  /** The most tokens that the model accepts in one request, answer included. */
  readonly contextWindow: number;
  /** The most tokens that a request should have, in a window that is larger. It doubles, up to the window, in a
   *  conversation that does not fit. By default it is the window. */
  readonly workingBudget?: number | undefined;
  /** The model's id. It selects the counter, the image prices and the rules for thinking blocks. */
  readonly model?: string | undefined;
  /** The rule that decides what to trim, and when.
   * @default "economic" */
  readonly policy?: PolicyName | undefined;
  /** The shape of the messages. By default the trimmer detects it from the messages. */
  readonly format?: FormatName | undefined;
  /** Counts tokens. By default the trimmer estimates with the tokenizer of the model's family. */
  readonly counter?: Counter | undefined;
  /** Tokens kept free for the answer.
   * @default 16000, but at most half of `contextWindow` */
  readonly reserve?: number | undefined;
  /** Tokens that you send but that are not in `messages`, `system` or `tools`.
   * @default 0 */
  readonly prefixTokens?: number | undefined;
  /** How many of the newest assistant turns the policy trims last.
   * @default 10 */
  readonly keep?: number | undefined;
  /** The share of the budget, from 0 to 1, above which the policies `rfc` and `rfc-headroom` trim. Other policies
   *  reject it.
   * @default 0.8 */
  readonly threshold?: number | undefined;
  /** Names of tools whose calls and results are never trimmed. The policies `rfc` and `rfc-headroom` reject it.
   * @default [] */
  readonly excludeTools?: readonly string[] | undefined;
  /** Names of tools whose calls keep their input until the whole exchange is removed: a model may copy a placeholder from
   *  the input of a tool that writes files into a file. The policies `rfc` and `rfc-headroom` reject it.
   * @default [] */
  readonly keepInputs?: readonly string[] | undefined;
  /** Returns true for a message that must never be trimmed. The policies `rfc` and `rfc-headroom` reject it. */
  readonly isPinned?: ((message: object, index: number) => boolean) | undefined;
  /** Which user messages may be trimmed like tool results, because a program wrote them: a function, or `"machine-made"`
   *  for texts that consist of `<task-notification>` and `<system-reminder>` blocks of coding agents. By default none.
   *  The policies `rfc` and `rfc-headroom` reject it. */
  readonly isTrimmable?: "machine-made" | ((message: object, index: number) => boolean) | undefined;
  /** What replaces trimmed content: `descriptive` names the tool, its subject and an id for `recall`; `plain` is
   *  `[trimmed]`, which takes fewer tokens. The policies `rfc` and `rfc-headroom` are always plain and reject
   *  `descriptive`.
   * @default "descriptive" */
  readonly placeholders?: PlaceholderStyle | undefined;
  /** Called on a call that trims, if that happened on more than a quarter of the last 20 turns: what fills the window
   *  should become smaller, or the window larger. */
  readonly onPressure?: ((pressure: Pressure) => void) | undefined;
  /** Writes a summary of what a trim removes, usually with a small model. The summary is then in the trimmed tool
   *  result that would otherwise contain the digest. It is used if it comes in time and has at most 4 % of the tokens for
   *  messages. A trimmer with this option has to be called with `reduceWithSummary`. The policies `rfc` and
   *  `rfc-headroom` reject it. */
  readonly summarise?: Summarise | undefined;
  /** How long to wait for a summary, in milliseconds.
   * @default 30000 */
  readonly summaryWaitMs?: number | undefined;
  /** Whether to trim early when the provider's cache has expired anyway.
   * @default true */
  readonly trimWhenCold?: boolean | undefined;
  /** How to count encrypted thinking: as the provider bills it, or only its readable text. Use `readable` to replay
   *  recorded sessions.
   * @default "billed" */
  readonly sealed?: "billed" | "readable" | undefined;
  /** Where to save checkpoints and the originals of trimmed content, under `sessionId`. */
  readonly store?: Store | undefined;
  /** The conversation's id in the store. One trimmer handles one conversation.
   * @default "default" */
  readonly sessionId?: string | undefined;
  /** The state of an earlier trimmer to resume from. It takes precedence over the store. */
  readonly checkpoint?: Checkpoint | undefined;
  /** Metadata that a program with the context-engineering RFC stored: everything before its boundary is trimmed from the
   *  first call on. Only for the policies `rfc` and `rfc-headroom`. */
  readonly metadata?: ContextMetadata | null | undefined;
}

/** The options without a default. */
type Optional =
  | "workingBudget"
  | "model"
  | "format"
  | "counter"
  | "onPressure"
  | "summarise"
  | "store"
  | "checkpoint"
  | "metadata";
/** The options with every default filled in. */
export type TrimmerSettings = Pick<TrimmerOptions, Optional> & {
  [Key in Exclude<keyof TrimmerOptions, Optional>]-?: Exclude<TrimmerOptions[Key], undefined>;
};

/** Checks the options and fills in the defaults. */
export function settleOptions(options: TrimmerOptions): TrimmerSettings {
  checkTrimmerOptions(options);
  const { contextWindow } = options;
  argumentChecks.whole("contextWindow", contextWindow);
  const settings: TrimmerSettings = {
    contextWindow,
    workingBudget: options.workingBudget,
    model: options.model,
    policy: options.policy ?? "economic",
    format: options.format,
    counter: options.counter,
    reserve: options.reserve ?? defaultReserve(contextWindow),
    prefixTokens: options.prefixTokens ?? 0,
    keep: options.keep ?? 10,
    threshold: options.threshold ?? defaultThreshold,
    excludeTools: options.excludeTools ?? [],
    keepInputs: options.keepInputs ?? [],
    isPinned: options.isPinned ?? (() => false),
    isTrimmable: options.isTrimmable ?? (() => false),
    placeholders: options.placeholders ?? "descriptive",
    onPressure: options.onPressure,
    summarise: options.summarise,
    summaryWaitMs: options.summaryWaitMs ?? 30_000,
    trimWhenCold: options.trimWhenCold ?? true,
    sealed: options.sealed ?? "billed",
    store: options.store,
    sessionId: options.sessionId ?? "default",
    checkpoint: options.checkpoint,
    metadata: options.metadata,
  };
  checkRoom(settings);
  return settings;
}

/** Returns the tokens to keep free for the answer by default: 16,000, or more for longer answers, but at most half of
 *  the window. */
export function defaultReserve(contextWindow: number, longestAnswer = 0): number {
  return Math.min(Math.floor(contextWindow / 2), Math.max(16_000, longestAnswer));
}

/** Throws on unknown options, wrong values, and options that the policy does not use. Wrappers pass `own` checks: a
 *  check for each option that they add, and undefined for each that they do not accept. */
export function checkTrimmerOptions(options: Partial<TrimmerOptions>, own: OptionChecks = {}): void {
  checkOptions(options, { ...trimmerOptionChecks, ...own }, "{ contextWindow: 200_000 }");
  const { policy = "economic", contextWindow, reserve } = options;
  for (const name of isRfc(policy) ? economicOnly : rfcOnly) {
    const value = options[name];
    // Callers may pass every option that they know, with the value that the policy has anyway.
    const isEmpty = Array.isArray(value) && value.length === 0;
    if (isEmpty || [undefined, null, defaultThreshold, "plain"].some((each) => each === value)) continue;
    const others = policyNames.filter((each) => isRfc(each) !== isRfc(policy)).join(", ");
    throw invalidArgument(`${name} has no meaning for the policy ${policy}`, `It belongs to ${others}.`);
  }
  if (contextWindow !== undefined)
    checkRoom({ contextWindow, reserve: reserve ?? 0, prefixTokens: options.prefixTokens ?? 0 });
}

const defaultThreshold = 0.8;
const rfcOnly = ["threshold", "metadata"] as const;
const economicOnly = [
  "excludeTools",
  "keepInputs",
  "isPinned",
  "isTrimmable",
  "placeholders",
  "summarise",
  "summaryWaitMs",
] as const;

function checkRoom({
  contextWindow,
  reserve,
  prefixTokens,
}: Pick<TrimmerSettings, "contextWindow" | "reserve" | "prefixTokens">): void {
  const tokens = reserve + prefixTokens;
  // A contextWindow of 0 with nothing taken off is allowed: every request is then reported as too large.
  if (tokens === 0 || tokens < contextWindow) return;
  const taken = `reserve ${reserve} and prefixTokens ${prefixTokens}`;
  throw invalidArgument(
    `contextWindow is ${contextWindow}, and ${taken} leave nothing for messages`,
    "Use the model's limit, or lower what is taken off it.",
  );
}

const { whole, positive, share, flag, text, callback, textList, oneOf, having } = argumentChecks;

const trimmerOptionChecks: { readonly [Name in keyof TrimmerOptions]-?: ArgumentCheck } = {
  contextWindow: whole,
  workingBudget: positive,
  model: text,
  policy: oneOf(policyNames),
  format: oneOf(formatNames),
  counter: having(["count"], 'Pass the result of createCounter("auto", { model }).'),
  reserve: whole,
  prefixTokens: whole,
  keep: whole,
  threshold: share,
  excludeTools: textList,
  keepInputs: textList,
  isPinned: callback,
  isTrimmable: (name, value) => (typeof value === "string" ? oneOf(["machine-made"]) : callback)(name, value),
  placeholders: oneOf(["plain", "descriptive"]),
  onPressure: callback,
  summarise: callback,
  summaryWaitMs: whole,
  trimWhenCold: flag,
  sealed: oneOf(["billed", "readable"]),
  store: having(["get", "put", "list"], "Pass an open store, such as createMemoryStore()."),
  sessionId: text,
  // checkCheckpoint reports what is wrong inside a checkpoint, with its path.
  checkpoint: () => undefined,
  metadata: (_name, value) => void boundaryIn(value as ContextMetadata),
};
