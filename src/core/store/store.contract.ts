import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MaintainedStore, Store } from "./store.ts";

/** Tests what every store must do. `open` returns a new, empty store. */
export function describeStore(name: string, open: () => Promise<Store>): void {
  describe(`${name} store`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await open();
    });
    afterEach(() => store.close());
    const using = (): Store => store;

    describe("records", () => describeRecords(using));
    describe("revisions", () => describeRevisions(using));
    describe("updates", () => describeUpdates(using));
    describe("lists", () => describeLists(using));
    describe("streams", () => describeStreams(using));
    test("calls that nobody awaits take effect in their order", () => expectCallOrder(using()));
    describe("values", () => describeValues(using));
    describe("wrong use", () => describeWrongUse(using));
  });
}

/** Tests what a store must tell for its upkeep. `open` returns a new, empty store with that clock. */
export function describeUpkeep(name: string, open: (now: () => number) => Promise<MaintainedStore>): void {
  describe(`upkeep of a ${name} store`, () => {
    let time = 0;
    let store: MaintainedStore;
    beforeEach(async () => {
      time = 1_000;
      store = await open(() => time);
    });
    afterEach(() => store.close());

    test("tells the number, bytes and times of records and streams", async () => {
      await store.put("b", "k2", "é");
      time = 2_000;
      const revision = await store.put("b", "k1", "abc");
      await store.update("b", "k2", (value) => value!);
      await store.put("a", "k", "");
      await store.append("s", ["x", "yz"]);
      time = 3_000;
      await store.append("s", ["!"]);
      await store.trimStream("s", 1);
      expect(await store.listCollections()).toEqual([
        { collection: "a", records: 1, bytes: 0, oldest: 2_000, newest: 2_000 },
        { collection: "b", records: 2, bytes: 5, oldest: 1_000, newest: 2_000 },
      ]);
      expect(await store.listFacts("b", { limit: 1 })).toEqual([{ key: "k1", revision, bytes: 3, written: 2_000 }]);
      expect(await store.listFacts("b", { after: "k1" })).toMatchObject([{ key: "k2", written: 1_000 }]);
      const stream = { stream: "s", entries: 2, bytes: 3, last: 3, written: 3_000 };
      expect(await store.listStreams()).toEqual([stream]);
      expect([await store.listStreams({ prefix: "t" }), await store.listStreams({ after: "s" })]).toEqual([[], []]);
      expect(await store.size()).toBeGreaterThan(0);
      await store.deleteStream("s");
      expect(await store.listStreams()).toEqual([]);
    });

    test("rejects every call after close", async () => {
      await store.close();
      const closed = { code: "store_unavailable", message: "the store is closed" };
      await expect(store.listCollections()).rejects.toMatchObject(closed);
      await expect(store.listFacts("c")).rejects.toMatchObject(closed);
      await expect(store.listStreams()).rejects.toMatchObject(closed);
      await expect(store.size()).rejects.toMatchObject(closed);
      await expect(store.copyRecords("c", [])).rejects.toMatchObject(closed);
      await expect(store.copyStream({ stream: "s", last: 0, written: 0, entries: [] })).rejects.toMatchObject(closed);
    });

    test("copies keep their times and sequences", async () => {
      await store.copyRecords("c", [
        { key: "k", value: "a\ud800\0", written: 5 },
        { key: "l", value: "", written: 6 },
      ]);
      expect(await store.listFacts("c")).toMatchObject([
        { key: "k", written: 5 },
        { key: "l", written: 6 },
      ]);
      expect((await store.get("c", "k"))?.value).toBe("a\ud800\0");
      const facts = { stream: "s", last: 9, written: 7 };
      await store.copyStream({ ...facts, entries: [{ sequence: 8, value: "h" }] });
      await store.copyStream({ ...facts, entries: [{ sequence: 9, value: "\udc00" }] });
      expect(await store.read("s")).toEqual([
        { sequence: 8, value: "h" },
        { sequence: 9, value: "\udc00" },
      ]);
      expect(await store.append("s", ["next"])).toBe(10);
      await store.copyStream({ stream: "empty", last: 4, written: 7, entries: [] });
      expect(await store.append("empty", ["next"])).toBe(5);
    });
  });
}

/** Exported so that a driver can also run it while its calls have to wait. */
export async function expectCallOrder(store: Store): Promise<void> {
  const numbers = Array.from({ length: 20 }, (_, index) => String(index + 1));
  const calls = numbers.map((number) => [
    store.append("order", [number]),
    store.put("order", "last", number),
    store.get("order", "last"),
  ]);
  const results = await Promise.all(calls.map((each) => Promise.all(each)));
  expect(results.map((each) => each[2])).toMatchObject(numbers.map((value) => ({ value })));
  expect((await store.read("order")).map(({ value }) => value)).toEqual(numbers);
  expect((await store.get("order", "last"))?.value).toBe("20");
}

const conflict = { name: "ContextError", code: "store_conflict" };
const invalid = { name: "ContextError", code: "invalid_argument" };

function describeRecords(store: () => Store): void {
  test("a missing record is undefined", async () => {
    expect(await store().get("checkpoints", "none")).toBeUndefined();
  });

  test("get returns the record as it was put, with its revision", async () => {
    const revision = await store().put("checkpoints", "s1", "one");
    expect(await store().get("checkpoints", "s1")).toEqual({ key: "s1", value: "one", revision });
  });

  test("the same key in two collections is two records", async () => {
    await store().put("a", "k", "in a");
    await store().put("b", "k", "in b");
    expect((await store().get("a", "k"))?.value).toBe("in a");
    expect(await store().delete("a", "k")).toBe(true);
    expect((await store().get("b", "k"))?.value).toBe("in b");
  });

  test("names that only differ in where they are cut stay apart", async () => {
    await store().put("ab", "c", "1");
    await store().put("a", "bc", "2");
    expect((await store().get("ab", "c"))?.value).toBe("1");
    expect((await store().get("a", "bc"))?.value).toBe("2");
  });

  test("a deleted record is gone, and deleting it again returns false", async () => {
    await store().put("c", "k", "v");
    expect(await store().delete("c", "k")).toBe(true);
    expect(await store().get("c", "k")).toBeUndefined();
    expect(await store().delete("c", "k")).toBe(false);
  });

  test("changing a returned record does not change the store", async () => {
    await store().put("c", "k", "v");
    Object.assign((await store().get("c", "k"))!, { value: "changed" });
    Object.assign((await store().list("c"))[0]!, { value: "changed" });
    Object.assign(await store().update("c", "k", () => "w"), { value: "changed" });
    expect((await store().get("c", "k"))?.value).toBe("w");
  });
}

function describeRevisions(store: () => Store): void {
  test("every write returns a higher revision, also after a delete", async () => {
    const first = await store().put("c", "k", "1");
    const second = await store().put("c", "k", "2");
    await store().delete("c", "k");
    const third = await store().put("c", "k", "3");
    expect(first).toBeGreaterThan(0);
    expect(second).toBeGreaterThan(first);
    expect(third).toBeGreaterThan(second);
  });

  test("a put with the current revision succeeds once", async () => {
    const revision = await store().put("c", "k", "1");
    await store().put("c", "k", "2", { expectedRevision: revision });
    await expect(store().put("c", "k", "3", { expectedRevision: revision })).rejects.toMatchObject(conflict);
    expect((await store().get("c", "k"))?.value).toBe("2");
  });

  test("expected revision 0 creates a record, and refuses to replace one", async () => {
    await store().put("c", "k", "1", { expectedRevision: 0 });
    await expect(store().put("c", "k", "2", { expectedRevision: 0 })).rejects.toMatchObject(conflict);
    expect((await store().get("c", "k"))?.value).toBe("1");
  });

  test("a put for a record that was deleted in between is a conflict", async () => {
    const revision = await store().put("c", "k", "1");
    await store().delete("c", "k");
    await expect(store().put("c", "k", "2", { expectedRevision: revision })).rejects.toMatchObject(conflict);
    await store().put("c", "k", "1");
    await expect(store().put("c", "k", "2", { expectedRevision: revision })).rejects.toMatchObject(conflict);
  });

  test("a delete for another revision is a conflict and deletes nothing", async () => {
    const old = await store().put("c", "k", "1");
    const current = await store().put("c", "k", "2");
    await expect(store().delete("c", "k", { expectedRevision: old })).rejects.toMatchObject(conflict);
    await expect(store().delete("c", "k", { expectedRevision: 0 })).rejects.toMatchObject(conflict);
    expect(await store().delete("c", "k", { expectedRevision: current })).toBe(true);
    await expect(store().delete("c", "k", { expectedRevision: current })).rejects.toMatchObject(conflict);
    expect(await store().delete("c", "k", { expectedRevision: 0 })).toBe(false);
  });

  test("one of twenty parallel puts with the same expected revision wins", async () => {
    const expectedRevision = await store().put("c", "k", "0");
    const attempts = Array.from({ length: 20 }, (_, index) =>
      store().put("c", "k", String(index), { expectedRevision }),
    );
    const results = await Promise.allSettled(attempts);
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });
}

function describeUpdates(store: () => Store): void {
  test("an update sees undefined first, then the value", async () => {
    const first = await store().update("c", "k", (value) => `${value}+1`);
    expect(first.value).toBe("undefined+1");
    const second = await store().update("c", "k", (value) => `${value}+2`);
    expect(second).toEqual({ key: "k", value: "undefined+1+2", revision: second.revision });
    expect(second.revision).toBeGreaterThan(first.revision);
    expect(await store().get("c", "k")).toEqual(second);
  });

  test("an update that changes nothing keeps the revision", async () => {
    const revision = await store().put("c", "k", "v");
    expect(await store().update("c", "k", (value) => value ?? "")).toEqual({
      key: "k",
      value: "v",
      revision,
    });
  });

  test("an update that throws writes nothing and passes the error on", async () => {
    await store().put("c", "k", "v");
    const failing = store().update("c", "k", () => {
      throw new RangeError("no");
    });
    await expect(failing).rejects.toThrow(RangeError);
    expect((await store().get("c", "k"))?.value).toBe("v");
    await store().put("c", "k", "still writable");
  });

  test("a hundred updates at once are all counted", async () => {
    const count = () => store().update("c", "k", (value) => String(Number(value ?? 0) + 1));
    await Promise.all(Array.from({ length: 100 }, count));
    expect((await store().get("c", "k"))?.value).toBe("100");
  });
}

function describeLists(store: () => Store): void {
  const keysOf = (records: readonly { key: string }[]): string[] => records.map(({ key }) => key);

  test("an empty collection lists nothing", async () => {
    expect(await store().list("c")).toEqual([]);
  });

  test("keys are listed in code point order, not in the order of UTF-16 units", async () => {
    const keys = ["\u{10ffff}", "😀", "\uffff", "\ue000", "\ud7ff", "é", "aa", "a\0", "a", "A", "!"];
    const sorted = ["!", "A", "a", "a\0", "aa", "é", "\ud7ff", "\ue000", "\uffff", "😀", "\u{10ffff}"];
    for (const key of keys) await store().put("c", key, key);
    expect(keysOf(await store().list("c"))).toEqual(sorted);
  });

  test("a prefix selects the keys that start with it and no others", async () => {
    const inside = ["s", "s/1", "s/\u{10ffff}", "s\u{10ffff}\u{10ffff}", "s😀"];
    for (const key of ["r", "S", "t", "é", ...inside]) await store().put("c", key, "");
    expect(keysOf(await store().list("c", { prefix: "s" })).sort()).toEqual(inside.sort());
    expect(keysOf(await store().list("c", { prefix: "s/" }))).toEqual(["s/1", "s/\u{10ffff}"]);
    expect(keysOf(await store().list("c", { prefix: "%" }))).toEqual([]);
  });

  test("pages of any length list every record once, in order", async () => {
    const keys = Array.from({ length: 250 }, (_, index) => `k${String(index).padStart(3, "0")}`);
    for (const key of keys) await store().put("c", key, `value of ${key}`);
    for (const limit of [1, 7, 100, 250, 251]) {
      const seen = (await readInPages(store(), limit)).map(({ key, value }) => [key, value]);
      expect({ limit, seen }).toEqual({ limit, seen: keys.map((key) => [key, `value of ${key}`]) });
    }
  });

  test("a page can continue after a key that does not exist, or that is before the prefix", async () => {
    for (const key of ["a", "c", "pa", "pb"]) await store().put("c", key, "");
    expect(keysOf(await store().list("c", { after: "b" }))).toEqual(["c", "pa", "pb"]);
    expect(keysOf(await store().list("c", { prefix: "p", after: "b" }))).toEqual(["pa", "pb"]);
    expect(keysOf(await store().list("c", { prefix: "p", after: "z" }))).toEqual([]);
  });
}

async function readInPages(store: Store, limit: number): Promise<{ key: string; value: string }[]> {
  const seen: { key: string; value: string }[] = [];
  for (let after = ""; ; ) {
    const page = await store.list("c", { prefix: "k", after, limit });
    expect(page.length).toBeLessThanOrEqual(limit);
    if (page.length === 0) return seen;
    seen.push(...page);
    after = page.at(-1)!.key;
  }
}

function describeStreams(store: () => Store): void {
  test("the sequences of each stream start at 1 and have no gaps", async () => {
    expect(await store().append("log", ["a", "b"])).toBe(2);
    expect(await store().append("other", ["x"])).toBe(1);
    expect(await store().append("log", ["c"])).toBe(3);
    expect(await store().read("log")).toEqual([
      { sequence: 1, value: "a" },
      { sequence: 2, value: "b" },
      { sequence: 3, value: "c" },
    ]);
  });

  test("appending nothing returns the last sequence", async () => {
    expect(await store().append("log", [])).toBe(0);
    await store().append("log", ["a"]);
    expect(await store().append("log", [])).toBe(1);
    expect(await store().read("empty")).toEqual([]);
  });

  test("a read continues after a sequence, within its limit", async () => {
    await store().append("log", ["a", "b", "c", "d"]);
    expect(await store().read("log", { after: 1, limit: 2 })).toEqual([
      { sequence: 2, value: "b" },
      { sequence: 3, value: "c" },
    ]);
    expect(await store().read("log", { after: 4 })).toEqual([]);
    expect(await store().read("log", { after: 99, limit: 1 })).toEqual([]);
  });

  test("a deleted stream starts again at 1", async () => {
    expect(await store().deleteStream("log")).toBe(false);
    await store().append("log", ["a", "b"]);
    await store().append("other", ["x"]);
    expect(await store().deleteStream("log")).toBe(true);
    expect(await store().read("log")).toEqual([]);
    expect(await store().append("log", [])).toBe(0);
    expect(await store().deleteStream("log")).toBe(false);
    expect(await store().append("log", ["c"])).toBe(1);
    expect(await store().read("other")).toEqual([{ sequence: 1, value: "x" }]);
  });

  test("a trimmed stream keeps its later entries and goes on with the next sequence", async () => {
    expect(await store().trimStream("log", 3)).toBe(0);
    await store().append("log", ["a", "b", "c", "d"]);
    expect(await store().trimStream("log", 2)).toBe(2);
    expect(await store().read("log")).toEqual([
      { sequence: 3, value: "c" },
      { sequence: 4, value: "d" },
    ]);
    expect(await store().read("log", { after: 1, limit: 1 })).toEqual([{ sequence: 3, value: "c" }]);
    expect(await store().trimStream("log", 1)).toBe(0);
    expect(await store().trimStream("log", 99)).toBe(2);
    expect([await store().read("log"), await store().append("log", [])]).toEqual([[], 4]);
    expect(await store().append("log", ["e"])).toBe(5);
    expect(await store().read("log")).toEqual([{ sequence: 5, value: "e" }]);
    expect(await store().deleteStream("log")).toBe(true);
    expect(await store().append("log", ["again"])).toBe(1);
  });

  test("a purge keeps everything that was not deleted", async () => {
    await store().put("c", "kept", "v");
    await store().put("c", "gone", "v");
    await store().append("log", ["a"]);
    const { revision } = (await store().get("c", "kept"))!;
    await store().delete("c", "gone");
    await store().purge();
    expect(await store().list("c")).toEqual([{ key: "kept", value: "v", revision }]);
    expect(await store().read("log")).toEqual([{ sequence: 1, value: "a" }]);
    expect(await store().put("c", "gone", "w")).toBeGreaterThan(revision);
  });

  test("batches appended in parallel are not mixed", async () => {
    const batches = Array.from({ length: 20 }, (_, index) => [`${index}`, `${index}`, `${index}`]);
    const lasts = await Promise.all(batches.map((batch) => store().append("log", batch)));
    expect(lasts.sort((left, right) => left - right)).toEqual(batches.map((_, index) => 3 * index + 3));
    const values = (await store().read("log")).map(({ value }) => value);
    for (let index = 0; index < 60; index += 3) expect(new Set(values.slice(index, index + 3)).size).toBe(1);
  });

  test("a batch with a value that is not a string adds nothing", async () => {
    await expect(store().append("log", ["a", 1 as unknown as string])).rejects.toMatchObject(invalid);
    expect(await store().read("log")).toEqual([]);
  });
}

function describeValues(store: () => Store): void {
  const hazards: Record<string, string> = {
    "an empty string": "",
    "a NUL": "a\0b\0",
    "a lone high surrogate": "a\ud800b",
    "a lone low surrogate at the start": "\udc00",
    "surrogates in the wrong order beside a pair": "\udc00\ud800 😀",
    "a byte order mark": "\ufeffa",
    "a replacement character": "\ufffd",
    "a character that looks like a marker byte": "\u00ff\u0001",
    "CRLF and quotes": "\r\n'\"`\\",
  };
  test.each(Object.entries(hazards))("returns %s unchanged", async (_name, value) => {
    await store().put("c", "k", value);
    await store().append("log", [value, "next"]);
    expect((await store().get("c", "k"))?.value).toBe(value);
    expect((await store().list("c"))[0]?.value).toBe(value);
    expect((await store().read("log")).map((entry) => entry.value)).toEqual([value, "next"]);
  });

  test("returns ten million characters unchanged", { tags: ["deep"] }, async () => {
    const value = "ten chars😀".repeat(1_000_000).slice(1);
    await store().put("results", "big", value);
    expect((await store().get("results", "big"))?.value === value).toBe(true);
  });

  test("accepts names in any script, with NUL, with a slash and of full length", async () => {
    const names = ["ключ", "鍵/1", "a\0b", "../x", "'; DROP TABLE records; --", "__proto__", "é".repeat(512)];
    for (const name of names) {
      await store().put(name, name, name);
      await store().append(name, [name]);
    }
    for (const name of names) {
      expect((await store().list(name)).map(({ key, value }) => [key, value])).toEqual([[name, name]]);
      expect(await store().read(name)).toEqual([{ sequence: 1, value: name }]);
    }
  });
}

function describeWrongUse(store: () => Store): void {
  const badNames: unknown[] = ["", "x".repeat(1_025), "é".repeat(513), "a\ud800", undefined, 7];

  test.each(badNames)("refuses the name %j", async (bad) => {
    const name = bad as string;
    await expect(store().get(name, "k")).rejects.toMatchObject(invalid);
    await expect(store().put("c", name, "v")).rejects.toMatchObject(invalid);
    await expect(store().update("c", name, () => "v")).rejects.toMatchObject(invalid);
    await expect(store().delete("c", name)).rejects.toMatchObject(invalid);
    await expect(store().list(name)).rejects.toMatchObject(invalid);
    await expect(store().append(name, ["v"])).rejects.toMatchObject(invalid);
    await expect(store().read(name)).rejects.toMatchObject(invalid);
    await expect(store().trimStream(name, 1)).rejects.toMatchObject(invalid);
    await expect(store().deleteStream(name)).rejects.toMatchObject(invalid);
  });

  test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53])("refuses the number %d", async (bad) => {
    const expectedRevision = bad;
    await expect(store().put("c", "k", "v", { expectedRevision })).rejects.toMatchObject(invalid);
    await expect(store().delete("c", "k", { expectedRevision })).rejects.toMatchObject(invalid);
    await expect(store().list("c", { limit: bad })).rejects.toMatchObject(invalid);
    await expect(store().read("log", { limit: bad })).rejects.toMatchObject(invalid);
    await expect(store().read("log", { after: bad })).rejects.toMatchObject(invalid);
    await expect(store().trimStream("log", bad)).rejects.toMatchObject(invalid);
  });

  test("refuses a limit of 0 and half a surrogate pair as a prefix", async () => {
    await expect(store().list("c", { limit: 0 })).rejects.toMatchObject(invalid);
    await expect(store().list("c", { prefix: "\ud83d" })).rejects.toMatchObject(invalid);
    await expect(store().list("c", { after: "\ud83d" })).rejects.toMatchObject(invalid);
  });

  test("refuses values that are not strings, and writes nothing", async () => {
    const bad = { text: 1 } as unknown as string;
    await expect(store().put("c", "k", bad)).rejects.toMatchObject(invalid);
    await expect(store().update("c", "k", () => bad)).rejects.toMatchObject(invalid);
    await expect(store().append("log", bad as unknown as string[])).rejects.toMatchObject(invalid);
    expect(await store().get("c", "k")).toBeUndefined();
  });

  test("rejects every call after close, except another close", async () => {
    await store().close();
    await store().close();
    const closed = { name: "ContextError", code: "store_unavailable", message: "the store is closed" };
    await expect(store().get("c", "k")).rejects.toMatchObject(closed);
    await expect(store().put("c", "k", "v")).rejects.toMatchObject(closed);
    await expect(store().update("c", "k", () => "v")).rejects.toMatchObject(closed);
    await expect(store().delete("c", "k")).rejects.toMatchObject(closed);
    await expect(store().list("c")).rejects.toMatchObject(closed);
    await expect(store().append("log", ["v"])).rejects.toMatchObject(closed);
    await expect(store().read("log")).rejects.toMatchObject(closed);
    await expect(store().trimStream("log", 1)).rejects.toMatchObject(closed);
    await expect(store().deleteStream("log")).rejects.toMatchObject(closed);
    await expect(store().purge()).rejects.toMatchObject(closed);
  });
}
