import type { TrackedMessage } from "./tracked-history.ts";

/** Tokens of a whole history, kept up to date message by message: a call must not add them all up. */
export interface Totals {
  /** As they came in. */
  original: number;
  /** As they go out. */
  tokens: number;
  /** Of those that came in, the ones that can still be read. */
  kept: number;
}

export function addMessage(totals: Totals, { original, tokens, kept }: TrackedMessage): void {
  totals.original += original.tokens;
  totals.tokens += tokens;
  totals.kept += kept;
}

export function subtractMessage(totals: Totals, { original, tokens, kept }: TrackedMessage): void {
  totals.original -= original.tokens;
  totals.tokens -= tokens;
  totals.kept -= kept;
}
