/** How far counters are from the truth: errors by category, of all texts and of whole contexts; for exact ones the texts that differ. */
import { type Family, families } from "../../src/core/tokens/index.ts";
import { type Accuracy, accuracyOf, contextErrors } from "../accuracy.ts";
import type { BenchCounter } from "./counters.ts";
import { type BenchText, groupByCategory } from "./texts.ts";

export interface AccuracyRow extends Accuracy {
  readonly counter: string;
  readonly truth: Family;
  /** A category, `all texts`, or `contexts of 40 texts`. */
  readonly of: string;
  readonly texts: number;
}

export interface MismatchRow {
  readonly counter: string;
  readonly truth: Family;
  readonly texts: number;
  readonly mismatches: number;
}

const ALL_TEXTS = "all texts";
const CONTEXTS = "contexts of 40 texts";

export function measureAccuracy(
  texts: readonly BenchText[],
  counters: readonly BenchCounter[],
): { accuracy: AccuracyRow[]; mismatches: MismatchRow[] } {
  const accuracy: AccuracyRow[] = [];
  const mismatches: MismatchRow[] = [];
  for (const truth of families) {
    const labelled = texts.filter((text) => text.tokens[truth] !== undefined);
    if (labelled.length === 0) continue;
    for (const counter of counters.filter((each) => each.truths.includes(truth))) {
      if (counter.exact) mismatches.push(countMismatches(labelled, counter, truth));
      else accuracy.push(...measureErrors(labelled, counter, truth));
    }
  }
  return { accuracy, mismatches };
}

function countMismatches(texts: readonly BenchText[], counter: BenchCounter, truth: Family): MismatchRow {
  const mismatches = texts.filter(({ text, tokens }) => counter.count(text) !== tokens[truth]).length;
  return { counter: counter.name, truth, texts: texts.length, mismatches };
}

function measureErrors(texts: readonly BenchText[], counter: BenchCounter, truth: Family): AccuracyRow[] {
  const counts = texts.map(({ category, text, tokens }) => ({
    category,
    estimated: counter.count(text),
    actual: tokens[truth]!,
  }));
  const row = (of: string, group: readonly Count[], errors = group.map(errorOf)): AccuracyRow => {
    return { counter: counter.name, truth, of, texts: group.length, ...accuracyOf(errors) };
  };
  const contexts = contextErrors(
    counts.map(({ estimated }) => estimated),
    counts.map(({ actual }) => actual),
  );
  return [
    ...groupByCategory(counts).map(([category, group]) => row(category, group)),
    row(ALL_TEXTS, counts),
    row(CONTEXTS, counts, contexts),
  ];
}

interface Count {
  readonly estimated: number;
  readonly actual: number;
}

function errorOf({ estimated, actual }: Count): number {
  return estimated / actual - 1;
}
