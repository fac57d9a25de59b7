import { expect, test } from "vitest";
import { z } from "zod";
import { checkYaml, parseYamlDocument } from "./yaml-document.ts";

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

test("a number where a text belongs is the text as written", () => {
  expect(parse("name: 1.10").value).toEqual({ name: "1.10" });
  expect(parse("name: 0x1F").value).toEqual({ name: "0x1F" });
  expect(parse("name: true").value).toEqual({ name: "true" });
  expect(parse("name: [1]").problems).toEqual(['1: "name" must be a text, not a list']);
});

test("yes, no, on and off are booleans where one belongs", () => {
  expect(["yes", "No", "ON", "off"].map((word) => parse(`on: ${word}`).value?.on)).toEqual([
    true,
    false,
    true,
    false,
  ]);
  expect(parse("on: 1").problems).toEqual(['1: "on" must be true or false, not 1']);
});

test("a key without a value is absent, an unknown one is still unknown", () => {
  expect(parse("level:\nname: ~\n")).toEqual({ value: {}, problems: [] });
  expect(parse("levle:\n")).toEqual({
    value: {},
    problems: ['1: unknown key "levle". Did you mean "level"?'],
  });
  expect(parse("list: [~]").problems).toEqual(['1: "list[0]" must be a mapping of keys, not empty']);
});

test("a wrong word is answered with the nearest right one", () => {
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
  ["a key twice", "name: a\nname: b\n"],
  ["a key twice within brackets of a list", "list: [{id: a, id: b}]\n"],
  ["an alias that leads nowhere", "name: *none\n"],
  ["two documents", "name: a\n---\nname: b\n"],
  [
    "an alias that grows without end",
    `a: &a [x]\n${"bcdefghi"
      .split("")
      .map((key, index) => `${key}: &${key} [${`*${"abcdefgh"[index]},`.repeat(10)}]`)
      .join("\n")}\n`,
  ],
  ["nesting of brackets deeper than the stack", "[".repeat(200_000)],
  ["nesting of lists deeper than the stack", `${"- ".repeat(200_000)}a`],
  [
    "nesting of keys deeper than the stack",
    Array.from({ length: 2_000 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
  ],
])("%s is malformed, not a crash", (_, text) => {
  const { value, problems } = parseYamlDocument(text, schema);
  expect(value).toBeUndefined();
  expect(problems.every(({ rule }) => rule === "malformed-yaml")).toBe(true);
  expect(problems.length).toBeGreaterThan(0);
  expect(checkYaml(text).length).toBeGreaterThan(0);
});

test("brackets in texts are no nesting", () => {
  expect(parse(`name: "${"[]{}".repeat(1_000)}"`).problems).toEqual([]);
});

test("of very many problems the first hundred are told, errors before unknown keys, and soon", () => {
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
