/** From the command line, the configuration and the request to what a trimmer is made with. */
import { ContextError } from "../../errors.ts";
import { type PolicyName, policyNames } from "../../history/index.ts";
import { type FormatName, formatOfRequest } from "../../messages/index.ts";
import type { Counter } from "../../tokens/index.ts";
import type { Config } from "../../workspace/index.ts";
import { checkWindow } from "../check-window.ts";
import { chooseCounter, modelForCounter } from "../choose-counters.ts";
import type { Call } from "../command.ts";
import type { MessagesInput } from "../messages-input.ts";
import { wholeNumber } from "../whole-number.ts";

export interface TrimSettings {
  readonly contextWindow: number;
  readonly policy: PolicyName;
  readonly reserve: number;
  readonly prefixTokens: number;
  readonly keep: number;
  /** Of the rfc policies; the others have none. */
  readonly threshold: number | undefined;
}

export interface TrimFlags {
  readonly window?: string | undefined;
  readonly reserve?: string | undefined;
  readonly "prefix-tokens"?: string | undefined;
  readonly format?: string | undefined;
  readonly policy?: string | undefined;
  readonly keep?: string | undefined;
  readonly threshold?: string | undefined;
  readonly tools?: string | undefined;
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
  readonly checkpoint?: string | undefined;
  readonly stats?: boolean | undefined;
}

type TrimCall = Call<TrimFlags>;

/** Wrong usage is refused before anything is read. */
export function readSettings({ options }: Pick<TrimCall, "options">, { history }: Config): TrimSettings {
  if (options.window === undefined) {
    throw new ContextError("usage", "--window is missing", {
      hint: "Name the model's limit in tokens, such as --window 200000.",
    });
  }
  const whole = (name: "reserve" | "prefix-tokens" | "keep"): number | undefined => {
    const value = options[name];
    return value === undefined ? undefined : wholeNumber(value, name, 0);
  };
  const policy = choosePolicy(options.policy, history.policy);
  const settings = {
    contextWindow: wholeNumber(options.window, "window", 1),
    policy,
    reserve: whole("reserve") ?? history.reserve,
    prefixTokens: whole("prefix-tokens") ?? 0,
    keep: whole("keep") ?? history.keep,
    threshold: chooseThreshold(options.threshold, policy, history.threshold),
  };
  checkWindow(settings.contextWindow, settings);
  return settings;
}

/** Those that count as the RFC does and promise no window. */
export function isRfc(policy: PolicyName): boolean {
  return policy === "rfc" || policy === "rfc-headroom";
}

/** The configuration is also for commands that know the policy `none`. */
function choosePolicy(asked: string | undefined, configured: string): PolicyName {
  const policy = policyNames.find((name) => name === (asked ?? configured));
  if (policy !== undefined) return policy;
  throw new ContextError(
    "usage",
    `the configuration's history.policy is ${configured}, which trims nothing`,
    {
      hint: `Choose one with --policy: ${policyNames.join(", ")}.`,
    },
  );
}

/** The configuration's share is for the policies that have one, whatever the policy of this run is. */
function chooseThreshold(
  value: string | undefined,
  policy: PolicyName,
  configured: number,
): number | undefined {
  if (value !== undefined) return readThreshold(value, policy);
  return isRfc(policy) ? configured : undefined;
}

function readThreshold(value: string, policy: PolicyName): number {
  if (!isRfc(policy)) {
    throw new ContextError("usage", `--threshold has no meaning for the policy ${policy}`, {
      hint: "It belongs to rfc and rfc-headroom.",
    });
  }
  const share = /^\d*\.?\d+$/.test(value) ? Number(value) : Number.NaN;
  if (share <= 1) return share;
  throw new ContextError("usage", `--threshold is "${value}"`, {
    hint: "Use a share of the budget from 0 to 1, such as 0.8.",
  });
}

/** What --format names, or what the request shows. */
export function chooseFormat({ options }: Pick<TrimCall, "options">, input: MessagesInput): FormatName {
  const { format } = options;
  if (format !== undefined && format !== "auto") return format as FormatName;
  return formatOfRequest(input.request ?? input.messages ?? []);
}

/** The model that is meant: named, or the request's own. */
export function chooseModel(
  { options }: Pick<TrimCall, "options">,
  input: MessagesInput,
): string | undefined {
  const own = input.request?.model;
  return options.model ?? (typeof own === "string" && own !== "" ? own : undefined);
}

/** `--counter`, else that of `--model`, else the configuration's, else that of the request's model. A model also means rules of its
 *  provider. */
export function counterFor(
  call: TrimCall,
  { config, model }: { readonly config: Config; readonly model: string | undefined },
): Promise<Counter> {
  const named = call.options.counter ?? (call.options.model === undefined ? config.counter : undefined);
  const counter = named ?? "auto";
  const options = { counter, model: modelForCounter({ counter, model }) };
  return chooseCounter({ ...call, options }, "auto");
}
