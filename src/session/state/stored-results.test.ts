import { expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../store/index.ts";
import { chunkItems } from "./item-chunks.ts";
import type { ResultToStore } from "./result-record.ts";
import { createStoredResults, resultCollection, type StoredResults } from "./stored-results.ts";

const limits = { steps: 10, characters: 1_000_000 };

async function resultOf(items: readonly unknown[], fields: object = {}): Promise<ResultToStore> {
  const chunks = await chunkItems(items, 0);
  return { tool: "t", args: {}, itemsName: "lines", offset: 0, fields: { ...fields }, items: chunks };
}

const large = (characters: number) => resultOf(Array(characters / 1_000).fill("x".repeat(1_000)));

async function save(results: StoredResults, result: Promise<ResultToStore>): Promise<string> {
  const id = await results.claimId();
  await results.save(id, await result);
  return id;
}

async function itemsOf(results: StoredResults, id: string): Promise<unknown[] | string | undefined> {
  const found = await results.load(id);
  if (found === undefined || found === "dropped") return found;
  if ("of" in found) return `page of ${found.of}`;
  const items: unknown[] = [];
  for await (const item of found.items(0)) items.push(item);
  return items;
}

const keysOf = async (store: Store): Promise<string[]> =>
  (await store.list(resultCollection)).map(({ key }) => key);

test("a result gives way to the one that comes so many steps later, and that it did is known", async () => {
  const store = createMemoryStore();
  const results = createStoredResults(store, "s", limits);
  const ids: string[] = [];
  for (let step = 0; step < 25; step += 1) ids.push(await save(results, resultOf([step])));
  for (const [step, id] of ids.entries()) {
    expect(await itemsOf(results, id)).toEqual(step < 15 ? "dropped" : [step]);
  }
  expect(await keysOf(store)).toHaveLength(10);
  expect(await results.load("r999")).toBeUndefined();
});

test("however long a result is paged, its pages do not drive it out", async () => {
  const results = createStoredResults(createMemoryStore(), "s", limits);
  const id = await save(results, resultOf(["kept"]));
  const pages: string[] = [];
  for (let page = 0; page < 30; page += 1) {
    pages.push(await results.claimId());
    await results.save(pages.at(-1)!, { of: id, position: { at: "items", offset: page } });
  }
  expect(await itemsOf(results, id)).toEqual(["kept"]);
  expect(await itemsOf(results, pages.at(-1)!)).toBe(`page of ${id}`);
  expect(await itemsOf(results, pages[0]!)).toBe("dropped");
});

test("large results together are within their limit: the oldest give way, the newest never", async () => {
  const store = createMemoryStore();
  const results = createStoredResults(store, "s", limits);
  const ids: string[] = [];
  for (let step = 0; step < 4; step += 1) ids.push(await save(results, large(400_000)));
  const small = await save(results, resultOf(["small"]));
  expect(await Promise.all(ids.map((id) => itemsOf(results, id)))).toEqual([
    "dropped",
    "dropped",
    expect.any(Array),
    expect.any(Array),
  ]);
  const huge = await save(results, large(3_000_000));
  expect(await itemsOf(results, huge)).toHaveLength(3_000);
  expect(await itemsOf(results, ids[3]!)).toBe("dropped");
  expect(await itemsOf(results, small)).toEqual(["small"]);
  const parts = (await keysOf(store)).filter((key) => key.startsWith("s/part/"));
  expect(parts.every((key) => key.startsWith(`s/part/${huge}/`))).toBe(true);
});

test("a large result whose place is taken leaves no parts behind", async () => {
  const store = createMemoryStore();
  const results = createStoredResults(store, "s", limits);
  await save(results, large(300_000));
  for (let step = 0; step < 10; step += 1) await save(results, resultOf([step]));
  expect((await keysOf(store)).filter((key) => key.startsWith("s/part/"))).toEqual([]);
  expect((await store.get(resultCollection, "s/parts"))?.value).toBe("[]");
});

test("what a process leaves behind that is killed while it writes gives way like the rest", async () => {
  const store = createMemoryStore();
  const dying: Store = {
    ...store,
    update: (collection, key, change) =>
      key.includes("/result/") ? Promise.reject(new Error("killed")) : store.update(collection, key, change),
  };
  await expect(save(createStoredResults(dying, "s", limits), large(600_000))).rejects.toThrow("killed");
  expect((await keysOf(store)).filter((key) => key.startsWith("s/part/r1/"))).not.toEqual([]);
  const results = createStoredResults(store, "s", limits);
  expect(await results.load("r1")).toBeUndefined();
  await save(results, large(600_000));
  expect((await keysOf(store)).filter((key) => key.startsWith("s/part/r1/"))).toEqual([]);
});

test("fields and single items of any size come back", async () => {
  const results = createStoredResults(createMemoryStore(), "s");
  const text = "ten chars😀".repeat(300_000);
  const id = await save(results, resultOf([text, { text }, 3], { text }));
  const found = await results.load(id);
  expect(JSON.parse((found as { fieldsText: string }).fieldsText)).toEqual({ text });
  expect(await itemsOf(results, id)).toEqual([text, { text }, 3]);
});

test("results of two processes do not take each other's places", async () => {
  const store = createMemoryStore();
  const [one, two] = [createStoredResults(store, "s", limits), createStoredResults(store, "s", limits)];
  const ids = [await save(one, resultOf(["one"])), await save(two, resultOf(["two"]))];
  expect([await itemsOf(two, ids[0]!), await itemsOf(one, ids[1]!)]).toEqual([["one"], ["two"]]);
  expect(await itemsOf(createStoredResults(store, "other", limits), ids[0]!)).toBeUndefined();
});

test("those who ask little leave few places unused", async () => {
  const store = createMemoryStore();
  const ids = await Promise.all(
    ["one", "two", "three"].map((item) => save(createStoredResults(store, "s", limits), resultOf([item]))),
  );
  expect(ids).toEqual(["r1", "r2", "r3"]);
  const results = createStoredResults(store, "s", limits);
  for (let number = 4; number < 50; number += 1) expect(await results.claimId()).toBe(`r${number}`);
});

test("what is damaged is told, and the next result takes its place", async () => {
  const store = createMemoryStore();
  const results = createStoredResults(store, "s", { ...limits, steps: 1 });
  const id = await save(results, resultOf(["a"]));
  await store.put(resultCollection, "s/result/0", "{");
  await expect(results.load(id)).rejects.toMatchObject({ code: "store_corrupt" });
  const next = await save(results, resultOf(["b"]));
  expect(await itemsOf(results, next)).toEqual(["b"]);
});
