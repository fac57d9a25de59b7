export {
  billedInputTokens,
  type Calibrator,
  type CalibratorSnapshot,
  createCalibrator,
  type Observation,
} from "./calibrator.ts";
export type { Counter } from "./counter.ts";
export { type CounterOptions, counterNameForModel, counterNames, createCounter } from "./create-counter.ts";
export { type Family, families, familyOfModel } from "./families.ts";
