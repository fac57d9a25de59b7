import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { mayInitialize, nameInSession, sessionOf } from "./http-client-names.ts";

const initialize = (name: string): Buffer =>
  Buffer.from(
    JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { clientInfo: { name } } }),
  );

test("a session id tells the name that was given at initialize", () => {
  for (const name of ["codex-mcp-client", "Gemini CLI", "né 😀"]) {
    const session = sessionOf(initialize(name))!;
    expect(session).toMatch(/^[\x21-\x7e]+$/);
    expect(nameInSession(session)).toBe(name);
  }
});

test("two clients of one name have two ids, and a long name is cut", () => {
  expect(sessionOf(initialize("a"))).not.toBe(sessionOf(initialize("a")));
  expect(nameInSession(sessionOf(initialize("x".repeat(5_000))))).toBe("x".repeat(100));
});

test("what is no initialize gets no session id, and a foreign id no name", () => {
  for (const text of ["", "{", "[]", '{"method":"tools/call"}', '{"method":"initialize","params":{}}'])
    expect(sessionOf(Buffer.from(text))).toBeUndefined();
  for (const id of [null, undefined, "", "abc", "0.Y29kZXg", `${"0".repeat(36)}.`])
    expect(nameInSession(id)).toBeUndefined();
});

test("only a short request that tells neither session nor revision is looked at", () => {
  const request = (headers: Record<string, string>, method = "POST") => ({ method, headers }) as never;
  const may = (each: IncomingMessage) => mayInitialize(each);
  expect(may(request({ "content-length": "200" }))).toBe(true);
  expect(may(request({ "content-length": "200", "mcp-session-id": "x" }))).toBe(false);
  expect(may(request({ "content-length": "200", "mcp-protocol-version": "2026-07-28" }))).toBe(false);
  expect(may(request({ "content-length": "200000" }))).toBe(false);
  expect(may(request({}))).toBe(false);
  expect(may(request({ "content-length": "200" }, "GET"))).toBe(false);
});
