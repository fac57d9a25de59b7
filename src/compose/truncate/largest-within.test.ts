import fc from "fast-check";
import { expect, test } from "vitest";
import { largestWithin } from "./largest-within.ts";

test("the largest number within the limit is found, by few counts where tokens grow evenly", () => {
  const property = fc.property(
    fc.nat(1_000_000),
    fc.nat(1_000_000),
    fc.integer({ min: 1, max: 9 }),
    (most, limit, size) => {
      let counts = 0;
      const tokensAt = (number: number): number => {
        counts++;
        return Math.ceil(number / size);
      };
      const expected = Math.min(most, limit * size);
      expect(largestWithin({ limit, most, first: limit * 4, tokensAt })).toBe(expected);
      expect(counts).toBeLessThanOrEqual(25);
    },
  );
  fc.assert(property);
});

test("what is found fits also where tokens grow in steps, or shrink for once", () => {
  const property = fc.property(
    fc.array(fc.integer({ min: -2, max: 9 }), { minLength: 2 }),
    fc.nat(60),
    (steps, limit) => {
      let sum = 0;
      const tokens = steps.map((step, index) => {
        sum = index === 0 ? 0 : Math.max(0, sum + step);
        return sum;
      });
      const found = largestWithin({
        limit,
        most: tokens.length - 1,
        first: 3,
        tokensAt: (at) => tokens[at]!,
      });
      expect(tokens[found]).toBeLessThanOrEqual(limit);
      if (found < tokens.length - 1) expect(tokens[found + 1]).toBeGreaterThan(limit);
    },
  );
  fc.assert(property);
});

test("numbers far above what fits are never asked for", () => {
  const asked: number[] = [];
  largestWithin({
    ...{ limit: 1_000, most: 10_000_000, first: 4_000 },
    tokensAt(number) {
      asked.push(number);
      return number / 10;
    },
  });
  expect(Math.max(...asked)).toBeLessThanOrEqual(20_000);
});
