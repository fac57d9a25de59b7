import { expect, it } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { listTool, openSession, resultId } from "./sample-tool.contract.ts";
import { listSessions, readSessionReport } from "./session-report.ts";

const lines = Array.from({ length: 900 }, (_, index) => `line ${index}`);

it("shows a session of another process: account, work log, evicted entries, the largest results", async () => {
  const store = createMemoryStore();
  const session = await openSession({
    sessionId: "s",
    store,
    tools: [listTool(lines)],
    budget: { historyMax: 200 },
  });
  for (const budget of [600, 2_000, 700, 800]) await session.call("list", { budget });
  await session.beginTurn();
  const report = await readSessionReport(store, "s");
  expect(report).toMatchObject({ ...session.status(), calls: 4, counter: "bytes/4", total: 100_000 });
  expect(report!.ledger.history.limit).toBe(200);
  expect(report!.largest.map(({ id }) => id)).toEqual([2, 4, 3, 1].map((number) => resultId(number, "s")));
  expect(report!.evicted.count).toBeGreaterThan(0);
  expect([...report!.evicted.entries, ...report!.workLog].map(({ id }) => id)).toEqual(
    [1, 2, 3, 4].map((number) => resultId(number, "s")),
  );
  expect(await readSessionReport(store, "t")).toBeUndefined();
});

it("keeps the ten largest results and the latest evicted entries", async () => {
  const store = createMemoryStore();
  const session = await openSession({
    sessionId: "s",
    store,
    tools: [listTool(lines)],
    budget: { historyMax: 100 },
  });
  for (let call = 0; call < 40; call += 1) await session.call("list", { budget: 600 + call });
  await session.beginTurn();
  const report = await readSessionReport(store, "s");
  expect(report!.largest).toHaveLength(10);
  expect(report!.evicted.entries).toHaveLength(20);
  expect(report!.evicted.entries.at(-1)!.id).toBe(resultId(report!.evicted.count, "s"));
});

it("lists sessions with at least one call, latest used first", async () => {
  const store = createMemoryStore();
  expect(await listSessions(store)).toEqual([]);
  const at = (day: number) => () => Date.UTC(2026, 10, day);
  await openSession({ sessionId: "b", store, now: at(1), tools: [listTool(lines)] });
  const session = await openSession({ sessionId: "a", store, now: at(2), tools: [listTool(lines)] });
  await session.record("system", 8_000);
  const { tokens } = await session.call("list", { budget: 600 });
  await openSession({ sessionId: "c", store, now: at(3) });
  const second = "2026-11-02T00:00:00.000Z";
  expect(await listSessions(store)).toEqual([
    { id: "a", started: second, lastUsed: second, calls: 1, remaining: 92_000 - tokens, available: 62_000 - tokens },
  ]);
  expect(await readSessionReport(store, "c")).toMatchObject({ id: "c", calls: 0, workLog: [] });
  const again = await openSession({ sessionId: "b", store, now: at(4), tools: [listTool(lines)] });
  await again.call("list", { budget: 600 });
  await openSession({ sessionId: "a", store, now: at(5) });
  expect((await listSessions(store)).map(({ id, lastUsed }) => [id, lastUsed])).toEqual([
    ["b", "2026-11-04T00:00:00.000Z"],
    ["a", second],
  ]);
});
