/** Corrects estimates by what the provider billed. Every response says how many tokens its whole request had, so that only
 *  what was appended since then has to be estimated, and that with a ratio learnt from the turns before. */
import { ContextError } from "../errors.ts";
import { type Family, families } from "./families.ts";

export interface Calibrator {
  /** Takes the provider's count of a request whose estimate is known. A usage without input tokens is ignored. */
  observe(observation: Observation): void;
  /** The tokens that a request of this estimate will be billed. */
  correct(estimate: number): number;
  /** What to keep free above `correct(estimate)`, so that about 95 of 100 requests stay below the sum. */
  margin(estimate: number): number;
  /** `model`: another model answers from now on, forget everything. `history`: text that was already billed changed
   *  (trimmed, compressed, edited), forget the billed total but keep what was learnt about the model. */
  reset(reason: "model" | "history"): void;
  /** Plain data for a checkpoint; `createCalibrator` takes it back. */
  snapshot(): CalibratorSnapshot;
}

export interface Observation {
  /** The counter's estimate of the whole request, not of what was appended: the calibrator takes the difference itself. It must
   *  be the number before `correct`, and cover the same things (tools, system text, messages) on every turn. */
  estimated: number;
  /** The `usage` object of that request's response, as Anthropic or OpenAI sent it. */
  usage: unknown;
}

export interface CalibratorSnapshot {
  readonly family: Family;
  /** The last billed request, null before the first and after a reset. */
  readonly anchor: { readonly estimated: number; readonly billed: number } | null;
  /** What requests cost beyond ratio × estimate (framing, tool definitions nobody counted); used while there is no anchor. */
  readonly overhead: number;
  /** Appended tokens, older ones weighing less: as billed and as estimated. Their quotient is the ratio. */
  readonly appended: { readonly billed: number; readonly estimated: number };
  /** Errors of past corrections as shares of what was appended, oldest first; positive means billed more than predicted. */
  readonly residuals: readonly number[];
}

/** A calibrator for one conversation with one model. A snapshot of another family is left aside, since its ratio means nothing here, and
 *  so is a damaged one: a checkpoint that cannot be read costs what was learnt, not the session. */
export function createCalibrator(options: { family: Family; snapshot?: CalibratorSnapshot }): Calibrator {
  const { family, snapshot } = options;
  if (!families.includes(family)) {
    throw new ContextError("invalid_argument", `unknown family "${family}"`, {
      hint: `Families are ${families.join(", ")}.`,
    });
  }
  let state = isSnapshotOf(family, snapshot) ? snapshot : freshState(family);
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
      else state = { ...state, anchor: null, overhead: overheadOf(state) };
    },
    snapshot: () => state,
  };
}

/** All input tokens of a response's usage, cached ones included; undefined when there are none to read. Anthropic reports
 *  cached text beside `input_tokens`, OpenAI inside `prompt_tokens` (chat) and `input_tokens` (responses). */
export function billedInputTokens(usage: unknown): number | undefined {
  if (typeof usage !== "object" || usage === null) return undefined;
  const fields = usage as Record<string, unknown>;
  const names = ["prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
  const [prompt, input, written, read] = names.map((name) => {
    const value = fields[name];
    return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
  }) as [number, number, number, number];
  // Some compatible servers fill both shapes; prompt_tokens is then the total already.
  const total = prompt > 0 ? prompt : input + written + read;
  return total > 0 ? total : undefined;
}

// Below this the fixed tokens around a message outweigh its text, and the quotient says little about the tokenizer.
const minAppendedTokens = 300;
const decay = 0.97;
const minRatio = 0.7;
const maxRatio = 1.6;
// The ratio starts at 1 as if this many tokens had been billed as estimated: one odd turn does not decide it.
const priorTokens = 2000;
// Before enough turns are seen: the estimator's p95 error on text it was not fitted on is about a tenth.
const priorShare = 0.1;
const minResiduals = 20;
const maxResiduals = 100;

function freshState(family: Family): CalibratorSnapshot {
  const appended = { billed: priorTokens, estimated: priorTokens };
  return { family, anchor: null, overhead: 0, appended, residuals: [] };
}

function isSnapshotOf(family: Family, snapshot: unknown): snapshot is CalibratorSnapshot {
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
  throw new ContextError("invalid_argument", `an estimate must be a number of tokens, got ${estimate}`, {
    hint: "Pass the counter's estimate of the whole request.",
  });
}

/** A total that shrank, as billed or as estimated, is no append: history was rewritten unannounced, and nothing can be learnt. */
function learn(state: CalibratorSnapshot, estimated: number, billed: number): CalibratorSnapshot {
  if (state.anchor === null) return state;
  const appendedEstimate = estimated - state.anchor.estimated;
  const appendedBilled = billed - state.anchor.billed;
  if (appendedEstimate <= minAppendedTokens || appendedBilled <= 0) return state;
  const residual = (billed - predict(state, estimated)) / appendedEstimate;
  return {
    ...state,
    appended: {
      billed:
        decay * state.appended.billed + appendedEstimate * clampRatio(appendedBilled / appendedEstimate),
      estimated: decay * state.appended.estimated + appendedEstimate,
    },
    residuals: [...state.residuals, residual].slice(-maxResiduals),
  };
}

function predict(state: CalibratorSnapshot, estimate: number): number {
  if (state.anchor === null) return ratioOf(state) * estimate + state.overhead;
  return Math.max(0, state.anchor.billed + ratioOf(state) * (estimate - state.anchor.estimated));
}

function ratioOf(state: CalibratorSnapshot): number {
  return clampRatio(state.appended.billed / state.appended.estimated);
}

function clampRatio(ratio: number): number {
  return Math.min(maxRatio, Math.max(minRatio, ratio));
}

/** Never negative: a request is not promised to be cheaper than its text. */
function overheadOf(state: CalibratorSnapshot): number {
  if (state.anchor === null) return state.overhead;
  return Math.max(0, state.anchor.billed - ratioOf(state) * state.anchor.estimated);
}

/** The 95th percentile of the residuals, by the rank that also holds for the next residual and not only for those seen. */
function residualShare(residuals: readonly number[]): number {
  const sorted = residuals.toSorted((a, b) => a - b);
  const rank = Math.min(sorted.length, Math.ceil(0.95 * (sorted.length + 1)));
  const share = Math.max(0, sorted[rank - 1] ?? 0);
  return sorted.length < minResiduals ? Math.max(priorShare, share) : share;
}
