import { ContextError } from "../errors.ts";
import type { Counter } from "./counter.ts";
import { families, familyOfModel } from "./families.ts";
import { heuristics } from "./heuristics.ts";

export interface CounterOptions {
  /** The model that `auto` stands for. */
  model?: string | undefined;
}

const exactEncodings = ["o200k", "cl100k"] as const;

/** Every name that `createCounter` takes. */
export const counterNames: readonly string[] = [
  ...heuristics.map((counter) => counter.name),
  ...families.map((family) => `estimate:${family}`),
  ...exactEncodings.map((encoding) => `exact:${encoding}`),
  "auto",
];

/** The counter that `auto` means for a model. Of an unknown model it is the dearest, so that a budget still holds. */
export function counterNameForModel(model: string | undefined): { name: string; known: boolean } {
  const family = model === undefined ? undefined : familyOfModel(model);
  return { name: `estimate:${family ?? "claude-5"}`, known: family !== undefined };
}

/** Makes the counter of that name. Tables and tokenizers are loaded here, once and only when asked for. */
export async function createCounter(name: string, options: CounterOptions = {}): Promise<Counter> {
  const heuristic = heuristics.find((counter) => counter.name === name);
  if (heuristic !== undefined) return heuristic;
  if (name === "auto") return createCounter(counterNameForModel(options.model).name);
  const family = families.find((each) => name === `estimate:${each}`);
  if (family !== undefined) return (await import("./estimate/estimator.ts")).createEstimator(family);
  const encoding = exactEncodings.find((each) => name === `exact:${each}`);
  if (encoding !== undefined) return (await import("./exact/exact.ts")).createExactCounter(encoding);
  throw new ContextError("unknown_counter", `unknown counter "${name}"`, {
    hint: `Counters are ${counterNames.join(", ")}.`,
  });
}
