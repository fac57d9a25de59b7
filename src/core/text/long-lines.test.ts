import fc from "fast-check";
import { expect, test } from "vitest";
import { countLineParts, joinLines, mostLineCharacters, splitLines } from "./long-lines.ts";

const line = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.integer({ min: 1_990, max: 6_010 }).map((length) => "x".repeat(length)),
  fc
    .tuple(fc.nat(3), fc.integer({ min: 990, max: 2_100 }))
    .map(([before, faces]) => "a".repeat(before) + "😀".repeat(faces)),
);

test("parts are short, give the text back, cut no character in two, and are counted", () => {
  const text = fc.array(line, { maxLength: 6 }).map((lines) => lines.join("\n"));
  fc.assert(
    fc.property(text, (given) => {
      const parts = splitLines(given);
      expect(joinLines(parts)).toBe(given);
      expect(countLineParts(given)).toBe(parts.length);
      for (const part of parts) {
        expect(part.text.length).toBeLessThanOrEqual(mostLineCharacters);
        expect(Buffer.from(part.text).toString()).toBe(part.text);
      }
    }),
  );
});

test("a range has the lines that start in it", () => {
  const text = "one\ntwo\n\nfour";
  expect(countLineParts(text, 4, 7)).toBe(1);
  expect(countLineParts(text, 4, 8)).toBe(2);
  expect(countLineParts(text, 8, 8)).toBe(1);
  expect(countLineParts(text, 9, 8)).toBe(0);
});
