/** Every counter that is compared, ours and its peers', with the truths that it is held against. */
import * as cl100k from "gpt-tokenizer/encoding/cl100k_base";
import * as o200k from "gpt-tokenizer/encoding/o200k_base";
import { estimateTokenCount } from "tokenx";
import { type Counter, createCounter, type Family, families } from "../../src/core/tokens/index.ts";

export interface BenchCounter extends Counter {
  readonly truths: readonly Family[];
  /** Claims to be equal to the truth: differing texts are counted, not their errors. */
  readonly exact: boolean;
  /** Empties what it remembers of earlier texts. */
  forget(): void;
}

/** The counter that speeds are compared with. */
export const REFERENCE = "gpt-tokenizer o200k";

export async function createBenchCounters(): Promise<BenchCounter[]> {
  const general: readonly Family[] = ["o200k", "claude-5"];
  const heuristics = await Promise.all(
    (["bytes/4", "bytes/3.5", "chars/3.5"] as const).map((name) => createCounter(name)),
  );
  const estimators = await Promise.all(
    families.map(async (family) => plain(await createCounter(`estimate:${family}`), [family])),
  );
  return [
    ...heuristics.map((counter) => plain(counter, general)),
    plain({ name: "tokenx", count: (text) => estimateTokenCount(text) }, general),
    ...estimators,
    { ...plain(await createCounter("exact:o200k"), ["o200k"]), exact: true },
    { ...plain(await createCounter("exact:cl100k"), ["cl100k"]), exact: true },
    gptTokenizer("o200k", o200k),
    gptTokenizer("cl100k", cl100k),
  ];
}

export function counterNamed(counters: readonly BenchCounter[], name: string): BenchCounter {
  const found = counters.find((counter) => counter.name === name);
  if (found === undefined) throw new Error(`no counter "${name}" in this benchmark`);
  return found;
}

function plain(counter: Counter, truths: readonly Family[]): BenchCounter {
  return { ...counter, truths, exact: false, forget: () => {} };
}

type GptTokenizer = Pick<typeof o200k, "countTokens" | "clearMergeCache">;

function gptTokenizer(family: Family, { countTokens, clearMergeCache }: GptTokenizer): BenchCounter {
  // Text that looks like a special token is text, as in our counters; by default it throws.
  const options = { disallowedSpecial: new Set<string>() };
  return {
    name: `gpt-tokenizer ${family}`,
    truths: [family],
    exact: true,
    count: (text) => countTokens(text, options),
    forget: clearMergeCache,
  };
}
