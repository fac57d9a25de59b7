/** Computes what a session would have cost with another cache lifetime, with trimming, or with shorter results: the
 *  recorded requests go through our simulator at their recorded times. The simulation is fitted to the recorded usage
 *  first. A session whose simulated bill is not close to the recorded one is left out. */

import {
  type Bill,
  type CacheSimulator,
  createCacheSimulator,
  inputCost,
  type Prices,
  type Ttl,
} from "../billing/index.ts";
import {
  type PreparedSession,
  prepareStretches,
  type RecordedSession,
  type ReplayPolicy,
  referenceKinds,
  replaySession,
  type SessionReplay,
} from "../replay/index.ts";
import type { Counter } from "../tokens/index.ts";
import { findLosses, type Loss } from "./find-losses.ts";
import type { BilledCall, BilledSession } from "./price-calls.ts";

export interface Variant {
  readonly name: string;
  readonly policy: ReplayPolicy;
  /** The working budget in tokens. */
  readonly window?: number;
  readonly ttl?: Ttl;
}

export const variants: readonly Variant[] = [
  { name: "as sent", policy: "none" },
  { name: "1-hour cache", policy: "none", ttl: "1h" },
  { name: "economic, 64k", policy: "economic", window: 64_000 },
  { name: "economic, 128k", policy: "economic", window: 128_000 },
  { name: "economic, 200k", policy: "economic", window: 200_000 },
  { name: "intake deltas", policy: "none+delta" },
  { name: "all: 1 h, economic 128k, deltas", policy: "economic+delta", window: 128_000, ttl: "1h" },
];

export interface WhatIf {
  /** Input dollars that were recorded. */
  readonly usd: number;
  /** The simulated bill of what was sent, divided by the recorded one. */
  readonly fit: number;
  readonly variants: readonly VariantResult[];
}

export interface VariantResult {
  readonly name: string;
  /** Input dollars. */
  readonly usd: number;
  /** What turns referred to, and how much of it the requests still had. */
  readonly references: { readonly found: number; readonly total: number };
  readonly refetches: number;
  readonly calls: number;
}

export interface WhatIfOptions {
  readonly counter: Counter;
  readonly prices: Prices;
  readonly pause?: (() => Promise<void> | undefined) | undefined;
}

/** The share by which a simulated bill may differ from the recorded one. */
const mostDifference = 0.05;

/** Returns a reason if the session cannot be simulated. */
export async function computeWhatIf(
  recorded: RecordedSession,
  billed: BilledSession,
  options: WhatIfOptions,
): Promise<WhatIf | string> {
  const calls = billed.calls.filter(({ fact, isCopy }) => fact.chain === 0 && !isCopy);
  const model = mainModel(calls);
  const price = calls.find(({ fact }) => fact.model === model)?.price;
  if (model === undefined || price === undefined) return "its model has no price of its own";
  const counter = countOnce(options.counter);
  const [first, ...rest] = prepareStretches(recorded, { counter, model }).filter((stretch) => stretch.calls.length > 0);
  if (first === undefined) return "it has no calls";
  const stretches = [first, ...rest] as const;
  const simulated = stretches.reduce((sum, stretch) => sum + stretch.calls.length, 0);
  if (simulated !== calls.length) return "its requests cannot be matched with its usage";
  const fit = fitTokens(stretches, calls);
  if (fit === undefined) return "its messages do not explain its usage";
  const run = createRun({ stretches, calls, fit, model, billed, options });
  const [asSent, ...others] = variants as readonly [Variant, ...Variant[]];
  const base = await run(asSent);
  // As if all calls had the same model, because the simulator has one.
  const recordedUsd = calls.reduce((sum, { fact }) => sum + inputCost(fact, price).usd, 0);
  const ratio = (base.usd * fit.factor) / recordedUsd;
  const usd = calls.reduce((sum, call) => sum + (call.price ? inputCost(call.fact, call.price).usd : 0), 0);
  if (!(Math.abs(ratio - 1) <= mostDifference))
    return `simulated as ${(100 * ratio).toFixed(0)} % of what was recorded`;
  const results: VariantResult[] = [{ ...base, usd }];
  const largest = calls.reduce((most, { total }) => Math.max(most, total), 0);
  for (const variant of others) {
    // A policy that has nothing to trim sends what was sent.
    if (variant.policy === "economic" && largest + answerTokens <= (variant.window ?? 0)) {
      results.push({ ...base, name: variant.name, usd });
      continue;
    }
    const { usd: own, ...result } = await run(variant);
    results.push({ ...result, usd: (usd * own) / base.usd });
  }
  return { usd, fit: ratio, variants: results };
}

/** All variants send the same texts. Each text is counted once. */
function countOnce({ name, count }: Counter): Counter {
  const known = new Map<string, number>();
  return {
    name,
    count(text) {
      if (text.length < leastRemembered) return count(text);
      const tokens = known.get(text) ?? count(text);
      known.set(text, tokens);
      return tokens;
    },
  };
}

/** Shorter texts are counted as fast as they are found. */
const leastRemembered = 200;

function mainModel(calls: readonly BilledCall[]): string | undefined {
  const tokens = new Map<string, number>();
  for (const { fact, total } of calls) tokens.set(fact.model, (tokens.get(fact.model) ?? 0) + total);
  return [...tokens].sort(([, left], [, right]) => right - left)[0]?.[0];
}

interface TokenFit {
  /** Recorded tokens for one counted token. */
  readonly factor: number;
  /** Counted tokens of what the messages do not show: tools and system text. */
  readonly prefix: number;
}

/** Fits recorded totals = factor × (prefix + counted tokens) over all calls. */
function fitTokens(stretches: readonly PreparedSession[], calls: readonly BilledCall[]): TokenFit | undefined {
  const counted = stretches.flatMap(countedTokens);
  const totals = calls.map(({ total }) => total);
  const mean = (list: readonly number[]): number => list.reduce((sum, each) => sum + each, 0) / list.length;
  const [meanX, meanY] = [mean(counted), mean(totals)];
  const over = counted.reduce((sum, x, at) => sum + (x - meanX) * ((totals[at] as number) - meanY), 0);
  const under = counted.reduce((sum, x) => sum + (x - meanX) ** 2, 0);
  // One call, or calls of one size, show no slope.
  const slope = under > 0 ? over / under : 1;
  const prefix = slope > 0.2 && slope < 5 ? Math.round(meanY / slope - meanX) : 0;
  // A prefix has no negative size. Without one, the factor alone has to explain the totals: the slope of a few small
  // calls would make all of them too large.
  const factor = prefix > 0 ? slope : meanY / Math.max(1, meanX);
  return factor > 0 && Number.isFinite(prefix) ? { factor, prefix: Math.max(0, prefix) } : undefined;
}

function countedTokens({ messages, calls, blocksOf, prefixTokens, frameTokens }: PreparedSession): number[] {
  const sums = [0];
  for (const message of messages) {
    const { tokens } = blocksOf(message);
    sums.push((sums.at(-1) as number) + Object.values(tokens).reduce((sum, each) => sum + each, 0));
  }
  return calls.map((length) => prefixTokens + frameTokens + (sums[length] as number));
}

interface RunContext {
  readonly stretches: readonly [PreparedSession, ...PreparedSession[]];
  readonly calls: readonly BilledCall[];
  readonly fit: TokenFit;
  readonly model: string;
  readonly billed: BilledSession;
  readonly options: WhatIfOptions;
}

/** Losses that neither the recorded times nor the recorded messages bring about. */
const outside: ReadonlySet<string> = new Set(["model", "resumed", "tools or system changed", "unexplained"]);

/** A compaction keeps tools and system text. If nothing at all was read, the whole cache was lost. */
function isOutside({ cause, call }: Loss, { calls }: BilledSession): boolean {
  return outside.has(cause) || (cause !== "expired" && calls[call]?.fact.read === 0);
}

function createRun({ stretches, calls, fit, model, billed, options }: RunContext) {
  const losses = findLosses(billed);
  const callsOf = (some: readonly Loss[]): Set<unknown> => new Set(some.map(({ call }) => billed.calls[call]));
  const lost = callsOf(losses.filter((loss) => isOutside(loss, billed)));
  const expired = callsOf(losses.filter(({ cause }) => cause === "expired"));
  /** What other sessions keep in the cache, such as tools and system text, is left after a loss, and before the first
   *  call. */
  const leftAt = calls.map((call, index) =>
    index === 0 || lost.has(call) || expired.has(call) ? call.fact.read / fit.factor : 0,
  );
  const isLong = calls.reduce((sum, { fact }) => sum + fact.write1h - fact.write5m, 0) > 0;
  const startOf = monotone(calls.map(({ fact }) => fact.start));
  return async ({ name, policy, window = noWindow, ttl }: Variant): Promise<VariantResult> => {
    const scaled = Math.max(1000, Math.round(window / fit.factor));
    const reserve = Math.min(Math.round(answerTokens / fit.factor), Math.floor(scaled / 4));
    const replay = await replaySession(stretches, {
      ...{ policy, window: scaled, reserve, prefixTokens: fit.prefix, prices: options.prices },
      ttl: ttl ?? (isLong ? "1h" : "5m"),
      findsInvalid: false,
      cache: sharedCache(leftAt, { provider: calls[0]?.price?.provider ?? "anthropic", model, prices: options.prices }),
      isCold: (call) => lost.has(calls[call]),
      startOf: (call) => startOf[call],
      pause: () => options.pause?.(),
    });
    return { name, ...resultOf(replay) };
  };
}

const noWindow = 1_000_000_000;
/** Kept free for the answer. */
const answerTokens = 16_000;

/** Clocks go back, and parallel lines are not in order. */
function monotone(times: readonly number[]): readonly number[] {
  let latest = 0;
  return times.map((time) => {
    latest = Math.max(latest, time);
    return latest;
  });
}

/** A cache in which others leave tokens: a call reads at least what the recording says was left before it. The tokens
 *  are not those of whole blocks, because a recording does not show where tools and system text end. */
function sharedCache(leftAt: readonly number[], options: Parameters<typeof createCacheSimulator>[0]): CacheSimulator {
  const cache = createCacheSimulator(options);
  let call = 0;
  return {
    price: cache.price,
    bill(request) {
      const bill = cache.bill(request);
      const left = Math.min(leftAt[call++] ?? 0, bill.total);
      return left > bill.read ? withRead(left, bill, cache) : bill;
    },
  };
}

function withRead(read: number, bill: Bill, { price }: CacheSimulator): Bill {
  const share = (bill.total - read) / (bill.total - bill.read);
  const tokens = {
    ...{ read, write5m: bill.write5m * share, write1h: bill.write1h * share, uncached: bill.uncached * share },
  };
  return { ...bill, ...tokens, ...inputCost(tokens, price) };
}

function resultOf({ calls, totals }: SessionReplay): Omit<VariantResult, "name"> {
  const { references } = totals;
  const sum = (of: "found" | "total"): number => referenceKinds.reduce((all, kind) => all + references[kind][of], 0);
  return {
    usd: calls.reduce((all, { bill }) => all + bill.usd, 0),
    references: { found: sum("found"), total: sum("total") },
    refetches: references.refetches,
    calls: calls.length,
  };
}
