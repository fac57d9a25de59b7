import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createSession, type Session } from "../session/index.ts";
import { createBackground, createLineProxy, type LineProxy } from "./line-proxy.ts";
import { readMessageLines } from "./line-stream.ts";

const counter = await createCounter("bytes/4");
const perToolCall = 600;

interface Wrapped extends LineProxy {
  readonly session: Session;
  readonly log: string[];
  /** Sends a client's request and the server's answer. Returns the answer that the client gets. */
  exchange(method: string, params: object, result: object): Promise<string>;
  /** A call that must not reach the server. */
  ask(name: string, args: object): Promise<Message>;
}

interface Message {
  readonly id: unknown;
  readonly result: Result;
}

interface Result {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: { readonly data: Data };
  readonly isError?: boolean;
  readonly resultType?: string;
}

type Data = Record<string, unknown> & { readonly continuation_token?: string };

async function wrap(toolTokens: Record<string, number> = {}): Promise<Wrapped> {
  const budget = { perToolCall, tools: toolTokens };
  const session = await createSession({
    counter,
    store: createMemoryStore(),
    now: () => 0,
    budget,
  });
  const log: string[] = [];
  const kept = { takeNotice: () => undefined };
  const options = { session, counter, pageLimit: () => ({}), clientIs: () => {}, ...kept };
  const proxy = createLineProxy({ ...options, log: (text) => log.push(text) });
  let id = 0;
  const request = (method: string, params: object) => {
    id += 1;
    return proxy.fromClient(toLine({ jsonrpc: "2.0", id, method, params }));
  };
  return {
    ...proxy,
    session,
    log,
    async exchange(method, params, result) {
      expect(request(method, params).answers).toEqual([]);
      return String(await proxy.fromServer(toLine({ jsonrpc: "2.0", id, result })));
    },
    async ask(name, args) {
      const { forward, answers } = request("tools/call", { name, arguments: args });
      expect(forward).toBeUndefined();
      return JSON.parse((await answers[0])!) as Message;
    },
  };
}

const toLine = (message: unknown): Buffer => Buffer.from(`${JSON.stringify(message)}\n`);
const textResult = (text: string) => ({ content: [{ type: "text", text }] });
const call = { name: "list", arguments: { a: 1 } };
const resultOf = (line: string): Result => (JSON.parse(line) as Message).result;
const dataOf = ({ content }: Result): Data => (JSON.parse(content[0]!.text) as { data: Data }).data;

test("everything but tool calls passes as the same bytes", async () => {
  const { fromClient, fromServer } = await wrap();
  const message = fc.record(
    {
      jsonrpc: fc.constant("2.0"),
      id: fc.oneof(fc.integer(), fc.string()),
      method: fc.constantFrom("ping", "tools/call/x", "notifications/progress", "resources/read", "initialize"),
      params: fc.jsonValue(),
      result: fc.jsonValue(),
    },
    { requiredKeys: [] },
  );
  const layout = fc.constantFrom("\n", "\r\n", "", " \n");
  const line = fc.oneof(
    fc.tuple(fc.oneof(message, fc.array(message)), layout).map(([value, end]) => JSON.stringify(value) + end),
    fc.string(),
  );
  await fc.assert(
    fc.asyncProperty(line, async (text) => {
      const bytes = Buffer.from(text);
      // A call is running, so that lines of the server are inspected.
      fromClient(toLine({ jsonrpc: "2.0", id: "under way", method: "tools/call", params: call }));
      expect(fromClient(bytes).forward).toBe(bytes);
      expect(await fromServer(bytes)).toBe(bytes);
    }),
  );
});

test("the account has the last instructions and tools of the server, and our tools", async () => {
  const { exchange, session, settled } = await wrap();
  const system = async (): Promise<number> => {
    await settled();
    return session.status().ledger.system.used;
  };
  expect(await system()).toBe(0);
  const instructions = "Ask before you delete anything.";
  await exchange("initialize", { protocolVersion: "2025-06-18" }, { instructions });
  expect(await system()).toBe(counter.count(instructions));

  const told = (line: string): number => {
    const { tools } = (JSON.parse(line) as { result: { tools: Record<string, unknown>[] } }).result;
    const texts = tools.map(({ name, description, inputSchema }) => ({ name, description, inputSchema }));
    return texts.reduce((sum, each) => sum + counter.count(JSON.stringify(each)), 0);
  };
  const tool = { name: "list", description: "Lists.", inputSchema: { type: "object" }, title: "List" };
  const outputSchema = { type: "object", properties: { rows: { type: "array" } } };
  const first = await exchange("tools/list", {}, { tools: [{ ...tool, outputSchema }], nextCursor: "2" });
  const second = await exchange("tools/list", { cursor: "2" }, { tools: [{ ...tool, name: "other" }] });
  expect(told(second)).toBeGreaterThan(200);
  const all = counter.count(instructions) + told(first) + told(second);
  expect(await system()).toBe(all);
  expect(session.forModel()).toMatchObject({ remaining: 100_000 - all, used: { system: all } });

  const again = await exchange("tools/list", {}, { tools: [] });
  expect(await system()).toBe(counter.count(instructions) + told(again));
  await exchange("server/discover", {}, {});
  expect(await system()).toBe(told(again));
});

test("a large line passes as the same bytes if nothing in it is paged", async () => {
  const { fromClient, fromServer } = await wrap();
  fromClient(toLine({ jsonrpc: "2.0", id: 7, method: "tools/call", params: call }));
  const data = Buffer.alloc(6_000_000, "A").toString();
  const sent = toLine({
    jsonrpc: "2.0",
    id: 7,
    result: { content: [{ type: "image", data, mimeType: "image/png", note: "größer" }] },
  });
  const parts = Array.from({ length: 100 }, (_, at) => sent.subarray(at * 70_000, (at + 1) * 70_000));
  for await (const line of readMessageLines(Readable.from(parts), { replace: () => undefined })) {
    expect(Buffer.from(await fromServer(line)).equals(sent)).toBe(true);
  }
});

test("bytes that are not UTF-8 pass unchanged", async () => {
  const { fromClient, fromServer } = await wrap();
  const bytes = Buffer.from([0x7b, 0xff, 0xfe, 0x7d, 0x0a]);
  expect(fromClient(bytes).forward).toBe(bytes);
  expect(await fromServer(bytes)).toBe(bytes);
});

test("a result that fits passes unchanged, and can be recalled", async () => {
  const { exchange, ask, session, settled } = await wrap();
  const result = textResult("small\nresult");
  const line = await exchange("tools/call", call, result);
  expect(line).toBe(String(toLine({ jsonrpc: "2.0", id: 1, result })));
  await settled();
  expect(session.status().calls).toBe(1);
  const again = await ask("recall", { id: "r1" });
  expect(dataOf(again.result)).toMatchObject({ lines: ["small", "result"], truncated: false });
});

test("a result that is too large becomes pages, which together have all of it", async () => {
  const lines = fc.array(
    fc.string({ unit: "grapheme", maxLength: 300 }).filter((line) => !line.includes("\n")),
    {
      minLength: 1,
      maxLength: 200,
    },
  );
  await fc.assert(
    fc.asyncProperty(lines, async (items) => {
      const { exchange, ask } = await wrap();
      const text = `x${items.join("\n")}`;
      let result = resultOf(await exchange("tools/call", call, textResult(text)));
      if (counter.count(text) <= perToolCall) {
        expect(result.content[0]?.text).toBe(text);
        return;
      }
      const found: unknown[] = [];
      for (let pages = 1; ; pages += 1) {
        expect(pages).toBeLessThan(1_000);
        expect(counter.count(result.content[0]!.text)).toBeLessThanOrEqual(perToolCall);
        const data = dataOf(result);
        const { from = 0 } = (data.cut ?? {}) as { from?: number };
        const page = (data.lines ?? data.items) as string[];
        if (from > 0) found[found.length - 1] += page[0]!;
        else found.push(...page);
        if (data.continuation_token === undefined) break;
        result = (await ask("next_page", { token: data.continuation_token })).result;
      }
      expect(found.join("\n")).toBe(text);
    }),
    { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 300 : 25 },
  );
});

test("text and structured content of a page are the same, and the rest of the result is unchanged", async () => {
  const { exchange } = await wrap();
  const rows = Array.from({ length: 200 }, (_, index) => ({ index, text: "some words" }));
  const data = { rows, total: 200 };
  const line = await exchange("tools/call", call, {
    _meta: { note: 1 },
    content: [{ type: "text", text: JSON.stringify(data) }],
    structuredContent: data,
    isError: false,
    other: "kept",
  });
  const { content, structuredContent, ...rest } = resultOf(line);
  expect(JSON.parse(content[0]!.text)).toEqual(structuredContent);
  expect(structuredContent?.data).toMatchObject({ total: 200, truncated: true, tool_fields: { total: 200 } });
  expect(structuredContent?.data.rows).toEqual(rows.slice(0, structuredContent?.data.returned as number));
  expect(rest).toEqual({ _meta: { note: 1 }, isError: false, other: "kept" });
  expect(Object.keys(resultOf(line))).toEqual(["_meta", "content", "structuredContent", "isError", "other"]);
});

test("an image is sent with the first page, and counts", async () => {
  const { exchange, session, settled } = await wrap();
  const image = { type: "image", data: "A".repeat(40_000), mimeType: "image/png" };
  const small = await exchange("tools/call", call, { content: [{ type: "text", text: "see" }, image] });
  expect(resultOf(small).content).toEqual([{ type: "text", text: "see" }, image]);
  await settled();
  expect(session.forModel().delivered).toBeGreaterThan(1_000);
  const text = "words ".repeat(2_000);
  const large = resultOf(await exchange("tools/call", call, { content: [{ type: "text", text }, image] }));
  expect(large.content).toHaveLength(2);
  expect(large.content[1]).toEqual(image);
  expect(dataOf(large).truncated).toBe(true);
});

test("indented JSON that would fit only without its spaces becomes a page", async () => {
  const { exchange } = await wrap();
  const text = JSON.stringify(
    Array.from({ length: 60 }, () => [[[[[1]]]]]),
    null,
    8,
  );
  expect(counter.count(text)).toBeGreaterThan(perToolCall);
  const data = dataOf(resultOf(await exchange("tools/call", call, textResult(text))));
  expect(data).toMatchObject({ returned: 60, truncated: false });
});

test("ids and numbers that JavaScript would round are unchanged", async () => {
  const { fromClient, fromServer } = await wrap();
  fromClient(toLine({ jsonrpc: "2.0", id: 7, method: "tools/call", params: call }));
  const text = JSON.stringify("many words ".repeat(1_000));
  const line = `{ "jsonrpc":"2.0", "id":7 ,"result":{"content":[{"type":"text","text":${text}}], "size": 12345678901234567890}}\r\n`;
  const edited = String(await fromServer(Buffer.from(line)));
  expect(edited).toMatch(/^\{ "jsonrpc":"2\.0", "id":7 ,"result":\{"content":\[\{"type":"text","text":"/);
  expect(edited).toMatch(/\}\], "size": 12345678901234567890\}\}\r\n$/);
});

test("a tool with its own limit gets that share", async () => {
  const { exchange } = await wrap({ list: 2_000 });
  const text = "word ".repeat(1_200);
  expect(resultOf(await exchange("tools/call", call, textResult(text))).content[0]?.text).toBe(text);
  const other = await exchange("tools/call", { ...call, name: "other" }, textResult(text));
  expect(dataOf(resultOf(other)).truncated).toBe(true);
});

test("the list of tools gets ours at its end, and loses output schemas that pages would break", async () => {
  const { exchange } = await wrap();
  const tool = {
    name: "list",
    inputSchema: { type: "object", maximum: 1 },
    outputSchema: { type: "object" },
    x: 1,
  };
  const first = resultOf(await exchange("tools/list", {}, { tools: [tool], nextCursor: "c" }));
  expect(first).toEqual({ tools: [{ name: "list", inputSchema: tool.inputSchema, x: 1 }], nextCursor: "c" });
  const last = resultOf(await exchange("tools/list", { cursor: "c" }, { tools: [], ttlMs: 5 })) as unknown as {
    tools: { name: string; inputSchema: { type: string } }[];
  };
  expect(last.tools.map(({ name }) => name)).toEqual(["next_page", "recall"]);
  expect(last.tools[0]?.inputSchema.type).toBe("object");
  expect(last).toMatchObject({ ttlMs: 5 });
});

test("if the server has a tool with our name, ours gets another name, and both work", async () => {
  const { exchange, ask, fromClient } = await wrap();
  const theirs = { name: "next_page", inputSchema: { type: "object" } };
  const line = await exchange("tools/list", {}, { tools: [theirs] });
  expect(line).toContain('"name":"plimsoll_next_page"');
  expect(line).toContain('"name":"recall"');
  const large = resultOf(await exchange("tools/call", call, textResult("many words\n".repeat(1_000))));
  const token = dataOf(large).continuation_token!;
  const renamed = await ask("plimsoll_next_page", { token });
  const named = await ask("next_page", { token });
  expect(dataOf(named.result).lines).toEqual(dataOf(renamed.result).lines);
  const their = toLine({
    jsonrpc: "2.0",
    id: 99,
    method: "tools/call",
    params: { name: "next_page", arguments: {} },
  });
  expect(fromClient(their).forward).toBe(their);
});

test("a wrong token or id is an error that the model can read", async () => {
  const { ask } = await wrap();
  for (const [name, args, code] of [
    ["next_page", {}, "invalid_argument"],
    ["next_page", { token: "offset:1" }, "invalid_token"],
    ["next_page", { token: "r9:offset:1" }, "unknown_result"],
    ["recall", { id: "r9" }, "unknown_result"],
    ["recall", { id: "r1", offset: -1 }, "invalid_argument"],
    ["recall", { id: "r1", budget: "x" }, "invalid_argument"],
  ] as const) {
    const { result } = await ask(name, args);
    expect(result.isError).toBe(true);
    expect(JSON.parse(result.content[0]!.text)).toMatchObject({ status: "error", error: { code } });
  }
});

test("our answer says that it is complete if the request's revision requires it", async () => {
  const { fromClient } = await wrap();
  const _meta = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" };
  const params = { name: "recall", arguments: { id: "r1" }, _meta };
  const { answers } = fromClient(toLine({ jsonrpc: "2.0", id: "a", method: "tools/call", params }));
  expect(JSON.parse((await answers[0])!)).toMatchObject({ id: "a", result: { resultType: "complete" } });
});

test("a cancelled call of our tool gets no answer, and the server never sees it", async () => {
  const { fromClient } = await wrap();
  const params = { name: "recall", arguments: { id: "r1" } };
  const { answers } = fromClient(toLine({ jsonrpc: "2.0", id: 5, method: "tools/call", params }));
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } };
  expect(fromClient(toLine(cancel)).forward).toBeUndefined();
  expect(await answers[0]).toBeUndefined();
  const theirs = toLine({ ...cancel, params: { requestId: 6 } });
  expect(fromClient(theirs).forward).toBe(theirs);
});

test("a result that comes after its call was cancelled passes unchanged", async () => {
  const { fromClient, fromServer } = await wrap();
  fromClient(toLine({ jsonrpc: "2.0", id: 5, method: "tools/call", params: call }));
  fromClient(toLine({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } }));
  const line = toLine({ jsonrpc: "2.0", id: 5, result: textResult("word ".repeat(2_000)) });
  expect(await fromServer(line)).toBe(line);
});

test("our messages in a line of several are answered, the others are passed on", async () => {
  const { fromClient, fromServer } = await wrap();
  const theirs = { jsonrpc: "2.0", id: 1, method: "tools/call", params: call };
  const ours = {
    jsonrpc: "2.0",
    id: 2,
    method: "tools/call",
    params: { name: "recall", arguments: { id: "r1" } },
  };
  const { forward, answers } = fromClient(toLine([theirs, ours]));
  expect(JSON.parse(String(forward))).toEqual([theirs]);
  expect(answers).toHaveLength(1);
  await answers[0];
  const note = { jsonrpc: "2.0", method: "notifications/progress" };
  const results = toLine([note, { jsonrpc: "2.0", id: 1, result: textResult("word ".repeat(2_000)) }]);
  const [first, second] = JSON.parse(String(await fromServer(results))) as [unknown, Message];
  expect(first).toEqual(note);
  expect(dataOf(second.result).truncated).toBe(true);
});

test("if the store fails, results pass unchanged", async () => {
  const store = createMemoryStore();
  const session = await createSession({ counter, store, now: () => 0, budget: { perToolCall } });
  const log: string[] = [];
  const kept = { takeNotice: () => undefined };
  const options = { session, counter, pageLimit: () => ({}), clientIs: () => {}, ...kept };
  const { fromClient, fromServer, settled } = createLineProxy({ ...options, log: (text) => log.push(text) });
  await store.close();
  for (const text of ["small", "word ".repeat(2_000)]) {
    fromClient(toLine({ jsonrpc: "2.0", id: 1, method: "tools/call", params: call }));
    const line = toLine({ jsonrpc: "2.0", id: 1, result: textResult(text) });
    expect(await fromServer(line)).toBe(line);
  }
  await settled();
  expect(log).toEqual([
    "a result could not be stored: the store is closed",
    "a result was passed on unchanged: the store is closed",
  ]);
});

test("work is done in order, one at a time, and a failure stops nothing", async () => {
  const failures: unknown[] = [];
  const { add, settled } = createBackground((error) => failures.push(error));
  const done: string[] = [];
  const work = (name: string) => async () => {
    done.push(`${name} begins`);
    await new Promise((resolve) => setTimeout(resolve, 5));
    done.push(`${name} ends`);
    if (name === "b") throw new Error("b fails");
  };
  await Promise.all(["a", "b", "c"].map((name) => add(work(name))));
  expect(done).not.toContain("a ends");
  await settled();
  expect(done).toEqual(["a", "b", "c"].flatMap((name) => [`${name} begins`, `${name} ends`]));
  expect(failures).toEqual([new Error("b fails")]);
});

test("adding too much work waits", async () => {
  const { add } = createBackground(() => {});
  let done = 0;
  const work = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    done += 1;
  };
  for (let index = 0; index < 100; index += 1) await add(work);
  expect(done).toBeLessThan(100);
  await add(work);
  expect(done).toBe(101);
});
