import fc from "fast-check";
import { parse } from "smol-toml";
import { describe, expect, test } from "vitest";
import { ContextError } from "../../core/errors.ts";
import { loadTomlFormat } from "./edit-toml.ts";
import type { WiredServer } from "./wired-server.ts";

const entry = { command: "plimsoll", args: ["mcp"] };
const server: WiredServer = { keys: ["mcp_servers"], name: "plimsoll", entry };
const format = await loadTomlFormat();
const add = (text: string | undefined) => format.add(text, server);
const back = (text: string) => format.remove(text, server);
const table = '[mcp_servers.plimsoll]\ncommand = "plimsoll"\nargs = ["mcp"]';

describe("adding", () => {
  test("creates a missing file and deletes it again", () => {
    expect(add(undefined)).toBe(`${table}\n`);
    expect(back(`${table}\n`)).toBeUndefined();
  });

  test.each([
    ["a file with a line break at its end", "a = 1\n", `a = 1\n\n${table}\n`],
    ["a file without", "a = 1 # one", `a = 1 # one\n\n${table}`],
    ["an empty file", "", table],
    ["a byte order mark", "\xef\xbb\xbf", `\xef\xbb\xbf${table}`],
    ["a line break", "\n", `\n\n${table}\n`],
    [
      "another server, with CRLF",
      "# mine\r\n[mcp_servers.x]\r\ncommand = 'y'\r\n",
      `# mine\r\n[mcp_servers.x]\r\ncommand = 'y'\r\n\r\n${table.replaceAll("\n", "\r\n")}\r\n`,
    ],
    ["a number that JavaScript would round", "a = 9007199254740993\n", `a = 9007199254740993\n\n${table}\n`],
  ])("adds the entry to %s, and removing gives the old bytes back", (_name, before, after) => {
    expect(add(before)).toBe(after);
    expect(add(after)).toBe(after);
    expect(back(after)).toBe(before);
  });

  test("ignores text in a string that looks like our table", () => {
    const text = `a = """\n${table}\n"""\nb = '''\n[mcp_servers.plimsoll]'''\nc = ["\\"", '#', # ]\n]\n`;
    expect(back(text)).toBe(text);
    expect(back(add(text))).toBe(text);
  });

  test("finds an entry that is written in another way", () => {
    const text = '[mcp_servers]\nplimsoll = { command = "plimsoll", args = ["mcp"] }\n';
    expect(add(text)).toBe(text);
    expect(() => back(text)).toThrow(expect.objectContaining({ code: "refused_target" }));
  });
});

describe("refusing", () => {
  test.each([
    ["a = 1\nb = = 2\n", 2],
    ["[x]\n[x]\n", 2],
    ['a = "x\n', 1],
  ])("names the line of the first mistake in %s", (text, line) => {
    const problem = {
      code: "unreadable_input",
      line,
      message: expect.stringMatching(/^is not valid TOML: [^\n]+$/),
    };
    expect(() => add(text)).toThrow(expect.objectContaining(problem));
    expect(() => back(text)).toThrow(expect.objectContaining(problem));
  });

  test("refuses servers that are not a table", () => {
    expect(() => add("mcp_servers = 1\n")).toThrow("mcp_servers is not a table");
    expect(() => add("[[mcp_servers]]\n")).toThrow("mcp_servers is not a table");
  });

  test("does not break an inline table by adding a table below it", () => {
    expect(() => add("mcp_servers = {}\n")).toThrow(expect.objectContaining({ code: "refused_target" }));
  });

  test.each([
    ["another command", table.replace('"plimsoll"', '"other"')],
    ["a further field", `${table}\nenv = {}`],
    ["a table below it", `${table}\n\n[mcp_servers.plimsoll.env]\nA = "b"`],
  ])("keeps a person's entry with %s", (_name, text) => {
    const problem = { code: "refused_target", line: 3 };
    expect(() => add(`a = 1\n\n${text}\n`)).toThrow(expect.objectContaining(problem));
    expect(() => back(`a = 1\n\n${text}\n`)).toThrow(expect.objectContaining(problem));
  });

  test.each([
    ["in the table", table.replace("args", "# mine\nargs")],
    ["after its last line", `${table} # mine`],
    ["after its header", table.replace("]", "] # mine")],
    ["in a list", table.replace('["mcp"]', '[ # mine\n  "mcp",\n]')],
  ])("does not remove our entry if a person's comment is %s", (_name, text) => {
    expect(add(text)).toBe(text);
    expect(() => back(text)).toThrow(ContextError);
  });
});

describe("removing from a file that has changed", () => {
  test.each([
    ["with a table after ours", `a = 1\n\n${table}\n\n[x]\nb = 2\n`, "a = 1\n\n[x]\nb = 2\n"],
    ["with no empty line before ours", `a = 1\n${table}\n[x]\n`, "a = 1\n[x]\n"],
    ["with a comment after ours", `${table}\n\n# mine\n`, "\n# mine\n"],
    ["with spaces after ours", `a = 1\n\n${table}  \n`, "a = 1\n"],
    ["with the header in quotes", `${table.replace("plimsoll]", '"plimsoll" ]')}\nx = 1\n`, undefined],
  ])("removes the entry and keeps the rest of a file %s", (_name, text, expected) => {
    if (expected === undefined) expect(() => back(text)).toThrow(ContextError);
    else expect(back(text)).toBe(expected);
  });
});

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 50_000 : 200;

const scalar = fc.constantFrom(
  ...["1", "1979-05-27 07:32:00", '"a # b"', "'[x]'", '"\\""', "true", "inf", '"\xc3\xa9"'],
  ...['"""\n[mcp_servers.plimsoll]\n"""', "'''a''''", '"""\\""" """"', "[]", '[ 1, # ]\n "]", \n]', "{ a = 1 }"],
);
const line = fc.oneof(
  scalar.map((value) => `KEY = ${value}`),
  fc.constantFrom("", "  ", "# x", "#[mcp_servers.plimsoll]", "KEY.a = 1 # c", "\t"),
  fc.constantFrom("[KEY]", "[mcp_servers.KEY]", "[[KEY]]", '[ mcp_servers . "KEY" ] # y'),
);
const file = fc
  .tuple(
    fc.constantFrom("", "", "\xef\xbb\xbf"),
    fc.array(line, { maxLength: 8 }),
    fc.constantFrom("\n", "\r\n", "mixed"),
    fc.boolean(),
  )
  .map(([mark, lines, newline, endsInBreak]) => {
    // Each key occurs once, so that every file is valid TOML.
    const own = lines.map((each, index) => each.replaceAll("KEY", `k${index}`));
    const breaks = own.map((_, index) => (newline === "mixed" ? (index % 2 === 0 ? "\n" : "\r\n") : newline));
    const text = own.map((each, index) => each + (index < own.length - 1 || endsInBreak ? breaks[index] : "")).join("");
    return mark + text;
  });

test("adds the entry once to any file and removes it without a trace", {
  timeout: 120_000,
}, () => {
  const dataOf = (text: string) =>
    parse(
      Buffer.from(text, "latin1")
        .toString("utf8")
        .replace(/^\uFEFF/, ""),
    ) as Record<string, object>;
  fc.assert(
    fc.property(file, (text) => {
      const added = add(text);
      const before = dataOf(text);
      expect(dataOf(added)).toEqual({ ...before, mcp_servers: { ...before.mcp_servers, plimsoll: entry } });
      expect(add(added)).toBe(added);
      expect(back(added)).toBe(text);
      expect(back(text)).toBe(text);
    }),
    { numRuns },
  );
});
