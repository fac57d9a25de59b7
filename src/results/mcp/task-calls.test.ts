import { expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createSession } from "../session/index.ts";
import { createLineProxy } from "./line-proxy.ts";

const counter = await createCounter("bytes/4");
const toLine = (message: unknown): Buffer => Buffer.from(`${JSON.stringify(message)}\n`);
const large = { content: [{ type: "text", text: "some words\n".repeat(1_000) }] };
const call = { name: "research", arguments: { topic: "ships" } };

async function wrap() {
  const budget = { perToolCall: 600, tools: { research: 900 } };
  const session = await createSession({
    counter,
    store: createMemoryStore(),
    now: () => 0,
    budget,
  });
  const kept = { takeNotice: () => undefined };
  const options = { session, counter, pageLimit: () => ({}), clientIs: () => {}, ...kept };
  const proxy = createLineProxy({ ...options, log: () => {} });
  let id = 0;
  const exchange = async (method: string, params: object, result: object): Promise<string> => {
    id += 1;
    proxy.fromClient(toLine({ jsonrpc: "2.0", id, method, params }));
    return String(await proxy.fromServer(toLine({ jsonrpc: "2.0", id, result })));
  };
  return { ...proxy, session, exchange };
}

interface Page {
  readonly content: readonly { readonly text: string }[];
}

const dataOf = ({ content }: Page) =>
  (JSON.parse(content[0]!.text) as { data: { lines: string[]; truncated: boolean } }).data;

test("the result of a call that became a task is paged like the tool's result", async () => {
  const { exchange, session, settled } = await wrap();
  const task = { taskId: "t1", status: "working", ttl: null, createdAt: "", pollInterval: 50 };
  const begun = await exchange("tools/call", { ...call, task: { ttl: 1 } }, { task });
  expect(begun).toBe(String(toLine({ jsonrpc: "2.0", id: 1, result: { task } })));
  const polled = { ...task, status: "completed" };
  expect(await exchange("tasks/get", { taskId: "t1" }, polled)).toBe(
    String(toLine({ jsonrpc: "2.0", id: 2, result: polled })),
  );
  await settled();
  expect(session.status().calls).toBe(0);
  const _meta = { "io.modelcontextprotocol/related-task": { taskId: "t1" } };
  const { result } = JSON.parse(await exchange("tasks/result", { taskId: "t1" }, { ...large, _meta })) as {
    result: Page & { readonly _meta: object };
  };
  expect(result._meta).toEqual(_meta);
  const { lines, truncated } = dataOf(result);
  expect([truncated, lines.length > 200]).toEqual([true, true]);
  expect(session.workLog("recent")).toMatchObject({ recent: [{ tool: "research" }] });
});

test("a result inside the state of its task is paged there, and the rest is unchanged", async () => {
  const { exchange } = await wrap();
  const task = { resultType: "task", taskId: "t2", status: "working" };
  expect(await exchange("tools/call", call, task)).toContain('"resultType":"task"');
  const done = { resultType: "complete", taskId: "t2", status: "completed", result: large, ttlMs: null };
  const { result: told } = JSON.parse(await exchange("tasks/get", { taskId: "t2" }, done)) as {
    result: typeof done;
  };
  expect({ ...told, result: large }).toEqual(done);
  expect(dataOf(told.result).truncated).toBe(true);
});

test("an unknown task is paged too", async () => {
  const { exchange } = await wrap();
  const { result } = JSON.parse(await exchange("tasks/result", { taskId: "of before" }, large)) as {
    result: Page;
  };
  const { lines, truncated } = dataOf(result);
  expect([truncated, lines.length < 200]).toEqual([true, true]);
});

test("a result that only looks like a task is a result", async () => {
  const { exchange } = await wrap();
  const answer = JSON.parse(await exchange("tools/call", call, { ...large, task: { taskId: "t3" } })) as {
    result: Page;
  };
  expect(dataOf(answer.result).truncated).toBe(true);
});
