/** Computes what pauses would have cost with another habit, at the recorded times: with calls that keep the cache alive, and
 *  with a compaction before the cache expires. */

import { inputCost, type ModelPrice } from "../../core/billing/index.ts";
import { type CallPair, comparePairs, findLosses, lifetimeMs, measureGap } from "./find-losses.ts";
import { type BilledCall, type BilledSession, countInput } from "./price-calls.ts";

export interface IdleCosts {
  /** Input dollars that were recorded for the main conversations. */
  readonly usd: number;
  readonly sessions: number;
  /** With up to `limit` pings in each pause. The limit is the one that would have cost these sessions least. */
  readonly pings: { readonly usd: number; readonly limit: number };
  readonly compaction: {
    readonly usd: number;
    /** What the first calls after the pauses save. The rest is saved later, because the context is smaller. */
    readonly savedOnReturn: number;
    readonly compactions: number;
  };
  /** Pauses that are longer than the cache lives, the ends of sessions included. */
  readonly pauses: PauseTotals;
  /** Only the pauses with a context large enough for idle compaction. */
  readonly largePauses: PauseTotals;
}

export interface PauseTotals {
  readonly count: number;
  /** The share of pauses after which the person came back in time. For pings: while one ping still keeps the cache. For
   *  compaction: at all. */
  readonly returned: number;
  /** The share from which on the habit pays. */
  readonly breakEven: number;
}

/** The most pings in one pause. With nearly all prices, more cost more than they save; the exceptions are models with
 *  the cheapest reads. */
const mostPings = 24;
/** A ping comes a little before the cache expires: after 280 s of 5 minutes. */
const pingShare = 14 / 15;
/** Idle compaction starts at `compactionTokens` and leaves a summary of `summaryTokens`. */
export const compactionTokens = 100_000;
const summaryTokens = 5_000;

export function computeIdleCosts(sessions: readonly BilledSession[]): IdleCosts {
  const pings = Array.from({ length: mostPings + 1 }, () => 0);
  const sum = { usd: 0, sessions: 0, saved: 0, savedOnReturn: 0, compactions: 0 };
  const rates = { all: createRate(), large: createRate() };
  for (const session of sessions) {
    const calls = session.calls.filter(({ fact, isCopy, price }) => fact.chain === 0 && !isCopy && price !== undefined);
    if (calls.length === 0) continue;
    sum.sessions++;
    sum.usd += calls.reduce((all, { fact, price }) => all + inputCost(fact, price as ModelPrice).usd, 0);
    for (const pause of listPauses(session)) {
      for (const limit of pings.keys()) pings[limit]! += pricePings(pause, limit);
      rates.all.add({ cost: pause.readUsd, gain: pause.writeUsd - pause.readUsd, isBack: countPings(pause) <= 1 });
    }
    const compacted = compactPauses(session, rates.large);
    sum.saved += compacted.saved;
    sum.savedOnReturn += compacted.savedOnReturn;
    sum.compactions += compacted.compactions;
  }
  const limit = pings.reduce((best, cost, at) => (at > 0 && cost < (pings[best] as number) ? at : best), 1);
  return {
    usd: sum.usd,
    sessions: sum.sessions,
    pings: { usd: sum.usd + (pings[limit] as number), limit },
    compaction: { usd: sum.usd - sum.saved, savedOnReturn: sum.savedOnReturn, compactions: sum.compactions },
    pauses: rates.all.totals(),
    largePauses: rates.large.totals(),
  };
}

/** A pause after which nothing is left of what a call wrote. */
interface Pause {
  readonly gapMs: number;
  readonly lifetimeMs: number;
  /** What the expired cache cost. 0 if nobody came back, or others kept it alive. */
  readonly lossUsd: number;
  /** What it costs to read all that was left once, and to write it. */
  readonly readUsd: number;
  readonly writeUsd: number;
}

function listPauses(session: BilledSession): readonly Pause[] {
  const lossUsd = new Map<number, number>();
  for (const { call, cause, usd = 0 } of findLosses(session)) if (cause === "expired") lossUsd.set(call, usd);
  const pauses: Pause[] = [];
  let last: CallPair | undefined;
  for (const pair of comparePairs(session)) {
    const { before, call, index } = pair;
    if (call.fact.chain !== 0 || call.isCopy) continue;
    last = pair;
    if (measureGap(pair) <= lifetimeMs(pair) || before.price === undefined) continue;
    pauses.push(describePause(pair, measureGap(pair), lossUsd.get(index) ?? 0));
  }
  // Nobody came back after the last call.
  if (last?.call.price !== undefined) {
    const { call } = last;
    const left = call.fact.read + call.fact.write5m + call.fact.write1h;
    pauses.push(describePause({ ...last, before: call, left }, Number.POSITIVE_INFINITY, 0));
  }
  return pauses;
}

function describePause(pair: CallPair, gapMs: number, lossUsd: number): Pause {
  const { before, left, lifetime } = pair;
  const price = before.price as ModelPrice;
  const none = { read: 0, write5m: 0, write1h: 0, uncached: 0 };
  const written = lifetime.has1h && !lifetime.has5m ? { write1h: left } : { write5m: left };
  return {
    gapMs,
    lifetimeMs: lifetimeMs(pair),
    lossUsd,
    readUsd: inputCost({ ...none, read: left }, price).usd,
    writeUsd: inputCost({ ...none, ...written }, price).usd,
  };
}

/** Returns how many pings keep the cache until the person is back. */
function countPings({ gapMs, lifetimeMs: lifetime }: Pause): number {
  return Math.ceil(gapMs / (pingShare * lifetime)) - 1;
}

/** Returns what up to `limit` pings add to the bill. It is negative if they save more than they cost. */
function pricePings(pause: Pause, limit: number): number {
  const needed = countPings(pause);
  return needed <= limit ? needed * pause.readUsd - pause.lossUsd : limit * pause.readUsd;
}

/** Sums when a habit pays: it costs something in each pause, and gains something if the person comes back. */
function createRate() {
  const sum = { count: 0, returned: 0, cost: 0, gain: 0 };
  return {
    add({ cost, gain, isBack }: { readonly cost: number; readonly gain: number; readonly isBack: boolean }): void {
      sum.count++;
      sum.returned += Number(isBack);
      sum.cost += cost;
      sum.gain += gain;
    },
    totals(): PauseTotals {
      const share = (part: number, all: number): number => (all > 0 ? part / all : 0);
      return { count: sum.count, returned: share(sum.returned, sum.count), breakEven: share(sum.cost, sum.gain) };
    },
  };
}

interface Compacted {
  readonly saved: number;
  readonly savedOnReturn: number;
  readonly compactions: number;
}

/** Replaces the context by the first request and a summary before each long pause. */
function compactPauses(session: BilledSession, rate: ReturnType<typeof createRate>): Compacted {
  const sum = { saved: 0, savedOnReturn: 0, compactions: 0 };
  /** The tokens that requests no longer have. */
  let removed = 0;
  const compact = ({ call, first }: Pick<CallPair, "call" | "first">, isBack: boolean): void => {
    const total = call.total - removed;
    const price = call.price;
    const smaller = Math.min(first.total, total) + summaryTokens;
    if (total < compactionTokens || total <= smaller || price === undefined) return;
    const none = { read: 0, write5m: 0, write1h: 0, uncached: 0 };
    const cost = inputCost({ ...none, read: total }, price).usd + (summaryTokens * price.output) / 1e6;
    const isLong = call.fact.write1h > call.fact.write5m;
    const written = isLong ? { write1h: total - smaller } : { write5m: total - smaller };
    rate.add({ cost, gain: inputCost({ ...none, ...written }, price).usd, isBack });
    sum.compactions++;
    sum.saved -= cost;
    sum.savedOnReturn -= cost;
    removed += total - smaller;
  };
  let last: CallPair | undefined;
  for (const pair of comparePairs(session)) {
    const { before, call, first } = pair;
    if (call.fact.chain !== 0 || call.isCopy || call.price === undefined) continue;
    last = pair;
    // The program made the context smaller itself, or went back to before.
    if (call.fact.back !== undefined || call.fact.marks.includes("compaction")) removed = 0;
    const isPause = measureGap(pair) > lifetimeMs(pair);
    if (isPause && call.fact.back === undefined) compact({ call: before, first }, true);
    const saved = removed === 0 ? 0 : priceRemoved(call, { removed, kept: first.total });
    sum.saved += saved;
    if (isPause) sum.savedOnReturn += saved;
  }
  if (last !== undefined) compact({ call: last.call, first: last.first }, false);
  return sum;
}

/** Returns what a call costs less without the removed tokens. The first `kept` tokens stay where they are. */
function priceRemoved({ fact, price }: BilledCall, { removed, kept }: { removed: number; kept: number }): number {
  const total = Math.max(0, countInput(fact) - removed);
  const read = Math.min(total, Math.max(Math.min(fact.read, kept), fact.read - removed));
  const sent = countInput(fact) - fact.read;
  const share = sent === 0 ? 0 : Math.min(1, (total - read) / sent);
  const { write5m, write1h, uncached } = fact;
  const tokens = { read, write5m: write5m * share, write1h: write1h * share, uncached: uncached * share };
  return inputCost(fact, price as ModelPrice).usd - inputCost(tokens, price as ModelPrice).usd;
}
