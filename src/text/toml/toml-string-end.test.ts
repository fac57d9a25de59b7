import { expect, test } from "vitest";
import { tomlStringEnd } from "./toml-string-end.ts";

test.each([
  '"a"',
  "'a'",
  '""',
  "''",
  '"\\""',
  "'\\'",
  '"\\\\"',
  '"# = [\'"',
  '"""a\n"b" ""\n"""',
  "'''it's ''\n'''",
  '""""""',
  '"""a"""""',
  "'''''a'''''",
  '"""\\""""',
])("%j ends with its last quote", (string) => {
  expect(tomlStringEnd(`key = ${string}`, 6)).toBe(6 + string.length);
  expect(tomlStringEnd(`[${string}, "more"]`, 1)).toBe(1 + string.length);
});

test("a string that is not closed ends with the text", () => {
  for (const text of ['"a', '"""a""', "'", '"a\\"', '"a\\']) expect(tomlStringEnd(text, 0)).toBe(text.length);
});
