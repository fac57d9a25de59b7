import { Buffer } from "../bytes.ts";
import { ContextError } from "../errors.ts";
import { type Family, families, familyOfModel } from "./families.ts";

/** Counters that divide a length. They cost almost nothing. The budgets of inject and compose are written in them. */
export const heuristics: readonly (Counter & { readonly name: CounterName })[] = [
  { name: "bytes/4", count: (text) => Math.ceil(Buffer.byteLength(text) / 4) },
  { name: "bytes/3.5", count: (text) => Math.ceil(Buffer.byteLength(text) / 3.5) },
  { name: "chars/3.5", count: (text) => Math.ceil(text.length / 3.5) },
];

/** The counter bytes/4, for budgets without a counter of their own. */
export const plainCounter: Counter = heuristics[0]!;

const exactEncodings = ["o200k", "cl100k"] as const;

/** The name of a built-in counter. `auto` is the estimate for the model that `createCounter` gets. */
export type CounterName =
  | "auto"
  | "bytes/4"
  | "bytes/3.5"
  | "chars/3.5"
  | `estimate:${Family}`
  | `exact:${(typeof exactEncodings)[number]}`;

/** Every counter name, in the order in which errors list them.
 *
 * @example
 * ```ts
 * import { counterNames } from "plimsoll";
 *
 * console.log(counterNames.join(", "));
 * ```
 */
export const counterNames: readonly CounterName[] = [
  ...heuristics.map(({ name }) => name),
  ...families.map((family) => `estimate:${family}` as const),
  ...exactEncodings.map((encoding) => `exact:${encoding}` as const),
  "auto",
];

/** Returns the counter that `auto` means for a model. An unknown model gets the counter that counts highest, so a
 *  budget still holds. */
export function counterNameForModel(model: string | undefined): { name: CounterName; known: boolean } {
  const family = model === undefined ? undefined : familyOfModel(model);
  return { name: `estimate:${family ?? "claude-5"}`, known: family !== undefined };
}

/** Creates the counter of that name. Loads its table or tokenizer, once per process, so that counting is synchronous.
 *
 * @example
 * ```ts
 * import { createCounter } from "plimsoll/tokens";
 *
 * const counter = await createCounter("auto", { model: "claude-sonnet-5" });
 * console.log(counter.name, counter.count("Hello, world!"));
 * ```
 */
export async function createCounter(
  name: CounterName,
  options: {
    /** The model whose tokens the counter `auto` estimates. Without a known model, `auto` is `estimate:claude-5`, which
     *  counts highest. Other counters ignore this option. */
    readonly model?: string | undefined;
  } = {},
): Promise<Counter> {
  const heuristic = heuristics.find((counter) => counter.name === name);
  if (heuristic !== undefined) return heuristic;
  if (name === "auto") return createCounter(counterNameForModel(options.model).name);
  const family = families.find((each) => name === `estimate:${each}`);
  if (family !== undefined) return (await import("./estimator.ts")).createEstimator(family);
  const encoding = exactEncodings.find((each) => name === `exact:${each}`);
  if (encoding !== undefined) return (await import("./exact.ts")).createExactCounter(encoding);
  throw new ContextError("unknown_counter", `unknown counter "${name}"`, {
    hint: `Counters are ${counterNames.join(", ")}.`,
  });
}

/** Works as `createCounter`, for the drafts of one text, which share most of their sections: counts them faster. */
export async function createDraftCounter(name: CounterName): Promise<Counter> {
  const family = families.find((each) => name === `estimate:${each}`);
  return family === undefined ? createCounter(name) : (await import("./estimator.ts")).createDraftEstimator(family);
}

/** Counts the tokens of a text. Any object of this shape can replace a built-in counter. */
export interface Counter {
  /** A name such as `estimate:claude-5`, shown in reports. */
  readonly name: string;
  /** Returns the number of tokens of the text. */
  count(text: string): number;
}
