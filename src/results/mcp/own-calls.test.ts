import { expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { createSession } from "../session/index.ts";
import { createLineProxy } from "./line-proxy.ts";

const counter = await createCounter("bytes/4");
const textResult = (text: string) => ({ content: [{ type: "text", text }] });

async function wrap() {
  const budget = { perToolCall: 600 };
  const session = await createSession({
    counter,
    store: createMemoryStore(),
    now: () => 0,
    budget,
  });
  const kept = { takeNotice: () => undefined };
  const options = { session, counter, pageLimit: () => ({}), clientIs: () => {}, ...kept };
  const proxy = createLineProxy({ ...options, log: () => {} });
  /** `id` is the JSON of the id. */
  const ask = (id: string, name: string, args: object) => {
    const params = JSON.stringify({ name, arguments: args });
    return proxy.fromClient(Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}\n`));
  };
  const answer = async (id: string, result: object): Promise<string> =>
    String(await proxy.fromServer(Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}\n`)));
  return { ...proxy, ask, answer };
}

interface Result {
  readonly content: readonly { readonly text: string }[];
  readonly isError?: boolean;
}

const resultOf = (line: string): Result => (JSON.parse(line) as { result: Result }).result;
const dataOf = ({ content }: Result) =>
  (JSON.parse(content[0]!.text) as { data: Record<string, unknown> & { continuation_token?: string } }).data;

test("ids that JavaScript would round are unchanged and distinct", async () => {
  const { ask, answer } = await wrap();
  const [one, two] = ["1763300000000000001", "1763300000000000002"];
  const { answers } = ask(one, "recall", { id: "r1" });
  expect(await answers[0]).toMatch(/^\{"jsonrpc":"2\.0","id":1763300000000000001,"result":\{/);
  ask(one, "first", {});
  ask(two, "second", {});
  const large = textResult("some words\n".repeat(1_000));
  for (const id of [two, one]) {
    const line = await answer(id, large);
    expect(line.startsWith(`{"jsonrpc":"2.0","id":${id},`)).toBe(true);
    expect(dataOf(resultOf(line)).truncated).toBe(true);
  }
});

test("a call of our tool with such an id can be cancelled, without cancelling another", async () => {
  const { ask, fromClient } = await wrap();
  const { answers } = ask("1763300000000000001", "recall", { id: "r1" });
  const cancel = (id: string) =>
    Buffer.from(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}\n`);
  const other = cancel("1763300000000000002");
  expect(fromClient(other).forward).toBe(other);
  expect(fromClient(cancel("1763300000000000001")).forward).toBeUndefined();
  expect(await answers[0]).toBeUndefined();
});

test("every page of a failed tool's result is an error and names the tool", async () => {
  const { ask, answer } = await wrap();
  ask("1", "compile", {});
  const failed = { ...textResult("undefined reference\n".repeat(400)), isError: true };
  let result = resultOf(await answer("1", failed));
  for (let page = 1; ; page += 1) {
    expect(page).toBeLessThan(100);
    const { tool_error, continuation_token: token } = dataOf(result);
    expect({ tool_error, isError: result.isError }).toEqual({ tool_error: true, isError: true });
    if (token === undefined) break;
    result = resultOf((await ask("2", "next_page", { token }).answers[0])!);
  }
  const recalled = resultOf((await ask("3", "recall", { id: "r1" }).answers[0])!);
  expect(recalled.isError).toBe(true);
});

test("a tool's own field with that name does not make an error", async () => {
  const { ask, answer } = await wrap();
  ask("1", "status", {});
  await answer("1", textResult(JSON.stringify({ tool_error: true, rows: [1, 2] })));
  const recalled = resultOf((await ask("2", "recall", { id: "r1" }).answers[0])!);
  expect(dataOf(recalled)).toMatchObject({ rows: [1, 2], tool_fields: { tool_error: true } });
  expect(recalled.isError).toBeUndefined();
});
