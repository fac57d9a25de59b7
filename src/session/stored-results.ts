/** Results in the store. A session has a fixed number of places. A result overwrites the one that is that many steps
 *  older. So the store does not grow with the steps of a session, and no search for old results is needed. */

import { ContextError } from "../errors.ts";
import type { Store } from "../store/index.ts";
import {
  createOriginalIds,
  isFields,
  isText,
  isWhole,
  listOf,
  objectOf,
  readJson,
  type ShapeCheck,
} from "../text/index.ts";
import type { ToolArguments } from "./budgeted-tool.ts";
import type { Position } from "./continuations.ts";
import { type ItemChunks, itemsFrom } from "./item-chunks.ts";

export interface StoredResults {
  /** Returns an id that no other call has, in this process or another. */
  claimId(): Promise<string>;
  save(id: string, result: ResultToStore | StoredReference): Promise<void>;
  /** Returns `dropped` if later results took its place. Rejects if its record is damaged. */
  load(id: string): Promise<StoredResult | StoredReference | "dropped" | undefined>;
  /** Deletes at most that many records. Keeps a record that is rewritten at the same time. Returns how many it found. */
  drop(most: number): Promise<number>;
  /** Deletes all results and the record of their ids. */
  deleteAll(): Promise<void>;
}

export interface StoredLimits {
  /** How many steps (calls and pages) a result is kept at least. */
  readonly steps: number;
  /** Characters of all results together that are too large for one record. */
  readonly characters: number;
  /** How many days the results of a session are kept after its last call. */
  readonly unusedDays: number;
}

export const storedLimits: StoredLimits = { steps: 1_000, characters: 200_000_000, unusedDays: 30 };

export const resultCollection = "session-results";

/** A record can have a quarter of a megabyte. */
const recordsAtOnce = 20;

/** Pages of stored results have their own places, so paging a result never drops the result itself. */
type Kind = "result" | "page";

/** Ids are claimed several at a time, which saves a write per call. Unused ids are lost but take places, so a session
 *  claims at most as many as it already had. */
const mostIds = 16;

/** After about how many ids the stream of ids is emptied. */
const trimEvery = 128;

/** `groupId` is the id of the session that the results are stored under. */
export function createStoredResults(
  store: Store,
  groupId: string,
  { steps, characters }: Pick<StoredLimits, "steps" | "characters"> = storedLimits,
): StoredResults {
  const prefix = `${groupId}/`;
  const numbers = createOriginalIds({ maker: "session", sessionId: groupId });
  const numberOf = (id: string): number => numbers.sequenceOf(id) ?? 0;
  // A number is a sequence of this stream. Its entries are not needed.
  const idStream = `session/${groupId}/ids`;
  const parts = createResultParts(store, {
    collection: resultCollection,
    prefix,
    mostCharacters: characters,
  });
  const placeOf = (kind: Kind, id: string): string => `${prefix}${kind}/${numberOf(id) % steps}`;
  const read = async (kind: Kind, id: string): Promise<string | undefined> =>
    (await store.get(resultCollection, placeOf(kind, id)))?.value;
  const claimed: number[] = [];
  let ids = 0;
  return {
    async claimId() {
      if (claimed.length === 0) {
        const count = Math.min(Math.max(ids, 1), mostIds);
        ids += count;
        const last = await store.append(idStream, new Array<string>(count).fill(""));
        if (last % trimEvery < count) await store.trimStream(idStream, last);
        for (let number = last - count + 1; number <= last; number += 1) claimed.push(number);
      }
      return numbers.idOf(claimed.shift()!, "");
    },
    async save(id, result) {
      const isPage = "of" in result;
      const value = isPage ? JSON.stringify({ id, ...result }) : await renderResult(result, id, parts);
      const before = await exchange(store, placeOf(isPage ? "page" : "result", id), value);
      const large = idOfLarge(before);
      if (large !== undefined) await parts.drop(large);
    },
    async load(id) {
      const number = numbers.sequenceOf(id);
      if (number === undefined) return undefined;
      // Earlier versions named a result by its number alone, and transcripts still have such ids.
      const isWanted = (found: string): boolean => found === id || (id === `r${number}` && numberOf(found) === number);
      const result = await read("result", id);
      const header = result && readHeader(result);
      if (result && header && isWanted(header.id)) return readResult(result, header, parts);
      const text = await read("page", id);
      const page = text && readReference(text);
      if (page && isWanted(page.id)) return page;
      const others = [header, page].filter((found) => typeof found === "object");
      const stored = [result, text].filter((found) => found !== undefined);
      if (others.length < stored.length) throw damagedResult(id, "its record is damaged");
      return others.some((other) => numberOf(other.id) > number) ? "dropped" : undefined;
    },
    drop: (most) => dropRecords(store, prefix, most),
    async deleteAll() {
      for (;;) {
        const records = await store.list(resultCollection, { prefix, limit: recordsAtOnce });
        if (records.length === 0) break;
        for (const { key } of records) await store.delete(resultCollection, key);
      }
      await store.deleteStream(idStream);
    },
  };
}

async function dropRecords(store: Store, prefix: string, most: number): Promise<number> {
  let dropped = 0;
  for (let after: string | undefined; dropped < most; ) {
    const limit = Math.min(recordsAtOnce, most - dropped);
    const records = await store.list(resultCollection, { prefix, after, limit });
    for (const { key, revision } of records) await deleteUnchanged(store, key, revision);
    dropped += records.length;
    after = records.at(-1)?.key;
    if (after === undefined) break;
  }
  return dropped;
}

/** Keeps the record if a session has just started again and rewritten it. */
async function deleteUnchanged(store: Store, key: string, expectedRevision: number): Promise<void> {
  try {
    await store.delete(resultCollection, key, { expectedRevision });
  } catch (error) {
    if (!(error instanceof ContextError && error.code === "store_conflict")) throw error;
  }
}

/** Writes the value and returns the previous one. */
async function exchange(store: Store, key: string, value: string): Promise<string | undefined> {
  let before: string | undefined;
  await store.update(resultCollection, key, (found) => {
    before = found;
    return value;
  });
  return before;
}

/** Returns undefined for a record that cannot be read, because it has no parts to delete. */
function idOfLarge(record: string | undefined): string | undefined {
  const header = record === undefined ? undefined : readHeader(record);
  return header?.parts === undefined ? undefined : header.id;
}

/** The parts of results that are too large for one record. Together they have a maximum of characters. Above it, the
 *  oldest results are dropped, never the newest one. */
export interface ResultParts {
  write(id: string, parts: readonly string[]): Promise<void>;
  /** Returns undefined if the result was dropped. */
  read(id: string, index: number): Promise<string | undefined>;
  drop(id: string): Promise<void>;
}

interface ResultPartsOptions {
  readonly collection: string;
  /** The prefix of the keys. */
  readonly prefix: string;
  readonly mostCharacters: number;
}

/** Oldest first. */
type PartsList = readonly ListedResult[];
type ListedResult = readonly [id: string, characters: number, parts: number];

const isListed = (value: unknown): value is ListedResult =>
  Array.isArray(value) && value.length === 3 && isText(value[0]) && isWhole(value[1]) && isWhole(value[2]);
const isPartsList: ShapeCheck<PartsList> = (value): value is PartsList => Array.isArray(value) && value.every(isListed);

function createResultParts(store: Store, options: ResultPartsOptions): ResultParts {
  const { collection, prefix, mostCharacters } = options;
  const keyOf = (id: string, index: number): string => `${prefix}part/${id}/${index}`;
  /** Changes the list and returns the entries that it no longer has. */
  const changeList = async (change: (list: PartsList) => PartsList): Promise<PartsList> => {
    let gone: PartsList = [];
    await store.update(collection, `${prefix}parts`, (text) => {
      // A damaged list is replaced. Its parts stay in the store until the session is deleted.
      const list = readJson(text, isPartsList) ?? [];
      const kept = change(list);
      gone = list.filter((each) => !kept.includes(each));
      return JSON.stringify(kept);
    });
    return gone;
  };
  const remove = async (gone: PartsList): Promise<void> => {
    for (const [id, , parts] of gone) {
      for (let index = 0; index < parts; index += 1) await store.delete(collection, keyOf(id, index));
    }
  };
  return {
    async write(id, parts) {
      const characters = parts.reduce((sum, part) => sum + part.length, 0);
      // Listed before they are written, so that the parts of a killed process are dropped later too.
      await remove(await changeList((list) => newest([...list, [id, characters, parts.length]], mostCharacters)));
      for (const [index, part] of parts.entries()) await store.put(collection, keyOf(id, index), part);
    },
    read: async (id, index) => (await store.get(collection, keyOf(id, index)))?.value,
    drop: async (id) => remove(await changeList((list) => list.filter(([each]) => each !== id))),
  };
}

function newest(list: PartsList, mostCharacters: number): PartsList {
  let characters = 0;
  const tooMany = list.findLastIndex(([, each], index) => {
    characters += each;
    return characters > mostCharacters && index < list.length - 1;
  });
  return list.slice(tooMany + 1);
}

// One stored result: lines of JSON in one record. They are a header, the fields, then chunks of items. For a large
// result, the record has only the header, and the other lines are parts.

/** A result without its fields and items. */
interface ResultFacts {
  readonly tool: string;
  readonly args: ToolArguments;
  readonly itemsName: string;
  /** The offset of the first stored item. */
  readonly offset: number;
  readonly total?: number | undefined;
  /** The token after the last stored item. */
  readonly nextToken?: string | undefined;
}

export interface ResultToStore extends ResultFacts {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly items: Pick<ItemChunks, "chunks" | "starts">;
}

export interface StoredResult extends ResultFacts {
  /** The JSON of `fields`. */
  readonly fieldsText: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Yields the items from that offset on. */
  items(offset: number): AsyncIterable<unknown>;
}

/** A page of a result that is already stored. */
export interface StoredReference {
  readonly of: string;
  readonly position: Position;
}

interface ResultHeader extends ResultFacts {
  readonly id: string;
  readonly starts: readonly number[];
  /** The first part of each line, and the number of parts. Absent if the record has everything. */
  readonly parts?: { readonly firsts: readonly number[]; readonly count: number } | undefined;
}

/** A result up to this size is one record, which needs one write. */
const recordCharacters = 65_536;
/** A line is longer only if an item is. Writing 100 MB at once would take several times as much memory. */
const partCharacters = 1_048_576;

/** Writes the parts, if there are any, and returns the record. */
async function renderResult(result: ResultToStore, id: string, parts: ResultParts): Promise<string> {
  const { fields, items, ...facts } = result;
  const lines = [JSON.stringify(fields), ...items.chunks];
  const header: ResultHeader = { id, ...facts, starts: items.starts };
  const characters = lines.reduce((sum, line) => sum + line.length, 0);
  if (characters <= recordCharacters) return [JSON.stringify(header), ...lines].join("\n");
  const pieces: string[] = [];
  const firsts: number[] = [];
  for (const line of lines) {
    firsts.push(pieces.length);
    pieces.push(...cut(line));
  }
  await parts.write(id, pieces);
  return JSON.stringify({ ...header, parts: { firsts, count: pieces.length } });
}

function cut(line: string): string[] {
  const count = Math.ceil(line.length / partCharacters);
  return Array.from({ length: count }, (_, index) => line.slice(index * partCharacters, (index + 1) * partCharacters));
}

/** Returns undefined if it cannot be read. */
function readHeader(record: string): ResultHeader | undefined {
  const end = record.indexOf("\n");
  return readJson(end < 0 ? record : record.slice(0, end), isHeader);
}

const isHeader: ShapeCheck<ResultHeader> = objectOf(
  {
    ...{ id: isText, tool: isText, args: isFields, itemsName: isText },
    ...{ offset: isWhole, starts: listOf(isWhole) },
  },
  { total: isWhole, nextToken: isText, parts: objectOf({ firsts: listOf(isWhole), count: isWhole }) },
);

async function readResult(
  record: string,
  { id, starts, parts: apart, ...facts }: ResultHeader,
  parts: ResultParts,
): Promise<StoredResult | "dropped"> {
  const lines = apart === undefined ? record.split("\n").slice(1) : [];
  const readLine = async (index: number): Promise<string | undefined> =>
    apart === undefined ? lines[index] : readParts(parts, id, partsOf(apart, index));
  const fieldsText = await readLine(0);
  if (fieldsText === undefined && apart !== undefined) return "dropped";
  const fields = readJson(fieldsText, isFields);
  if (fieldsText === undefined || fields === undefined) throw damagedResult(id, "its fields are damaged");
  const readChunk = async (chunk: number): Promise<readonly unknown[]> => {
    const items = readJson(await readLine(chunk + 1), isList);
    if (items === undefined) throw damagedResult(id, `chunk ${chunk} of its items is missing or damaged`);
    return items;
  };
  return { ...facts, fields, fieldsText, items: (offset) => itemsFrom(starts, offset, readChunk) };
}

const isList: ShapeCheck<readonly unknown[]> = (value): value is readonly unknown[] => Array.isArray(value);

interface PartRange {
  readonly first: number;
  readonly end: number;
}

function partsOf({ firsts, count }: NonNullable<ResultHeader["parts"]>, line: number): PartRange {
  return { first: firsts[line] ?? count, end: firsts[line + 1] ?? count };
}

/** Returns undefined if a part is missing. */
async function readParts(parts: ResultParts, id: string, { first, end }: PartRange): Promise<string | undefined> {
  const texts: string[] = [];
  for (let index = first; index < end; index += 1) {
    const text = await parts.read(id, index);
    if (text === undefined) return undefined;
    texts.push(text);
  }
  return texts.join("");
}

/** Reads the record of a page. Returns undefined if it cannot be read. */
function readReference(text: string): (StoredReference & { readonly id: string }) | undefined {
  return readJson(text, isReference);
}

const isPosition: ShapeCheck<Position> = (value): value is Position => {
  switch (objectOf({ at: isText })(value) ? value.at : undefined) {
    case "items":
      return objectOf({ offset: isWhole })(value);
    case "text":
    case "json":
      return objectOf({ offset: isWhole, from: isWhole })(value);
    case "fields":
      return objectOf({ from: isWhole })(value);
    default:
      return false;
  }
};
const isReference = objectOf({ id: isText, of: isText, position: isPosition });

function damagedResult(id: string, reason: string): ContextError {
  return new ContextError("store_corrupt", `the stored result ${id} cannot be read: ${reason}`, {
    hint: "Call the tool again.",
  });
}
