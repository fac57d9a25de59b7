/** Computes when a trim pays. Prices are multiples of the input price; sizes are tokens. */
import { ContextError } from "../errors.ts";
import { isAmount, refuseUnknownOptions, refuseValue } from "../text/index.ts";

/** A trim to judge with `breakEvenCalls`. */
interface Trim {
  /** What a token that is read from the cache costs, as a multiple of the input price: the field `read` of a price. */
  readonly read: number;
  /** What a token that is written to the cache costs, as a multiple of the input price: the field `write5m` of a
   *  price. */
  readonly write: number;
  /** Tokens that the trim removes. */
  readonly cleared: number;
  /** Tokens after the first change, which the provider must write to its cache again. */
  readonly rewritten: number;
}

/**
 * Returns the number of calls after which a trim has paid for itself, if the cache is warm. The trim costs
 * (write − read) · rewritten once and saves read · cleared on every later call. With a cold cache everything is written
 * anyway, so a trim pays at once.
 *
 * @example
 * ```ts
 * import { breakEvenCalls, priceOf } from "plimsoll/billing";
 *
 * const { read, write5m } = priceOf({ provider: "anthropic", model: "claude-sonnet-5" });
 * console.log(breakEvenCalls({ read, write: write5m, cleared: 60_000, rewritten: 20_000 }));
 * ```
 */
export function breakEvenCalls(trim: Trim): number {
  checkFields(trim, ["cleared", "rewritten"]);
  const { read, write, cleared, rewritten } = trim;
  requirePrices(read, write);
  if (rewritten === 0 || write <= read) return 0;
  return ((write - read) * rewritten) / (read * cleared);
}

/** How a conversation grows, for `economicBatch`. */
export interface Growth {
  /** What a token that is read from the cache costs, as a multiple of the input price. */
  readonly read: number;
  /** What a token that is written to the cache costs, as a multiple of the input price. */
  readonly write: number;
  /** Recent tokens that no trim removes. Each trim writes them to the cache again. */
  readonly protectedTokens: number;
  /** Tokens that each call adds. */
  readonly tokensPerCall: number;
  /** The share of calls, from 0 to 1, that find the cache expired.
   * @default 0 */
  readonly coldShare?: number | undefined;
}

/**
 * Returns how many tokens to let pile up before one trim removes them all: √(2·b·P·G/a), with a = read·(1 − λ) +
 * write·λ, the cost of carrying a token along, and b = (write − read)·(1 − λ), the cost of writing one again. P is
 * `protectedTokens`, G is `tokensPerCall` and λ is `coldShare`. This is the economic order quantity: holding cost
 * against the cost of a rewrite.
 *
 * @example
 * ```ts
 * import { economicBatch } from "plimsoll/billing";
 *
 * console.log(economicBatch({ read: 0.1, write: 1.25, protectedTokens: 20_000, tokensPerCall: 2_000 }));
 * ```
 */
export function economicBatch(growth: Growth): number {
  checkFields(growth, ["protectedTokens", "tokensPerCall"], ["coldShare"]);
  const { read, write, protectedTokens, tokensPerCall, coldShare = 0 } = growth;
  requirePrices(read, write);
  if (!(coldShare >= 0 && coldShare <= 1)) refuseValue("coldShare", coldShare, { wanted: "a number from 0 to 1" });
  const carried = read * (1 - coldShare) + write * coldShare;
  const rewritten = Math.max(0, write - read) * (1 - coldShare);
  return Math.sqrt((2 * rewritten * protectedTokens * tokensPerCall) / carried);
}

/** Throws on an unknown field, which is most often a misspelt one, and on a missing number of tokens. */
function checkFields(values: object, tokens: readonly string[], more: readonly string[] = []): void {
  const known = ["read", "write", ...tokens, ...more];
  refuseUnknownOptions(Object(values), known, { noun: "field", all: "Pass" });
  for (const key of tokens) {
    const value: unknown = Object(values)[key];
    if (isAmount(value)) continue;
    refuseValue(key, value, { wanted: "a number of tokens from 0", hint: `Pass ${known.join(", ")}.` });
  }
}

function requirePrices(read: number, write: number): void {
  if (Number.isFinite(read) && read > 0 && Number.isFinite(write) && write > 0) return;
  throw new ContextError("invalid_argument", `read ${read} and write ${write} are not valid prices`, {
    hint: "Pass multiples of the input price above 0, such as 0.1 and 1.25.",
  });
}
