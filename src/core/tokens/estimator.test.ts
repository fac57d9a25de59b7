import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { coefficients } from "./coefficients.data.ts";
import { type Counter, createCounter } from "./create-counter.ts";
import { createDraftEstimator, createEstimator } from "./estimator.ts";
import { families } from "./families.ts";
import { FEATURE_COUNT } from "./features.ts";

const root = new URL("../../..", import.meta.url).pathname;
const estimators = families.map(createEstimator);
let exact: Counter;

beforeAll(async () => {
  exact = await createCounter("exact:o200k");
});

describe("the estimator of drafts", () => {
  it("counts every text as the estimator does", () => {
    const line = fc.oneof(
      fc.string({ unit: "binary", maxLength: 20 }),
      fc.string({ maxLength: 30 }),
      fc.constantFrom(
        "",
        "#",
        "# Title",
        "## ----",
        "  # x",
        "- item:",
        "a\r",
        "======\r",
        "\t",
        " ",
        "東京",
        "x #",
        "`#`",
      ),
    );
    const text = fc.array(line, { maxLength: 30 }).map((lines) => lines.join("\n"));
    const drafts = families.map(createDraftEstimator);
    const property = fc.property(text, (sample) => {
      expect(drafts.map(({ count }) => count(sample))).toEqual(estimators.map(({ count }) => count(sample)));
    });
    fc.assert(property, { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 20_000 : 200 });
  });

  it("counts texts of any length alike, with more sections than it remembers", () => {
    const draft = createDraftEstimator("claude-5");
    const plain = createEstimator("claude-5");
    const sections = Array.from({ length: 5_000 }, (_, index) => `# ${index}\n\ntext ${index} ...\n\n`).join("");
    for (const length of [65_535, 65_536, 65_537, sections.length]) {
      const text = sections.slice(0, length);
      expect(draft.count(text)).toBe(plain.count(text));
    }
  });
});

describe("the estimator", () => {
  it("has a coefficient for every feature of every family", () => {
    for (const family of families) expect(coefficients[family]).toHaveLength(FEATURE_COUNT);
  });

  it("stays within 8 % of o200k on nineteen of twenty chunks of this repository", () => {
    const errors = chunksOfRepository().map((chunk) => Math.abs(estimators[0]!.count(chunk) / exact.count(chunk) - 1));
    expect(errors.length).toBeGreaterThan(50);
    errors.sort((a, b) => a - b);
    expect(errors[Math.floor(0.95 * errors.length)]).toBeLessThan(0.08);
  });

  it("orders the families as they are known to cost: o200k, Claude 3, Claude 5", { tags: ["deep"] }, () => {
    const text = chunksOfRepository().join("\n");
    const [o200k, , claude3, claude5] = estimators.map((estimator) => estimator.count(text)) as number[];
    expect(claude3! / o200k!).toBeGreaterThan(1.05);
    expect(claude5! / claude3!).toBeGreaterThan(1.15);
  });

  it("is never far off for any text", () => {
    const fragment = fc.oneof(
      fc.string({ unit: "binary", maxLength: 40 }),
      fc.string({ unit: "grapheme", maxLength: 40 }),
      fc.string({ maxLength: 60 }),
      fc.base64String({ maxLength: 200 }),
      fc.constantFrom(
        "\n",
        "    ",
        "\t\t",
        "const value = ",
        "() => {\n",
        "Die Straße ",
        "東京の",
        "привет ",
        "123456 ",
        "=====",
      ),
    );
    const text = fc.array(fragment, { minLength: 20, maxLength: 80 }).map((parts) => parts.join(""));
    const property = fc.property(text, (sample) => {
      const truth = exact.count(sample);
      if (truth < 100) return;
      for (const estimator of estimators) {
        expect(estimator.count(sample)).toBeGreaterThan(truth * 0.4);
        expect(estimator.count(sample)).toBeLessThan(truth * 4);
      }
    });
    fc.assert(property, { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300 });
  });

  it.each([
    ["symbols, then many empty lines", "}\n", "\n".repeat(100)],
    ["symbols, then a long rule", "x;\n", "/".repeat(1_000)],
    ["a word, then an empty line", "end\n", "\nconst x = 1;"],
    ["lines of spaces", "x\n", "  \n  \n y"],
    ["a carriage return, then one accented letter", "const x = 1;\r\n", "Ĕ"],
    ["code, then one rare symbol", "const x = 1;\n", "¯"],
    ["rare letters, then code", "ỨὮṨم\n", "中文!!\nconst x = 1;"],
    ["code, then many rare symbols", "const x = 1;\n", "« ° × ¬ ¯ ¸ ".repeat(20)],
    ["code, then Armenian capitals", "const x = 1;\n", "ԶԷԽԾՁՂ ".repeat(20)],
  ])("adds up at a line break: %s", (_, first, second) => {
    for (const estimator of estimators) {
      const apart = estimator.count(first) + estimator.count(second);
      expect(Math.abs(estimator.count(first + second) - apart)).toBeLessThanOrEqual(2);
    }
  });

  it.each([
    ["banners of slashes", `${"/".repeat(80)}\n`.repeat(50), 3],
    ["lines of one space", " \n".repeat(1_000), 1.5],
    ["long rules", `${"=".repeat(80)}\n`.repeat(50), 3],
  ])("is near o200k on %s", (_, text, factor) => {
    const ratio = estimators[0]!.count(text) / exact.count(text);
    expect(ratio).toBeGreaterThan(1 / factor);
    expect(ratio).toBeLessThan(factor);
  });

  it("counts a text that is longer than its buffer as the sum of its lines' parts", () => {
    const line = `${"A line of words, numbers (12345) and symbols; ".repeat(20)}\n`;
    for (const estimator of estimators) {
      const many = estimator.count(line.repeat(400));
      expect(Math.abs(many - 400 * estimator.count(line))).toBeLessThanOrEqual(400);
      expect(Math.abs(estimator.count(line.repeat(200)) * 2 - many)).toBeLessThanOrEqual(2);
    }
  });
});

function chunksOfRepository(): string[] {
  const files = ["src", "test"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((path) => join(root, folder, path)),
  );
  return files
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".data.ts"))
    .flatMap((path) => readFileSync(path, "utf8").match(/[\s\S]{1,4000}/g) ?? [])
    .filter((chunk) => chunk.length > 1_000);
}
