import fc from "fast-check";
import { parse } from "smol-toml";
import { expect, test } from "vitest";
import { findTomlLines } from "./toml-lines.ts";

test("keys, dotted keys and items of lists have their own lines", () => {
  const lineOf = findTomlLines(
    [
      "a = 1 # a = 2",
      'b.c.d = """',
      "x = 1",
      '"""',
      "list = [",
      '  "one", # two',
      "  [1,",
      "  2],",
      "]",
      "e = 1",
    ].join("\n"),
  );
  expect(
    [["a"], ["b"], ["b", "c", "d"], ["list"], ["list", 0], ["list", 1], ["list", 1, 1], ["e"]].map(lineOf),
  ).toEqual([1, 2, 2, 5, 6, 7, 8, 10]);
});

test("what is not there has the line of what is around it", () => {
  const lineOf = findTomlLines("\n[t]\na = 1\n");
  expect([["t", "b"], ["t"], ["u"], []].map(lineOf)).toEqual([2, 2, 1, 1]);
});

test("tables, lists of tables and inline tables are told apart", () => {
  const lineOf = findTomlLines(
    [
      "[a.b]",
      "c = { d = 1, e.f = [2] }",
      "[[l]]",
      "n = 1",
      "[l.sub]",
      "m = 1",
      "[[l]]",
      "n = 2",
      "[l.sub]",
      "m = 2",
    ].join("\n"),
  );
  expect(
    [
      ["a"],
      ["a", "b", "c", "e", "f", 0],
      ["l", 0, "n"],
      ["l", 1, "n"],
      ["l", 0, "sub", "m"],
      ["l", 1, "sub", "m"],
    ].map(lineOf),
  ).toEqual([1, 2, 4, 8, 6, 10]);
});

test.each([
  ['a = "\\"#[" # "\nz = 1', 2],
  ["a = '\\'\nz = 1", 2],
  ["a = '''\n'' ]'''''\nz = 1", 3],
  ['a = """\n\\"""x ]"""\nz = 1', 3],
  ["a = 1979-05-27 07:32:00\r\n\r\nz = 1", 3],
  [`${"#\n".repeat(100_000)}z = 1`, 100_001],
  [`a = """${"x\n".repeat(100_000)}"""\nz = 1`, 100_002],
])("no string, comment or date hides the line of what follows: %#", (text, line) => {
  expect(() => parse(text)).not.toThrow();
  expect(findTomlLines(text)(["z"])).toBe(line);
});

test("quoted names are found by what they mean", () => {
  const lineOf = findTomlLines('\n"a.b" = 1\n\'c d\'."\\u0065" = 2\n["[x]"]\ny = 1');
  expect([["a.b"], ["c d", "e"], ["[x]", "y"]].map(lineOf)).toEqual([2, 3, 5]);
});

const value = fc.oneof(
  fc.integer().map(String),
  fc.string().map((text) => JSON.stringify(text.replace(/[\p{Cc}\p{Cs}\u2028\u2029]/gu, ""))),
  fc.constantFrom(
    '"""\na = 1\n[b]\n"""',
    "'''\n# \" '\n'''",
    "[ # [\n 1,\n]",
    "{ a = [1, { b = 2 }] }",
    "07:32:00",
    "inf",
  ),
);

test("in any text that parses, every key stands on the line that it was written on", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom("", "\n", "# [x]\n"), value), { maxLength: 12 }),
      (pairs) => {
        let text = "";
        const wanted = pairs.map(([before, each], index) => {
          text += before;
          const line = text.split("\n").length;
          text += `k${index} = ${each}\n`;
          return line;
        });
        parse(text);
        const lineOf = findTomlLines(text);
        expect(pairs.map((_, index) => lineOf([`k${index}`]))).toEqual(wanted);
      },
    ),
    { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300 },
  );
});
