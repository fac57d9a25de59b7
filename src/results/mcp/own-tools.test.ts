import { expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createSession } from "../session/index.ts";
import { createLineProxy } from "./line-proxy.ts";

const counter = await createCounter("bytes/4");
const toLine = (message: unknown): Buffer => Buffer.from(`${JSON.stringify(message)}\n`);
const textResult = (text: string) => ({ content: [{ type: "text", text }] });
const call = { name: "list", arguments: { a: 1 } };

async function wrap() {
  const session = await createSession({ counter, store: createMemoryStore(), now: () => 0 });
  const options = {
    session,
    counter,
    pageLimit: () => ({}),
    clientIs: () => {},
    takeNotice: () => undefined,
  };
  const proxy = createLineProxy({ ...options, log: () => {} });
  let id = 0;
  const exchange = async (method: string, params: object, result: object): Promise<string> => {
    id += 1;
    expect(proxy.fromClient(toLine({ jsonrpc: "2.0", id, method, params })).answers).toEqual([]);
    return String(await proxy.fromServer(toLine({ jsonrpc: "2.0", id, result })));
  };
  return { ...proxy, session, exchange };
}

test("the server's own token goes to the server, even if it looks like ours", async () => {
  const { exchange, fromClient, ownName } = await wrap();
  expect(ownName("next_page")).toBe("next_page");
  await exchange("tools/list", {}, { tools: [{ name: "next_page", inputSchema: { type: "object" } }] });
  expect(ownName("next_page")).toBe("plimsoll_next_page");
  await exchange("tools/call", call, textResult("short"));
  for (const token of ["r1:offset:1", "r5:abc"]) {
    const params = { name: "next_page", arguments: { token } };
    const line = toLine({ jsonrpc: "2.0", id: 98, method: "tools/call", params });
    expect(fromClient(line)).toEqual({ forward: line, answers: [] });
  }
});

test("an unchanged result counts with its own tokens", async () => {
  const { exchange, session, settled } = await wrap();
  const text = "a few words";
  await exchange("tools/call", call, textResult(text));
  await settled();
  expect(session.status()).toMatchObject({
    delivered: counter.count(text),
    largest: [{ tokens: counter.count(text) }],
  });
  const structuredContent = { rows: ["a", "b", "c"], note: "longer than its text" };
  await exchange("tools/call", call, { ...textResult("short"), structuredContent });
  await settled();
  const expected = counter.count(text) + counter.count(JSON.stringify(structuredContent));
  expect(session.status().delivered).toBe(expected);
});
