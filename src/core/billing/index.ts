export { billableRequest } from "./billable-request.ts";
export { breakEvenCalls, economicBatch } from "./break-even.ts";

export {
  type Bill,
  type BillableRequest,
  type CacheSimulator,
  type CacheSimulatorOptions,
  createCacheSimulator,
  createReplaySimulator,
  type ReplaySimulator,
} from "./cache-simulator.ts";
export {
  costOfUsage,
  type InputTokens,
  inputCost,
  priceUsage,
  stepsOfUsage,
  tariffOfUsage,
  type UsageCost,
  type UsageStep,
  usdOfStep,
} from "./cost-of-usage.ts";
export type { BillableBlock } from "./prefix-chain.ts";
export {
  type ModelPrice,
  type PriceOptions,
  type Prices,
  type Provider,
  priceOf,
  providerOfModel,
  type Tariff,
  type Ttl,
} from "./prices.ts";
