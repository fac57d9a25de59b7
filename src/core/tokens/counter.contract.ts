import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { caseCount } from "../../../test/case-count.ts";
import type { Counter } from "./create-counter.ts";

export interface CounterContractOptions {
  /** Whether the counter promises |count(a + b) − count(a) − count(b)| ≤ 2 if `a` ends with a line break. */
  additiveAtLineBreaks?: boolean;
}

/** Tests what every counter must do. */
export function describeCounter(
  name: string,
  make: () => Promise<Counter>,
  options: CounterContractOptions = {},
): void {
  describe(`the counter ${name}`, () => {
    let counter: Counter;
    beforeAll(async () => {
      counter = await make();
    });

    it("counts 0 for empty text", () => {
      expect(counter.count("")).toBe(0);
    });

    it.each(Object.entries(hazards))("counts from 1 to the number of bytes for %s", (_, text) => {
      expectWithinBytes(counter, text);
    });

    it("counts from 1 to the number of bytes for any text", () => {
      const property = fc.property(anyText, (text) => expectWithinBytes(counter, text));
      fc.assert(property, { numRuns });
    });

    it("returns the same number for the same text, whatever was counted in between", () => {
      const property = fc.property(anyText, anyText, (text, between) => {
        const before = counter.count(text);
        counter.count(between);
        expect(counter.count(text)).toBe(before);
      });
      fc.assert(property, { numRuns });
    });

    it("counts two lines as no less than one of them, and as little more than both", () => {
      const property = fc.property(line, line, (first, second) => {
        const [one, two, both] = [first, second, `${first}\n${second}`].map(counter.count) as [number, number, number];
        expect(both).toBeGreaterThanOrEqual(Math.max(one, two) - 1);
        expect(both).toBeLessThanOrEqual(one + two + 3);
      });
      fc.assert(property, { numRuns });
    });

    if (!options.additiveAtLineBreaks) return;
    it("adds up at a line break, give or take 2", () => {
      const property = fc.property(anyText, anyText, (first, second) => {
        const sum = counter.count(`${first}\n`) + counter.count(second);
        expect(Math.abs(counter.count(`${first}\n${second}`) - sum)).toBeLessThanOrEqual(2);
      });
      fc.assert(property, { numRuns });
    });
  });
}

const numRuns = caseCount({ few: 30, deep: 2_000, long: 10_000 });

/** Bytes: enough that a count whose time grows with the square of the length would not end. */
const many = process.env.PLIMSOLL_DEEP === "1" ? 1_000_000 : 200_000;

const hazards: Record<string, string> = {
  "one letter": "a",
  "one space": " ",
  "a lone high surrogate": "\ud800",
  "a lone low surrogate between letters": "a\udc00b",
  NUL: "\0\0\0",
  "a byte order mark": "\ufeff",
  "a byte order mark and CRLF": "\ufeffa\r\nb\r\n",
  "special-token text": "<|endoftext|>",
  "very many letters": "a".repeat(many),
  "very many spaces": " ".repeat(many),
  "very many newlines": "\n".repeat(many),
  "very many emoji": "😀".repeat(many / 4),
};

const anyText: fc.Arbitrary<string> = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({ unit: "grapheme", maxLength: 100 }),
  fc
    .array(fc.constantFrom("const x = 1;", "\n", "    ", "中文", "Привет", "\ud83d", "\r\n", "0xDEADBEEF", "!!"))
    .map((parts) => parts.join("")),
);

const line: fc.Arbitrary<string> = fc
  .array(fc.string({ unit: fc.constantFrom(..."etaoinshrdlu"), minLength: 1, maxLength: 12 }), {
    minLength: 1,
  })
  .map((words) => words.join(" "));

function expectWithinBytes(counter: Counter, text: string): void {
  const tokens = counter.count(text);
  expect(Number.isInteger(tokens)).toBe(true);
  expect(tokens).toBeGreaterThanOrEqual(Math.min(1, text.length));
  expect(tokens).toBeLessThanOrEqual(Buffer.byteLength(text));
}
