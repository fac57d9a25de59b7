/** Results in the store. A session has a fixed number of places. A result overwrites the one that is that many steps
 *  older. So the store does not grow with the steps of a session, and no search for old results is needed. */

import { createHash } from "../../core/crypto.ts";
import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import {
  createOriginalId,
  isFields,
  isOriginalId,
  isText,
  isWhole,
  listOf,
  objectOf,
  readJson,
  type ShapeCheck,
} from "../../core/text/index.ts";
import type { ToolArguments, ToolFailure } from "./budgeted-tool.ts";
import type { Position } from "./continuations.ts";
import { type ItemChunks, readChunks } from "./item-chunks.ts";

export interface StoredResults {
  /** Returns an id that no other call has, in this process or another. */
  claimId(): Promise<string>;
  save(id: string, result: ResultToStore | StoredReference): Promise<void>;
  /** Returns `dropped` if later results took its place. Rejects if its record is damaged. */
  load(id: string): Promise<StoredResult | StoredReference | "dropped" | undefined>;
  /** Returns the whole result of an id, which may be the id of a later page. Returns a failure if it is not stored. */
  find(id: string): Promise<FoundResult | ToolFailure>;
  /** Deletes at most that many records. Keeps a record that is rewritten at the same time. Returns how many it found. */
  drop(most: number): Promise<number>;
  /** Deletes all results and the record of their ids. */
  deleteAll(): Promise<void>;
}

export const storedLimits = {
  /** How many steps (calls and pages) a result is kept at least. */
  steps: 1_000 as number,
  /** Characters of all results together that are too large for one record. */
  characters: 200_000_000 as number,
  /** How many days the results of a session are kept after its last call. */
  unusedDays: 30,
};

export const resultCollection = "session-results";

/** A record can have a quarter of a megabyte. */
const maxAtOnce = 20;

/** `groupId` is the id of the session that the results are stored under. */
export function createStoredResults(
  store: Store,
  groupId: string,
  { steps, characters }: Pick<typeof storedLimits, "steps" | "characters"> = storedLimits,
): StoredResults {
  const prefix = `${groupId}/`;
  const numbers = createNumberedIds(groupId);
  const numberOf = (id: string): number => numbers.numberOf(id) ?? 0;
  // A number is a sequence of this stream. Its entries are not needed.
  const idStream = `session/${groupId}/ids`;
  const parts = createResultParts(store, { prefix, maxCharacters: characters });
  const placeOf = (kind: "result" | "page", id: string): string => `${prefix}${kind}/${numberOf(id) % steps}`;
  const read = async (kind: "result" | "page", id: string): Promise<string | undefined> =>
    (await store.get(resultCollection, placeOf(kind, id)))?.value;
  const claimed: number[] = [];
  let ids = 0;
  const load: StoredResults["load"] = async (id) => {
    const number = numbers.numberOf(id);
    if (number === undefined) return undefined;
    // Earlier versions named a result by its number alone, and transcripts still have such ids.
    const isWanted = (found: string): boolean => found === id || (id === `r${number}` && numberOf(found) === number);
    const result = await read("result", id);
    const record = result && readHeader(result);
    if (record && isWanted(record.id)) return openResult(result, record, parts);
    const text = await read("page", id);
    const page = text && readJson(text, isReference);
    if (page && isWanted(page.id)) return page;
    const others = [record, page].filter((found) => typeof found === "object");
    const stored = [result, text].filter((found) => found !== undefined);
    if (others.length < stored.length) throw damagedResult(id, "its record is damaged");
    return others.some((other) => numberOf(other.id) > number) ? "dropped" : undefined;
  };
  return {
    async claimId() {
      if (claimed.length === 0) {
        // Ids are claimed several at a time, which saves a write per call. Unused ids are lost but take places, so a
        // session claims at most as many as it already had.
        const count = Math.min(Math.max(ids, 1), 16);
        ids += count;
        const last = await store.append(idStream, new Array<string>(count).fill(""));
        // Empties the stream of ids now and then.
        if (last % 128 < count) await store.trimStream(idStream, last);
        for (let number = last - count + 1; number <= last; number += 1) claimed.push(number);
      }
      return numbers.create(claimed.shift()!);
    },
    async save(id, result) {
      const isPage = "of" in result;
      const value = isPage ? JSON.stringify({ id, ...result }) : await renderResult(id, result, parts);
      let before: string | undefined;
      await store.update(resultCollection, placeOf(isPage ? "page" : "result", id), (found) => {
        before = found;
        return value;
      });
      // A record that cannot be read has no parts to delete.
      const replaced = before === undefined ? undefined : readHeader(before);
      if (replaced?.parts !== undefined) await parts.drop(replaced.id);
    },
    load,
    find: (id) => findResult(load, id),
    drop: (most) => dropRecords(store, prefix, most),
    async deleteAll() {
      for (;;) {
        const records = await store.list(resultCollection, { prefix, limit: maxAtOnce });
        if (records.length === 0) break;
        for (const { key } of records) await store.delete(resultCollection, key);
      }
      await store.deleteStream(idStream);
    },
  };
}

/** Ids that contain a number, so that the place of a result is found without an index. Five of the 16 characters are the
 *  number, mixed with a hash of the group. So no two results of a group share an id, and ids of different groups differ
 *  like random ones. Numbers above 33,554,431 start again from 0. */
export function createNumberedIds(groupId: string): {
  create(number: number): string;
  /** Returns the number in an id of this group, or in an older id such as `r12`; undefined if it is no id. For an id of
   *  another group the number means nothing, so compare the id of what is found. */
  numberOf(id: string): number | undefined;
} {
  // As in earlier versions, whose ids had 10 characters and the number in the same place.
  const mask =
    Number.parseInt(
      createHash("sha256")
        .update(JSON.stringify(["session", groupId, ""]))
        .digest("hex")
        .slice(0, 8),
      16,
    ) % numberRange;
  return {
    create(number) {
      const name = createOriginalId(["session", groupId, number]);
      let [rest, digits] = [(number % numberRange) ^ mask, ""];
      for (; digits.length < numberDigits; rest = Math.floor(rest / 32)) digits = alphabet[rest % 32] + digits;
      return name.slice(numberDigits) + digits;
    },
    numberOf(id) {
      if (!isOriginalId(id)) return undefined;
      if (id.startsWith("r") && id.length < 10) return Number(id.slice(1));
      return [...id.slice(-numberDigits)].reduce((value, digit) => value * 32 + alphabet.indexOf(digit), 0) ^ mask;
    },
  };
}

const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
const numberDigits = 5;
const numberRange = 32 ** numberDigits;

async function dropRecords(store: Store, prefix: string, most: number): Promise<number> {
  let dropped = 0;
  for (let after: string | undefined; dropped < most; ) {
    const limit = Math.min(maxAtOnce, most - dropped);
    const records = await store.list(resultCollection, { prefix, after, limit });
    for (const { key, revision } of records) {
      // Keeps the record if a session has just started again and rewritten it.
      try {
        await store.delete(resultCollection, key, { expectedRevision: revision });
      } catch (error) {
        if (!(error instanceof ContextError && error.code === "store_conflict")) throw error;
      }
    }
    dropped += records.length;
    after = records.at(-1)?.key;
    if (after === undefined) break;
  }
  return dropped;
}

interface FoundResult {
  /** The id of the whole result. */
  readonly id: string;
  readonly stored: StoredResult;
  /** Where the page began, if the id is the id of a later page. */
  readonly position?: Position;
}

async function findResult(load: StoredResults["load"], id: string): Promise<FoundResult | ToolFailure> {
  const found = await load(id);
  if (found === undefined || found === "dropped") return explainMissing(id, found);
  if (!("of" in found)) return { id, stored: found };
  const stored = await load(found.of);
  if (stored === undefined || stored === "dropped") return explainMissing(found.of, stored);
  if ("of" in stored) return explainMissing(found.of, undefined);
  return { id: found.of, stored, position: found.position };
}

function explainMissing(id: string, why: "dropped" | undefined): ToolFailure {
  if (why === undefined) {
    const hint = `A session keeps its results for ${storedLimits.unusedDays} days after its last call. Call the tool again.`;
    return { code: "unknown_result", message: `there is no stored result ${id}`, hint };
  }
  const { steps, characters } = storedLimits;
  const kept = `A session keeps its results for ${steps} steps, large ones up to ${characters / 1e6} MB together.`;
  return {
    code: "dropped_result",
    message: `the result ${id} is no longer stored`,
    hint: `${kept} Call the tool again.`,
  };
}

/** Oldest first. */
type PartsList = readonly (readonly [id: string, characters: number, parts: number])[];

/** The parts of results that are too large for one record. Together they have a maximum of characters. Above it, the
 *  oldest results are dropped, never the newest one. `prefix` is the beginning of the keys. */
function createResultParts(
  store: Store,
  { prefix, maxCharacters }: { readonly prefix: string; readonly maxCharacters: number },
) {
  const isPartsList: ShapeCheck<PartsList> = listOf(
    (each): each is PartsList[number] =>
      Array.isArray(each) && each.length === 3 && isText(each[0]) && isWhole(each[1]) && isWhole(each[2]),
  );
  const keyOf = (id: string, index: number): string => `${prefix}part/${id}/${index}`;
  /** Changes the list and returns the entries that it no longer has. */
  const changeList = async (change: (list: PartsList) => PartsList): Promise<PartsList> => {
    let gone: PartsList = [];
    await store.update(resultCollection, `${prefix}parts`, (text) => {
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
      for (let index = 0; index < parts; index += 1) await store.delete(resultCollection, keyOf(id, index));
    }
  };
  return {
    async write(id: string, parts: readonly string[]): Promise<void> {
      const characters = parts.reduce((sum, part) => sum + part.length, 0);
      // Listed before they are written, so that the parts of a killed process are dropped later too.
      const gone = await changeList((before) => {
        const list: PartsList = [...before, [id, characters, parts.length]];
        let sum = 0;
        // Counts from the newest one, which always stays.
        const tooMany = list.findLastIndex(([, each], index) => {
          sum += each;
          return sum > maxCharacters && index < list.length - 1;
        });
        return list.slice(tooMany + 1);
      });
      await remove(gone);
      for (const [index, part] of parts.entries()) await store.put(resultCollection, keyOf(id, index), part);
    },
    /** Returns undefined if the result was dropped. */
    read: async (id: string, index: number): Promise<string | undefined> =>
      (await store.get(resultCollection, keyOf(id, index)))?.value,
    drop: async (id: string): Promise<void> => remove(await changeList((list) => list.filter(([each]) => each !== id))),
  };
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

interface ResultHeader extends ResultFacts {
  readonly id: string;
  readonly starts: readonly number[];
  /** The first part of each line, and the number of parts. Absent if the record has everything. */
  readonly parts?: { readonly firsts: readonly number[]; readonly count: number } | undefined;
}

/** A line is longer only if an item is. Writing 100 MB at once would take several times as much memory. */
const maxPartCharacters = 1_048_576;

/** Writes the parts, if there are any, and returns the record. */
async function renderResult(
  id: string,
  result: ResultToStore,
  parts: ReturnType<typeof createResultParts>,
): Promise<string> {
  const { fields, items, ...facts } = result;
  const lines = [JSON.stringify(fields), ...items.chunks];
  const header: ResultHeader = { id, ...facts, starts: items.starts };
  const characters = lines.reduce((sum, line) => sum + line.length, 0);
  // A result up to this size is one record, which needs one write.
  if (characters <= 65_536) return [JSON.stringify(header), ...lines].join("\n");
  const pieces: string[] = [];
  const firsts: number[] = [];
  for (const line of lines) {
    firsts.push(pieces.length);
    const count = Math.ceil(line.length / maxPartCharacters);
    pieces.push(
      ...Array.from({ length: count }, (_, index) =>
        line.slice(index * maxPartCharacters, (index + 1) * maxPartCharacters),
      ),
    );
  }
  await parts.write(id, pieces);
  return JSON.stringify({ ...header, parts: { firsts, count: pieces.length } });
}

const isHeader: ShapeCheck<ResultHeader> = objectOf(
  {
    id: isText,
    tool: isText,
    args: isFields,
    itemsName: isText,
    offset: isWhole,
    starts: listOf(isWhole),
  },
  { total: isWhole, nextToken: isText, parts: objectOf({ firsts: listOf(isWhole), count: isWhole }) },
);

/** Returns undefined if the record cannot be read. */
function readHeader(record: string): ResultHeader | undefined {
  const end = record.indexOf("\n");
  return readJson(end < 0 ? record : record.slice(0, end), isHeader);
}

/** Rejects if the fields are damaged. */
async function openResult(
  record: string,
  { id, starts, parts: apart, ...facts }: ResultHeader,
  parts: ReturnType<typeof createResultParts>,
): Promise<StoredResult | "dropped"> {
  const lines = apart === undefined ? record.split("\n").slice(1) : [];
  /** Returns undefined if a part of the line is missing. */
  const readLine = async (index: number): Promise<string | undefined> => {
    if (apart === undefined) return lines[index];
    const { firsts, count } = apart;
    const texts: string[] = [];
    for (let part = firsts[index] ?? count; part < (firsts[index + 1] ?? count); part += 1) {
      const text = await parts.read(id, part);
      if (text === undefined) return undefined;
      texts.push(text);
    }
    return texts.join("");
  };
  const fieldsText = await readLine(0);
  if (fieldsText === undefined && apart !== undefined) return "dropped";
  const fields = readJson(fieldsText, isFields);
  if (fieldsText === undefined || fields === undefined) throw damagedResult(id, "its fields are damaged");
  const readChunk = async (chunk: number): Promise<readonly unknown[]> => {
    const items = readJson(await readLine(chunk + 1), (value) => Array.isArray(value));
    if (items === undefined) throw damagedResult(id, `chunk ${chunk} of its items is missing or damaged`);
    return items;
  };
  return { ...facts, fields, fieldsText, items: (offset) => readChunks(starts, offset, readChunk) };
}

function damagedResult(id: string, reason: string): ContextError {
  return new ContextError("store_corrupt", `the stored result ${id} cannot be read: ${reason}`, {
    hint: "Call the tool again.",
  });
}

/** A page of a result that is already stored. */
export interface StoredReference {
  readonly of: string;
  readonly position: Position;
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
