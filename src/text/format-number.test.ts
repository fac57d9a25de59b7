import { expect, test } from "vitest";
import { countNoun, formatNumber } from "./format-number.ts";

test("thousands stand apart", () => {
  expect([0, 999, 1000, 1234567, 100000].map(formatNumber)).toEqual([
    "0",
    "999",
    "1,000",
    "1,234,567",
    "100,000",
  ]);
});

test("one thing is one, everything else is many", () => {
  expect([0, 1, 2, 1000].map((value) => countNoun(value, "pack"))).toEqual([
    "0 packs",
    "1 pack",
    "2 packs",
    "1,000 packs",
  ]);
});
