import { expect, test } from "vitest";
import { isFailure } from "../session/index.ts";
import { createLineMatcher, createSearchContent, type LineMatcher } from "./search-content.ts";
import { createTree, readResult, whileDenied } from "./temporary-tree.contract.ts";

const call = { signal: new AbortController().signal };

// Other systems do not enforce file modes.
const withModes = test.skipIf(process.geteuid === undefined);

withModes.each([["a.txt"], ["dir"]])("without ripgrep too, it is told that %s was not searched", async (denied) => {
  const root = createTree({ "a.txt": "needle\n", "b.txt": "needle\n", "dir/c.txt": "needle\n" });
  const tool = createSearchContent({ root, env: { ...process.env, HOME: root } }, async () => undefined);
  const search = async () => readResult(await tool.run({ pattern: "needle" }, call));
  expect(await search()).toMatchObject({ total: 3, warnings: [] });
  const warnings = ["Some files could not be read and were not searched."];
  expect(await whileDenied(root, [denied], search)).toMatchObject({ total: 2, warnings });
  const named = () => tool.run({ pattern: "needle", path: denied }, call);
  expect(await whileDenied(root, [denied], named)).toMatchObject({
    code: "unreadable",
    message: `"${denied}" cannot be read: permission denied.`,
  });
});

function matcher(pattern: string, options: { isRegex?: boolean; caseSensitive?: boolean } = {}): LineMatcher {
  const made = createLineMatcher(pattern, { isRegex: true, caseSensitive: true, timeoutMs: 200, ...options });
  if (isFailure(made)) throw new Error(made.message);
  return made;
}

test("returns matching lines with the place of the match", () => {
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

test("a text is searched literally, whatever it would mean in an expression", () => {
  const text = "a.b*[c]^$(d){1}|\\/-";
  expect(matcher(text, { isRegex: false }).find([["x", `-${text}-`, "aXb"]])).toEqual([[[1, 1]]]);
});

test("case matters only if asked for", () => {
  expect(matcher("größe", { caseSensitive: false }).find([["GRÖSSE", "GRÖßE", "Größe"]])?.[0]).toHaveLength(2);
  expect(matcher("größe").find([["Größe"]])).toEqual([[]]);
});

test("escapes that only the older syntax knows are accepted", () => {
  expect(matcher("a\\-b").find([["a-b"]])).toEqual([[[0, 0]]]);
  expect(matcher("\\p{Lu}").find([["ä", "Ä"]])).toEqual([[[1, 0]]]);
});

test.each(["^(a+)+b$", "^(a|a)*b$"])(
  "the pattern %s explodes, is stopped in time, and the next search works",
  (pattern) => {
    const explosive = matcher(pattern);
    const before = process.cpuUsage();
    expect(explosive.find([[`${"a".repeat(40)}!`]])).toBeUndefined();
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
    expect(explosive.find([["aaab", "c"]])).toEqual([[[0, 0]]]);
  },
);

test("an invalid pattern is a failure that says why", () => {
  expect(createLineMatcher("a(", { isRegex: true, caseSensitive: true, timeoutMs: 200 })).toMatchObject({
    code: "invalid_pattern",
    message: expect.stringContaining("Unterminated group"),
  });
});
