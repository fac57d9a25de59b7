import type { ModelPrice } from "./prices.ts";

/** The input tokens of a request by what they cost. `write5m` is what was written for the short lifetime, `write1h` for the long one. */
export interface InputTokens {
  readonly read: number;
  readonly write5m: number;
  readonly write1h: number;
  readonly uncached: number;
}

export interface InputCost {
  readonly total: number;
  /** In tokens of uncached input: what a prompt of this many tokens would cost without a cache. */
  readonly cost: number;
  readonly usd: number;
}

/** What input tokens cost. Above the model's threshold for long prompts all of them cost more, which counts in `cost`, too. */
export function inputCost(tokens: InputTokens, price: ModelPrice): InputCost {
  const { read, write5m, write1h, uncached } = tokens;
  const total = read + write5m + write1h + uncached;
  const cost =
    longFactors(total, price).input *
    (read * price.read + write5m * price.write5m + write1h * price.write1h + uncached);
  return { total, cost, usd: (cost * price.input) / million };
}

/** What the answer to a prompt of `total` tokens costs, in the same units; it costs more after a long prompt, too. */
export function outputCost(output: number, total: number, price: ModelPrice): { cost: number; usd: number } {
  const usd = (longFactors(total, price).output * output * price.output) / million;
  return { cost: price.input > 0 ? (usd * million) / price.input : 0, usd };
}

const million = 1_000_000;
const noFactors = { input: 1, output: 1 };

function longFactors(total: number, { longPrompt }: ModelPrice): { input: number; output: number } {
  return longPrompt !== undefined && total > longPrompt.above ? longPrompt : noFactors;
}
