import fc from "fast-check";
import { expect, test } from "vitest";
import { characterStart, isInsidePair, wellFormed } from "./surrogates.ts";

test("only between the halves of one character is an index inside a pair", () => {
  const inside = (text: string) =>
    Array.from({ length: text.length + 1 }, (_, index) => isInsidePair(text, index));
  expect(inside("a😀b")).toEqual([false, false, true, false, false]);
  expect(inside("\ud83d\ud83d")).toEqual([false, false, false]);
  expect(inside("\udc00\ud83d")).toEqual([false, false, false]);
  expect(inside("")).toEqual([false]);
});

test("a cut inside a pair moves before it", () => {
  expect([0, 1, 2, 3, 4].map((index) => characterStart("a😀b", index))).toEqual([0, 1, 1, 3, 4]);
});

test("a well-formed text is what UTF-8 makes of it", () => {
  const unit = fc.constantFrom("a", "é", "😀", "\ud83d", "\ude00", "\n");
  fc.assert(
    fc.property(fc.array(unit), (units) => {
      const text = units.join("");
      expect(wellFormed(text)).toBe(Buffer.from(text).toString());
    }),
  );
});
