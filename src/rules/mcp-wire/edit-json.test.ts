import { runInThisContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ContextError } from "../../core/errors.ts";
import { jsonFormat } from "./edit-json.ts";
import type { WiredServer } from "./wired-server.ts";

const entry = { command: "plimsoll", args: ["mcp"] };
const server: WiredServer = { keys: ["mcpServers"], name: "plimsoll", entry };
const deep: WiredServer = { keys: ["a", "mcpServers"], name: "plimsoll", entry };
const add = (text: string | undefined, to = server) => jsonFormat.add(text, to);
const back = (text: string, from = server) => jsonFormat.remove(text, from);
const oneLine = '{ "command": "plimsoll", "args": ["mcp"] }';

describe("adding", () => {
  test("creates a missing file and deletes it again", () => {
    const made = `{\n  "mcpServers": { "plimsoll": ${oneLine} }\n}\n`;
    expect(add(undefined)).toBe(made);
    expect(back(made)).toBeUndefined();
  });

  test.each([
    ["an empty object", "{}", `{\n  "mcpServers": {\n    "plimsoll": ${oneLine}\n  }\n}`],
    [
      "an empty object of servers",
      '{\n  "mcpServers": {}\n}\n',
      '{\n  "mcpServers": {\n    "plimsoll": {\n      "command": "plimsoll",\n      "args": ["mcp"]\n    }\n  }\n}\n',
    ],
    [
      "another server, with tabs",
      '{\n\t"mcpServers": {\n\t\t"x": { "command": "y" }\n\t}\n}\n',
      '{\n\t"mcpServers": {\n\t\t"x": { "command": "y" },\n\t\t"plimsoll": {\n\t\t\t"command": "plimsoll",\n\t\t\t"args": ["mcp"]\n\t\t}\n\t}\n}\n',
    ],
    [
      "a comment and a trailing comma, with CRLF",
      '\xef\xbb\xbf// ours\r\n{\r\n    "a": 1, // last\r\n}\r\n',
      `\xef\xbb\xbf// ours\r\n{\r\n    "a": 1, // last\r\n    "mcpServers": {\r\n        "plimsoll": ${oneLine}\r\n    },\r\n}\r\n`,
    ],
    [
      "a comment after the last value",
      '{\n  "a": 1 // one\n  /* two */\n}',
      `{\n  "a": 1, // one\n  /* two */\n  "mcpServers": {\n    "plimsoll": ${oneLine}\n  }\n}`,
    ],
    [
      "a comment before the last name",
      '{\n\t/* mine */ "a": 1\n}',
      `{\n\t/* mine */ "a": 1,\n\t"mcpServers": {\n\t\t"plimsoll": ${oneLine}\n\t}\n}`,
    ],
    ["one line", '{"a":[1,2]}', `{"a":[1,2], "mcpServers": { "plimsoll": ${oneLine} }}`],
    ["one line that a comment ends", '{"a":1 // x\n}', `{"a":1, // x\n  "mcpServers": { "plimsoll": ${oneLine} }\n}`],
    ["nothing", "", `{\n  "mcpServers": { "plimsoll": ${oneLine} }\n}`],
    ["only a comment", "// later", `{\n  "mcpServers": { "plimsoll": ${oneLine} }\n}// later`],
  ])("adds the entry to %s in its own style, and removing gives the old bytes back", (_name, before, after) => {
    expect(add(before)).toBe(after);
    expect(add(after)).toBe(after);
    expect(back(after)).toBe(before);
  });

  test("edits the last of two objects with the same name", () => {
    const text = '{"mcpServers": {"x": 1}, "mcpServers": {"y": 2}}';
    expect(JSON.parse(add(text))).toEqual({ mcpServers: { y: 2, plimsoll: entry } });
    expect(back(add(text))).toBe(text);
  });

  test("writes entries of other shapes", () => {
    const shape = { type: "local", command: ["plimsoll", "mcp"], enabled: true };
    const added = add('{"mcp":{}}', { keys: ["mcp"], name: "plimsoll", entry: shape });
    expect(JSON.parse(added)).toEqual({ mcp: { plimsoll: shape } });
  });
});

describe("refusing", () => {
  test.each([
    ['{\n  "a": 1\n  "b": 2\n}', 3, 'unexpected "b"'],
    ['{\r\n  "a": "x\r\n}', 2, "a string does not end"],
    ['{\n  "a": /* x\n}', 2, "a comment does not end"],
    ['{"a": 01}', 1, 'unexpected "01"'],
    ['{"a": 1', 1, "the text ends too early"],
    ["{}\n{}", 2, "unexpected {"],
    ["{} / x", 1, 'unexpected "/"'],
    ['{"\\x": 1}', 1, "a name is not a valid string"],
    [`${"[".repeat(3_000)}`, 1, "nested deeper than 1000 levels"],
  ])("names the line of the first mistake in %s", (text, line, what) => {
    const problem = { code: "unreadable_input", line, message: `is not valid JSON: ${what}` };
    expect(() => add(text)).toThrow(expect.objectContaining(problem));
    expect(() => back(text)).toThrow(expect.objectContaining(problem));
  });

  test("refuses servers that are not an object", () => {
    expect(() => add('{\n"mcpServers": []}')).toThrow(
      expect.objectContaining({ message: "mcpServers is not an object", line: 2 }),
    );
    expect(() => add("[]")).toThrow("does not hold an object");
  });

  test.each([
    ["another command", '{"command": "other", "args": ["mcp"]}'],
    ["a further field", '{"command": "plimsoll", "args": ["mcp"], "env": {}}'],
    ["a text", '"plimsoll"'],
  ])("keeps a person's entry with %s", (_name, value) => {
    const text = `{\n "mcpServers": {\n  "plimsoll": ${value}}}`;
    const problem = { code: "refused_target", line: 3 };
    expect(() => add(text)).toThrow(expect.objectContaining(problem));
    expect(() => back(text)).toThrow(expect.objectContaining(problem));
  });

  test("does not remove our entry if it has a person's comment in it", () => {
    const text = `{"mcpServers": {"plimsoll": { "command": "plimsoll", /* mine */ "args": ["mcp"] }}}`;
    expect(add(text)).toBe(text);
    expect(() => back(text)).toThrow(ContextError);
  });
});

describe("removing from a file that has changed", () => {
  test.each([
    ["without our entry", '{"mcpServers": {}}', '{"mcpServers": {}}'],
    [
      "formatted by another program",
      JSON.stringify({ mcpServers: { plimsoll: entry } }, null, 2),
      '{\n  "mcpServers": {}\n}',
    ],
    [
      "with servers before and after",
      JSON.stringify({ mcpServers: { x: 1, plimsoll: entry, y: 2 } }, null, 2),
      JSON.stringify({ mcpServers: { x: 1, y: 2 } }, null, 2),
    ],
    [
      "with a server that came later into our object",
      `{\n  "mcpServers": { "plimsoll": ${oneLine}, "y": 2 }\n}\n`,
      '{\n  "mcpServers": { "y": 2 }\n}\n',
    ],
    [
      "with a comment in our object",
      `{\n  "mcpServers": { /* mine */ "plimsoll": ${oneLine} }\n}\n`,
      '{\n  "mcpServers": { /* mine */ }\n}\n',
    ],
    [
      "with trailing commas",
      '{"mcpServers": {"plimsoll": {"args": ["mcp",], "command": "plimsoll",},}, "a": 1}',
      '{ "a": 1}',
    ],
    ["on one line", `{"mcpServers": {"plimsoll": ${oneLine}}}\n`, "{}\n"],
    [
      "with a comment around our document",
      `{\n  "mcpServers": { "plimsoll": ${oneLine} }\n}\n// mine\n`,
      "{}\n// mine\n",
    ],
  ])("removes the entry and keeps the rest of a file %s", (_name, text, expected) => {
    expect(back(text)).toBe(expected);
  });
});

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 50_000 : 200;

/** What may be between two words. Comments that look like code are the hardest. */
const filler = fc
  .array(
    fc.constantFrom(
      ...["", "", " ", "\n", "\r\n", "\t", "\n  ", "\r\n\t", "\n    "],
      ...["// x\n", "//\r\n", '// "mcpServers": {\n', "/* } */", "/**/", '/* "a\n */'],
    ),
    { maxLength: 2 },
  )
  .map((parts) => parts.join(""));
const name = fc.constantFrom('"mcpServers"', '"a"', '"x y"', '"mcp\\u0053ervers"', '"\\""', '"//"', '"\xc3\xa9"');
const scalar = fc.constantFrom("1", "-0.5e+3", "true", "null", '""', '"a\\"}"', '"/* x */"', '"\\\\"');

const { value } = fc.letrec<{ value: string; object: string; array: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, scalar, tie("object"), tie("array")),
  object: fc
    .tuple(
      fc.array(fc.tuple(filler, name, filler, filler, tie("value"), filler), { maxLength: 3 }),
      filler,
      fc.boolean(),
    )
    .map(([members, inner, comma]) => {
      const parts = members.map(([a, key, b, c, each, d]) => `${a}${key}${b}:${c}${each}${d}`);
      return `{${parts.join(",")}${comma && parts.length > 0 ? "," : ""}${inner}}`;
    }),
  array: fc
    .tuple(fc.array(fc.tuple(filler, tie("value"), filler), { maxLength: 3 }), filler, fc.boolean())
    .map(([items, inner, comma]) => {
      const parts = items.map((each) => each.join(""));
      return `[${parts.join(",")}${comma && parts.length > 0 ? "," : ""}${inner}]`;
    }),
}));
const file = fc
  .tuple(
    fc.constantFrom("", "", "\xef\xbb\xbf"),
    filler,
    fc.oneof(
      { weight: 9, arbitrary: value.filter((text) => text.startsWith("{")) },
      { weight: 1, arbitrary: fc.constant("") },
    ),
    filler,
    fc.constantFrom("", "", "// end"),
  )
  .map((parts) => parts.join(""));
const place = fc.constantFrom(server, deep);

/** JSON with comments is also JavaScript, so a second reader checks the result. */
function dataOf(text: string): unknown {
  const expression = text.replace(/^\xef\xbb\xbf/, "");
  const empty = runInThisContext(`[${expression}\n].length`) === 0;
  return empty ? {} : JSON.parse(runInThisContext(`JSON.stringify(${expression}\n)`));
}

function withEntry(data: unknown, [key, ...below]: readonly string[]): unknown {
  if (key === undefined) return entry;
  const object = data as Record<string, unknown>;
  return { ...object, [key]: withEntry(object[key] ?? {}, below) };
}

test("adds the entry once to any file and removes it without a trace", {
  timeout: 120_000,
}, () => {
  let refused = 0;
  fc.assert(
    fc.property(file, place, (text, to) => {
      let added: string;
      try {
        added = add(text, to);
      } catch (error) {
        expect(error).toMatchObject({ message: expect.stringMatching(/is not an object$/) });
        refused++;
        return;
      }
      expect(dataOf(added)).toEqual(withEntry(dataOf(text), [...to.keys, to.name]));
      expect(add(added, to)).toBe(added);
      expect(back(added, to)).toBe(text);
      expect(back(text, to)).toBe(text);
    }),
    { numRuns },
  );
  expect(refused).toBeLessThan(numRuns / 2);
});

test("reports any malformed text as an error with a line", () => {
  const piece = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    '"',
    '"a"',
    "\\",
    "/",
    "*",
    "//",
    "/*",
    "*/",
    "\n",
    " ",
    "1",
    "tru",
    "\0",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join("");
      try {
        expect(back(add(text))).toBe(text);
      } catch (error) {
        if (!(error instanceof ContextError)) throw error;
        expect(error.line).toBeGreaterThan(0);
      }
    }),
    { numRuns },
  );
});
