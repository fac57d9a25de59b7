import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { counterNames } from "../../core/tokens/index.ts";
import { defaultConfig } from "./config.ts";
import { configJsonSchema, configSchema, parseConfigFile } from "./config-file.ts";

function problemsOf(text: string): string[] {
  return parseConfigFile(text).problems.map(({ line, message }) => `${line}: ${message}`);
}

test("returns values as written, each with its line", () => {
  const file = parseConfigFile(
    "# comment\ncounter: bytes/4\n\ncontext:\n  shares: { project: 0.5 }\n  max_tokens: 9\n",
  );
  expect(file.problems).toEqual([]);
  expect(file.values).toEqual({ counter: "bytes/4", context: { max_tokens: 9, shares: { project: 0.5 } } });
  expect(file.lineOf(["counter"])).toBe(2);
  expect(file.lineOf(["context", "shares", "project"])).toBe(5);
  expect(file.lineOf(["context", "max_tokens"])).toBe(6);
});

test("accepts an empty file, a comment alone and Windows line ends", () => {
  for (const text of ["", "# nothing yet\n", "---\n", "\uFEFFtitle: x\r\nprofile: y\r\n"]) {
    expect(problemsOf(text)).toEqual([]);
  }
});

test("an unknown key gets a suggestion, or the list of allowed keys", () => {
  expect(problemsOf("title: x\nconter: auto\n")).toEqual(['2: unknown key "conter". Did you mean "counter"?']);
  expect(problemsOf("history:\n  window: 3\n")).toEqual([
    '2: unknown key "history.window". Allowed keys are policy, threshold, keep, reserve.',
  ]);
  expect(problemsOf("context:\n  shares:\n    prior-work: 0.1\n")).toEqual([
    '3: unknown key "context.shares.prior-work". Did you mean "prior_work"?',
  ]);
});

test("a session's budget accepts what the ledger accepts, and nothing else", () => {
  expect(problemsOf("session: { per_tool_call: 512, history_max: 0, warning_threshold: 0 }")).toEqual([]);
  expect(problemsOf("session: { tiers: { response: 10000, tool_results: 50000 }, hints: schema }")).toEqual([]);
  expect(problemsOf("session: { hints: loud }")).toEqual([expect.stringContaining('"session.hints" must be')]);
  expect(problemsOf("session: { tiers: { tools: 5 } }")).toEqual([expect.stringContaining("session.tiers.tools")]);
  expect(problemsOf("session: { per_tool_call: 100, tools: { vcs_diff: 511 } }")).toEqual([
    '1: "session.per_tool_call" must be at least 512, not 100',
    '1: "session.tools.vcs_diff" must be at least 512, not 511',
  ]);
});

test("a wrong value is reported with the allowed values", () => {
  expect(problemsOf("on_overflow: dorp")).toEqual([
    '1: "on_overflow" must be one of drop, thin, not "dorp". Did you mean "drop"?',
  ]);
  expect(problemsOf("verbosity: { claude-code: 3 }")).toEqual([
    '1: "verbosity.claude-code" must be one of minimal, standard, full, not 3',
  ]);
  expect(problemsOf("tools: claude-code")).toEqual(['1: "tools" must be a list, not "claude-code"']);
  expect(problemsOf("tools:\n- a\n- {}\n")).toEqual(['3: "tools[1]" must be a text, not a mapping']);
  expect(problemsOf("title:\n")).toEqual(['1: "title" must be a text, not empty']);
  expect(problemsOf('profile: ""\n')).toEqual(['1: "profile" must be a text that is not empty, not ""']);
  expect(problemsOf("session: 5")).toEqual(['1: "session" must be a mapping of keys, not 5']);
  expect(problemsOf("verbosity: []")).toEqual(['1: "verbosity" must be a mapping of keys, not a list']);
});

test("checks the kind and range of numbers", () => {
  expect(problemsOf("session: { total: 0 }")).toEqual(['1: "session.total" must be at least 1, not 0']);
  expect(problemsOf("history: { threshold: 0 }")).toEqual(['1: "history.threshold" must be above 0, not 0']);
  expect(problemsOf("history: { threshold: 1.5 }")).toEqual(['1: "history.threshold" must be at most 1, not 1.5']);
  expect(problemsOf("history: { keep: 2.5 }")).toEqual(['1: "history.keep" must be a whole number, not 2.5']);
  expect(problemsOf("history: { keep: ten }")).toEqual(['1: "history.keep" must be a whole number, not "ten"']);
  expect(problemsOf("history: { keep: .nan }")).toEqual(['1: "history.keep" must be a whole number, not NaN']);
});

test("names a missing part of a pair", () => {
  expect(problemsOf("title: x\ncompany:\n  revision: main\n")).toEqual(['2: "company.source" is missing']);
});

test("reports all problems in the order of their lines", () => {
  expect(problemsOf("session: { total: x }\ntitel: y\nhistory:\n  policy: rcf\n")).toEqual([
    '1: "session.total" must be a whole number, not "x"',
    '2: unknown key "titel". Did you mean "title"?',
    expect.stringContaining('4: "history.policy" must be one of economic,'),
  ]);
});

test("refuses a file that is not a mapping", () => {
  expect(problemsOf("- counter\n")).toEqual(["1: must be a mapping of keys, not a list"]);
  expect(problemsOf("counter\n")).toEqual(['1: must be a mapping of keys, not "counter"']);
});

test("malformed YAML is reported with its line", () => {
  expect(problemsOf("title: x\ncounter: [a\nprofile: y\n")[0]).toMatch(/^[23]: malformed YAML: /);
  expect(problemsOf("title: x\ntitle: y\n")).toEqual([
    '2: malformed YAML: the key "title" is already there: keep one of the two',
  ]);
  expect(problemsOf("title: *nobody\n")).toEqual([expect.stringMatching(/^1: malformed YAML: /)]);
  expect(problemsOf("title: x\n---\ntitle: y\n")).toEqual([
    '2: malformed YAML: a second document starts with "---": keep one document per file',
  ]);
});

test("a list as a key is malformed, and the library prints no warning of its own", async () => {
  const warnings: Error[] = [];
  const listen = (warning: Error) => warnings.push(warning);
  process.on("warning", listen);
  expect(problemsOf("? [a]\n: 1\n")).toEqual(["1: malformed YAML: a key is a list or a mapping: write a text"]);
  await new Promise(setImmediate);
  process.off("warning", listen);
  expect(warnings).toEqual([]);
});

test("refuses a name that would be lost, at any depth", () => {
  expect(problemsOf("title: x\nsession:\n  tools: { __proto__: 5 }\n")).toEqual([
    '3: "session.tools.__proto__" cannot be used as a name',
  ]);
  expect(problemsOf("__proto__: 5\n")).toEqual(['1: "__proto__" cannot be used as a name']);
  expect(parseConfigFile("session: { tools: { constructor: 600 } }").values.session?.tools).toEqual({
    constructor: 600,
  });
});

test("refuses aliases that would grow without end", () => {
  const bomb = ["a: &a [x,x,x,x,x,x,x,x,x,x]"];
  for (let level = 0; level < 8; level++) {
    const [from, to] = ["abcdefghi"[level], "abcdefghi"[level + 1]];
    bomb.push(`${to}: &${to} [${Array(10).fill(`*${from}`).join(",")}]`);
  }
  expect(problemsOf(bomb.join("\n"))).toEqual([expect.stringContaining("malformed YAML")]);
});

test("the committed JSON Schema is the one the code makes (after a build: node scripts/write-schemas.mjs)", () => {
  const committed = readFileSync(new URL("../../../schemas/config.schema.json", import.meta.url), "utf8");
  expect(committed).toBe(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
});

test("the schema has exactly the keys of the defaults", () => {
  const { properties } = configJsonSchema();
  expect(Object.keys(properties ?? {})).toEqual(Object.keys(defaultConfig));
  for (const key of ["context", "session", "history"] as const) {
    expect(Object.keys(properties?.[key]?.properties ?? {})).toEqual(Object.keys(defaultConfig[key]));
  }
});

test("every key is described, and no other keys are allowed", () => {
  const schema = configJsonSchema();
  expect(schema.additionalProperties).toBe(false);
  for (const [key, value] of Object.entries(schema.properties ?? {})) {
    expect(value.description, key).toMatch(/\.$/);
  }
  expect(schema.properties?.counter?.enum).toEqual(counterNames);
});

test("the defaults are valid", () => {
  expect(configSchema.safeParse(defaultConfig).error).toBeUndefined();
});
