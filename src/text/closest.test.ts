import { expect, test } from "vitest";
import { closest, didYouMean } from "./closest.ts";

const commands = ["completion", "config", "count"];

test("a typing slip finds the word that was meant", () => {
  expect(closest("cuont", commands)).toBe("count");
  expect(closest("cont", commands)).toBe("count");
  expect(closest("confg", commands)).toBe("config");
  expect(closest("COUNT", commands)).toBe("count");
  expect(closest("compltion", commands)).toBe("completion");
});

test("two swapped neighbours are one slip", () => {
  expect(closest("ab", ["ba"])).toBe("ba");
});

test("a word that is far from all of them gets no suggestion", () => {
  expect(closest("deploy", commands)).toBeUndefined();
  expect(closest("x", commands)).toBeUndefined();
  expect(closest("", commands)).toBeUndefined();
  expect(closest("count", [])).toBeUndefined();
});

test("of two equally near words the earlier one wins", () => {
  expect(closest("bat", ["cat", "hat"])).toBe("cat");
});

test("the nearer word wins over an earlier one", () => {
  expect(closest("counter", ["counters-all", "counted", "countes"])).toBe("counted");
  expect(closest("estimate:claude5", ["estimate:claude-3", "estimate:claude-5"])).toBe("estimate:claude-5");
});

test("a suggestion is a sentence, or nothing", () => {
  expect(didYouMean("cuont", commands)).toBe('Did you mean "count"?');
  expect(didYouMean("deploy", commands)).toBeUndefined();
});

test("one letter suggests nothing: every other one is near", () => {
  expect(closest("-x", ["-q", "--all"])).toBeUndefined();
});

test("a word that is part of a name finds it", () => {
  expect(closest("o200k", ["bytes/4", "estimate:o200k", "exact:o200k"])).toBe("estimate:o200k");
});
