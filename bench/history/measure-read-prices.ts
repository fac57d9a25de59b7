/** What `economic` costs beside the offline bound at each price of reading from the cache. The bound is computed for each price:
 *  the cheaper reading is, the rarer an epoch pays. */
import type { Prices } from "../../src/core/billing/index.ts";
import { type BenchSession, needsTrimming } from "./bench-session.ts";
import { createHull } from "./bound/frontier.ts";
import { type BoundMeasureOptions, measureBound } from "./bound/measure-bound.ts";
import { policyRun, replayAll } from "./replay-runs.ts";

export interface ReadPriceRow {
  readonly window: number;
  /** The price of a token that is read, as a share of one of uncached input. */
  readonly read: number;
  readonly kept: number;
  /** Cost as a multiple of the bound's at the same kept share; absent where the bound does not keep as much. */
  readonly toBound?: number | undefined;
}

/** Older Claude models; Opus 5.5 and Sonnet 5.5; Fable and Mythos from 5.1 on (2026-11). */
const readPrices = [0.1, 0.05, 0.025] as const;

export async function measureReadPrices(
  sessions: readonly BenchSession[],
  options: Omit<BoundMeasureOptions, "prices">,
): Promise<ReadPriceRow[]> {
  const { window } = options;
  const needing = sessions.filter((session) => needsTrimming(session, window));
  if (needing.length === 0) return [];
  const rows: ReadPriceRow[] = [];
  for (const read of readPrices) {
    // Dollars per million tokens, so that a price is also its share of the input's.
    const prices: Prices = { anthropic: { input: 1, cache_read: read, cache_write_5m: 1.25 } };
    const { cost, visibleShare: kept } = await replayAll(needing, policyRun("economic", prices), window);
    const bound = createHull(measureBound(needing, { ...options, prices }))(kept);
    rows.push({ window, read, kept, toBound: bound && cost / bound });
  }
  return rows;
}
