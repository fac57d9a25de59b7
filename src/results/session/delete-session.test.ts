import { expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { dataOf, itemsOf, listTool, openSession } from "./sample-tool.contract.ts";
import { listSessions } from "./session-report.ts";
import { resultCollection } from "./stored-results.ts";

const tools = [listTool(["a", "b"])];
const day = (number: number) => new Date(Date.UTC(2026, 0, number));

async function use(store: Store, id: string, { on, calls = 1 }: { on: number; calls?: number }) {
  const session = await openSession({ sessionId: id, store, tools, now: () => day(on).getTime() });
  for (let call = 0; call < calls; call += 1) await session.call("list", {});
  return session;
}

const countOf = async (store: Store, id: string): Promise<number> =>
  (await store.list(resultCollection, { prefix: `${id}/` })).length;

test("a session that starts drops the results of sessions unused for 30 days", async () => {
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

test("the session itself stays: it is listed, continues, and reports that its results are gone", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1 });
  await use(store, "new", { on: 60 });
  expect((await listSessions(store)).map(({ id }) => id)).toEqual(["new", "old"]);
  const old = await use(store, "old", { on: 61 });
  expect((await old.recall("r1")).envelope).toMatchObject({
    error: { code: "unknown_result", hint: expect.stringContaining("for 30 days") },
  });
  expect(old.workLog("minimal")).toMatchObject({ steps: 3 });
});

test("a session that starts after a long time keeps its own results", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1 });
  const again = await openSession({ sessionId: "old", store, now: () => day(90).getTime() });
  expect(itemsOf(dataOf(await again.recall("r1")))).toEqual(["a", "b"]);
});

test("one start drops a limited number of results, the next ones drop the rest", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1, calls: 250 });
  await use(store, "new", { on: 60, calls: 0 });
  expect(await countOf(store, "old")).toBe(50);
  await use(store, "new", { on: 60, calls: 0 });
  expect(await countOf(store, "old")).toBe(0);
});

test("a result that is rewritten at that moment stays, and so does a record that cannot be read", async () => {
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
  await use(racing, "new", { on: 60, calls: 0 });
  expect((await store.get(resultCollection, "old/result/1"))?.value).toBe("new");
  expect((await store.get("sessions", "torn"))?.value).toBe("{");
});

test("a use by any session of a group keeps the group's results", async () => {
  const store = createMemoryStore();
  await use(store, "old", { on: 1 });
  const beside = await openSession({ sessionId: "old.2", groupId: "old", store, tools, now: () => day(40).getTime() });
  await beside.call("list", {});
  await use(store, "new", { on: 50 });
  expect(await countOf(store, "old")).toBe(2);
  await use(store, "new", { on: 80 });
  expect(await countOf(store, "old")).toBe(0);
});
