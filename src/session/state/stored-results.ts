/** Results in the store, one stream each: a header, the JSON of the fields, then chunks of items. A page reads the chunks it needs, so
 *  that a result of any size is paged at the price of a page, and one append makes it whole or not at all. */
import { ContextError } from "../../errors.ts";
import type { Store } from "../../store/index.ts";
import type { ToolArguments } from "../budgeted-tool.ts";
import type { Position } from "../pages/continuation.ts";
import { plainItem } from "../pages/read-items.ts";

export interface StoredResult {
  readonly tool: string;
  readonly args: ToolArguments;
  readonly itemsName: string;
  /** Of the first item that is stored. */
  readonly offset: number;
  readonly total?: number | undefined;
  /** The token behind the last item that is stored. */
  readonly nextToken?: string | undefined;
  fieldsText(): Promise<string>;
  /** From that offset on, or from the first. */
  items(offset: number): AsyncIterable<unknown>;
}

export interface ResultToStore extends Omit<StoredResult, "fieldsText" | "items"> {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly items: readonly unknown[];
}

/** A page of a result that is stored already. */
export interface StoredReference {
  readonly of: string;
  readonly position: Position;
}

export interface StoredResults {
  /** Never one that another call has, of this process or another. */
  claimId(): Promise<string>;
  save(id: string, result: ResultToStore | StoredReference): Promise<void>;
  load(id: string): Promise<StoredResult | StoredReference | undefined>;
}

type Header = Omit<StoredResult, "fieldsText" | "items"> & {
  /** The offset of each chunk's first item. */
  readonly starts: readonly number[];
};

/** Characters of JSON. A page of the usual size needs one or two of them. */
const chunkCharacters = 65_536;
const entriesBeforeItems = 2;
/** Ids are claimed some at a time, which saves a write a call; those that a process leaves unused are never given. */
const idBlock = 16;

export function createStoredResults(store: Store, sessionId: string): StoredResults {
  const streamOf = (name: string): string => `session/${sessionId}/${name}`;
  const claimed: number[] = [];
  return {
    async claimId() {
      if (claimed.length === 0) {
        const last = await store.append(streamOf("ids"), new Array<string>(idBlock).fill(""));
        for (let number = last - idBlock + 1; number <= last; number += 1) claimed.push(number);
      }
      return `r${claimed.shift()!}`;
    },
    async save(id, result) {
      await store.append(streamOf(id), "of" in result ? [JSON.stringify(result)] : toEntries(result));
    },
    async load(id) {
      // Beside the results the session has other streams.
      if (!/^r\d{1,15}$/.test(id)) return undefined;
      const [first] = await store.read(streamOf(id), { limit: 1 });
      if (first === undefined) return undefined;
      const header = parseHeader(first.value, id);
      if ("of" in header) return header;
      const readEntry = async (index: number): Promise<string> => {
        const [entry] = await store.read(streamOf(id), { after: index, limit: 1 });
        if (entry === undefined) throw damaged(id, `entry ${index + 1} is missing`);
        return entry.value;
      };
      const { starts, ...facts } = header;
      return {
        ...facts,
        fieldsText: () => readEntry(1),
        items: (offset) => readFrom(starts, offset, readEntry),
      };
    },
  };
}

function toEntries({ fields, items, ...facts }: ResultToStore): string[] {
  const starts: number[] = [];
  const chunks: string[] = [];
  let chunk: string[] = [];
  let characters = 0;
  const close = (): void => {
    if (chunk.length > 0) chunks.push(`[${chunk.join(",")}]`);
    [chunk, characters] = [[], 0];
  };
  for (const [index, item] of items.entries()) {
    const { json } = plainItem(item);
    if (characters + json.length > chunkCharacters) close();
    if (chunk.length === 0) starts.push(facts.offset + index);
    chunk.push(json);
    characters += json.length;
  }
  close();
  const header: Header = { ...facts, starts };
  return [JSON.stringify(header), JSON.stringify(fields), ...chunks];
}

async function* readFrom(
  starts: readonly number[],
  offset: number,
  readEntry: (index: number) => Promise<string>,
): AsyncGenerator<unknown> {
  const first = Math.max(
    0,
    starts.findLastIndex((start) => start <= offset),
  );
  for (let chunk = first; chunk < starts.length; chunk += 1) {
    const items = JSON.parse(await readEntry(chunk + entriesBeforeItems)) as unknown[];
    yield* items.slice(Math.max(0, offset - starts[chunk]!));
  }
}

function parseHeader(text: string, id: string): Header | StoredReference {
  try {
    return JSON.parse(text) as Header | StoredReference;
  } catch (cause) {
    throw damaged(id, "its header is no JSON", cause);
  }
}

function damaged(id: string, reason: string, cause?: unknown): ContextError {
  return new ContextError("store_corrupt", `the stored result ${id} cannot be read: ${reason}`, {
    hint: "Call the tool again.",
    cause,
  });
}
