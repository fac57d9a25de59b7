import { expect, it } from "vitest";
import { describeCounter } from "./counter.contract.ts";
import { heuristics } from "./heuristics.ts";

for (const counter of heuristics) describeCounter(counter.name, async () => counter);

it.each([
  ["bytes/4", "abcd", 1],
  ["bytes/4", "abcde", 2],
  ["bytes/4", "中文", 2],
  ["bytes/3.5", "abcdefg", 2],
  ["bytes/3.5", "中文", 2],
  ["bytes/3.5", "中文ab", 3],
  ["chars/3.5", "abcdefg", 2],
  ["chars/3.5", "abcdefgh", 3],
  ["chars/3.5", "中文", 1],
  ["chars/3.5", "😀😀", 2],
])("%s counts %j as %i, rounded up", (name, text, tokens) => {
  expect(heuristics.find((counter) => counter.name === name)?.count(text)).toBe(tokens);
});
