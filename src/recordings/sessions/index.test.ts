import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { convertMessages } from "../../../test/generate/convert/convert-messages.ts";
import { type GeneratedSession, generateSession } from "../../../test/generate/generate-session.ts";
import { readRecording } from "./index.ts";

const file = "session.jsonl";
const user = { role: "user", content: [{ type: "text", text: "Where is the limit read?" }] };
const assistant = { role: "assistant", content: [{ type: "text", text: "In limits.ts." }] };

const read = (text: string) => readRecording(text, { file });
const lines = (...values: unknown[]) => `${values.map((value) => JSON.stringify(value)).join("\n")}\n`;

describe("a transcript", () => {
  it("has its messages as they are, and the first model of its meta line", () => {
    const session = read(lines({ meta: { model: "claude-opus-4-5, gpt-5" } }, user, assistant));
    expect(session).toEqual({
      file,
      source: "transcript",
      format: "anthropic",
      model: "claude-opus-4-5",
      messages: [user, assistant],
      notes: [],
    });
  });

  it("needs no model", () => {
    expect(read(lines({ meta: { model: null } }, user)).model).toBeUndefined();
  });

  it("may lack the meta line: then the messages show their format", () => {
    expect(read(lines(user, assistant))).toEqual({
      file,
      source: "messages",
      messages: [user, assistant],
      notes: [],
    });
  });

  it("may have items of OpenAI's responses, some with a role and some with a type", () => {
    const items = [
      { type: "message", role: "user", content: "Where?" },
      { role: "user", content: "And why?" },
      { type: "reasoning", summary: [] },
      { type: "web_search_call", id: "w", status: "completed" },
      { type: "function_call", call_id: "a", name: "grep", arguments: "{}" },
      { type: "function_call_output", call_id: "a", output: "limits.ts" },
    ];
    const expected = { file, source: "messages", messages: items, notes: [] };
    expect(read(lines(...items))).toEqual(expected);
    expect(read(lines(...items.toReversed()))).toEqual({ ...expected, messages: items.toReversed() });
  });

  it("ignores a byte order mark, CRLF and blank lines", () => {
    const text = `\uFEFF${JSON.stringify({ meta: {} })}\r\n\r\n${JSON.stringify(user)}\r\n\r\n`;
    expect(read(text).messages).toEqual([user]);
  });

  it("names the line that is not a message", () => {
    expect(() => read(lines({ meta: {} }, user, { text: "lost" }))).toThrow(
      expect.objectContaining({ code: "invalid_message", file, line: 3 }),
    );
  });
});

describe("a line that was cut off", () => {
  const whole = lines({ meta: {} }, user, assistant);

  it("is left out at the end of the file, and a note says so", () => {
    const session = read(whole.slice(0, -20));
    expect(session.messages).toEqual([user]);
    expect(session.notes).toEqual(["line 3 is cut off and was left out"]);
  });

  it("is an error with its line anywhere else", () => {
    const broken = whole.replace(JSON.stringify(user), JSON.stringify(user).slice(0, 30));
    expect(() => read(broken)).toThrow(
      expect.objectContaining({
        code: "unreadable_input",
        file,
        line: 2,
        message: expect.stringMatching(/not valid JSON/),
      }),
    );
  });
});

describe("a request", () => {
  it("of Anthropic or OpenAI chat has messages, system prompt, tools and model", () => {
    const tools = [{ name: "read_file", input_schema: { type: "object" } }];
    const request = {
      model: "claude-opus-4-5",
      max_tokens: 100,
      system: "Be brief.",
      tools,
      messages: [user],
    };
    const expected = {
      file,
      source: "request",
      messages: [user],
      system: "Be brief.",
      tools,
      model: "claude-opus-4-5",
      notes: [],
    };
    expect(read(JSON.stringify(request))).toEqual(expected);
    expect(read(JSON.stringify(request, null, 2))).toEqual(expected);
  });

  it("of OpenAI responses has its input as messages", () => {
    const input = [{ type: "message", role: "user", content: [{ type: "input_text", text: "hello" }] }];
    const session = read(JSON.stringify({ model: "gpt-5", instructions: "Be brief.", input }));
    expect(session).toMatchObject({
      source: "request",
      format: "responses",
      system: "Be brief.",
      messages: input,
    });
    const plain = read(JSON.stringify({ input: "hello" }));
    expect(plain).toMatchObject({ format: "responses", messages: [{ role: "user", content: "hello" }] });
  });

  it("may be a bare list of messages", () => {
    expect(read(JSON.stringify([user, assistant], null, 1)).messages).toEqual([user, assistant]);
    expect(read("[]").messages).toEqual([]);
  });

  it("names the message that is not an object", () => {
    expect(() => read(JSON.stringify([user, 7]))).toThrow(
      expect.objectContaining({ code: "invalid_message", file, message: "messages[1] must be an object" }),
    );
  });

  it("names the line of invalid JSON", () => {
    const text = JSON.stringify({ messages: [user, assistant] }, null, 2).replace(
      '"role": "assistant"',
      '"role" "assistant"',
    );
    const line = text.split("\n").findIndex((each) => each.includes('"role" "assistant"')) + 1;
    expect(() => read(text)).toThrow(expect.objectContaining({ code: "unreadable_input", file, line }));
  });
});

describe("a file that is not a session", () => {
  it.each([
    ["nothing", ""],
    ["blank lines", "\n \n"],
    ["null", "null"],
    ["a number", "42"],
    ["another object", '{"name":"plimsoll"}'],
    ["lines of other objects", '{"a":1}\n{"b":2}\n'],
    ["several requests", '{"messages":[]}\n{"input":"hi"}\n'],
    ["binary", "\u0000\u0001PNG\n\u0002"],
    ["a list that is cut off", '[{"role":"user",'],
  ])("is refused with the file's name: %s", (_name, text) => {
    expect(() => read(text)).toThrow(expect.objectContaining({ code: "unreadable_input", file }));
  });
});

// The recordings are large and are not in the repository.
const folder = process.env.PLIMSOLL_TRANSCRIPTS;
const reason = folder === undefined ? " (skipped: PLIMSOLL_TRANSCRIPTS names no folder)" : "";

describe.skipIf(folder === undefined)(`recorded transcripts${reason}`, () => {
  const names = folder === undefined ? [] : readdirSync(folder).filter((name) => name.endsWith(".jsonl"));

  it("exist", () => expect(names.length).toBeGreaterThan(0));

  it.each(names)("%s loads whole", (name) => {
    const text = readFileSync(join(folder ?? "", name), "utf8");
    const session = readRecording(text, { file: name });
    expect(session.notes).toEqual([]);
    expect(session.messages.length).toBe(text.trimEnd().split("\n").length - 1);
    expect(session.messages.some((message) => (message as { role: string }).role === "assistant")).toBe(true);
  });
});

/** Sessions written as the programs write them are read back unchanged. */
const seeds = Array.from({ length: process.env.PLIMSOLL_DEEP === "1" ? 40 : 6 }, (_each, index) => index + 1);
const jsonLines = (lines: readonly object[]) => `${lines.map((line) => JSON.stringify(line)).join("\n")}\n`;
const iso = (timeMs: number) => new Date(timeMs).toISOString();

describe("a written session", () => {
  it.each(seeds)("of Claude Code is read back unchanged: seed %d", (seed) => {
    const session = generateSession({ seed, turns: 50 });
    const read = readRecording(asClaudeCode(session), { file: "s.jsonl" });
    expect(read.messages).toEqual(session.messages);
    expect(read.times).toEqual(session.times);
    expect(read.model).toBe(session.model);
    expect(read.notes).toEqual([]);
  });

  it.each(seeds)("of Codex is read back unchanged: seed %d", (seed) => {
    const session = generateSession({ seed, turns: 50, profile: "search" });
    const items = convertMessages(session.messages, "responses");
    const lines = items.map((payload) => ({
      timestamp: iso(session.times[0]!),
      type: "response_item",
      payload,
    }));
    const head = { timestamp: iso(session.times[0]!), type: "session_meta", payload: { id: "s" } };
    expect(readRecording(jsonLines([head, ...lines]), { file: "s.jsonl" }).messages).toEqual(items);
    expect(readRecording(jsonLines([{ id: "s", timestamp: "t" }, ...items]), { file: "s.jsonl" }).messages).toEqual(
      items,
    );
  });

  it("that was cut off anywhere in its last line loses only that line", () => {
    const session = generateSession({ seed: 1, turns: 6 });
    const text = asClaudeCode(session).trimEnd();
    const lastLine = text.lastIndexOf("\n") + 1;
    const before = readRecording(text.slice(0, lastLine), { file: "s.jsonl" }).messages;
    const step = Math.ceil((text.length - lastLine) / 40);
    for (let cut = lastLine + 1; cut < text.length; cut += step) {
      const read = readRecording(text.slice(0, cut), { file: "s.jsonl" });
      expect(read.messages).toEqual(before);
      expect(read.notes[0]).toMatch(/^line \d+ is cut off and was left out$/);
    }
  });
});

/** One line per block, with lines of the program's own between messages. */
function asClaudeCode({ messages, times, model }: GeneratedSession): string {
  const lines = messages.flatMap(({ role, content }, at) => {
    const common = { isSidechain: false, sessionId: "s", timestamp: iso(times[at]!), type: role };
    const blocks = content.map((block, index) => {
      const answer = role === "assistant" ? { id: `msg_${at}`, model, usage: { input_tokens: 1 } } : {};
      return { ...common, uuid: `${at}-${index}`, message: { role, ...answer, content: [block] } };
    });
    return [{ ...common, type: "progress", uuid: `${at}-p` }, ...blocks];
  });
  return jsonLines(lines);
}
