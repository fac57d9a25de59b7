export { billableRequest } from "./billable-request.ts";
export { breakEvenCalls, economicBatch } from "./break-even.ts";

export {
  type Bill,
  type BillableRequest,
  type CacheSimulator,
  type CacheSimulatorOptions,
  createCacheSimulator,
} from "./cache-simulator.ts";
export {
  costOfUsage,
  type InputTokens,
  inputCost,
  stepsOfUsage,
  type UsageCost,
  type UsageStep,
  usdOfStep,
} from "./cost-of-usage.ts";
export type { BillableBlock } from "./prefix-chain.ts";
export {
  type ModelPrice,
  type Prices,
  type Provider,
  priceOf,
  providerOfModel,
  type Ttl,
} from "./prices.ts";
