/** Fits the estimator's coefficients to a labelled corpus: `npm run fit:estimator -- DIRECTORY`. Prints the error on parts that were
 *  held out, then fits to all of it and writes src/core/tokens/coefficients.data.ts. The same corpus gives the same file. */
import { writeFileSync } from "node:fs";
import { type Script, scripts } from "../src/core/tokens/character-kinds.ts";
import { scan } from "../src/core/tokens/estimator.ts";
import { FEATURE_COUNT, type FeatureName, featureSizes, features } from "../src/core/tokens/features.ts";
import { type Family, families } from "../src/core/tokens/index.ts";
import { accuracyOf, contextErrors } from "./accuracy.ts";
import { type LabelledText, PARTS, readCorpus } from "./corpus.ts";
import { dot, fitRidge, type Row } from "./ridge.ts";

/** Pull towards the prior. Smaller follows the corpus more closely; from 2e-5 on held-out errors rise. */
const PULL = 1e-6;
/** White space stands beside so much else that a free fit gave blank lines less than nothing; a lone letter of a rare script more than its bytes. */
const FIRM_PULL = 1e-4;
const firm: readonly FeatureName[] = [
  "NEWLINES",
  "BLANK_LINES",
  "NEWLINE_INDENT",
  "TABS",
  "SPACES",
  "WORD_EXCESS",
  "SCRIPT_WORD",
  "SCRIPT_BARE_WORD",
  "UNKNOWN_UNIT",
];
/** These count units, so that below zero a long text would cost nothing. */
const perUnit: readonly FeatureName[] = [
  "WORD_EXCESS",
  "SYMBOL_LENGTH",
  "SYMBOL_RULE_LENGTH",
  "SCRIPT_UNIT",
  "UNKNOWN_UNIT",
];
/** What the corpus hardly shows keeps to its prior: a free fit once gave 7 tokens a letter for long runs. */
const PINNED_PULL = 1e-1;
const pinned: readonly FeatureName[] = ["REPEATED_LETTER", "SPACES_LONG", "TABS_EXCESS", "NEWLINES_EXCESS"];

/** Tokens a unit of scripts that the corpus may lack. cl100k's are from its tokenizer; Claude's, but ASCII, are a guess for want of labels. */
const claudeUnits: readonly (readonly [Script, number])[] = [
  ["ascii", 0.3],
  ["indic", 0.85],
  ["southeast-asian", 1.1],
  ["other", 1.1],
];
const scriptUnits: Readonly<Record<Family, readonly (readonly [Script, number])[]>> = {
  o200k: [],
  cl100k: [
    ["ascii", 0],
    ["caucasian", 1.75],
    ["indic", 1.4],
    ["southeast-asian", 1.7],
    ["other", 1.4],
    ["surrogate", 0],
  ],
  "claude-3": claudeUnits,
  "claude-5": claudeUnits,
};

const directory = process.argv[2];
if (directory === undefined) {
  console.error("usage: npm run fit:estimator -- DIRECTORY   (with labelled *.jsonl files)");
  process.exit(2);
}
const corpus = readCorpus(directory);
const vectors = corpus.map(({ text }) => countFeatures(text));
const tables = families.map((family) => {
  printHeldOut(family);
  return `  "${family}": [${Array.from(
    fitTo(family, () => true),
    (value) => Number(value.toFixed(4)),
  ).join(", ")}],`;
});
writeFileSync(
  new URL("../../src/core/tokens/coefficients.data.ts", import.meta.url),
  `/** Tokens a feature, in the order of features.ts. Written by bench/fit-estimator.ts. */
export const coefficients: Readonly<Record<"${families.join('" | "')}", readonly number[]>> = {
${tables.join("\n")}
};
`,
);

/** How often each feature is in the text: one scan for each, in which only that one counts. */
function countFeatures(text: string): Float64Array {
  const counts = new Float64Array(FEATURE_COUNT);
  for (let at = 0; at < FEATURE_COUNT; at++) {
    const weights = new Float64Array(FEATURE_COUNT);
    weights[at] = 1;
    counts[at] = scan(text, weights);
  }
  return counts;
}

/** What five fits say of the part that each has not seen. */
function printHeldOut(family: Family): void {
  const estimated = new Array<number>(corpus.length).fill(0);
  for (let part = 0; part < PARTS; part++) {
    const coefficients = fitTo(family, (text) => text.part !== part);
    corpus.forEach((text, at) => {
      if (text.part === part) estimated[at] = Math.max(1, Math.round(dot(vectors[at]!, coefficients)));
    });
  }
  const actual = corpus.map((text) => text.tokens[family]);
  const { bias, mean, p95 } = accuracyOf(estimated.map((tokens, at) => tokens / actual[at]! - 1));
  const context = accuracyOf(contextErrors(estimated, actual)).p95;
  const figures = `bias ${bias.toFixed(2)} %, mean ${mean.toFixed(2)} %, p95 ${p95.toFixed(2)} %, contexts p95 ${context.toFixed(2)} %`;
  console.log(`${family}: held out ${figures}`);
}

function fitTo(family: Family, include: (text: LabelledText) => boolean): Float64Array {
  const sizes = new Map<string, number>();
  for (const { category } of corpus) sizes.set(category, (sizes.get(category) ?? 0) + 1);
  const rows: Row[] = [];
  corpus.forEach((text, at) => {
    // Between equal weight a text and equal weight a category.
    const weight = 1 / Math.sqrt(sizes.get(text.category)!);
    if (include(text)) rows.push({ features: vectors[at]!, tokens: text.tokens[family], weight });
  });
  const pull = new Float64Array(FEATURE_COUNT).fill(PULL);
  for (const name of firm) fillFeature(pull, name, FIRM_PULL);
  for (const name of pinned) fillFeature(pull, name, PINNED_PULL);
  const nonNegative = perUnit.flatMap((name) =>
    Array.from({ length: featureSizes[name] }, (_, at) => features[name] + at),
  );
  return fitRidge(rows, { prior: priorOf(family), pull, nonNegative });
}

function fillFeature(vector: Float64Array, name: FeatureName, value: number): void {
  vector.fill(value, features[name], features[name] + featureSizes[name]);
}

/** What is expected of a feature before any text was seen: a piece is a token, or as many as the family's smaller vocabulary makes of it. */
function priorOf(family: Family): Float64Array {
  const prior = new Float64Array(FEATURE_COUNT);
  const set = (name: FeatureName, value: number) => fillFeature(prior, name, value);
  const claude = family.startsWith("claude");
  const tokensAPiece = { o200k: 1, cl100k: 1, "claude-3": 1.15, "claude-5": 1.4 }[family];
  set("WORD_PIECE", tokensAPiece);
  set("SYMBOL_PIECE", tokensAPiece);
  for (const name of ["DIGITS", "SPACES", "TABS", "NEWLINES"] as const) set(name, 1);
  set("WORD_EXCESS", claude ? 0.15 : 0.05);
  set("SPACES_LONG", 1 / 128);
  set("NEWLINE_INDENT", 0.5);
  set("BLANK_LINES", 0.5);
  set("SYMBOL_RULE", 1);
  set("SYMBOL_RULE_LENGTH", 1 / 64);
  set("TABS_EXCESS", 1 / 16);
  set("NEWLINES_EXCESS", 1 / 16);
  // Claude's vocabularies hold few words of other scripts: the letters count there, not the pieces.
  set("SCRIPT_UNIT", claude ? 0.6 : family === "cl100k" ? 0.9 : 0);
  set("SCRIPT_PIECE", family === "o200k" ? 1 : 0.2);
  set("UNKNOWN_UNIT", family === "o200k" ? 2 : 1);
  for (const [script, tokens] of scriptUnits[family]) prior[features.SCRIPT_UNIT + scripts.indexOf(script)] = tokens;
  return prior;
}
