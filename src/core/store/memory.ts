import {
  checkRevision,
  createStore,
  encode,
  type ListOptions,
  type MaintainedStore,
  type Store,
  type StoreDriver,
  type StoreRecord,
} from "./store.ts";

type MemoryRecord = StoreRecord & { readonly written: number };

interface Collection {
  records: Map<string, MemoryRecord>;
  /** Cached for `list`. Undefined after a key was added or deleted. */
  sortedKeys?: string[] | undefined;
}

/** Creates a store in memory. Its content is lost when the process ends, which suits tests and sessions that
 *  are never resumed.
 *
 * @example
 * ```ts
 * import { createMemoryStore } from "plimsoll/store";
 *
 * const store = createMemoryStore();
 * await store.put("settings", "theme", "dark");
 * console.log((await store.get("settings", "theme"))?.value); // dark
 * ```
 */
export function createMemoryStore(): Store {
  return createMaintainedMemory();
}

/** `now` is the time of a write, in milliseconds since 1970. A store in memory does not need it: nothing in it lasts. */
export function createMaintainedMemory(now: () => number = () => 0): MaintainedStore {
  const collections = new Map<string, Collection>();
  const streams = new Map<string, MemoryStream>();
  let lastRevision = 0;
  const find = (collection: string, key: string): MemoryRecord | undefined =>
    collections.get(collection)?.records.get(key);
  const write = (collection: string, key: string, value: string, written = now()): MemoryRecord => {
    lastRevision += 1;
    const record = { key, value, revision: lastRevision, written };
    const found: Collection = collections.get(collection) ?? { records: new Map() };
    collections.set(collection, found);
    if (!found.records.has(key)) found.sortedKeys = undefined;
    found.records.set(key, record);
    return record;
  };

  return createStore({
    async get(collection, key) {
      return copy(find(collection, key));
    },
    async put(collection, key, value, { expectedRevision }) {
      checkRevision(find(collection, key)?.revision ?? 0, expectedRevision, `${collection}/${key}`);
      return write(collection, key, value).revision;
    },
    async update(collection, key, change) {
      const current = find(collection, key);
      const value = change(current?.value);
      return copy(current?.value === value ? current : write(collection, key, value))!;
    },
    async delete(collection, key, { expectedRevision }) {
      const current = find(collection, key);
      checkRevision(current?.revision ?? 0, expectedRevision, `${collection}/${key}`);
      if (current === undefined) return false;
      const found = collections.get(collection)!;
      found.records.delete(key);
      found.sortedKeys = undefined;
      return true;
    },
    async list(collection, options) {
      const found = collections.get(collection);
      return found === undefined ? [] : listRecords(found, options).map((record) => copy(record)!);
    },
    ...createStreams(streams, now),
    ...createUpkeep({ collections, streams, write }),
    async purge() {},
    async close() {},
  });
}

interface MemoryStream {
  /** How many entries were deleted. The first one in `values` is the next. */
  deleted: number;
  values: string[];
  written: number;
}

function createStreams(
  streams: Map<string, MemoryStream>,
  now: () => number,
): Pick<StoreDriver, "append" | "read" | "trimStream" | "deleteStream"> {
  return {
    async append(stream, values) {
      const found = streams.get(stream);
      if (values.length === 0) return found === undefined ? 0 : getLast(found);
      const { deleted = 0, values: before = [] } = found ?? {};
      for (const value of values) before.push(value);
      const changed = { deleted, values: before, written: now() };
      streams.set(stream, changed);
      return getLast(changed);
    },
    async read(stream, { after = 0, limit }) {
      const { deleted = 0, values = [] } = streams.get(stream) ?? {};
      const first = Math.max(after - deleted, 0);
      const chosen = values.slice(first, limit === undefined ? undefined : first + limit);
      return chosen.map((value, index) => ({ sequence: deleted + first + index + 1, value }));
    },
    async trimStream(stream, through) {
      const found = streams.get(stream);
      if (found === undefined) return 0;
      const gone = Math.min(Math.max(through - found.deleted, 0), found.values.length);
      found.values = found.values.slice(gone);
      found.deleted += gone;
      return gone;
    },
    async deleteStream(stream) {
      return streams.delete(stream);
    },
  };
}

function getLast({ deleted, values }: MemoryStream): number {
  return deleted + values.length;
}

function createUpkeep({
  collections,
  streams,
  write,
}: {
  readonly collections: Map<string, Collection>;
  readonly streams: Map<string, MemoryStream>;
  readonly write: (collection: string, key: string, value: string, written: number) => unknown;
}): Omit<MaintainedStore, keyof Store> {
  const countBytes = (values: readonly string[]): number =>
    values.reduce((sum, value) => sum + encode(value).length, 0);
  const getRecords = (name: string): MemoryRecord[] => [...(collections.get(name)?.records.values() ?? [])];
  return {
    async listCollections() {
      const names = [...collections.keys()].filter((name) => getRecords(name).length > 0).sort(compareCodePoints);
      return names.map((collection) => {
        const records = getRecords(collection);
        const times = records.map(({ written }) => written).sort((left, right) => left - right);
        const bytes = countBytes(records.map(({ value }) => value));
        return { collection, records: records.length, bytes, oldest: times[0]!, newest: times.at(-1)! };
      });
    },
    async listFacts(collection, options = {}) {
      const found = collections.get(collection);
      const records = found === undefined ? [] : listRecords(found, options);
      return records.map(({ key, revision, value, written }) => ({
        key,
        revision,
        bytes: countBytes([value]),
        written,
      }));
    },
    async listStreams({ prefix = "", after = "", limit } = {}) {
      const isChosen = (name: string): boolean => name.startsWith(prefix) && compareCodePoints(name, after) > 0;
      const names = [...streams.keys()].filter(isChosen).sort(compareCodePoints);
      return names.slice(0, limit).map((stream) => {
        const found = streams.get(stream)!;
        const { values, written } = found;
        return { stream, entries: values.length, bytes: countBytes(values), last: getLast(found), written };
      });
    },
    async size() {
      const records = [...collections.keys()].flatMap((name) => getRecords(name).map(({ value }) => value));
      return countBytes(records) + countBytes([...streams.values()].flatMap(({ values }) => values));
    },
    async copyRecords(collection, records) {
      for (const { key, value, written } of records) write(collection, key, value, written);
    },
    async copyStream({ stream, last, written, entries }) {
      const { values = [] } = streams.get(stream) ?? {};
      for (const { value } of entries) values.push(value);
      streams.set(stream, { deleted: last - values.length, values, written });
    },
  };
}

function copy(record: StoreRecord | undefined): StoreRecord | undefined {
  return record && { key: record.key, value: record.value, revision: record.revision };
}

function listRecords(collection: Collection, { prefix = "", after = "", limit }: ListOptions): MemoryRecord[] {
  collection.sortedKeys ??= [...collection.records.keys()].sort(compareCodePoints);
  const keys = collection.sortedKeys;
  const records: MemoryRecord[] = [];
  const first = (key: string): boolean => compareCodePoints(key, after) > 0 && compareCodePoints(key, prefix) >= 0;
  for (let index = firstIndex(keys, first); index < keys.length; index += 1) {
    const key = keys[index]!;
    if (records.length === limit || !key.startsWith(prefix)) break;
    records.push(collection.records.get(key)!);
  }
  return records;
}

/** Returns the first index at which `holds` is true. It must be true for every later key too. Searches by halving, so
 *  the cost of a page does not depend on the keys before it. */
function firstIndex(keys: readonly string[], holds: (key: string) => boolean): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(keys[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Compares by code points, which is the order of UTF-8 bytes that databases sort by. `<` compares UTF-16 units, which
 *  is a different order. */
function compareCodePoints(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const difference = rank(left.charCodeAt(index)) - rank(right.charCodeAt(index));
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** A surrogate is half of a code point above U+FFFF, so it must sort after U+E000 to U+FFFF, which are higher units. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
