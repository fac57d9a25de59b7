/** Counts tokens: fast estimates fitted to each tokenizer, exact counts, and a correction learned from what a provider billed. */
export {
  billedInputTokens,
  type Calibrator,
  type CalibratorSnapshot,
  type Counter,
  type CounterName,
  counterNames,
  createCalibrator,
  createCounter,
  type Observation,
} from "../tokens/index.ts";
