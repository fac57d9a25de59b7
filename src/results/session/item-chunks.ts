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
      yield* readChunks(starts.slice(1), 0, (chunk) => JSON.parse(chunks[chunk + 1]!) as unknown[]);
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
export async function* readChunks(
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
