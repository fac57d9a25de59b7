import { expect, it } from "vitest";
import { createBytePairRanks, noRank } from "./byte-pair-ranks.ts";

const vocabulary = ["a", "ab", [0xe4, 0xb8], "中", "abcdefghij"];

function rankOf(text: string | number[]): number {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : Uint8Array.from(text);
  return createBytePairRanks(vocabulary).rankOf(bytes, 0, bytes.length);
}

it("finds every token at its rank, those that are no valid UTF-8 included", () => {
  expect(["a", "ab", [0xe4, 0xb8], "中", "abcdefghij"].map(rankOf)).toEqual([0, 1, 2, 3, 4]);
});

it("finds nothing else", () => {
  expect(["b", "aba", [0xe4], [0xe4, 0xb8, 0xae], "abcdefghi", "abcdefghijk"].map(rankOf)).toEqual(
    Array(6).fill(noRank),
  );
});

it("knows the two-byte tokens by their bytes", () => {
  const ranks = createBytePairRanks(vocabulary);
  expect([ranks.rankOfPair(0x61, 0x62), ranks.rankOfPair(0xe4, 0xb8), ranks.rankOfPair(0x62, 0x61)]).toEqual([
    1,
    2,
    noRank,
  ]);
});

it("leaves out ranks that the vocabulary does not use", () => {
  const sparse: (string | number[])[] = ["a", "b"];
  sparse[3] = "ab";
  const ranks = createBytePairRanks(sparse);
  expect(ranks.rankOf(new TextEncoder().encode("ab"), 0, 2)).toBe(3);
  expect(ranks.rankOf(new Uint8Array(), 0, 0)).toBe(noRank);
});

it("grows with tokens that are longer than usual", () => {
  const long = Array.from({ length: 20 }, (_, index) => String.fromCharCode(0x4e00 + index).repeat(50));
  const ranks = createBytePairRanks(long);
  const bytes = new TextEncoder().encode(long[19]!);
  expect(ranks.rankOf(bytes, 0, bytes.length)).toBe(19);
});
