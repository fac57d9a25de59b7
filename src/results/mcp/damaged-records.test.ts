// @module-tag deep
/** A damaged record of a session affects only itself. Every stored value is replaced by garbage, one at a time. */
import { describe, expect, test } from "vitest";
import { ContextError } from "../../core/errors.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { type BudgetedTool, listSessions, listStoredSessions, readSessionReport } from "../session/index.ts";
import { answerCall } from "./create-host.ts";
import { openMcpSession } from "./open-session.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";
const counter = await createCounter("bytes/4");

const tool: BudgetedTool = {
  name: "read",
  description: "Reads lines.",
  inputSchema: { type: "object", properties: {} },
  itemTokens: 10,
  itemUnit: "lines",
  compress: () => "Read.",
  async run({ offset = 0, path = "a" }) {
    const items = Array.from({ length: 500 }, (_, index) => `${path}: line ${index}`).slice(Number(offset));
    return { fields: { path }, itemsName: "lines", offset: Number(offset), items, version: "1" };
  },
};

/** The records of a store that belong to sessions. */
interface Dump {
  readonly records: readonly (readonly [collection: string, key: string, value: string])[];
  readonly entries: readonly (readonly [stream: string, value: string])[];
}

const collections = ["sessions", "session-results", "session-offsets", "mcp"];
const streams = ["session/s/log", "session/s/ids"];

async function dump(store: Store): Promise<Dump> {
  const records = await Promise.all(
    collections.map(async (name) => (await store.list(name)).map(({ key, value }) => [name, key, value] as const)),
  );
  const entries = await Promise.all(
    streams.map(async (name) => (await store.read(name)).map(({ value }) => [name, value] as const)),
  );
  return { records: records.flat(), entries: entries.flat() };
}

/** The store with the value at that place replaced. */
async function restore({ records, entries }: Dump, place: number, garbage: string): Promise<Store> {
  const store = createMemoryStore();
  for (const [index, [collection, key, value]] of records.entries())
    await store.put(collection, key, index === place ? garbage : value);
  for (const [index, [stream, value]] of entries.entries())
    await store.append(stream, [index + records.length === place ? garbage : value]);
  return store;
}

async function open(store: Store) {
  const kept = { store, problem: () => undefined };
  const options = { id: "s", isNamed: true, counter, budget: { perToolCall: 600 }, pageLimit: () => ({}) };
  const opened = await openMcpSession({ ...options, kept, tools: [tool] });
  const call = async (name: string, args: Record<string, unknown>) => {
    const answer = await answerCall(opened, { name, args, signal: new AbortController().signal });
    return JSON.parse(answer.text) as Answer;
  };
  return { ...opened, call };
}

interface Answer {
  readonly status: string;
  readonly notice?: string;
  readonly error?: { readonly code: string; readonly hint?: string };
  readonly data?: { readonly continuation_token?: string; readonly recent?: unknown[] };
}

/** Tool calls, pages, a result in parts, a recall, an ambiguous token: all kinds of records. */
async function createSmallSession(): Promise<{ dump: Dump; tokens: readonly string[] }> {
  const store = createMemoryStore();
  const { session, call, close } = await open(store);
  const pages = [await call("read", {}), await call("read", { path: "b" })];
  const large = {
    fields: { k: 1 },
    itemsName: "rows",
    offset: 0,
    items: Array(9_000).fill("a row of some size"),
  };
  const given = await session.deliver(large, { tool: "elsewhere", args: {} });
  const tokens = pages.map(({ data }) => data!.continuation_token!);
  if (given.envelope.status === "success") tokens.push(given.envelope.data.continuation_token!);
  for (const token of tokens) await call("next_page", { token });
  await call("recall", { id: "r1" });
  await close();
  return { dump: await dump(store), tokens };
}

const deepList = `${"[".repeat(20_000)}${"]".repeat(20_000)}`;
const garbage: readonly (readonly [name: string, damage: (value: string) => string])[] = [
  ["a text", () => '"x"'],
  ["null", () => "null"],
  ["a list", () => "[]"],
  ["an object", () => "{}"],
  ["nothing", () => ""],
  ["a torn value", (value) => value.slice(0, Math.floor(value.length / 2))],
  ["deep nesting", () => deepList],
  [
    "a deep member",
    (value) => value.replace(/[{[]/, (open) => (open === "{" ? `{"args":${deepList},` : `[${deepList},`)),
  ],
  ["huge numbers", (value) => value.replaceAll(/(?<=[:[,])\d+/g, "1e300")],
  ["other numbers", (value) => value.replaceAll(/(?<=[:[,])\d+/g, "-1.5")],
  ["texts for numbers", (value) => value.replaceAll(/(?<=[:[,])\d+/g, '"7"')],
  ["numbers for texts", (value) => value.replaceAll(/(?<=[:,])"[^"]*"(?=[,}\]])/g, "7")],
  ["other names", (value) => value.replaceAll(/"(\w)(\w*)":/g, '"$2$1":')],
];
const few = new Set(["a text", "null", "a torn value", "deep nesting", "a deep member", "huge numbers", "other names"]);
const used = deep ? garbage : garbage.filter(([name]) => few.has(name));

const { dump: whole, tokens } = await createSmallSession();
const places = [
  ...whole.records.map(([collection, key]) => `${collection} ${key}`),
  ...whole.entries.map(([stream], index) => `${stream} ${index}`),
];
const valueAt = (place: number): string => whole.records[place]?.[2] ?? whole.entries[place - whole.records.length]![1];

describe.each(used)("%s in the place of one record", (_name, damage) => {
  test.each(places.map((name, place) => [name, place] as const))("%s: every tool answers", async (_where, place) => {
    const store = await restore(whole, place, damage(valueAt(place)));
    const { call, close } = await open(store);
    expect(await call("read", { path: "c" })).toMatchObject({ status: "success" });
    const status = await call("budget_status", {});
    expect(status).toMatchObject({ status: "success" });
    const asked = [
      ...tokens.map((token) => call("next_page", { token })),
      ...["r1", "r2", "r3", "r4", "r5", "r6", "r7"].map((id) => call("recall", { id })),
    ];
    let failures = 0;
    for (const { status, error } of await Promise.all(asked)) {
      if (status === "success") continue;
      failures += 1;
      expect(error).toMatchObject({ hint: expect.any(String) });
      expect(["store_corrupt", "unknown_result", "dropped_result", "invalid_token", "ambiguous_token"]).toContain(
        error!.code,
      );
    }
    expect(failures).toBeLessThanOrEqual(4);
    expect(await call("budget_status", { reset: true })).toMatchObject({ status: "success" });
    await close();
  });

  test.each(places.map((name, place) => [name, place] as const))("%s: sessions can be shown", async (_where, place) => {
    const store = await restore(whole, place, damage(valueAt(place)));
    const damaged = (await listStoredSessions(store)).filter(({ lastUsed }) => lastUsed === undefined);
    expect([...(await listSessions(store)), ...damaged]).toHaveLength(1);
    try {
      const report = await readSessionReport(store, "s");
      expect(report!.workLog.length + report!.evicted.count + report!.damaged).toBeGreaterThan(5);
    } catch (error) {
      expect(error).toBeInstanceOf(ContextError);
      expect(error).toMatchObject({
        code: "store_corrupt",
        hint: expect.stringContaining("plimsoll session rm s"),
      });
    }
  });
});

test("a server whose account cannot be read uses another one, says so once, and tokens stay valid", async () => {
  const place = places.indexOf("sessions s");
  const store = await restore(whole, place, "{}");
  const { call, session } = await open(store);
  expect(session.id).toBe("s.2");
  const first = await call("next_page", { token: tokens[2]! });
  expect(first).toMatchObject({
    status: "success",
    notice: expect.stringContaining("plimsoll session rm s"),
  });
  expect((await call("read", {})).notice).toBeUndefined();
});
