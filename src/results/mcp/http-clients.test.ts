import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { clientInSession, createHttpSession } from "./http-clients.ts";
import { mayInitialize, readFirst } from "./serve-http.ts";

const initialize = (name: string): Buffer =>
  Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { clientInfo: { name } } }));

test("a session id contains the name that was given at initialize", () => {
  for (const name of ["codex-mcp-client", "Gemini CLI", "né 😀"]) {
    const session = createHttpSession(initialize(name))!;
    expect(session).toMatch(/^[\x21-\x7e]+$/);
    expect(clientInSession(session)?.name).toBe(name);
  }
});

test("two clients of one name have two ids, and a long name is cut", () => {
  const [one, two] = [1, 2].map(() => clientInSession(createHttpSession(initialize("a"))));
  expect(one).toEqual({ id: expect.stringMatching(/^[\da-f-]{36}$/), name: "a", offersRoots: false });
  expect(one?.id).not.toBe(two?.id);
  expect(clientInSession(createHttpSession(initialize("x".repeat(5_000))))?.name).toBe("x".repeat(100));
});

test("only an initialize gets a session id, and a foreign id has no client", () => {
  for (const text of ["", "{", "[]", '{"method":"tools/call"}', '{"method":"initialize","params":{}}'])
    expect(createHttpSession(Buffer.from(text))).toBeUndefined();
  for (const id of [null, undefined, "", "abc", "0.Y29kZXg", `${"0".repeat(36)}.`])
    expect(clientInSession(id)).toBeUndefined();
});

test("only a short request without a session is inspected, whatever its revision is", () => {
  const request = (headers: Record<string, string>, method = "POST") => ({ method, headers }) as never;
  const may = (each: IncomingMessage) => mayInitialize(each);
  expect(may(request({ "content-length": "200" }))).toBe(true);
  expect(may(request({ "content-length": "200", "mcp-session-id": "x" }))).toBe(false);
  expect(may(request({ "content-length": "200", "mcp-protocol-version": "2025-11-25" }))).toBe(true);
  expect(may(request({ "content-length": "200000" }))).toBe(false);
  expect(may(request({ "transfer-encoding": "chunked" }))).toBe(true);
  expect(may(request({ "content-length": "200" }, "GET"))).toBe(false);
});

test("a short body of unknown length is read completely, and a longer one passes without loss", async () => {
  const read = async (count: number): Promise<Buffer | AsyncIterable<Buffer>> =>
    readFirst(Readable.from(Array.from({ length: count }, (_, index) => Buffer.alloc(1_000, index))));
  for (const count of [0, 1, 100]) expect((await read(count)) as Buffer).toHaveLength(count * 1_000);
  const long = await read(300);
  expect(Buffer.isBuffer(long)).toBe(false);
  const chunks: Buffer[] = [];
  for await (const chunk of long as AsyncIterable<Buffer>) chunks.push(chunk);
  expect(chunks.map(([first]) => first)).toEqual(Array.from({ length: 300 }, (_, index) => index % 256));
});
