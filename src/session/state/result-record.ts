/** One result as the store has it: lines of JSON in one record, namely a header, the fields, then chunks of items. Of a large result the
 *  record has the header alone, and the other lines are parts. */
import { ContextError } from "../../errors.ts";
import { type Check, isFields, isText, isWhole, listOf, objectOf, readJson } from "../../text/index.ts";
import type { Position } from "../pages/continuation.ts";
import type { ToolArguments } from "../tool/budgeted-tool.ts";
import { type ItemChunks, itemsFrom } from "./item-chunks.ts";
import type { ResultParts } from "./result-parts.ts";

/** What is told of a result beside its fields and its items. */
interface ResultFacts {
  readonly tool: string;
  readonly args: ToolArguments;
  readonly itemsName: string;
  /** Of the first item that is stored. */
  readonly offset: number;
  readonly total?: number | undefined;
  /** The token behind the last item that is stored. */
  readonly nextToken?: string | undefined;
}

export interface ResultToStore extends ResultFacts {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly items: Pick<ItemChunks, "chunks" | "starts">;
}

export interface StoredResult extends ResultFacts {
  /** JSON. */
  readonly fieldsText: string;
  readonly fields: Readonly<Record<string, unknown>>;
  /** From that offset on, or from the first. */
  items(offset: number): AsyncIterable<unknown>;
}

/** A page of a result that is stored already. */
export interface StoredReference {
  readonly of: string;
  readonly position: Position;
}

export interface ResultHeader extends ResultFacts {
  readonly id: string;
  readonly starts: readonly number[];
  /** Which part each line begins with, and how many there are. Absent where all stands in the record. */
  readonly parts?: { readonly firsts: readonly number[]; readonly count: number } | undefined;
}

/** A result up to this size is one record, and so one write. */
const recordCharacters = 65_536;
/** A line is longer only where an item is: writing 100 MB at once would take several times as much memory. */
const partCharacters = 1_048_576;

/** Writes the parts, if there are any, and gives what is to be the record. */
export async function renderResult(result: ResultToStore, id: string, parts: ResultParts): Promise<string> {
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
  return Array.from({ length: count }, (_, index) =>
    line.slice(index * partCharacters, (index + 1) * partCharacters),
  );
}

/** Undefined where it cannot be read. */
export function readHeader(record: string): ResultHeader | undefined {
  const end = record.indexOf("\n");
  return readJson(end < 0 ? record : record.slice(0, end), isHeader);
}

const isHeader: Check<ResultHeader> = objectOf(
  {
    ...{ id: isText, tool: isText, args: isFields, itemsName: isText },
    ...{ offset: isWhole, starts: listOf(isWhole) },
  },
  { total: isWhole, nextToken: isText, parts: objectOf({ firsts: listOf(isWhole), count: isWhole }) },
);

export async function readResult(
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

const isList: Check<readonly unknown[]> = (value): value is readonly unknown[] => Array.isArray(value);

interface PartRange {
  readonly first: number;
  readonly end: number;
}

function partsOf({ firsts, count }: NonNullable<ResultHeader["parts"]>, line: number): PartRange {
  return { first: firsts[line] ?? count, end: firsts[line + 1] ?? count };
}

/** Undefined where one is missing. */
async function readParts(
  parts: ResultParts,
  id: string,
  { first, end }: PartRange,
): Promise<string | undefined> {
  const texts: string[] = [];
  for (let index = first; index < end; index += 1) {
    const text = await parts.read(id, index);
    if (text === undefined) return undefined;
    texts.push(text);
  }
  return texts.join("");
}

/** A page of a stored result, as it is stored. Undefined where it cannot be read. */
export function readReference(text: string): (StoredReference & { readonly id: string }) | undefined {
  return readJson(text, isReference);
}

const isPosition: Check<Position> = (value): value is Position => {
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

export function damagedResult(id: string, reason: string): ContextError {
  return new ContextError("store_corrupt", `the stored result ${id} cannot be read: ${reason}`, {
    hint: "Call the tool again.",
  });
}
