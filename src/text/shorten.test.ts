import { expect, test } from "vitest";
import { shorten } from "./shorten.ts";

test.each([
  ["as it is", 8, "as it is"],
  [" on\n\n one\tline ", 20, "on one line"],
  ["cut here", 5, "cut…"],
  ["🚢🚢🚢", 4, "🚢…"],
  ["any", 1, "…"],
  ["any", 0, ""],
  [`${" ".repeat(1_000)}behind white space`, 20, "behind white space"],
])("%j in %d characters is %j", (text, maxCharacters, expected) => {
  expect(shorten(text, maxCharacters)).toBe(expected);
});
