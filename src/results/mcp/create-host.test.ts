import { expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { type BudgetedTool, createSession, type Delivered, type Session } from "../session/index.ts";
import { type Answering, answerCall } from "./create-host.ts";
import type { Answer } from "./page-tools.ts";

/** Counts bytes, so that pages and errors are as large as possible. */
const counter = { name: "bytes", count: (text: string) => Buffer.byteLength(text) };

/** Returns lines. The first one is longer than a page. */
const tool: BudgetedTool = {
  name: "read",
  description: "Reads lines.",
  inputSchema: { type: "object", properties: {} },
  itemTokens: 10,
  itemUnit: "lines",
  compress: () => "Read.",
  async run({ path, offset = 0 }) {
    const lines = ["long ".repeat(200), ...Array.from({ length: 50 }, (_, index) => `line ${index + 1}`)];
    const items = lines.map((line) => `${path}: ${line}`).slice(Number(offset));
    return { fields: {}, itemsName: "lines", offset: Number(offset), items };
  },
};

async function serve(store: Store): Promise<Answering> {
  const options = { sessionId: "s", store, counter, now: () => 0, tools: [tool] };
  return {
    session: await createSession({ ...options, continuations: "unique", budget: { perToolCall: 600 } }),
    takeNotice: () => undefined,
  };
}

async function ask(answering: Answering, name: string, args: Record<string, unknown>): Promise<Answer> {
  return answerCall(answering, { name, args, signal: new AbortController().signal });
}

const dataOf = ({ text }: Answer) => (JSON.parse(text) as { data: Page }).data;
const errorOf = ({ text }: Answer) => (JSON.parse(text) as { error: { code: string } }).error;

interface Page {
  readonly lines: readonly string[];
  readonly cut?: { readonly from: number };
  readonly continuation_token?: string;
}

/** The page holds all lines, if only tokens count. */
async function readOn(answering: Answering, first: Answer): Promise<string[]> {
  const lines: string[] = [];
  for (let page = dataOf(first); ; ) {
    const [begun, ...rest] = page.lines;
    if (page.cut !== undefined && page.cut.from > 0) lines.push(`${lines.pop()}${begun}`, ...rest);
    else lines.push(...page.lines);
    if (page.continuation_token === undefined) return lines;
    page = dataOf(await ask(answering, "next_page", { token: page.continuation_token }));
  }
}

test("after a cut item the tokens continue the same result, whatever was called in between", async () => {
  const answering = await serve(createMemoryStore());
  const pages: [string, Answer][] = [];
  for (const path of ["a", "b", "c"]) pages.push([path, await ask(answering, "read", { path })]);
  for (const [path, first] of pages) {
    const lines = await readOn(answering, first);
    expect(lines).toHaveLength(51);
    expect(lines.every((line) => line.startsWith(`${path}: `))).toBe(true);
  }
});

test("a token can be used many times, after many other calls, and in another process", async () => {
  const store = createMemoryStore();
  const answering = await serve(store);
  const first = dataOf(await ask(answering, "read", { path: "a", offset: 1 }));
  const token = first.continuation_token!;
  expect(token).toMatch(/^offset:\d+$/);
  const second = dataOf(await ask(answering, "next_page", { token })).lines;
  expect(second[0]).toBe(`a: line ${first.lines.length + 1}`);
  for (let call = 0; call < 60; call += 1) await ask(answering, "read", { path: `b${call}`, offset: 1 });
  for (const each of [answering, await serve(store)])
    expect(dataOf(await ask(each, "next_page", { token })).lines).toEqual(second);
});

test("offset:N is one call's token, and another call at the same offset names its page", async () => {
  const store = createMemoryStore();
  const servers = [await serve(store), await serve(store)];
  // Long lines: a page ends at the same line, whether its token is long or short.
  const longPath = (name: string): string => `${name}${"/folder".repeat(6)}`;
  const tokenOf = async (name: string, server = 0): Promise<string> =>
    dataOf(await ask(servers[server]!, "read", { path: longPath(name), offset: 1 })).continuation_token!;
  const bare = await tokenOf("a");
  expect(bare).toMatch(/^offset:\d+$/);
  expect(await tokenOf("a", 1)).toBe(bare);
  const named = [await tokenOf("b"), await tokenOf("c", 1)];
  for (const token of named) expect(token).toMatch(new RegExp(`^\\w{16}:${bare}$`));
  for (const server of servers) {
    for (const [token, name] of [
      [bare, "a"],
      [named[0], "b"],
      [named[1], "c"],
    ])
      expect(dataOf(await ask(server, "next_page", { token })).lines[0]).toMatch(new RegExp(`^${name}/folder`));
  }
});

test("a token that two calls used at the same moment, or no call, is an error", async () => {
  const store = createMemoryStore();
  const [answering, beside] = [await serve(store), await serve(store)];
  const both = await Promise.all([
    ask(answering, "read", { path: "a", offset: 1 }),
    ask(beside, "read", { path: "b", offset: 1 }),
  ]);
  const [token, other] = both.map((answer) => dataOf(answer).continuation_token);
  expect(token).toBe(other);
  expect(errorOf(await ask(answering, "next_page", { token }))).toMatchObject({ code: "ambiguous_token" });
  expect(errorOf(await ask(answering, "next_page", { token: "offset:9999" }))).toMatchObject({
    code: "invalid_token",
  });
});

test("arguments are read as for other tools: null as missing, numbers and booleans as strings", async () => {
  const answering = await serve(createMemoryStore());
  await ask(answering, "read", { path: "a", offset: 1 });
  const linesOf = async (name: string, args: Record<string, unknown>) => dataOf(await ask(answering, name, args)).lines;
  const whole = await linesOf("recall", { id: "r1" });
  expect(await linesOf("recall", { id: "r1", offset: null, budget: null })).toEqual(whole);
  expect(await linesOf("recall", { id: "r1", offset: "3", budget: "600" })).toEqual(whole.slice(2));
  expect(await linesOf("next_page", { token: "r1:offset:3", budget: "600" })).toEqual(whole.slice(2));
  await ask(answering, "budget_status", { reset: "true" });
  expect(answering.session.status().ledger.tool_results.used).toBe(0);
});

test("the answer to any wrong call is within its share, counted, and says what is wrong", async () => {
  const answering = await serve(createMemoryStore());
  const long = "z".repeat(100_000);
  const wrong: [string, Record<string, unknown>][] = [
    ["next_page", { token: long }],
    ["next_page", { token: { a: long } }],
    ["next_page", { token: "r1:offset:1", budget: long }],
    ["next_page", { token: "offset:5", budget: long }],
    ["recall", { id: { a: long } }],
    ["recall", { id: long }],
    ["recall", { id: "r1", offset: long }],
    ["recall", { id: "r1", budget: [long] }],
    ["recall", { id: "r1", ofset: 3 }],
    ["next_page", { token: "r1:offset:1", [long]: 1 }],
    ["budget_status", { reset: "yes" }],
    ["budget_status", { rest: true }],
    [long, {}],
  ];
  for (const [name, args] of wrong) {
    const before = deliveredBy(answering.session);
    const answer = (await ask(answering, name, args)) as Delivered;
    expect(counter.count(answer.text)).toBeLessThanOrEqual(600);
    expect(errorOf(answer).code).toMatch(/^(invalid_\w+|unknown_\w+)$/);
    expect(deliveredBy(answering.session) - before).toBe(counter.count(answer.text));
  }
  expect(answering.session.status().calls).toBe(wrong.length);
});

function deliveredBy(session: Session): number {
  return session.status().delivered;
}
