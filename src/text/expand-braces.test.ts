import { expect, test } from "vitest";
import { expandBraces } from "./expand-braces.ts";

test.each([
  ["a", ["a"]],
  ["a{b,c}d", ["abd", "acd"]],
  ["{a,b}{c,d}", ["ac", "ad", "bc", "bd"]],
  ["{a,{b,c{d,e}}}", ["a", "b", "cd", "ce"]],
  ["{a,}", ["a", ""]],
  ["{a}", ["{a}"]],
  ["{{a,b}}", ["{a}", "{b}"]],
  ["{{a,b}}{c,d}", ["{a}c", "{a}d", "{b}c", "{b}d"]],
  ["{a{b},c}", ["a{b}", "c"]],
  ["{a,{b,c}", ["{a,b", "{a,c"]],
  ["{a,b}}", ["a}", "b}"]],
  ["}{,", ["}{,"]],
  ["\\{a,b\\}", ["\\{a,b\\}"]],
  ["{a\\,b,c\\}}", ["a\\,b", "c\\}"]],
  ["\\\\{a,b}", ["\\\\a", "\\\\b"]],
])("%s stands for %j", (pattern, expected) => {
  expect(expandBraces(pattern)).toEqual(expected);
});

test("braces that would make thousands of globs are not opened", () => {
  expect(expandBraces("{a,b}".repeat(8))).toHaveLength(256);
  expect(expandBraces("{a,b}".repeat(9))).toBeUndefined();
  expect(expandBraces("{a,b}".repeat(1_000))).toBeUndefined();
});

test("braces in braces count once for each glob that comes of them", () => {
  expect(expandBraces(`${"{a,".repeat(200)}a${"}".repeat(200)}`)).toHaveLength(201);
});
