/** Computes how many tokens the messages of a request may have. The result depends on the request and the settings in
 *  coarse steps, so that a process without any state computes the same budget for every call of a conversation. */
import { countSystem, countTools, type FormatName } from "../../core/messages/index.ts";
import { type CalibratorSnapshot, type Counter, createCalibrator, familyOfModel } from "../../core/tokens/index.ts";
import { isRfc, type PolicyName } from "./policies/policy.ts";
import { estimateTokens, estimateToolOverhead } from "./rfc-message.ts";

/** The tokens that messages may have: the window minus the answer, the prefix, system text and tools. Usage that the
 *  provider reported corrects the counter's scale. */
export interface MessageBudget {
  /** Counts the system text and the tools of a request. */
  forRequest(request: {
    readonly system?: unknown;
    readonly tools?: readonly object[] | null | undefined;
    readonly format: FormatName;
  }): RequestBudget;
  /** Learns from the usage that the provider reported for the request whose messages had this size. */
  observe(usage: unknown, sentTokens: number): void;
  /** Learns that the provider refused such a request as too long, with its count if it said one. Returns the most tokens
   *  that requests should have, if the counter cannot explain it. */
  refused(sentTokens: number, tokens: number | undefined): number | undefined;
  /** Must be called after history was rewritten: totals that were billed before do not apply any more. */
  rewritten(): void;
  snapshot(): CalibratorSnapshot | undefined;
}

export interface RequestBudget {
  /** The tokens of the tools. */
  readonly tools: number;
  /** Returns the tokens for messages, with this factor on the working budget. */
  messages(growth: number): number;
  /** Whether a larger factor would leave more for messages. */
  canGrow(growth: number): boolean;
}

export function createMessageBudget(options: {
  readonly policy: PolicyName;
  readonly contextWindow: number;
  readonly workingBudget?: number | undefined;
  readonly reserve: number;
  readonly prefixTokens: number;
  readonly model?: string | undefined;
  readonly counter: Counter;
  readonly calibrator?: CalibratorSnapshot | undefined;
}): MessageBudget {
  const { policy, model, counter, prefixTokens, contextWindow } = options;
  const limit = contextWindow - options.reserve;
  const working = Math.min(limit, options.workingBudget ?? limit);
  const family = (model === undefined ? undefined : familyOfModel(model)) ?? "claude-5";
  const snapshot = options.calibrator;
  const calibrator = createCalibrator(snapshot === undefined ? { family } : { family, snapshot });
  let isCalibrated = snapshot !== undefined;
  let fixed = prefixTokens;
  /** The limit of the last request. */
  let current = working;
  const corrected = (size: number): number => calibrator.correct(size) + calibrator.margin(size);
  return {
    forRequest({ system, tools, format }) {
      const given = tools ?? [];
      const counted = isRfc(policy)
        ? rfcFixed(system, given)
        : {
            system: countSystem(system, counter),
            tools: given.length === 0 ? 0 : countTools(given, counter, { format, model }),
          };
      fixed = prefixTokens + counted.system + counted.tools;
      const taken = isRfc(policy) ? fixed : prefixTokens + roundToClass(counted.system + counted.tools, working);
      return {
        tools: counted.tools,
        messages(growth) {
          current = Math.min(limit, working * growth);
          const whole = isCalibrated ? correctLimit(current, corrected, contextWindow) : current;
          return Math.max(0, whole - taken);
        },
        canGrow: (growth) => working * growth < limit,
      };
    },
    observe(usage, sentTokens) {
      calibrator.observe({ estimated: fixed + sentTokens, usage });
      // A usage without input tokens teaches nothing.
      isCalibrated ||= calibrator.snapshot().anchor !== null;
    },
    refused(sentTokens, tokens) {
      const estimated = fixed + sentTokens;
      const assumed = isCalibrated ? calibrator.correct(estimated) : estimated;
      // A counter for another family of models counts at least this share less (the calibrator's largest ratio).
      const maxCounterError = 1.6;
      // The step for a refusal without numbers.
      const refusalStep = 1.15;
      const isCounterWrong = tokens !== undefined || (!isCalibrated && assumed * maxCounterError >= current);
      if (!isCounterWrong) return Math.floor(assumed / refusalStep);
      const billed = tokens ?? Math.ceil(Math.max(assumed, current) * refusalStep);
      calibrator.observe({ estimated, usage: { input_tokens: billed } });
      isCalibrated = true;
      return undefined;
    },
    rewritten: () => calibrator.reset("history"),
    snapshot: () => (isCalibrated ? calibrator.snapshot() : undefined),
  };
}

/** Rounds the size of system text and tools up to a share of the limit. A date in the system text or one more tool then
 *  changes no decision. Where system text and tools take most of the limit, the steps are finer, because there each
 *  token for messages counts more. */
function roundToClass(tokens: number, limit: number): number {
  const step = limit / (tokens <= limit / 2 ? 16 : 64);
  return step <= 0 ? tokens : Math.ceil(Math.ceil(tokens / step) * step);
}

/** Converts a limit in the provider's tokens to a limit for our estimate. `corrected` returns the most tokens that the
 *  provider would count for an estimate. A correction of at most 10 % is ignored while the window has room for it.
 *  Larger ones are rounded to steps of 5 %. So a process that saw the provider's usage nearly always decides the same
 *  as a process that did not. */
function correctLimit(limit: number, corrected: (estimate: number) => number, contextWindow: number): number {
  // Corrections grow with the estimate.
  let fits = 0;
  let beyond = limit * 2 + 1;
  while (beyond - fits > 1) {
    const estimate = Math.floor((fits + beyond) / 2);
    if (corrected(estimate) <= limit) fits = estimate;
    else beyond = estimate;
  }
  const ratio = limit / Math.max(1, fits);
  if (Math.abs(ratio - 1) <= 0.1 && corrected(limit) <= contextWindow) return limit;
  const step = 0.05;
  return Math.floor(limit / (Math.ceil(ratio / step - 1e-9) * step));
}

/** Estimates system text and tools as the RFC does, so that its policies put the boundary where the RFC puts it. */
function rfcFixed(system: unknown, tools: readonly object[]): { readonly system: number; readonly tools: number } {
  const hasSystem = system !== undefined && system !== null && system !== "";
  // A tool that the provider runs may have no name.
  const named = (tool: object): object =>
    "name" in Object(tool) || "function" in Object(tool) ? tool : { name: JSON.stringify(tool) };
  return {
    system: hasSystem ? estimateTokens([{ role: "system", content: system }]) : 0,
    tools: estimateToolOverhead(Array.isArray(tools) ? tools.map(named) : tools),
  };
}
