/** Counts tokens: fast estimates fitted to each tokenizer, exact counts, and a correction learned from what a provider billed. */
export {
  type Calibrator,
  type Counter,
  type CounterName,
  counterNames,
  createCalibrator,
  createCounter,
} from "../core/tokens/index.ts";
