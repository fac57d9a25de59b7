import fc from "fast-check";
import { parse } from "smol-toml";
import { expect, test } from "vitest";
import { findTomlLines, parseTomlKey, scanToml } from "./toml-text.ts";

test("finds the lines of keys, dotted keys and list items", () => {
  const lineOf = findTomlLines(
    ["a = 1 # a = 2", 'b.c.d = """', "x = 1", '"""', "list = [", '  "one", # two', "  [1,", "  2],", "]", "e = 1"].join(
      "\n",
    ),
  );
  expect(
    [["a"], ["b"], ["b", "c", "d"], ["list"], ["list", 0], ["list", 1], ["list", 1, 1], ["e"]].map(lineOf),
  ).toEqual([1, 2, 2, 5, 6, 7, 8, 10]);
});

test("gives a missing key the line of the table around it", () => {
  const lineOf = findTomlLines("\n[t]\na = 1\n");
  expect([["t", "b"], ["t"], ["u"], []].map(lineOf)).toEqual([2, 2, 1, 1]);
});

test("tells tables, lists of tables and inline tables apart", () => {
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
    [["a"], ["a", "b", "c", "e", "f", 0], ["l", 0, "n"], ["l", 1, "n"], ["l", 0, "sub", "m"], ["l", 1, "sub", "m"]].map(
      lineOf,
    ),
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
])("finds the key after a string, comment or date: %#", (text, line) => {
  expect(() => parse(text)).not.toThrow();
  expect(findTomlLines(text)(["z"])).toBe(line);
});

test("decodes quoted names", () => {
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

test("finds the line of every key in any text that parses", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom("", "\n", "# [x]\n"), value), { maxLength: 12 }), (pairs) => {
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
    }),
    { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300 },
  );
});

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
  "1979-05-27 07:32:00",
  '[ 1, # ]\n "]", \n]',
  "{ a = [1, { b = 2 }] }",
])("the value %j ends before the spaces and the comment after it", (value) => {
  expect(scanToml(`k = ${value} \t# "c"\nz = 1`)[0]).toEqual({
    kind: "pair",
    path: ["k"],
    start: 0,
    end: 4 + value.length,
  });
});

test("a string that never ends takes the rest of the text", () => {
  for (const text of ['k="a', 'k="""a""', "k='", 'k="a\\"', 'k="a\\']) expect(scanToml(text)[0]?.end).toBe(text.length);
});

test("parts come in the order in which they start", () => {
  const text = "\xef\xbb\xbf# a\n[b]\nc = [ # d\n  { e.f = 1 },\n]\n[[g]]\n";
  const parts = scanToml(text).map(({ kind, path, start, end }) => [kind, path.join("."), text.slice(start, end)]);
  expect(parts).toEqual([
    ["comment", "", "# a"],
    ["table", "b", "[b]"],
    ["pair", "b.c", "c = [ # d\n  { e.f = 1 },\n]"],
    ["comment", "", "# d"],
    ["item", "b.c.0", "{ e.f = 1 }"],
    ["pair", "b.c.0.e.f", "e.f = 1"],
    ["table", "g.0", "[[g]]"],
  ]);
});

test.each([
  ["mcpServers", ["mcpServers"]],
  ["a.b", ["a", "b"]],
  [' a . "b c" ', ["a", "b c"]],
  ['"amp.mcpServers"', ["amp.mcpServers"]],
  ["'a.b'.\"\\u0063\"", ["a.b", "c"]],
  ['"\\U00000041\\\\U00000041"', ["A\\U00000041"]],
  ['"\\UFFFFFFFF"', ["\\UFFFFFFFF"]],
])("the names of %s", (text, names) => {
  expect(parseTomlKey(text)).toEqual(names);
});

test.each(["", ".", "a.", "a b", "[a]", '"a'])("%j is not a key", (text) => {
  expect(parseTomlKey(text)).toBeUndefined();
});
