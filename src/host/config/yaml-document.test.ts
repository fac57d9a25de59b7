import { expect, test } from "vitest";
import { z } from "zod";
import { readYaml } from "./read-yaml.ts";
import { parseYamlDocument } from "./yaml-document.ts";

const schema = z.strictObject({
  name: z.string().optional(),
  on: z.boolean().optional(),
  level: z.enum(["low", "high"]).optional(),
  list: z.array(z.strictObject({ id: z.string() })).optional(),
});

function parse(text: string) {
  const { value, problems } = parseYamlDocument(text, schema);
  return { value, problems: problems.map(({ line, message }) => `${line}: ${message}`) };
}

test("a number where a text belongs becomes the text as written", () => {
  expect(parse("name: 1.10").value).toEqual({ name: "1.10" });
  expect(parse("name: 0x1F").value).toEqual({ name: "0x1F" });
  expect(parse("name: true").value).toEqual({ name: "true" });
  expect(parse("name: [1]").problems).toEqual(['1: "name" must be a text, not a list']);
});

test("yes, no, on and off are booleans where one belongs", () => {
  expect(["yes", "No", "ON", "off"].map((word) => parse(`on: ${word}`).value?.on)).toEqual([true, false, true, false]);
  expect(parse("on: 1").problems).toEqual(['1: "on" must be true or false, not 1']);
});

test("a key without a value is absent, and an unknown key is still unknown", () => {
  expect(parse("level:\nname: ~\n")).toEqual({ value: {}, problems: [] });
  expect(parse("levle:\n")).toEqual({
    value: {},
    problems: ['1: unknown key "levle". Did you mean "level"?'],
  });
  expect(parse("list: [~]").problems).toEqual(['1: "list[0]" must be a mapping of keys, not empty']);
});

test("suggests the nearest word for a wrong one", () => {
  expect(parse("\nlevel: hihg").problems).toEqual([
    '2: "level" must be one of low, high, not "hihg". Did you mean "high"?',
  ]);
});

test("anchors and merge keys work", () => {
  expect(parse("list:\n  - &one {id: a}\n  - {<<: *one}\n  - *one\n").value?.list).toEqual([
    { id: "a" },
    { id: "a" },
    { id: "a" },
  ]);
});

test.each([
  ["a key twice", "name: a\nname: b\n", 2],
  ["a key twice within brackets of a list", "list: [{id: a, id: b}]\n", 1],
  ["an alias that leads nowhere", "\nname: *none\n", 2],
  ["an alias within the value that it names", "list: &a [*a]\n", 1],
  ["two documents", "name: a\n---\nname: b\n", 2],
  [
    "an alias that grows without end",
    `a: &a [x]\n${"bcdefghi"
      .split("")
      .map((key, index) => `${key}: &${key} [${`*${"abcdefgh"[index]},`.repeat(10)}]`)
      .join("\n")}\n`,
    6,
  ],
  [
    "a mapping that is merged again and again",
    `a: &a {${Array.from({ length: 2_000 }, (_, index) => `k${index}: 1`).join(", ")}}\nlist:\n${"  - {<<: *a}\n".repeat(500)}`,
    27,
  ],
  ["very many aliases", `a: &a 1\nlist: [${"*a,".repeat(2_000)}]\n`, 2],
  ["nesting of brackets deeper than the stack", `list:\n${"[".repeat(200_000)}`, 2],
  ["nesting of lists deeper than the stack", `${"- ".repeat(100_000)}a`, 1],
  [
    "nesting of keys deeper than the stack",
    Array.from({ length: 700 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
    65,
  ],
  ["65 levels of brackets", `${"[".repeat(65)}${"]".repeat(65)}`, 1],
  ["65 levels of lists", `${"- ".repeat(65)}a`, 1],
  ["65 levels of keys", `${"? ".repeat(65)}a`, 1],
  ["keys within keys", `${"? ".repeat(30)}a`, 1],
  ["a list as a key", "name: a\n[a, b]: c\n", 2],
  ["an alias of a list as a key", "name: &a [a]\n*a : c\n", 2],
  ["bytes", "!!binary aaaa\n", 1],
  ["bytes below a key", "name: !!binary aaaa\n", 1],
  ["bytes in a file that says it is of YAML 1.1", "%YAML 1.1\n---\nname: !!binary aaaa\n", 3],
  ["a set", "name: a\nlist: !!set {a, b}\n", 2],
  ["an ordered mapping", "list: !!omap [a: 1]\n", 1],
  ["a tag of one's own", "name: !secret a\n", 1],
  ["a tag of another language", "name: !!python/object:os.system a\n", 1],
  ["more than 256 KB", `name: a\n${"#".repeat(256 * 1024)}`, 1],
])("%s is malformed, not a crash", (_, text, line) => {
  const { value, problems } = parseYamlDocument(text, schema);
  expect(value).toBeUndefined();
  expect(problems.every(({ rule }) => rule === "malformed-yaml")).toBe(true);
  expect(problems[0]?.line).toBe(line);
  expect(readYaml(text).problems.length).toBeGreaterThan(0);
});

test("reads 64 levels, and tags that name the value's own type", () => {
  const deep = z.any();
  for (const text of [`${"[".repeat(64)}${"]".repeat(64)}`, `${"- ".repeat(64)}a`])
    expect(parseYamlDocument(text, deep).problems).toEqual([]);
  expect(parse("name: !!str 12\non: !!bool true\nlist: !!seq []\n")).toEqual({
    value: { name: "12", on: true, list: [] },
    problems: [],
  });
});

test("a text with long lines and many brackets is not nested", () => {
  const text = `name: |\n  ${"[".repeat(1_000)}\n${" ".repeat(400)}far in\n`;
  expect(parse(text).problems).toEqual([]);
});

const hostile = ["}", "]", "[]", "{}", '"', "&a ", "*a ", "!a ", "a #\n", "%a\n", "---\n", ":\n", "- - -\n", "a:\n"];

/** Each takes a second or two of processor time. */
const tried = process.env.PLIMSOLL_DEEP === "1" ? hostile : ["&a "];

test.each(tried)("reads or refuses 256 KB of %j within two seconds", (piece) => {
  const before = process.cpuUsage();
  parseYamlDocument(piece.repeat(Math.floor((256 * 1024) / piece.length)), schema);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
});

test("brackets in texts are not nesting", () => {
  expect(parse(`name: "${"[]{}".repeat(1_000)}"`).problems).toEqual([]);
});

test("reports the first hundred of many problems quickly, errors before unknown keys", () => {
  const keys = Array.from({ length: 20_000 }, (_, index) => `k${index}: 1\n`).join("");
  const before = process.cpuUsage();
  const { problems } = parseYamlDocument(`${keys}level: x\n`, schema);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
  expect(problems).toHaveLength(101);
  expect(problems.at(-2)).toMatchObject({ rule: "invalid-value", line: 20_001 });
  expect(problems.at(-1)).toMatchObject({ rule: "unknown-key", message: "… and 19901 more" });
  const twice = parseYamlDocument("a: 1\n".repeat(300), schema).problems;
  expect(twice).toHaveLength(101);
  expect(twice.at(-1)).toMatchObject({ rule: "malformed-yaml", message: "… and 199 more" });
});

test("a merge key without a mapping is malformed, with its line", () => {
  for (const text of ["a: 1\n<<: \n", "a: 1\n<<: [1]\n", "a: 1\n<<: text\n"]) {
    const { input, problems } = readYaml(text);
    expect({ text, input, lines: problems.map(({ line }) => line) }).toEqual({
      text,
      input: undefined,
      lines: [2],
    });
  }
});
