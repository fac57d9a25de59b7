/** Simulates what the calls of one conversation would have cost as the caller wrote them. The same simulation of what was
 *  sent shows whether that figure can be believed. */
import {
  type BillableBlock,
  type CacheSimulator,
  createCacheSimulator,
  type InputTokens,
  inputCost,
  type ModelPrice,
  type Ttl,
} from "../../core/billing/index.ts";

export interface ComparedCall {
  readonly price: ModelPrice;
  readonly startMs: number;
  /** Estimated tokens of system text and tools. */
  readonly fixedTokens: number;
  /** Changes when system text or tools change. */
  readonly prefix: number;
  /** Estimated tokens of the messages as the caller passed them. */
  readonly before: number;
  /** Estimated tokens of the messages as they were sent. */
  readonly after: number;
  readonly isEpoch: boolean;
  /** Where the caller's own request marks the cache. */
  readonly own: OwnMarkers;
  readonly billed: InputTokens;
  /** The most tokens that the model accepts. */
  readonly windowTokens: number;
}

export interface OwnMarkers {
  readonly prefix: boolean;
  readonly end: boolean;
  readonly ttl: Ttl;
}

/** Takes the calls of one conversation in order. Returns the input's cost in dollars as the caller wrote it, or undefined
 *  if it is not known. */
export type CompareCosts = (call: ComparedCall) => number | undefined;

export function createCostComparison(): CompareCosts {
  let simulators: { readonly row: string; readonly sent: CacheSimulator; readonly own: CacheSimulator } | undefined;
  const sent = createGrowingRequest();
  const own = createGrowingRequest();
  const sums = { billedTokens: 0, simulatedTokens: 0, billedUsd: 0, simulatedUsd: 0 };
  return (call) => {
    const { price, billed, startMs } = call;
    const row = `${price.provider} ${price.model}`;
    if (simulators?.row !== row) {
      const options = { provider: price.provider, model: price.model };
      simulators = { row, sent: createCacheSimulator(options), own: createCacheSimulator(options) };
    }
    // What was billed shows whether the request was marked, and for how long.
    const isCached = billed.read + billed.write5m + billed.write1h > 0;
    const ttl = billed.write1h > billed.write5m ? "1h" : "5m";
    const simulated = simulators.sent.bill({
      blocks: sent.next(call, call.after, call.isEpoch),
      breakpoints: placeAt({ prefix: isCached, end: isCached, ttl }, sent.last()),
      startMs,
    });
    const untouched = simulators.own.bill({
      blocks: own.next(call, call.before, false),
      breakpoints: placeAt(call.own, own.last()),
      startMs,
    });
    const { total, usd } = inputCost(billed, price);
    sums.billedTokens += total;
    sums.simulatedTokens += simulated.total;
    const factor = sums.billedTokens / Math.max(1, sums.simulatedTokens);
    sums.billedUsd += usd;
    sums.simulatedUsd += inputCost(scale(simulated, factor), price).usd;
    const isTrue = Math.abs(sums.simulatedUsd - sums.billedUsd) <= tolerance * sums.billedUsd;
    // The provider would have refused a larger request, so it has no price.
    const wouldFit = untouched.total * factor <= call.windowTokens;
    return isTrue && wouldFit ? inputCost(scale(untouched, factor), price).usd : undefined;
  };
}

/** The simulation may differ from the bill by this share. */
const tolerance = 0.05;

function scale({ read, write5m, write1h, uncached }: InputTokens, factor: number): InputTokens {
  return { read: read * factor, write5m: write5m * factor, write1h: write1h * factor, uncached: uncached * factor };
}

function placeAt({ prefix, end, ttl }: OwnMarkers, last: number): { readonly after: number; readonly ttl: Ttl }[] {
  return [...(prefix ? [0] : []), ...(end && last > 0 ? [last] : [])].map((after) => ({ after, ttl }));
}

/** A history nearly always comes back with something appended, so its size says what is new. Reading and comparing whole
 *  histories would make a call cost more than what is new. */
function createGrowingRequest(): {
  /** Returns the blocks of the next request: what is new is one block. */
  next(call: ComparedCall, tokens: number, isRewritten: boolean): readonly BillableBlock[];
  /** The index of the last block. */
  last(): number;
} {
  let messages: BillableBlock[] = [];
  let size = 0;
  let keys = 0;
  let last = 0;
  const block = (tokens: number): BillableBlock => ({ key: `messages ${++keys}`, tokens, kind: "other" });
  const take = (tokens: number, isRewritten: boolean): readonly BillableBlock[] => {
    // A request of less than half the size is a side question, such as one for a title.
    if (!isRewritten && tokens < size / 2) return [block(tokens)];
    if (isRewritten || tokens < size) [messages, size] = [[], 0];
    if (tokens > size || messages.length === 0) messages.push(block(tokens - size));
    size = tokens;
    return messages;
  };
  return {
    next({ fixedTokens, prefix }, tokens, isRewritten) {
      const blocks = [
        { key: `prefix ${prefix}`, tokens: fixedTokens, kind: "prefix" } as const,
        ...take(tokens, isRewritten),
      ];
      last = blocks.length - 1;
      return blocks;
    },
    last: () => last,
  };
}
