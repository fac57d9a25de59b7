import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createTrimmer } from "../conversation/history/index.ts";
import { createIntake, readOriginal } from "../conversation/intake/index.ts";
import { createEventWriter, type MaintainedStore, readEvents } from "../core/store/index.ts";
import { createCounter } from "../core/tokens/index.ts";
import { openStore } from "../host/index.ts";
import { type BudgetedTool, createSession, listSessions } from "../results/session/index.ts";
import { listPluginSessions } from "./index.ts";
import { pruneByRetention, pruneStore } from "./prune-store.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-prune-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const counter = await createCounter("bytes/4");
const day = 86_400_000;
const clock = { ms: 0 };
const env = { HOME: root, XDG_STATE_HOME: join(root, "state") };
let files = 0;
const open = (): Promise<MaintainedStore> => {
  clock.ms = Date.UTC(2026, 0, 1);
  files += 1;
  return openStore({ place: join(root, `${files}.db`), now: () => clock.ms });
};

/** Returns a kilobyte that no other call returns. */
const tool: BudgetedTool = {
  name: "dump",
  description: "Dumps text.",
  inputSchema: { type: "object", properties: {} },
  itemTokens: 300,
  itemUnit: "lines",
  compress: () => "dumped",
  run: async () => ({ fields: {}, itemsName: "lines", offset: 0, items: [`${clock.ms} ${Math.random()} `.repeat(30)] }),
};

async function use(store: MaintainedStore, id: string, groupId?: string): Promise<void> {
  const session = await createSession({ sessionId: id, groupId, store, counter, tools: [tool], now: () => clock.ms });
  await session.call("dump", {});
}

test("a prune deletes what is old, and keeps the results that a newer session uses", async () => {
  const store = await open();
  await use(store, "old");
  await use(store, "shared");
  clock.ms += 20 * day;
  await use(store, "user", "shared");
  clock.ms += 20 * day;
  await use(store, "new");
  const dry = await pruneStore(store, { before: clock.ms - 30 * day, dryRun: true, env });
  expect(dry.sessions.map(({ id }) => id)).toEqual(["old"]);
  expect((await listSessions(store)).length).toBe(4);
  const report = await pruneStore(store, { before: clock.ms - 30 * day, dryRun: false, env });
  expect(report).toEqual(dry);
  expect(report.kept).toEqual([{ id: "shared", reason: "session user uses its results" }]);
  expect((await listSessions(store)).map(({ id }) => id).sort()).toEqual(["new", "shared", "user"]);
  expect(await store.list("session-results", { prefix: "old/" })).toEqual([]);
  expect(await store.listStreams({ prefix: "session/old/" })).toEqual([]);
  expect((await store.list("session-results", { prefix: "shared/" })).length).toBe(2);
  await store.close();
});

test("a prune deletes conversations of trimmers, and originals unless their conversation goes on", async () => {
  const store = await open();
  const admit = async (sessionId: string): Promise<string> => {
    const intake = await createIntake({ sessionId, store, counter, maxResultTokens: 2_000, pageTokens: 1_000 });
    const text = Array.from({ length: 4_000 }, (_, line) => `${sessionId} line ${line} ${Math.random()}`).join("\n");
    const { id } = await intake.admit({ tool: "run", input: { command: `cat ${sessionId}` }, text });
    return id ?? "";
  };
  const trim = async (sessionId: string): Promise<void> => {
    const trimmer = await createTrimmer({ sessionId, store, counter, contextWindow: 20_000, format: "anthropic" });
    trimmer.reduce({ messages: [{ role: "user", content: "hello" }] });
    await trimmer.checkpoint();
  };
  const gone = await admit("gone");
  const kept = await admit("goes-on");
  await trim("gone");
  await trim("goes-on");
  expect([gone, kept].every((id) => id !== "")).toBe(true);
  clock.ms += 40 * day;
  await admit("goes-on");
  await trim("goes-on");
  // The second trim wrote the same bytes, so the call times of an integration are what says that it is used.
  await store.put("history/calls", "goes-on", "{}");
  const report = await pruneStore(store, { before: clock.ms - 30 * day, dryRun: false, env });
  expect(report.sessions.map(({ id, isTrimmed }) => [id, isTrimmed])).toEqual([["gone", true]]);
  expect(report.originals).toBe(1);
  expect(await readOriginal(store, gone)).toBeUndefined();
  expect(await readOriginal(store, kept)).toBeDefined();
  await store.close();
});

test("a prune deletes the numbers of old plugin sessions, with the file of the status line", async () => {
  const store = await open();
  const shown = (sessionId: string): string => join(env.XDG_STATE_HOME, "plimsoll/saved-tokens", `${sessionId}.json`);
  const record = async (sessionId: string): Promise<void> => {
    const numbers = { results: 1, duplicates: 0, deltas: 0, pages: 1, savedTokens: 7, recalls: 0, errors: [] };
    const about = { client: "pi", sessionId, lastUsed: new Date(clock.ms).toISOString() };
    await store.put("plugin-sessions", `pi/${sessionId}`, JSON.stringify({ ...about, ...numbers }));
    mkdirSync(dirname(shown(sessionId)), { recursive: true });
    writeFileSync(shown(sessionId), '{"savedTokens":7}');
  };
  await record("old");
  clock.ms += 40 * day;
  await record("new");
  const options = { before: clock.ms - 30 * day, env };
  expect((await pruneStore(store, { ...options, dryRun: true })).pluginSessions).toBe(1);
  expect((await listPluginSessions(store)).length).toBe(2);
  expect((await pruneStore(store, { ...options, dryRun: false })).pluginSessions).toBe(1);
  expect((await listPluginSessions(store)).map(({ sessionId }) => sessionId)).toEqual(["new"]);
  expect(["old", "new"].map((id) => existsSync(shown(id)))).toEqual([false, true]);
  await store.close();
});

test("a prune keeps unfinished nebulas and collections that it does not know", async () => {
  const store = await open();
  const record = (state: string): string =>
    JSON.stringify({
      ...{ version: 1, name: `plan ${state}`, directory: "/plan" },
      phases: { a: { title: "A", state, attempts: 1, promptTokens: 1, seconds: 1 } },
      fabric: {
        ...{ entanglements: [], claims: [], discoveries: [], notes: [] },
        lastIds: { entanglements: 0, claims: 0, discoveries: 0, notes: 0 },
      },
    });
  await store.put("nebula", "plan-1", record("completed"));
  await store.put("nebula-answers", "plan-1/a", "42");
  await store.put("nebula", "plan-2", record("failed"));
  await store.put("from-the-future", "k", "v");
  clock.ms += 40 * day;
  const report = await pruneStore(store, { before: clock.ms - 30 * day, dryRun: false, env });
  const left = (await store.listCollections()).map(({ collection, records }) => [collection, records]);
  expect(left).toEqual([
    ["from-the-future", 1],
    ["nebula", 1],
  ]);
  expect(report.nebulas.map(({ key }) => key)).toEqual(["plan-1"]);
  expect(report.kept.map(({ reason }) => reason)).toEqual(["it is not finished and can be resumed"]);
  await store.close();
});

test("the retention prunes once a day, whoever asks", async () => {
  const store = await open();
  await use(store, "old");
  clock.ms += 40 * day;
  const prune = () => pruneByRetention(store, { retention: "30d", env, now: () => clock.ms });
  expect((await prune())?.sessions.length).toBe(1);
  expect(await prune()).toBeUndefined();
  clock.ms += day;
  expect((await prune())?.sessions.length).toBe(0);
  await store.close();
});

const results = process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 100;

test(`the store stays small over ${results} results with a retention`, { timeout: 600_000 }, async () => {
  const store = await open();
  const sizes: number[] = [];
  const each = results / 20;
  // Ten sessions, one after the other, that each work for two days; ten sessions of one call a day beside them.
  for (let part = 0; part < 20; part += 1) {
    const id = `session-${Math.floor(part / 2)}`;
    const session = await createSession({ sessionId: id, store, counter, tools: [tool], now: () => clock.ms });
    for (let call = 0; call < each; call += 1) await session.call("dump", {});
    clock.ms += day;
    await pruneByRetention(store, { retention: "3d", env, now: () => clock.ms });
    sizes.push(await store.size());
  }
  // After the first retention the file reuses its space.
  expect(Math.max(...sizes.slice(8))).toBeLessThanOrEqual(1.25 * Math.max(...sizes.slice(0, 8)));
  expect((await listSessions(store)).length).toBeLessThanOrEqual(3);
  for (const { stream, entries } of await store.listStreams()) {
    expect({ stream, isShort: entries < 1_300 }).toEqual({ stream, isShort: true });
  }
  await store.close();
});

test("a prune deletes events that are old, or older than 30 days", async () => {
  const store = await open();
  const writer = createEventWriter(store, { now: () => clock.ms, onFailure: () => undefined });
  for (const sent of [1, 2, 3]) {
    writer.write({ source: "sdk", kind: "call", numbers: { sent } });
    await writer.settled();
    clock.ms += 12 * day;
  }
  const prune = async (age: number) =>
    (await pruneStore(store, { before: clock.ms - age, dryRun: false, env, now: () => clock.ms })).events;
  expect(await prune(90 * day)).toBe(1);
  expect(await prune(20 * day)).toBe(1);
  expect((await readEvents(store)).map(({ numbers }) => numbers.sent)).toEqual([3]);
  await store.close();
});
