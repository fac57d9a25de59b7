import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { globsOverlap, readScope } from "./scope-globs.ts";

const isDeep = process.env.PLIMSOLL_DEEP === "1";

function overlap(one: string, two: string, budget = { left: 10_000_000 }): boolean {
  const [first, second] = [one, two].map((pattern) => readScope(pattern)!);
  return first!.some((a) => second!.some((b) => globsOverlap(a, b, budget)));
}

describe("two scopes overlap", () => {
  test.each([
    ["src/a.ts", "src/a.ts"],
    ["src/**", "src/a.ts"],
    ["src/**", "src"],
    ["src", "src/a/b.ts"],
    ["src/", "src/a.ts"],
    ["./src//a.ts", "src/./a.ts"],
    ["/src/a.ts", "src/a.ts"],
    ["src/x/../a.ts", "src/a.ts"],
    [".", "anything/at/all"],
    ["**", "a"],
    ["**/*.ts", "src/a.ts"],
    ["**/*.ts", "a.ts"],
    ["src/**/test/*.ts", "src/test/a.ts"],
    ["src/**/test/*.ts", "src/a/b/test/*"],
    ["internal/*.go", "internal/*_test.go"],
    ["internal/*.go", "internal/?.go"],
    ["a[0-9].ts", "a[5-7].ts"],
    ["[!a].ts", "[!b].ts"],
    ["src/{a,b}.ts", "src/{b,c}.ts"],
    ["src/{lib,*.ts}", "src/lib/x.js"],
    ["{src,test}/{a,{b,c}/**}", "test/c/d"],
    ["src/*/", "src/a/b.ts"],
    ["a*b*c", "*abc"],
    ["app/[id]/page.tsx", "app/[id]"],
    ["app/[id]", "app/[id]/page.tsx"],
    ["src/lib", "src/**/*.ts"],
    [".github", "**/*.yml"],
    ["packages/*/src", "packages/a/src/x.ts"],
    ["src/v1.2", "src/v1.2/*.ts"],
    ["src/v1.2", "src/v1.2/a.ts"],
    ["src/v1.2/", "**/a.ts"],
    ["app/[...slug]", "app/[...slug]/page.tsx"],
    ["a\\*b", "a*"],
    ["[]-]x", "]x"],
    ["é?.md", "é😀.md"],
  ])("%s and %s", (one, two) => {
    expect(overlap(one, two)).toBe(true);
    expect(overlap(two, one)).toBe(true);
  });
});

describe("two scopes do not overlap", () => {
  test.each([
    ["internal/*.go", "internal/*.ts"],
    ["src/a.ts", "src/a.tsx"],
    ["src/a", "src/ab/c"],
    ["src/*", "src/a/b.ts"],
    ["src/*.ts", "src/sub/x.ts"],
    ["src/**", "lib/**"],
    ["src/**/a.ts", "src/**/b.ts"],
    ["src/a.ts", "**/*.test.ts"],
    ["Makefile", "**/*.go"],
    [".gitignore", "**/a"],
    ["a[0-4].ts", "a[5-9].ts"],
    ["[!a].ts", "a.ts"],
    ["a?.ts", "a.ts"],
    ["a[!x]b", "a/b"],
    ["a*b", "a/b"],
    ["{a,b}.ts", "{c,d}.ts"],
    ["src/{lib,*.ts}", "src/x.ts/y"],
    ["a\\*b", "axb"],
    ["**/a.ts", "**/xa.ts"],
    ["app/[id]/page.tsx", "app/[slug]/page.tsx"],
    ["{a}", "a"],
    ["[z-a]", "m"],
  ])("%s and %s", (one, two) => {
    expect(overlap(one, two)).toBe(false);
    expect(overlap(two, one)).toBe(false);
  });
});

const segment = fc.constantFrom(
  "a",
  "b",
  "ab",
  "*",
  "?",
  "a*",
  "*b",
  "?b",
  "[ab]",
  "[!a]",
  "[a-b]b",
  "{a,b}",
  "a{,b}",
  "**",
);
const pattern = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), fc.boolean())
  .map(([parts, slash]) => parts.join("/") + (slash ? "/" : ""));

test("the answer is that of trying every path, whatever the patterns", () => {
  fc.assert(
    fc.property(pattern, pattern, (one, two) => {
      const [first, second] = [matcherOf(one), matcherOf(two)];
      const witness = paths.find((path) => first(path) && second(path));
      expect([one, two, overlap(one, two)]).toEqual([one, two, witness !== undefined]);
    }),
    { numRuns: isDeep ? 2_000 : 50 },
  );
});

/** Every path of up to five segments that are a, b or two of them. */
const names = ["a", "b", "aa", "ab", "ba", "bb"];
const paths: string[] = [];
for (
  let level = names;
  level[0]!.split("/").length <= 5;
  level = level.flatMap((path) => names.map((name) => `${path}/${name}`))
) {
  paths.push(...level);
}

/** Another way to the same answer: regular expressions, one a segment, tried at every depth. */
function matcherOf(text: string): (path: string) => boolean {
  const parts = text.replace(/\/$/, "").split("/");
  const expressions = parts.map(segmentExpression);
  const descends = text.endsWith("/") || !/[*?]/.test(parts.at(-1)!);
  const matches = (from: number, segments: readonly string[]): boolean => {
    if (from === parts.length) return segments.length === 0;
    if (parts[from] === "**") {
      // As the last part it takes whatever is left, also nothing where a folder stands before it.
      if (from === parts.length - 1) return from > 0 || segments.length > 0;
      return [...segments, ""].some((_, skipped) => matches(from + 1, segments.slice(skipped)));
    }
    const [first, ...rest] = segments;
    return first !== undefined && expressions[from]!.test(first) && matches(from + 1, rest);
  };
  return (path) => {
    const segments = path.split("/");
    const ends = descends ? segments.map((_, index) => index + 1) : [segments.length];
    return ends.some((end) => matches(0, segments.slice(0, end)));
  };
}

function segmentExpression(part: string): RegExp {
  const source = part
    .replace(/\*+/g, ".*")
    .replace(/\?/g, ".")
    .replace(/\[!/g, "[^")
    .replace(/\{(.*),(.*)\}/g, "(?:$1|$2)");
  return new RegExp(`^${source}$`);
}

test("patterns that would take forever end with the budget", () => {
  const budget = { left: 200_000 };
  const before = process.cpuUsage();
  expect(overlap("?*".repeat(511), "?".repeat(510), budget)).toBe(false);
  expect(budget.left).toBeLessThan(0);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(2_000);
});

test("patterns that are too long or expand to too many are refused", () => {
  expect(readScope("a".repeat(1_025))).toBeUndefined();
  expect(readScope("{a,b}".repeat(9))).toBeUndefined();
  expect(readScope("{a,b}".repeat(8))).toHaveLength(256);
  expect(readScope(`${"{".repeat(500)}${"}".repeat(500)}`)).toHaveLength(1);
});
