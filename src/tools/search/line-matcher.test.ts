import { expect, test } from "vitest";
import { isFailure } from "../../session/index.ts";
import { createLineMatcher, type LineMatcher } from "./line-matcher.ts";

function matcher(pattern: string, options: { isRegex?: boolean; caseSensitive?: boolean } = {}): LineMatcher {
  const made = createLineMatcher(pattern, { isRegex: true, caseSensitive: true, timeoutMs: 200, ...options });
  if (isFailure(made)) throw new Error(made.message);
  return made;
}

test("lines that match are given with the place of the match", () => {
  const lines = ["no", "a match", "match"];
  expect(matcher("mat.h").find([lines, [], ["match"]])).toEqual([
    [
      [1, 2],
      [2, 0],
    ],
    [],
    [[0, 0]],
  ]);
});

test("a text is taken as it stands, whatever it would mean in an expression", () => {
  const text = "a.b*[c]^$(d){1}|\\/-";
  expect(matcher(text, { isRegex: false }).find([["x", `-${text}-`, "aXb"]])).toEqual([[[1, 1]]]);
});

test("case counts only when it is said", () => {
  expect(matcher("größe", { caseSensitive: false }).find([["GRÖSSE", "GRÖßE", "Größe"]])?.[0]).toHaveLength(
    2,
  );
  expect(matcher("größe").find([["Größe"]])).toEqual([[]]);
});

test("escapes that only the older syntax knows are taken", () => {
  expect(matcher("a\\-b").find([["a-b"]])).toEqual([[[0, 0]]]);
  expect(matcher("\\p{Lu}").find([["ä", "Ä"]])).toEqual([[[1, 0]]]);
});

test("a pattern that explodes is stopped in time, and the next search works", () => {
  const explosive = matcher("^(a+)+$");
  const start = performance.now();
  expect(explosive.find([[`${"a".repeat(40)}!`]])).toBeUndefined();
  expect(performance.now() - start).toBeLessThan(3_000);
  expect(explosive.find([["aaa", "b"]])).toEqual([[[0, 0]]]);
});

test("a pattern that is none is a failure that says why", () => {
  expect(createLineMatcher("a(", { isRegex: true, caseSensitive: true, timeoutMs: 200 })).toMatchObject({
    code: "invalid_pattern",
    message: expect.stringContaining("Unterminated group"),
  });
});
