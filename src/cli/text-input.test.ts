import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { afterAll, describe, expect, test } from "vitest";
import { ContextError } from "../core/errors.ts";
import { readMessagesInput } from "./text-input.ts";

const cwd = mkdtempSync(join(tmpdir(), "plimsoll-messages-"));
afterAll(() => rmSync(cwd, { recursive: true }));

const user = { role: "user", content: "hi" };
const line = JSON.stringify(user);

function readWhole(content: string | Buffer) {
  writeFileSync(join(cwd, "in.json"), content);
  return readMessagesInput("in.json", { cwd, stdin: Readable.from([]), stdinKind: "other" });
}

async function read(content: string | Buffer) {
  const { source: _, ...rest } = await readWhole(content);
  return rest;
}

async function errorOf(content: string | Buffer) {
  const error = await read(content).catch((each: unknown) => each);
  if (!(error instanceof ContextError)) throw new Error("no expected error");
  const { code, message, file, line: at } = error;
  return { code, message, file, line: at };
}

describe("messages are read from", () => {
  test("a list", async () => {
    expect(await read(JSON.stringify([user, 7], null, 2))).toEqual({ messages: [user, 7] });
    expect(await read("[]")).toEqual({ messages: [] });
  });

  test("a request, which comes along", async () => {
    const request = { model: "claude-opus-5", messages: [user] };
    expect(await read(JSON.stringify(request))).toEqual({ messages: [user], request, key: "messages" });
    const responses = { input: [user] };
    expect(await read(JSON.stringify(responses))).toEqual({
      messages: [user],
      request: responses,
      key: "input",
    });
    expect(await read('{"input":"hi"}')).toEqual({
      messages: undefined,
      request: { input: "hi" },
      key: "input",
    });
    expect((await read('{"messages":null}')).messages).toBeUndefined();
  });

  test("JSON Lines, without the line about the transcript, with blank lines and CRLF", async () => {
    expect(await read(`${line}\n${line}\n`)).toEqual({ messages: [user, user] });
    expect(await read(`\n{"meta":{"model":"x"}}\r\n\r\n${line}\r\n${line}`)).toEqual({
      messages: [user, user],
    });
    expect(await read(`{"meta":{}}\n${line}\n`)).toEqual({ messages: [user] });
    expect(await read(`${line}\n{"meta":{}}\n`)).toEqual({ messages: [user, { meta: {} }] });
  });

  test("items of OpenAI's responses, with roles among them and without", async () => {
    const items = [{ type: "function_call", call_id: "a", name: "ls", arguments: "{}" }, user];
    expect(await read(items.map((item) => JSON.stringify(item)).join("\n"))).toEqual({ messages: items });
    expect(await read(JSON.stringify(items.slice(0, 1)))).toEqual({ messages: items.slice(0, 1) });
  });

  test("JSON Lines of one line", async () => {
    expect(await read(`${line}\n`)).toEqual({ messages: [user] });
    expect(await read('{"type":"reasoning"}')).toEqual({ messages: [{ type: "reasoning" }] });
    expect(await read('{"meta":{}}')).toEqual({ messages: [] });
  });

  test("a text with a byte order mark", async () => {
    expect(await read(`\uFEFF[${line}]`)).toEqual({ messages: [user] });
  });

  test("standard input, for - and if something is piped in", async () => {
    for (const name of ["-", undefined]) {
      const stdin = Readable.from([Buffer.from("["), Buffer.from("]")]);
      const source = { file: "-", text: "[]", isLines: false };
      expect(await readMessagesInput(name, { cwd, stdin, stdinKind: "piped" })).toEqual({
        messages: [],
        source,
      });
    }
  });

  test.each([
    [`[${line}]\n`, false],
    [`\uFEFF{"messages":[${line}]}`, false],
    [`${line}\n${line}\n`, true],
    [`{"meta":{}}\n${line}`, true],
    [line, true],
    ['{"meta":{}}', true],
  ])("a source that comes along: %j", async (text, isLines) => {
    const { source } = await readWhole(text);
    expect(source).toEqual({ file: "in.json", text: text.replace("\uFEFF", ""), isLines });
  });
});

describe("an error with the file", () => {
  test("reports missing input", async () => {
    const call = { cwd, stdin: Readable.from([]), stdinKind: "other" as const };
    await expect(readMessagesInput(undefined, call)).rejects.toMatchObject({ code: "usage" });
    const directory = { ...call, stdinKind: "directory" as const };
    await expect(readMessagesInput("-", directory)).rejects.toMatchObject({
      message: "is a directory",
      file: "-",
    });
    await expect(readMessagesInput(".", call)).rejects.toMatchObject({
      message: "is a directory",
      file: ".",
    });
    await expect(readMessagesInput("none", call)).rejects.toMatchObject({
      message: "no such file or directory",
      file: "none",
    });
  });

  test.each([
    ["", "is empty", undefined],
    [" \n\n", "is empty", undefined],
    ["null", "holds null, not messages", undefined],
    ["7", "holds a number, not messages", undefined],
    ['"hi"', "holds a string, not messages", undefined],
    ['{"model":"x"}', "holds an object without messages", undefined],
    [Buffer.from([1, 0, 2]), "binary file", undefined],
    ['[\n{"a":1},\n', "is not JSON: unexpected end of JSON input", 2],
    ['[\n{"a":1}\n{"b":2}]', "is not JSON: expected ',' or ']' after array element", 3],
    [`${line}\n{"role":\n`, "is not JSON: unexpected end of JSON input", 2],
    [`${line}\n\nhello`, "is not JSON: unexpected token 'h'", 3],
    ["hello", "is not JSON: unexpected token 'h'", undefined],
    ['{"type":"session_meta","payload":{}}', "this is a Codex session, not a list of messages", undefined],
    [
      `{"id":"s","timestamp":"2025-01-01T00:00:00Z"}\n{"type":"message",${line.slice(1)}`,
      "this is a Codex session, not a list of messages",
      undefined,
    ],
    [
      `{"type":"summary","leafUuid":"u"}\n{"type":"user","message":${line}}`,
      "this is a Claude Code session, not a list of messages",
      undefined,
    ],
    [`[{"messages":[${line}]}]`, "holds 1 request, but only one can be read", undefined],
    ['{"a":1}\n{"b":2}', "holds 2 lines but no message", undefined],
  ])("reports what is wrong with %j", async (content, message, at) => {
    expect(await errorOf(content)).toEqual({ code: "unreadable_input", message, file: "in.json", line: at });
  });
});
