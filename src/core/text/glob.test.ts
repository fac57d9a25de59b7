import { expect, test } from "vitest";
import { createGlob, expandBraces } from "./glob.ts";

test.each([
  ["*.ts", "a.ts", true],
  ["*.ts", "src/deep/a.ts", true],
  ["*.ts", "a.tsx", false],
  ["src/*.ts", "src/a.ts", true],
  ["src/*.ts", "src/deep/a.ts", false],
  ["src/*.ts", "lib/src/a.ts", false],
  ["/src/*.ts", "src/a.ts", true],
  ["./src/*.ts", "src/a.ts", true],
  ["src/**/*.ts", "src/a.ts", true],
  ["src/**/*.ts", "src/x/y/a.ts", true],
  ["**/test/**", "a/test/b/c.ts", true],
  ["**/test/**", "a/tests/b.ts", false],
  ["src/**", "src/a/b", true],
  ["src/**/x/**/y", "src/x/x/a/y", true],
  ["*.{ts,js}", "a.js", true],
  ["*.{ts,js}", "a.css", false],
  ["{src,lib}/**/*.{ts,tsx}", "lib/x/a.tsx", true],
  ["a{b,c{d,e}}f", "acef", true],
  ["a{b}", "a{b}", true],
  ["file?.txt", "file1.txt", true],
  ["file?.txt", "file10.txt", false],
  ["file?.txt", "file😀.txt", true],
  ["[a-c]*.md", "b.md", true],
  ["[!a-c]*.md", "b.md", false],
  ["[]x]", "]", true],
  ["[x-]", "-", true],
  ["\\*.ts", "*.ts", true],
  ["\\*.ts", "a.ts", false],
  ["a+(b).ts", "a+(b).ts", true],
  ["[", "[", true],
  ["\\{a,b\\}.ts", "{a,b}.ts", true],
  ["\\{a,b\\}.ts", "a.ts", false],
  ["{a\\,b,c}.ts", "a,b.ts", true],
  ["Größe.*", "x/Größe.md", true],
  ["*.TS", "a.ts", false],
])("%s and %s: %s", (pattern, path, expected) => {
  expect(createGlob(pattern)?.(path)).toBe(expected);
});

test("no pattern is slow on a long name", () => {
  // Milliseconds. A backtracking expression would take years.
  const start = performance.now();
  const matches = createGlob(`${"*a".repeat(50)}*b`);
  expect(matches?.(`${"a".repeat(250)}c`)).toBe(false);
  expect(createGlob(`${"**/a/".repeat(30)}b`)?.(`${"a/".repeat(200)}c`)).toBe(false);
  expect(performance.now() - start).toBeLessThan(10_000);
});

test("does not expand braces that would make thousands of globs", () => {
  expect(createGlob("{a,b}".repeat(20))).toBeUndefined();
});

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
])("%s means %j", (pattern, expected) => {
  expect(expandBraces(pattern)).toEqual(expected);
});

test("expands at most 256 alternatives", () => {
  expect(expandBraces("{a,b}".repeat(8))).toHaveLength(256);
  expect(expandBraces("{a,b}".repeat(9))).toBeUndefined();
  expect(expandBraces("{a,b}".repeat(1_000))).toBeUndefined();
});

test("nested braces count once for each resulting glob", () => {
  expect(expandBraces(`${"{a,".repeat(200)}a${"}".repeat(200)}`)).toHaveLength(201);
});
