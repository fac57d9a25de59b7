/** What the best oldest-first trimming of many sessions costs, from cost alone to keeping all that the window allows. */
import { type Prices, priceOf } from "../../../src/core/billing/index.ts";
import { type BenchSession, messageBudget, PREFIX_TOKENS, PRICES } from "../bench-session.ts";
import type { Point } from "./frontier.ts";
import { type BoundOptions, type BoundResult, fewestBreaks, offlineBound } from "./offline-bound.ts";
import { clearings, type TrimmedMessage, trimmedMessages } from "./trimmed-messages.ts";

export interface BoundMeasureOptions {
  readonly window: number;
  /** Fewer points. */
  readonly isQuick: boolean;
  readonly prices?: Prices | undefined;
}

/** What a call is worth on which everything can be read, in tokens of uncached input. */
const worths = [0, 3, 6, 8, 10, 12, 14, 16, 20, 25, 30, 40, 60, 100, 200, 500].map((each) => each * 1_000);

/** A point for each way of clearing and each worth, with the sessions' costs added up. */
export function measureBound(sessions: readonly BenchSession[], options: BoundMeasureOptions): Point[] {
  const { window, isQuick, prices } = options;
  const chosen = worths.filter((_, index) => !isQuick || index % 3 === 0);
  return clearings.flatMap((clearing) => {
    const trimmed = sessions.map((session) => ({
      session,
      messages: trimmedMessages(session.prepared, clearing),
    }));
    return chosen.map((worth) => {
      const results = trimmed.map(({ session, messages }) => boundOf(session, { messages, window, worth, prices }));
      return pointOf(results);
    });
  });
}

export interface FewestBreaks {
  /** If the turns that `economic` protects stay as long as they can. */
  readonly protecting: number;
  /** If only the newest turn stays, with its results. */
  readonly newestOnly: number;
}

/** The fewest breaks of all sessions together, with the way of clearing that needs the fewest. */
export function measureFewestBreaks(sessions: readonly BenchSession[], window: number): FewestBreaks {
  return {
    protecting: fewestOf(sessions, window),
    newestOnly: fewestOf(sessions, window, { turns: 1, share: 1 }),
  };
}

function fewestOf(sessions: readonly BenchSession[], window: number, protect?: BoundOptions["protect"]): number {
  const breaksWith = (clearing: (typeof clearings)[number]): number =>
    sessions.reduce((sum, session) => {
      const messages = trimmedMessages(session.prepared, clearing);
      const options = { ...boundOptions(session, { window, worth: 0 }), ...(protect !== undefined && { protect }) };
      return sum + fewestBreaks({ messages, calls: session.prepared.calls }, options);
    }, 0);
  return Math.min(...clearings.map(breaksWith));
}

function boundOf(
  session: BenchSession,
  { messages, ...at }: BoundPoint & { readonly messages: readonly TrimmedMessage[] },
): BoundResult {
  return offlineBound({ messages, calls: session.prepared.calls }, boundOptions(session, at));
}

interface BoundPoint extends Pick<BoundMeasureOptions, "window" | "prices"> {
  readonly worth: number;
}

function boundOptions(session: BenchSession, { window, worth, prices = PRICES }: BoundPoint): BoundOptions {
  const { prefixTokens, frameTokens } = session.prepared;
  const { read, write5m } = priceOf({ provider: "anthropic", prices });
  return {
    budget: messageBudget(session, window),
    prefixTokens: PREFIX_TOKENS + prefixTokens + frameTokens,
    price: { read, write: write5m },
    worth,
  };
}

function pointOf(results: readonly BoundResult[]): Point {
  let [cost, keptShares, calls] = [0, 0, 0];
  for (const result of results) {
    cost += result.cost;
    keptShares += result.keptShares;
    calls += result.boundaries.length;
  }
  return { cost, kept: keptShares / calls };
}
