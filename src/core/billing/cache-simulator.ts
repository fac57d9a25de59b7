import { ContextError } from "../errors.ts";
import { argumentChecks } from "../text/index.ts";
import { type InputTokens, inputCost } from "./cost-of-usage.ts";
import { type BillableBlock, createPrefixChain, type LookbackMode, type PrefixChain } from "./prefix-chain.ts";
import { type CacheRules, type ModelPrice, type PriceOptions, priceOf, type Ttl } from "./prices.ts";

/** Bills the requests of one conversation with one model. Pass them in the order in which they start. */
export interface CacheSimulator {
  /** The price that the simulator applies. */
  readonly price: ModelPrice;
  /** Returns what a request reads from the cache, writes to it and costs, and remembers what it wrote. */
  bill(request: BillableRequest): Bill;
}

/** A request as the provider's cache sees it. `billableRequest` makes one. */
export interface BillableRequest {
  /** The content of the request in order: tools, system text, messages. */
  readonly blocks: readonly BillableBlock[];
  /** Where the request marks the cache. Ignored if the provider caches automatically. */
  readonly breakpoints: readonly Breakpoint[];
  /** When the request starts, in milliseconds. By default no time has passed since the last request. */
  readonly startMs?: number | undefined;
  /** When the answer starts, in milliseconds. Later requests can read from then on what this one wrote.
   * @default the value of `startMs` */
  readonly firstByteMs?: number | undefined;
  /** Whether the cache was lost before this request.
   * @default false */
  readonly isCold?: boolean | undefined;
}

/** What one request's input costs. Output is not included. */
export interface Bill extends InputTokens {
  /** All input tokens. */
  readonly total: number;
  /** The cost, expressed as full-price input tokens. */
  readonly cost: number;
  /** The cost in dollars. */
  readonly usd: number;
  /** True if the request read less than the previous one left in the cache, although that was still there. */
  readonly isBreak: boolean;
  /** True if the provider promises no cache hits, so that `read` is an assumption. */
  readonly isAssumed: boolean;
}

/** The settings of `createCacheSimulator`. */
export interface CacheSimulatorOptions extends PriceOptions {
  /** How many blocks a read looks back from a breakpoint: `positions` counts a run of tool calls or results as one,
   *  as the provider documents it now; `blocks` counts each block, as older documentation did.
   * @default "positions" */
  readonly lookbackMode?: LookbackMode | undefined;
}

/**
 * Simulates a provider's prompt cache: what each request reads, writes and costs. The times come from the requests;
 * without them nothing expires.
 *
 * @example
 * ```ts
 * import { createCacheSimulator } from "plimsoll/billing";
 *
 * const simulator = createCacheSimulator({ provider: "openai", model: "gpt-5" });
 * const blocks = [{ key: "system prompt", tokens: 4_000, kind: "prefix" } as const];
 * const first = simulator.bill({ blocks, breakpoints: [] });
 * const second = simulator.bill({ blocks, breakpoints: [] });
 * console.log(first.usd, second.usd);
 * ```
 */
export function createCacheSimulator(options: CacheSimulatorOptions): CacheSimulator {
  const { price, bill } = createReplaySimulator(options);
  return { price, bill: (request) => bill(request) };
}

/** A simulator whose caller knows how many blocks at the start are those of the previous request. These are not compared,
 *  so that a request costs only what is new. */
export interface ReplaySimulator extends CacheSimulator {
  bill(request: BillableRequest, sameBlocks?: number): Bill;
}

export function createReplaySimulator(options: CacheSimulatorOptions): ReplaySimulator {
  const price = priceOf(options);
  const { lookbackMode = "positions" } = options;
  argumentChecks.oneOf(["positions", "blocks"])("lookback mode", lookbackMode);
  const chain = createPrefixChain(lookbackMode);
  let cache = createCache(price);
  let nowMs = 0;
  return {
    price,
    bill(request, sameBlocks) {
      const { blocks, breakpoints, startMs = nowMs, firstByteMs = startMs } = request;
      if (!Number.isFinite(startMs) || !Number.isFinite(firstByteMs) || firstByteMs < startMs) {
        throw new ContextError(
          "invalid_argument",
          `a request that starts at ${startMs} ms and is answered at ${firstByteMs} ms cannot be billed`,
          { hint: "Pass milliseconds of one clock. An answer starts after its request." },
        );
      }
      if (request.isCold) cache = createCache(price);
      chain.update(blocks, sameBlocks);
      const taken = cache.take({ chain, breakpoints, startMs, firstByteMs });
      nowMs = firstByteMs;
      const { total, cost, usd } = inputCost(taken, price);
      const { read, write5m, write1h, uncached, isBreak } = taken;
      const isAssumed = price.rules.isAssumed && read > 0;
      return { read, write5m, write1h, uncached, total, cost, usd, isBreak, isAssumed };
    },
  };
}

function createCache({ rules, minPrefix }: ModelPrice): PromptCache {
  return rules.matching === "breakpoints"
    ? createBreakpointCache(rules, minPrefix)
    : createAutomaticCache(rules, minPrefix);
}

/** A cache without markers: a request reads what earlier requests had up to the first difference. */
function createAutomaticCache(rules: CacheRules, minPrefix: number): PromptCache {
  // Requests that were sent. Each of their prefixes that ends with a block is in the cache.
  const seen: {
    readonly hashes: Int32Array;
    readonly tokens: number;
    readonly expiresMs: number;
    readonly availableMs: number;
  }[] = [];
  const cacheable = (tokens: number): number => {
    const whole = tokens - (tokens % rules.stepTokens);
    return whole >= minPrefix ? whole : 0;
  };
  // A conversation continues from its last request, or from a slightly earlier one after a rewind.
  const maxSeen = 16;
  return {
    take({ chain, startMs, firstByteMs }) {
      const live = seen.filter((each) => each.availableMs <= startMs && startMs < each.expiresMs);
      const blocks = live.reduce((most, each) => Math.max(most, chain.commonBlocks(each.hashes)), 0);
      const read = blocks === 0 ? 0 : cacheable(chain.tokens(blocks - 1));
      const before = seen.at(-1);
      const isBreak = before !== undefined && live.at(-1) === before && read < before.tokens;
      const total = chain.length === 0 ? 0 : chain.tokens(chain.length - 1);
      seen.push({
        hashes: chain.snapshot(),
        tokens: cacheable(total),
        expiresMs: startMs + rules.lifetimeMs["5m"],
        availableMs: firstByteMs,
      });
      if (seen.length > maxSeen) seen.shift();
      return { read, write5m: 0, write1h: 0, uncached: total - read, isBreak };
    },
  };
}

/** A cache that is written at markers and read by looking back from them. */
function createBreakpointCache(rules: CacheRules, minPrefix: number): PromptCache {
  const entries = new Map<number, CacheEntry>();
  let left: { readonly entry: CacheEntry; readonly tokens: number } | undefined;
  return {
    take(call) {
      const { chain, startMs } = call;
      const markers = checkMarkers(call, rules).filter(({ after }) => chain.tokens(after) >= minPrefix);
      const hit = findHit(entries, markers, { chain, startMs, lookback: rules.lookback });
      const read = hit === undefined ? 0 : chain.tokens(hit);
      const isBreak = left !== undefined && isLive(left.entry, startMs) && read < left.tokens;
      if (hit !== undefined) refresh(entries.get(chain.hash(hit))!, startMs);
      for (const marker of markers) write(entries, marker, { call, rules });
      const last = markers.at(-1);
      left = last && { entry: entries.get(chain.hash(last.after))!, tokens: chain.tokens(last.after) };
      // A is what was read, B what lies before the last 1-hour marker after it, C what lies before the last marker.
      // Then A is read, B − A is written for an hour, C − B for five minutes, and the rest is not cached.
      const tokensAt = (marker: Breakpoint | undefined): number =>
        marker === undefined ? 0 : chain.tokens(marker.after);
      const end = Math.max(read, tokensAt(markers.at(-1)));
      const endOf1h = Math.max(read, tokensAt(markers.findLast(({ ttl }) => ttl === "1h")));
      const total = chain.length === 0 ? 0 : chain.tokens(chain.length - 1);
      return { read, write5m: end - endOf1h, write1h: endOf1h - read, uncached: total - end, isBreak };
    },
  };
}

interface CacheEntry {
  lifetimeMs: number;
  expiresMs: number;
  availableMs: number;
}

/** Returns the markers in order, one for each place. Throws if the provider would refuse their number or order. */
function checkMarkers({ chain, breakpoints }: CacheCall, rules: CacheRules): readonly Breakpoint[] {
  const sorted = breakpoints.toSorted((first, second) => first.after - second.after);
  const markers = sorted.filter(({ after }, index) => after !== sorted[index - 1]?.after);
  for (const [index, { after, ttl }] of sorted.entries()) {
    if (!Number.isInteger(after) || after < 0 || after >= chain.length) {
      fail(`a breakpoint after block ${after} of ${chain.length}`, "Breakpoints name blocks by index.");
    }
    if (ttl !== "5m" && ttl !== "1h") fail(`the lifetime ${JSON.stringify(ttl)}`, "Lifetimes are 5m, 1h.");
    if (ttl === "1h" && sorted[index - 1]?.ttl === "5m") {
      fail(`a 1h breakpoint after block ${after}, which follows a 5m one`, "The longer lifetime comes first.");
    }
    if (ttl === "5m" && sorted[index - 1]?.after === after && sorted[index - 1]?.ttl === "1h") {
      fail(`two lifetimes after block ${after}`, "Set one breakpoint per block.");
    }
  }
  if (markers.length > rules.maxBreakpoints) {
    fail(`${markers.length} breakpoints`, `The provider takes ${rules.maxBreakpoints}.`);
  }
  return markers;
}

function fail(what: string, hint: string): never {
  throw new ContextError("invalid_argument", `${what} cannot be billed`, { hint });
}

/** Looks from the last marker to the first for the nearest live entry within reach. Each position is looked at once. */
function findHit(
  entries: ReadonlyMap<number, CacheEntry>,
  markers: readonly Breakpoint[],
  { chain, startMs, lookback }: { chain: PrefixChain; startMs: number; lookback: number },
): number | undefined {
  let next = Number.POSITIVE_INFINITY;
  for (const { after } of markers.toReversed()) {
    const end = chain.position(after) - lookback;
    for (next = Math.min(next, after); next >= 0 && chain.position(next) > end; next--) {
      const entry = entries.get(chain.hash(next));
      if (entry !== undefined && isLive(entry, startMs)) return next;
    }
  }
  return undefined;
}

function isLive(entry: CacheEntry, startMs: number): boolean {
  return entry.availableMs <= startMs && startMs < entry.expiresMs;
}

/** A refresh keeps the lifetime that the entry was written with. */
function refresh(entry: CacheEntry, startMs: number): void {
  entry.expiresMs = Math.max(entry.expiresMs, startMs + entry.lifetimeMs);
}

function write(
  entries: Map<number, CacheEntry>,
  { after, ttl }: Breakpoint,
  { call, rules }: { call: CacheCall; rules: CacheRules },
): void {
  const { chain, startMs, firstByteMs } = call;
  const lifetimeMs = rules.lifetimeMs[ttl];
  const key = chain.hash(after);
  const entry = entries.get(key);
  if (entry === undefined || startMs >= entry.expiresMs) {
    entries.set(key, { lifetimeMs, expiresMs: startMs + lifetimeMs, availableMs: firstByteMs });
    return;
  }
  // A request that is still in progress wrote the entry. This one pays too, and the first answer makes it readable.
  if (entry.availableMs > startMs) {
    entry.availableMs = Math.min(entry.availableMs, firstByteMs);
    entry.lifetimeMs = Math.max(entry.lifetimeMs, lifetimeMs);
  }
  refresh(entry, startMs);
}

/** A provider's cache over time. */
interface PromptCache {
  /** Returns what a request reads and writes, and remembers what it wrote. */
  take(call: CacheCall): InputTokens & {
    /** Whether less was read than the previous request left: the history was rewritten, or the marker was out of
     *  reach. */
    readonly isBreak: boolean;
  };
}

interface CacheCall {
  readonly chain: PrefixChain;
  readonly breakpoints: readonly Breakpoint[];
  readonly startMs: number;
  /** When the answer starts. From then on other requests can read what this one wrote. */
  readonly firstByteMs: number;
}

/** A cache marker after a block. */
export interface Breakpoint {
  /** The index of the block. */
  readonly after: number;
  readonly ttl: Ttl;
}
