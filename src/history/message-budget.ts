/** The tokens that messages may have: the model's window without what is reserved for the answer, the prefix, system text and tools.
 *  Usage that the provider reported corrects the counter's scale. */
import { ContextError } from "../errors.ts";
import { countMessage, countTools, type FormatName } from "../messages/index.ts";
import { type CalibratorSnapshot, type Counter, createCalibrator, familyOfModel } from "../tokens/index.ts";

export interface BudgetOptions {
  readonly contextWindow: number;
  readonly reserve: number;
  readonly prefixTokens: number;
  readonly model?: string | undefined;
  readonly counter: Counter;
  readonly calibrator?: CalibratorSnapshot | undefined;
}

export interface MessageBudget {
  /** Tokens for the messages of a request with this system text and these tools. */
  forRequest(request: FixedParts): { readonly messages: number; readonly tools: number };
  /** Takes the usage that the provider reported for the request whose messages had this size. */
  observe(usage: unknown, sentTokens: number): void;
  /** History was rewritten: what was billed before says nothing about its total any more. */
  rewritten(): void;
  snapshot(): CalibratorSnapshot | undefined;
}

export interface FixedParts {
  readonly system?: unknown;
  readonly tools?: readonly object[] | undefined;
  readonly format: FormatName;
}

export function createMessageBudget(options: BudgetOptions): MessageBudget {
  const { model, counter, prefixTokens } = options;
  const limit = options.contextWindow - options.reserve;
  const family = (model === undefined ? undefined : familyOfModel(model)) ?? "claude-5";
  const snapshot = options.calibrator;
  const calibrator = createCalibrator(snapshot === undefined ? { family } : { family, snapshot });
  let isCalibrated = snapshot !== undefined;
  let fixed = prefixTokens;
  return {
    forRequest({ system, tools = [], format }) {
      const toolTokens = tools.length === 0 ? 0 : countTools(tools, counter, { format, model });
      fixed = prefixTokens + systemTokens(system, counter) + toolTokens;
      const whole = isCalibrated
        ? largestEstimate(limit, (size) => calibrator.correct(size) + calibrator.margin(size))
        : limit;
      return { messages: Math.max(0, whole - fixed), tools: toolTokens };
    },
    observe(usage, sentTokens) {
      calibrator.observe({ estimated: fixed + sentTokens, usage });
      // A usage that says nothing teaches nothing.
      isCalibrated ||= calibrator.snapshot().anchor !== null;
    },
    rewritten: () => calibrator.reset("history"),
    snapshot: () => (isCalibrated ? calibrator.snapshot() : undefined),
  };
}

function systemTokens(system: unknown, counter: Counter): number {
  if (system === undefined || system === null || system === "") return 0;
  if (typeof system !== "string" && !Array.isArray(system)) {
    throw new ContextError("invalid_message", "system must be a string or an array");
  }
  return countMessage({ role: "system", content: system }, counter, { format: "anthropic" });
}

/** The largest estimate whose corrected size is within the limit; corrections grow with the estimate. */
function largestEstimate(limit: number, corrected: (estimate: number) => number): number {
  let fits = 0;
  let beyond = limit * 2 + 1;
  while (beyond - fits > 1) {
    const estimate = Math.floor((fits + beyond) / 2);
    if (corrected(estimate) <= limit) fits = estimate;
    else beyond = estimate;
  }
  return fits;
}
