export { type BillableRequestOptions, billableRequest } from "./billable-request.ts";
export { breakEvenCalls, economicBatch, type Growth, type Trim } from "./break-even.ts";
export { type CacheRules, type Lifetimes, type Provider, providers, type Ttl } from "./cache/cache-rules.ts";
export type { BillableBlock, BlockKind, LookbackMode } from "./cache/prefix-chain.ts";
export type { Breakpoint } from "./cache/prompt-cache.ts";
export {
  type Bill,
  type BillableRequest,
  type CacheSimulator,
  type CacheSimulatorOptions,
  createCacheSimulator,
} from "./cache-simulator.ts";
export { costOfUsage, type UsageCost, type UsageOptions } from "./cost-of-usage.ts";
export type { InputTokens } from "./input-cost.ts";
export type { LongPrompt } from "./prices.data.ts";
export {
  type ModelPrice,
  type PriceOptions,
  type Prices,
  priceKeys,
  priceOf,
  providerOfModel,
} from "./prices.ts";
