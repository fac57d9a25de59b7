import { plainItem } from "./envelope.ts";

/** Items as they are stored: chunks of JSON, each encoded once. A page reads only the chunks that it needs, so its cost
 *  does not depend on the size of the result. */
export interface ItemChunks {
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

/** Characters of JSON. A page of the usual size needs one or two chunks, and a result of 100 MB has 400. */
const chunkCharacters = 262_144;

/** Reads items to their end and encodes them. `offset` is the offset of the first item. */
export async function chunkItems(
  items: AsyncIterable<unknown> | Iterable<unknown>,
  offset: number,
): Promise<ItemChunks> {
  const writer = createWriter(offset);
  try {
    // Awaiting each of ten million lines would take longer than everything else.
    if (isAsync(items)) for await (const item of items) writer.add(item);
    else for (const item of items) writer.add(item);
  } catch (failure) {
    return { ...writer.end(), failure };
  }
  return writer.end();
}

/** Yields the items from that offset on. */
export async function* itemsFrom(
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

interface Writer {
  add(item: unknown): void;
  end(): ItemChunks;
}

function createWriter(offset: number): Writer {
  const chunks: string[] = [];
  const starts: number[] = [];
  const first: unknown[] = [];
  let open = createChunk();
  let count = 0;
  const close = (): void => {
    if (open.characters() > 0) chunks.push(open.toJson());
    open = createChunk();
  };
  return {
    add(item) {
      const json = typeof item === "string" ? undefined : plainItem(item).json;
      const { length } = json ?? (item as string);
      if (open.characters() > 0 && open.characters() + length > chunkCharacters) close();
      if (open.characters() === 0) starts.push(offset + count);
      if (starts.length === 1) first.push(item);
      if (json === undefined) open.addString(item as string);
      else open.addJson(json);
      count += 1;
    },
    end() {
      close();
      return { chunks, starts, count, items: () => givenItems({ chunks, starts, first }) };
    },
  };
}

interface GivenItems extends Pick<ItemChunks, "chunks" | "starts"> {
  /** The items of the first chunk, which need not be parsed. */
  readonly first: readonly unknown[];
}

async function* givenItems({ chunks, starts, first }: GivenItems): AsyncGenerator<unknown> {
  yield* first;
  yield* itemsFrom(starts.slice(1), 0, (chunk) => JSON.parse(chunks[chunk + 1]!) as unknown[]);
}

interface Chunk {
  addString(text: string): void;
  addJson(json: string): void;
  /** Including separators, so that an empty string counts too. */
  characters(): number;
  toJson(): string;
}

/** Encodes adjacent strings together, because there may be millions of short ones. */
function createChunk(): Chunk {
  const parts: string[] = [];
  let strings: string[] = [];
  let characters = 0;
  const closeStrings = (): void => {
    if (strings.length > 0) parts.push(JSON.stringify(strings).slice(1, -1));
    strings = [];
  };
  return {
    addString(text) {
      strings.push(text);
      characters += text.length + 1;
    },
    addJson(json) {
      closeStrings();
      parts.push(json);
      characters += json.length + 1;
    },
    characters: () => characters,
    toJson() {
      if (parts.length === 0) return JSON.stringify(strings);
      closeStrings();
      return `[${parts.join(",")}]`;
    },
  };
}

function isAsync(items: AsyncIterable<unknown> | Iterable<unknown>): items is AsyncIterable<unknown> {
  return typeof (items as Partial<AsyncIterable<unknown>>)[Symbol.asyncIterator] === "function";
}
