/** Reports what requests cost: model prices, a simulated prompt cache, and the cost of recorded usage. */
export {
  type Bill,
  type BillableRequest,
  billableRequest,
  breakEvenCalls,
  type CacheSimulator,
  type CacheSimulatorOptions,
  costOfUsage,
  createCacheSimulator,
  economicBatch,
  type Prices,
  type Provider,
  priceOf,
  type UsageCost,
} from "../core/billing/index.ts";
