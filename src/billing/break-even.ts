/** When a trim pays. All numbers are multiples of the input price, and tokens. */
import { ContextError } from "../errors.ts";
import { didYouMean } from "../text/index.ts";

export interface Trim {
  /** What a token costs that is read from the cache, and one that is written: `read` and `write5m` of a price. */
  readonly read: number;
  readonly write: number;
  /** Tokens that the trim takes away. */
  readonly cleared: number;
  /** Tokens behind the first edit, which have to be written again. */
  readonly rewritten: number;
}

/** After how many calls a trim of a warm cache has paid: it costs (write − read) · rewritten once and saves read · cleared on every
 *  call from then on. In a cold cache everything is written anyway and a trim pays at once. */
export function breakEvenCalls(trim: Trim): number {
  checkFields(trim, ["cleared", "rewritten"]);
  const { read, write, cleared, rewritten } = trim;
  requirePrices(read, write);
  if (rewritten === 0 || write <= read) return 0;
  return ((write - read) * rewritten) / (read * cleared);
}

export interface Growth {
  readonly read: number;
  readonly write: number;
  /** Recent tokens that no trim touches: they are written again by each. */
  readonly protectedTokens: number;
  /** Tokens that every call adds. */
  readonly tokensPerCall: number;
  /** Share of calls that find the cache cold, 0 to 1. Absent: 0. */
  readonly coldShare?: number | undefined;
}

/** How many tokens to let pile up before they are trimmed in one go: √(2·b·P·G/a) with a = read·(1 − λ) + write·λ, what a token costs
 *  that is carried along, and b = (write − read)·(1 − λ), what one costs that has to be written again; P protected, G grown per call,
 *  λ cold. The economic order quantity: holding costs against the cost of a rewrite. */
export function economicBatch(growth: Growth): number {
  checkFields(growth, ["protectedTokens", "tokensPerCall"], ["coldShare"]);
  const { read, write, protectedTokens, tokensPerCall, coldShare = 0 } = growth;
  requirePrices(read, write);
  if (!(coldShare >= 0 && coldShare <= 1)) {
    throw new ContextError("invalid_argument", `a share of cold calls of ${coldShare} is not from 0 to 1`);
  }
  const carried = read * (1 - coldShare) + write * coldShare;
  const rewritten = Math.max(0, write - read) * (1 - coldShare);
  return Math.sqrt((2 * rewritten * protectedTokens * tokensPerCall) / carried);
}

/** A name that is not known is most often another word for one that is, and without it the answer would be no number. */
function checkFields(values: object, tokens: readonly string[], more: readonly string[] = []): void {
  const known = ["read", "write", ...tokens, ...more];
  const hint = `Pass ${known.join(", ")}.`;
  const unknown = Object.keys(Object(values)).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    const meant = didYouMean(unknown, known);
    throw new ContextError("invalid_argument", `unknown field "${unknown}"`, { hint: meant ?? hint });
  }
  for (const key of tokens) {
    const value: unknown = Object(values)[key];
    if (typeof value === "number" && Number.isFinite(value) && value >= 0) continue;
    throw new ContextError("invalid_argument", `${key} must be a number of tokens from 0, got ${value}`, {
      hint,
    });
  }
}

function requirePrices(read: number, write: number): void {
  if (Number.isFinite(read) && read > 0 && Number.isFinite(write) && write > 0) return;
  throw new ContextError("invalid_argument", `a read at ${read} and a write at ${write} are no prices`, {
    hint: "Pass multiples of the input price above 0, such as 0.1 and 1.25.",
  });
}
