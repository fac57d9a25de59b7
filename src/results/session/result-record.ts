/** One stored result: lines of JSON in one record. They are a header, the fields, then chunks of items. For a large
 *  result, the record has only the header, and the other lines are parts. */
import { ContextError } from "../../core/errors.ts";
import { isFields, isText, isWhole, listOf, objectOf, readJson, type ShapeCheck } from "../../core/text/index.ts";
import type { ToolArguments } from "./budgeted-tool.ts";
import { plainItem } from "./envelope.ts";

/** The parts of results that are too large for one record. Together they have a maximum of characters. Above it, the
 *  oldest results are dropped, never the newest one. */
export interface ResultParts {
  write(id: string, parts: readonly string[]): Promise<void>;
  /** Returns undefined if the result was dropped. */
  read(id: string, index: number): Promise<string | undefined>;
  drop(id: string): Promise<void>;
}

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
export async function renderResult(id: string, result: ResultToStore, parts: ResultParts): Promise<string> {
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
export function readHeader(record: string): ResultHeader | undefined {
  const end = record.indexOf("\n");
  return readJson(end < 0 ? record : record.slice(0, end), isHeader);
}

/** Rejects if the fields are damaged. */
export async function openResult(
  record: string,
  { id, starts, parts: apart, ...facts }: ResultHeader,
  parts: ResultParts,
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
  return { ...facts, fields, fieldsText, items: (offset) => readItems(starts, offset, readChunk) };
}

export function damagedResult(id: string, reason: string): ContextError {
  return new ContextError("store_corrupt", `the stored result ${id} cannot be read: ${reason}`, {
    hint: "Call the tool again.",
  });
}

/** Items as they are stored: chunks of JSON, each encoded once. A page reads only the chunks that it needs, so its cost
 *  does not depend on the size of the result. */
interface ItemChunks {
  /** Each chunk is a JSON array. */
  readonly chunks: readonly string[];
  /** The offset of each chunk's first item. */
  readonly starts: readonly number[];
  readonly count: number;
  /** Yields the items again. */
  items(): AsyncGenerator<unknown>;
  /** Why the items ended early. */
  readonly failure?: unknown;
}

/** Reads items to their end and encodes them. `offset` is the offset of the first item. */
export async function chunkItems(
  items: AsyncIterable<unknown> | Iterable<unknown>,
  offset: number,
): Promise<ItemChunks> {
  const chunks: string[] = [];
  const starts: number[] = [];
  const first: unknown[] = [];
  let open = createChunk();
  let count = 0;
  const close = (): void => {
    if (open.characters() > 0) chunks.push(open.toJson());
    open = createChunk();
  };
  const add = (item: unknown): void => {
    const json = typeof item === "string" ? undefined : plainItem(item).json;
    const { length } = json ?? (item as string);
    // Characters of JSON. A page of the usual size needs one or two chunks, and a result of 100 MB has 400.
    const maxChunkCharacters = 262_144;
    if (open.characters() > 0 && open.characters() + length > maxChunkCharacters) close();
    if (open.characters() === 0) starts.push(offset + count);
    if (starts.length === 1) first.push(item);
    if (json === undefined) open.addString(item as string);
    else open.addJson(json);
    count += 1;
  };
  let failure: unknown;
  try {
    // Awaiting each of ten million lines would take longer than everything else.
    if ((items as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] !== undefined) {
      for await (const item of items) add(item);
    } else for (const item of items as Iterable<unknown>) add(item);
  } catch (error) {
    failure = error;
  }
  close();
  return {
    chunks,
    starts,
    count,
    failure,
    async *items() {
      // The items of the first chunk need not be parsed.
      yield* first;
      yield* readItems(starts.slice(1), 0, (chunk) => JSON.parse(chunks[chunk + 1]!) as unknown[]);
    },
  };
}

/** Encodes adjacent strings together, because there may be millions of short ones. */
function createChunk() {
  const parts: string[] = [];
  let strings: string[] = [];
  let characters = 0;
  const closeStrings = (): void => {
    if (strings.length > 0) parts.push(JSON.stringify(strings).slice(1, -1));
    strings = [];
  };
  return {
    addString(text: string): void {
      strings.push(text);
      characters += text.length + 1;
    },
    addJson(json: string): void {
      closeStrings();
      parts.push(json);
      characters += json.length + 1;
    },
    /** Including separators, so that an empty string counts too. */
    characters: (): number => characters,
    toJson(): string {
      if (parts.length === 0) return JSON.stringify(strings);
      closeStrings();
      return `[${parts.join(",")}]`;
    },
  };
}

/** Yields the items from that offset on. */
async function* readItems(
  starts: readonly number[],
  offset: number,
  readChunk: (index: number) => Promise<readonly unknown[]> | readonly unknown[],
): AsyncGenerator<unknown> {
  const first = Math.max(
    0,
    starts.findLastIndex((start) => start <= offset),
  );
  for (let chunk = first; chunk < starts.length; chunk += 1) {
    const items = await readChunk(chunk);
    yield* items.slice(Math.max(0, offset - starts[chunk]!));
  }
}
