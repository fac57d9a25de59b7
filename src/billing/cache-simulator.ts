import { ContextError } from "../errors.ts";
import { createAutomaticCache } from "./cache/automatic-cache.ts";
import { createBreakpointCache } from "./cache/breakpoint-cache.ts";
import { type BillableBlock, createPrefixChain, type LookbackMode } from "./cache/prefix-chain.ts";
import type { Breakpoint, PromptCache } from "./cache/prompt-cache.ts";
import { type InputTokens, inputCost } from "./input-cost.ts";
import { type ModelPrice, type PriceOptions, priceOf } from "./prices.ts";

/** Bills the requests of one conversation with one model, in the order of their start. */
export interface CacheSimulator {
  readonly price: ModelPrice;
  bill(request: BillableRequest): Bill;
}

export interface BillableRequest {
  readonly blocks: readonly BillableBlock[];
  /** Not looked at where the provider caches by itself. */
  readonly breakpoints: readonly Breakpoint[];
  /** Absent: no time has passed since the request before. */
  readonly startMs?: number | undefined;
  /** When the answer began, from which moment on others can read what this request wrote. Absent: at once. */
  readonly firstByteMs?: number | undefined;
  /** The cache was lost before this request. */
  readonly isCold?: boolean | undefined;
}

/** Tokens by kind, and what they cost. Output is not part of it. */
export interface Bill extends InputTokens {
  readonly total: number;
  /** In tokens of uncached input. */
  readonly cost: number;
  readonly usd: number;
  /** The request read less than the one before had left in the cache, although it was still there. */
  readonly isBreak: boolean;
  /** The provider promises no hit: what is `read` here is an assumption. */
  readonly isAssumed: boolean;
}

export interface CacheSimulatorOptions extends PriceOptions {
  readonly lookbackMode?: LookbackMode | undefined;
}

/** A provider's prompt cache, simulated: what each request reads, writes and costs. Time is the caller's; without it nothing expires. */
export function createCacheSimulator(options: CacheSimulatorOptions): CacheSimulator {
  const price = priceOf(options);
  const chain = createPrefixChain(checkMode(options.lookbackMode ?? "positions"));
  let cache = createCache(price);
  let nowMs = 0;
  return {
    price,
    bill(request) {
      const { blocks, breakpoints, startMs = nowMs, firstByteMs = startMs } = request;
      checkTimes(startMs, firstByteMs);
      if (request.isCold) cache = createCache(price);
      chain.update(blocks);
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

function checkMode(mode: LookbackMode): LookbackMode {
  if (mode === "positions" || mode === "blocks") return mode;
  throw new ContextError("invalid_argument", `unknown lookback mode ${JSON.stringify(mode)}`, {
    hint: "Modes are positions, blocks.",
  });
}

function checkTimes(startMs: number, firstByteMs: number): void {
  if (Number.isFinite(startMs) && Number.isFinite(firstByteMs) && firstByteMs >= startMs) return;
  throw new ContextError(
    "invalid_argument",
    `a request from ${startMs} ms whose answer began at ${firstByteMs} ms cannot be billed`,
    { hint: "Times are milliseconds on one clock, and an answer begins after its request." },
  );
}
