export interface Search {
  readonly limit: number;
  /** The largest number that is asked for. */
  readonly most: number;
  /** Where to look first: near what will fit, and not far above it, since larger numbers cost more to count. */
  readonly first: number;
  /** Grows with the number, nearly evenly. May be infinite above the limit. */
  tokensAt(number: number): number;
}

/** A number whose tokens are within the limit while those of the next are not. 0 is taken to fit. Needs few counts: every other look is
 *  where the limit would be if tokens grew evenly, the others halve what is left. */
export function largestWithin({ limit, most, first, tokensAt }: Search): number {
  let [low, lowTokens] = [0, 0];
  let high = Math.min(most, Math.max(1, first));
  let highTokens = tokensAt(high);
  while (highTokens <= limit) {
    if (high >= most) return most;
    [low, lowTokens] = [high, highTokens];
    high = Math.min(most, high * 2);
    highTokens = tokensAt(high);
  }
  for (let evenly = true; high - low > 1; evenly = !evenly) {
    const rising = highTokens > lowTokens && highTokens < Number.POSITIVE_INFINITY;
    const part = evenly && rising ? (limit - lowTokens) / (highTokens - lowTokens) : 0.5;
    const middle = Math.min(high - 1, Math.max(low + 1, Math.round(low + (high - low) * part)));
    const tokens = tokensAt(middle);
    if (tokens <= limit) [low, lowTokens] = [middle, tokens];
    else [high, highTokens] = [middle, tokens];
  }
  return low;
}
