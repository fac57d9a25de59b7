import { expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../store/index.ts";
import { dataOf, itemsOf, listTool, openSession } from "../sample-tool.contract.ts";
import { listSessions } from "../session-report.ts";
import { resultCollection } from "./stored-results.ts";
import { dropUnusedResults } from "./unused-results.ts";

const tools = [listTool(["a", "b"])];
const day = (number: number) => new Date(Date.UTC(2026, 0, number));

async function use(store: Store, id: string, { on, calls = 1 }: { on: number; calls?: number }) {
  const session = await openSession({ id, store, tools, now: () => day(on) });
  for (let call = 0; call < calls; call += 1) await session.call("list", {});
  return session;
}

const countOf = async (store: Store, id: string): Promise<number> =>
  (await store.list(resultCollection, { prefix: `${id}/` })).length;

test("when a session starts, the results of those that were not used for 30 days are dropped", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1, calls: 3 });
  await use(store, "resumed", { on: 1 });
  await use(store, "resumed", { on: 20 });
  expect(await countOf(store, "old")).toBe(3);
  await use(store, "new", { on: 31 });
  expect(await countOf(store, "old")).toBe(3);
  const session = await use(store, "new", { on: 32 });
  expect([await countOf(store, "old"), await countOf(store, "resumed")]).toEqual([0, 2]);
  expect(itemsOf(dataOf(await session.recall("r1")))).toEqual(["a", "b"]);
});

test("the session itself stays: it is listed, goes on, and tells that its results are gone", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1 });
  await use(store, "new", { on: 60 });
  expect((await listSessions(store)).map(({ id }) => id)).toEqual(["new", "old"]);
  const old = await use(store, "old", { on: 61 });
  expect((await old.recall("r1")).envelope).toMatchObject({
    error: { code: "unknown_result", hint: expect.stringContaining("kept for 30 days") },
  });
  expect(old.workLog("minimal")).toMatchObject({ steps: 3 });
});

test("a session that starts after a long time keeps its own", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1 });
  const again = await openSession({ id: "old", store, now: () => day(90) });
  expect(itemsOf(dataOf(await again.recall("r1")))).toEqual(["a", "b"]);
});

test("one start drops no more than nobody would wait for, the next ones go on", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1, calls: 250 });
  await dropUnusedResults(store, { now: day(60), except: "new" });
  expect(await countOf(store, "old")).toBe(50);
  await dropUnusedResults(store, { now: day(60), except: "new" });
  expect(await countOf(store, "old")).toBe(0);
});

test("what is written anew at that moment stays, and so does a record that cannot be read", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1 });
  await store.put("sessions", "torn", "{");
  const racing: Store = {
    ...store,
    async list(collection, options) {
      const found = await store.list(collection, options);
      if (collection === resultCollection) await store.put(collection, "old/result/1", "new");
      return found;
    },
  };
  await dropUnusedResults(racing, { now: day(60), except: "new" });
  expect((await store.get(resultCollection, "old/result/1"))?.value).toBe("new");
  expect((await store.get("sessions", "torn"))?.value).toBe("{");
});

test("results that sessions have in common are used by each of them", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1 });
  const beside = await openSession({ id: "old.2", resultsOf: "old", store, tools, now: () => day(40) });
  await beside.call("list", {});
  await use(store, "new", { on: 50 });
  expect(await countOf(store, "old")).toBe(2);
  await use(store, "new", { on: 80 });
  expect(await countOf(store, "old")).toBe(0);
});
