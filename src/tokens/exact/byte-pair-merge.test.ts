import fc from "fast-check";
import { expect, it } from "vitest";
import { countByMerging } from "./byte-pair-merge.ts";
import { createBytePairRanks } from "./byte-pair-ranks.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 500;

function countText(vocabulary: readonly string[], text: string): number {
  const bytes = new TextEncoder().encode(text);
  return countByMerging(createBytePairRanks(vocabulary), bytes, 0, bytes.length);
}

/** The definition, word for word: quadratic, and therefore only for tests. */
function countByDefinition(vocabulary: readonly string[], text: string): number {
  const parts = [...text];
  for (;;) {
    const ranks = parts.slice(1).map((part, index) => vocabulary.indexOf(parts[index]! + part));
    const lowest = Math.min(...ranks.filter((rank) => rank >= 0));
    if (lowest === Number.POSITIVE_INFINITY) return parts.length;
    const at = ranks.indexOf(lowest);
    parts.splice(at, 2, parts[at]! + parts[at + 1]!);
  }
}

it("merges the lowest rank first, not the longest token", () => {
  expect(countText(["a", "b", "c", "bc", "ab", "abc"], "abc")).toBe(1);
  expect(countText(["a", "b", "c", "bc", "ab"], "abc")).toBe(2);
  expect(countText(["a", "b", "c", "d", "bc", "ab", "cd"], "abcd")).toBe(3);
});

it("merges the leftmost of equal pairs", () => {
  expect(countText(["a", "b", "aa", "aab"], "aaab")).toBe(3);
  expect(countText(["a", "b", "aa", "ab"], "aaab")).toBe(2);
});

it("counts bytes that no token covers one by one", () => {
  expect(countText(["a"], "xyz")).toBe(3);
});

it("follows the definition with any ranks, on both sides of the length where the queue takes over", () => {
  const token = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 2, maxLength: 6 });
  const vocabulary = fc.uniqueArray(token, { minLength: 1, maxLength: 40 });
  const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 200, size: "max" });
  const property = fc.property(vocabulary, text, (tokens, input) => {
    expect(countText(tokens, input)).toBe(countByDefinition(tokens, input));
  });
  fc.assert(property, { numRuns });
});

it("counts inside a larger text", () => {
  const ranks = createBytePairRanks(["a", "b", "ab", "abab"]);
  const bytes = new TextEncoder().encode(`x${"ab".repeat(100)}y`);
  expect(countByMerging(ranks, bytes, 1, 201)).toBe(50);
  expect(countByMerging(ranks, bytes, 1, 41)).toBe(10);
});
