export {
  billedInputTokens,
  type Calibrator,
  type CalibratorSnapshot,
  createCalibrator,
} from "./calibrator.ts";
export {
  type Counter,
  type CounterName,
  counterNameForModel,
  counterNames,
  createCounter,
  createDraftCounter,
  plainCounter,
} from "./create-counter.ts";
export { type Family, families, familyOfModel, findModelRow, isClaude, normaliseModel } from "./families.ts";
