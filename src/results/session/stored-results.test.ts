import fc from "fast-check";
import { expect, test } from "vitest";
import { caseCount } from "../../../test/case-count.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import { chunkItems } from "./item-chunks.ts";
import { resultId } from "./sample-tool.contract.ts";
import { createStoredResults, type ResultToStore, resultCollection, type StoredResults } from "./stored-results.ts";
import { nameLogStream, openWorkLog } from "./work-log.ts";

const limits = { steps: 10, characters: 1_000_000 };

async function resultOf(items: readonly unknown[], fields: object = {}, offset = 0): Promise<ResultToStore> {
  const chunks = await chunkItems(items, offset);
  return { tool: "t", args: {}, itemsName: "lines", offset, fields: { ...fields }, items: chunks };
}

const large = (characters: number) => resultOf(Array(characters / 1_000).fill("x".repeat(1_000)));

async function save(results: StoredResults, result: Promise<ResultToStore>): Promise<string> {
  const id = await results.claimId();
  await results.save(id, await result);
  return id;
}

async function itemsOf(results: StoredResults, id: string, from = 0): Promise<unknown[] | string | undefined> {
  const found = await results.load(id);
  if (found === undefined || found === "dropped") return found;
  if ("of" in found) return `page of ${found.of}`;
  return collect(found.items(from));
}

const keysOf = async (store: Store): Promise<string[]> => (await store.list(resultCollection)).map(({ key }) => key);

test("a result is replaced by the one that many steps later, and reported as dropped", async () => {
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

test("paging a result never drops it", async () => {
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

test("large results stay within their common limit: the oldest are dropped, never the newest", async () => {
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

test("a large result that is replaced leaves no parts", async () => {
  const store = createMemoryStore();
  const results = createStoredResults(store, "s", limits);
  await save(results, large(300_000));
  for (let step = 0; step < 10; step += 1) await save(results, resultOf([step]));
  expect((await keysOf(store)).filter((key) => key.startsWith("s/part/"))).toEqual([]);
  expect((await store.get(resultCollection, "s/parts"))?.value).toBe("[]");
});

test("parts of a process that was killed while writing are dropped like others", async () => {
  const store = createMemoryStore();
  const dying: Store = {
    ...store,
    update: (collection, key, change) =>
      key.includes("/result/") ? Promise.reject(new Error("killed")) : store.update(collection, key, change),
  };
  await expect(save(createStoredResults(dying, "s", limits), large(600_000))).rejects.toThrow("killed");
  expect((await keysOf(store)).filter((key) => key.startsWith(`s/part/${resultId(1, "s")}/`))).not.toEqual([]);
  const results = createStoredResults(store, "s", limits);
  expect(await results.load(resultId(1, "s"))).toBeUndefined();
  await save(results, large(600_000));
  expect((await keysOf(store)).filter((key) => key.startsWith(`s/part/${resultId(1, "s")}/`))).toEqual([]);
});

test("fields and single items of any size can be read again", async () => {
  const results = createStoredResults(createMemoryStore(), "s");
  const text = "ten chars😀".repeat(300_000);
  const id = await save(results, resultOf([text, { text }, 3], { text }));
  const found = await results.load(id);
  expect(JSON.parse((found as { fieldsText: string }).fieldsText)).toEqual({ text });
  expect(await itemsOf(results, id)).toEqual([text, { text }, 3]);
});

test("results of two processes do not replace each other", async () => {
  const store = createMemoryStore();
  const [one, two] = [createStoredResults(store, "s", limits), createStoredResults(store, "s", limits)];
  const ids = [await save(one, resultOf(["one"])), await save(two, resultOf(["two"]))];
  expect([await itemsOf(two, ids[0]!), await itemsOf(one, ids[1]!)]).toEqual([["one"], ["two"]]);
  expect(await itemsOf(createStoredResults(store, "other", limits), ids[0]!)).toBeUndefined();
});

test("a session with few calls leaves few places unused", async () => {
  const store = createMemoryStore();
  const ids = await Promise.all(
    ["one", "two", "three"].map((item) => save(createStoredResults(store, "s", limits), resultOf([item]))),
  );
  expect(ids).toEqual([1, 2, 3].map((number) => resultId(number, "s")));
  const results = createStoredResults(store, "s", limits);
  for (let number = 4; number < 50; number += 1) expect(await results.claimId()).toBe(resultId(number, "s"));
});

test("a damaged result is reported, and the next result replaces it", async () => {
  const store = createMemoryStore();
  const results = createStoredResults(store, "s", { ...limits, steps: 1 });
  const id = await save(results, resultOf(["a"]));
  await store.put(resultCollection, "s/result/0", "{");
  await expect(results.load(id)).rejects.toMatchObject({ code: "store_corrupt" });
  const next = await save(results, resultOf(["b"]));
  expect(await itemsOf(results, next)).toEqual(["b"]);
});

const numRuns = caseCount({ few: 16, deep: 500, long: 2_000 });

async function collect(items: AsyncIterable<unknown>): Promise<unknown[]> {
  const collected: unknown[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

const longText = fc.tuple(fc.string({ unit: "binary", minLength: 1 }), fc.nat(9)).map(([text, times]) => {
  return text.repeat(times * 20_000);
});
const item = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: "binary" }) },
  { weight: 3, arbitrary: fc.jsonValue() },
  { weight: 1, arbitrary: longText },
  { weight: 1, arbitrary: fc.constantFrom(undefined, 1n, () => 1, new Date(0), { a: undefined }) },
);

/** The value after a round trip through JSON. A value that JSON cannot express is a note. */
const plain = (value: unknown): unknown =>
  typeof value === "bigint"
    ? "[unreadable item: Do not know how to serialize a BigInt]"
    : JSON.parse(JSON.stringify(value) ?? "null");

test("any items can be read from any offset", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(item), fc.nat(1_000), fc.nat(), async (items, offset, skip) => {
      const { chunks, starts, count } = await chunkItems(items, offset);
      expect(count).toBe(items.length);
      expect(starts).toHaveLength(chunks.length);
      const from = items.length === 0 ? 0 : skip % items.length;
      const results = createStoredResults(createMemoryStore(), "s");
      const id = await save(results, resultOf(items, {}, offset));
      expect(await itemsOf(results, id, offset + from)).toEqual(items.slice(from).map(plain));
    }),
    { numRuns },
  );
});

test("items can be read again unchanged, even if their source could be read only once", async () => {
  const items = Array.from({ length: 60_000 }, (_, index) => (index % 3 === 0 ? { index } : `line ${index}`));
  async function* once() {
    yield* items;
  }
  for (const source of [items, once(), items.values()]) {
    const chunked = await chunkItems(source, 7);
    expect(chunked.chunks.length).toBeGreaterThan(2);
    expect(chunked.starts[0]).toBe(7);
    expect(await collect(chunked.items())).toEqual(items);
  }
  expect(await collect((await chunkItems([], 0)).items())).toEqual([]);
});

test("items before a failure are kept, with the failure", async () => {
  const failure = new Error("the pipe broke");
  function* broken() {
    yield "one";
    throw failure;
  }
  const read = await chunkItems(broken(), 0);
  expect(read).toMatchObject({ chunks: ['["one"]'], starts: [0], count: 1, failure });
  expect(await collect(read.items())).toEqual(["one"]);
});

test("the stream of ids stays short, and no id comes twice", async () => {
  const store = createMemoryStore();
  const ids = new Set<string>();
  for (let session = 0; session < 4; session += 1) {
    const results = createStoredResults(store, "s", limits);
    for (let step = 0; step < 150; step += 1) ids.add(await results.claimId());
  }
  expect(ids.size).toBe(600);
  expect((await store.read("session/s/ids")).length).toBeLessThan(160);
});

test("the work log keeps its entries and the last evicted ones", async () => {
  const store = createMemoryStore();
  const log = await openWorkLog(store, nameLogStream("s"), 0);
  const entry = { tool: "t", args: "", time: "2026-01-01T00:00:00.000Z", result: "", tokens: 1 };
  for (let step = 0; step < 3_000; step += 1) {
    await log.add({ ...entry, id: `r${step}` });
    if (step >= 20) log.evictOldest(() => false);
  }
  const stored = await store.read("session/s/log");
  expect([stored.length > 1_000, stored.length < 1_200, stored.at(-1)!.sequence]).toEqual([true, true, 3_000]);
  const again = await openWorkLog(store, nameLogStream("s"), log.evictedThrough());
  expect([again.entries(), again.steps()]).toEqual([log.entries(), 3_000]);
});
