import {
  checkListOptions,
  checkNames,
  checkReadOptions,
  checkRevision,
  checkRevisionOption,
  checkValues,
  closedError,
  type ListOptions,
  type Store,
  type StoreRecord,
} from "./store.ts";

interface Collection {
  records: Map<string, StoreRecord>;
  /** Absent after a key came or went. */
  sortedKeys?: string[] | undefined;
}

/** A store that lives as long as its process: for tests and for sessions that nobody resumes. */
export function createMemoryStore(): Store {
  const collections = new Map<string, Collection>();
  let lastRevision = 0;
  let closed = false;

  const check = (names: Readonly<Record<string, string>>): void => {
    if (closed) throw closedError();
    checkNames(names);
  };
  const find = (collection: string, key: string): StoreRecord | undefined =>
    collections.get(collection)?.records.get(key);
  const write = (collection: string, key: string, value: string): StoreRecord => {
    lastRevision += 1;
    const record = { key, value, revision: lastRevision };
    setRecord(collections, collection, record);
    return record;
  };

  return {
    async get(collection, key) {
      check({ collection, key });
      return copy(find(collection, key));
    },
    async put(collection, key, value, options = {}) {
      check({ collection, key });
      checkValues([value]);
      checkRevisionOption(options);
      checkRevision(find(collection, key)?.revision ?? 0, options.expectedRevision, `${collection}/${key}`);
      return write(collection, key, value).revision;
    },
    async update(collection, key, change) {
      check({ collection, key });
      const current = find(collection, key);
      const value = change(current?.value);
      checkValues([value]);
      return { ...(current?.value === value ? current : write(collection, key, value)) };
    },
    async delete(collection, key, options = {}) {
      check({ collection, key });
      checkRevisionOption(options);
      const current = find(collection, key);
      checkRevision(current?.revision ?? 0, options.expectedRevision, `${collection}/${key}`);
      if (current === undefined) return false;
      deleteRecord(collections, collection, key);
      return true;
    },
    async list(collection, options = {}) {
      check({ collection });
      checkListOptions(options);
      const found = collections.get(collection);
      return found === undefined ? [] : listRecords(found, options);
    },
    ...createStreams(check),
    async purge() {
      check({});
    },
    async close() {
      closed = true;
    },
  };
}

/** `check` refuses names that cannot be used, and every call after the end. */
function createStreams(
  check: (names: Readonly<Record<string, string>>) => void,
): Pick<Store, "append" | "read" | "deleteStream"> {
  const streams = new Map<string, string[]>();
  return {
    async append(stream, values) {
      check({ stream });
      checkValues(values);
      const entries = streams.get(stream) ?? [];
      for (const value of values) entries.push(value);
      if (entries.length > 0) streams.set(stream, entries);
      return entries.length;
    },
    async read(stream, options = {}) {
      check({ stream });
      checkReadOptions(options);
      const { after = 0, limit = Number.POSITIVE_INFINITY } = options;
      const values = streams.get(stream)?.slice(after, after + limit) ?? [];
      return values.map((value, index) => ({ sequence: after + index + 1, value }));
    },
    async deleteStream(stream) {
      check({ stream });
      return streams.delete(stream);
    },
  };
}

function copy(record: StoreRecord | undefined): StoreRecord | undefined {
  return record === undefined ? undefined : { ...record };
}

function setRecord(collections: Map<string, Collection>, name: string, record: StoreRecord): void {
  const collection: Collection = collections.get(name) ?? { records: new Map() };
  collections.set(name, collection);
  if (!collection.records.has(record.key)) collection.sortedKeys = undefined;
  collection.records.set(record.key, record);
}

function deleteRecord(collections: Map<string, Collection>, name: string, key: string): void {
  const collection = collections.get(name);
  if (collection?.records.delete(key)) collection.sortedKeys = undefined;
}

function listRecords(collection: Collection, { prefix = "", after = "", limit }: ListOptions): StoreRecord[] {
  collection.sortedKeys ??= [...collection.records.keys()].sort(compareCodePoints);
  const keys = collection.sortedKeys;
  const records: StoreRecord[] = [];
  const first = (key: string): boolean =>
    compareCodePoints(key, after) > 0 && compareCodePoints(key, prefix) >= 0;
  for (let index = firstIndex(keys, first); index < keys.length; index += 1) {
    const key = keys[index]!;
    if (records.length === limit || !key.startsWith(prefix)) break;
    records.push({ ...collection.records.get(key)! });
  }
  return records;
}

/** Where `holds` begins to hold; from there on it holds for every key. A page costs what it has, not what comes before. */
function firstIndex(keys: readonly string[], holds: (key: string) => boolean): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(keys[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Code point order is the order of UTF-8 bytes, which databases sort by; `<` compares UTF-16 units and differs. */
function compareCodePoints(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index += 1) {
    const difference = rank(left.charCodeAt(index)) - rank(right.charCodeAt(index));
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

/** Halves of surrogate pairs stand for code points above every single unit, yet U+E000 to U+FFFF are higher units. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
