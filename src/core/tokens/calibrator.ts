/** Corrects estimates by what the provider billed. Every response reports the tokens of its whole request. So the
 *  calibrator estimates only what was appended since then, with a ratio that it learnt from earlier turns. */
import { invalidArgument } from "../errors.ts";
import { type Family, families } from "./families.ts";

/** Learns from billed requests how far estimates are off. Created by `createCalibrator`. */
export interface Calibrator {
  /** Learns from the provider's count of a request. Ignores a usage without input tokens. */
  observe(observation: Observation): void;
  /** Returns the tokens that the provider will probably bill for a request with this estimate. */
  correct(estimate: number): number;
  /** Returns the tokens to keep free above `correct(estimate)`, so that about 95 of 100 requests stay below the sum. */
  margin(estimate: number): number;
  /** Forgets what no longer holds. `model`: another model answers from now on, so everything is forgotten. `history`:
   *  text that was already billed has changed, so the billed total is forgotten and the learnt ratio is kept. */
  reset(reason: "model" | "history"): void;
  /** Returns the state as plain data. Pass it to `createCalibrator` to continue later. */
  snapshot(): CalibratorSnapshot;
}

/** One request that was sent, and what the provider billed for it. */
export interface Observation {
  /** The counter's estimate of the whole request, not only of what was appended. Pass the number before `correct`. It
   *  must cover the same things (tools, system text, messages) on every turn. */
  readonly estimated: number;
  /** The `usage` object of that request's response, as Anthropic or OpenAI sent it. */
  readonly usage: unknown;
}

/** The state of a calibrator as plain data. */
export interface CalibratorSnapshot {
  /** The tokenizer that the ratio was learnt for. */
  readonly family: Family;
  /** The last billed request. Null before the first one and after a reset. */
  readonly anchor: { readonly estimated: number; readonly billed: number } | null;
  /** Tokens that requests cost in addition to ratio × estimate, such as tool definitions that were not counted. Used
   *  while there is no anchor. */
  readonly overhead: number;
  /** Appended tokens as billed and as estimated, where older ones weigh less. Their quotient is the ratio. */
  readonly appended: { readonly billed: number; readonly estimated: number };
  /** Errors of past corrections as shares of what was appended, oldest first. A positive one was billed higher than
   *  predicted. */
  readonly residuals: readonly number[];
}

/** Creates a calibrator for one conversation with one model. `family` is the model's tokenizer. `snapshot` continues an
 *  earlier calibrator; a damaged one, or one of another family, is ignored.
 *
 * @example
 * ```ts
 * import { createCalibrator } from "plimsoll/tokens";
 *
 * const calibrator = createCalibrator({ family: "claude-5" });
 * calibrator.observe({ estimated: 10_000, usage: { input_tokens: 11_000 } });
 * console.log(calibrator.correct(12_000), calibrator.margin(12_000));
 * ```
 */
export function createCalibrator(options: {
  readonly family: Family;
  readonly snapshot?: CalibratorSnapshot | undefined;
}): Calibrator {
  const { family, snapshot } = options;
  if (!families.includes(family)) {
    throw invalidArgument(`unknown family "${family}"`, `Families are ${families.join(", ")}.`);
  }
  let state = isUsable(snapshot, family) ? snapshot : freshState(family);
  return {
    observe({ estimated, usage }) {
      requireEstimate(estimated);
      const billed = billedInputTokens(usage);
      if (billed !== undefined) state = { ...learn(state, estimated, billed), anchor: { estimated, billed } };
    },
    correct: (estimate) => Math.ceil(predict(state, requireEstimate(estimate))),
    margin(estimate) {
      const uncertain = requireEstimate(estimate) - (state.anchor?.estimated ?? 0);
      return Math.ceil(residualShare(state.residuals) * Math.max(Math.abs(uncertain), minAppendedTokens));
    },
    reset(reason) {
      if (reason === "model") state = freshState(family);
      else if (state.anchor !== null) {
        const { estimated, billed } = state.anchor;
        // Never negative, because a request cannot be cheaper than its text.
        state = { ...state, anchor: null, overhead: Math.max(0, billed - computeRatio(state) * estimated) };
      }
    },
    snapshot: () => state,
  };
}

/** Returns all input tokens of a response's `usage`, including cached ones, or `undefined` if it has none. Anthropic
 *  reports cached tokens next to `input_tokens`. OpenAI includes them in `prompt_tokens` (Chat Completions) and
 *  `input_tokens` (Responses), Gemini in `promptTokenCount`.
 *
 * @example
 * ```ts
 * import { billedInputTokens } from "plimsoll/tokens";
 *
 * console.log(billedInputTokens({ input_tokens: 20, cache_read_input_tokens: 9_000 })); // 9020
 * ```
 */
export function billedInputTokens(usage: unknown): number | undefined {
  if (typeof usage !== "object" || usage === null) return undefined;
  const fields = usage as Record<string, unknown>;
  const names = [
    "prompt_tokens",
    "promptTokenCount",
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
  ];
  const [prompt, gemini, input, written, read] = names.map((name) => {
    const value = fields[name];
    return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
  }) as [number, number, number, number, number];
  // Some compatible servers fill in both shapes. Then prompt_tokens is already the total.
  const total = Math.max(prompt, gemini) || input + written + read;
  return total > 0 ? total : undefined;
}

// Below this, the fixed tokens around a message outweigh its text, so the quotient says little about the tokenizer.
const minAppendedTokens = 300;
const decay = 0.97;
// The ratio starts at 1, as if this many tokens had been billed as estimated. So one unusual turn does not decide it.
const priorTokens = 2000;

function freshState(family: Family): CalibratorSnapshot {
  const appended = { billed: priorTokens, estimated: priorTokens };
  return { family, anchor: null, overhead: 0, appended, residuals: [] };
}

function isUsable(snapshot: unknown, family: Family): snapshot is CalibratorSnapshot {
  const { anchor, appended, residuals, ...rest } = Object(snapshot) as Partial<CalibratorSnapshot>;
  const isAnchor = anchor === null || (isTokens(anchor?.estimated) && isTokens(anchor?.billed));
  const isAppended = isTokens(appended?.billed) && isTokens(appended?.estimated) && appended.estimated > 0;
  const isResiduals = Array.isArray(residuals) && residuals.every(Number.isFinite);
  return rest.family === family && isTokens(rest.overhead) && isAnchor && isAppended && isResiduals;
}

function isTokens(value: unknown): value is number {
  return Number.isFinite(value) && (value as number) >= 0;
}

function requireEstimate(estimate: number): number {
  if (isTokens(estimate)) return estimate;
  throw invalidArgument(
    `an estimate must be a number of tokens, got ${estimate}`,
    "Pass the counter's estimate of the whole request.",
  );
}

/** Updates the ratio. If the total shrank, the history was rewritten without a `reset`, so there is nothing to
 *  learn. */
function learn(state: CalibratorSnapshot, estimated: number, billed: number): CalibratorSnapshot {
  if (state.anchor === null) return state;
  const appendedEstimate = estimated - state.anchor.estimated;
  const appendedBilled = billed - state.anchor.billed;
  if (appendedEstimate <= minAppendedTokens || appendedBilled <= 0) return state;
  const residual = (billed - predict(state, estimated)) / appendedEstimate;
  const maxResiduals = 100;
  return {
    ...state,
    appended: {
      billed: decay * state.appended.billed + appendedEstimate * clampRatio(appendedBilled / appendedEstimate),
      estimated: decay * state.appended.estimated + appendedEstimate,
    },
    residuals: [...state.residuals, residual].slice(-maxResiduals),
  };
}

function predict(state: CalibratorSnapshot, estimate: number): number {
  if (state.anchor === null) return computeRatio(state) * estimate + state.overhead;
  return Math.max(0, state.anchor.billed + computeRatio(state) * (estimate - state.anchor.estimated));
}

function computeRatio(state: CalibratorSnapshot): number {
  return clampRatio(state.appended.billed / state.appended.estimated);
}

function clampRatio(ratio: number): number {
  const minRatio = 0.7;
  const maxRatio = 1.6;
  return Math.min(maxRatio, Math.max(minRatio, ratio));
}

/** Returns the 95th percentile of the residuals, by the rank that also holds for the next residual and not only for
 *  those seen. */
function residualShare(residuals: readonly number[]): number {
  const sorted = residuals.toSorted((a, b) => a - b);
  const rank = Math.min(sorted.length, Math.ceil(0.95 * (sorted.length + 1)));
  const share = Math.max(0, sorted[rank - 1] ?? 0);
  // Used until enough turns were seen. The estimator's p95 error on unknown text is about a tenth.
  const priorShare = 0.1;
  const minResiduals = 20;
  return sorted.length < minResiduals ? Math.max(priorShare, share) : share;
}
