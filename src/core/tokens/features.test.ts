import ranks from "gpt-tokenizer/bpeRanks/o200k_base";
import { expect, it } from "vitest";
import { EMPTY_HASH, findPiece, fold, PIECE_CLASSES } from "./features.ts";

const pieces = ranks.filter((piece) => typeof piece === "string");

it("finds every one of the hundred thousand most frequent pieces", () => {
  const missing = pieces.slice(0, 100_000).filter((piece) => findPiece(hashOf(piece)) < 0);
  // A few share a bucket and a slot with a more common piece and were left out.
  expect(missing.length).toBeLessThan(10);
});

it("mistakes fewer than one in a thousand other strings for a piece", () => {
  const known = new Set(pieces);
  const strangers = Array.from({ length: 50_000 }, (_, index) => `${(index * 7919).toString(36)}-${index}`).filter(
    (text) => !known.has(text),
  );
  expect(strangers.filter((text) => findPiece(hashOf(text)) >= 0).length).toBeLessThan(strangers.length / 1_000);
});

it("puts common short words into another class than rare long ones", () => {
  const common = findPiece(hashOf(" the"));
  const rare = findPiece(hashOf(" authentication"));
  expect(common).toBeGreaterThanOrEqual(0);
  expect(rare).toBeGreaterThan(common);
  expect(rare).toBeLessThan(PIECE_CLASSES);
});

function hashOf(text: string): number {
  let hash = EMPTY_HASH;
  for (let at = 0; at < text.length; at++) hash = fold(hash, text.charCodeAt(at));
  return hash;
}
