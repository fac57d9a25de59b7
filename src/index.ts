/** The library: everything that touches neither disk, clock, network nor environment. Drivers have doors of their own. */
export { ContextError, type ErrorCode, type ErrorDetails, errorCodes } from "./errors.ts";
export {
  type CountOptions,
  type CountToolsOptions,
  countMessage,
  countMessages,
  countTools,
  type FormatName,
  type ToolChoice,
} from "./messages/index.ts";
export {
  createMemoryStore,
  type ListOptions,
  type ReadOptions,
  type RevisionOptions,
  type Store,
  type StoreRecord,
  type StreamEntry,
} from "./store/index.ts";
export {
  billedInputTokens,
  type Calibrator,
  type CalibratorSnapshot,
  type Counter,
  type CounterOptions,
  counterNameForModel,
  counterNames,
  createCalibrator,
  createCounter,
  type Family,
  families,
  familyOfModel,
  type Observation,
} from "./tokens/index.ts";
