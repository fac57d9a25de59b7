/** Reads the transcript that Claude Code writes: a tree of rows, one JSON line each. A rewind leaves the old rows in the
 *  file and goes on from an earlier one, so what the model sees is the branch of the last row. */
import { open } from "node:fs/promises";
import { textsIn } from "../messages/index.ts";
import { isPlainObject } from "../text/index.ts";

/** A block of a message in the transcript. */
export type TranscriptBlock = Readonly<Record<string, unknown>>;

export interface Transcript {
  /** Reads what was added since the last call. */
  read(): Promise<void>;
  /** Returns the ids of all calls in the file, and of those on the branch of the last row. */
  calls(): Readonly<Record<"all" | "onBranch", ReadonlySet<unknown>>>;
  /** Returns the blocks of the branch up to the last compaction, oldest first. */
  blocks(): TranscriptBlock[];
}

interface Row {
  readonly parent: string | undefined;
  readonly blocks: readonly TranscriptBlock[];
}

/** A longer transcript is not worth the time: then nothing counts as held. */
const mostBytes = 100_000_000;

export function createTranscript(path: string): Transcript {
  const rows = new Map<string, Row>();
  let offset = 0;
  let last: string | undefined;
  const add = (line: string): void => {
    const row = parse(line);
    const { uuid, parentUuid, isSidechain } = row;
    if (typeof uuid !== "string" || isSidechain === true) return;
    rows.set(uuid, { parent: typeof parentUuid === "string" ? parentUuid : undefined, blocks: blocksOf(row) });
    last = uuid;
  };
  const branch = (): Row[] => {
    const found: Row[] = [];
    const seen = new Set<string>();
    for (let uuid = last; uuid !== undefined && !seen.has(uuid); ) {
      seen.add(uuid);
      const row = rows.get(uuid);
      if (row !== undefined) found.push(row);
      uuid = row?.parent;
    }
    return found.reverse();
  };
  return {
    async read() {
      const added = await readFrom(path, offset);
      offset += added.length;
      const lines = added.toString("utf8").split("\n");
      for (const line of lines) add(line);
    },
    calls: () => ({ all: callsIn([...rows.values()]), onBranch: callsIn(branch()) }),
    blocks: () => branch().flatMap(({ blocks }) => blocks),
  };
}

function callsIn(rows: readonly Row[]): Set<unknown> {
  return new Set(rows.flatMap(({ blocks }) => blocks.flatMap(({ type, id }) => (type === "tool_use" ? [id] : []))));
}

async function readFrom(path: string, offset: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size > mostBytes) throw new RangeError(`the transcript has ${size} bytes`);
    const bytes = Buffer.alloc(Math.max(0, size - offset));
    const { bytesRead } = await file.read(bytes, 0, bytes.length, offset);
    // A character may be written in two parts, so only whole lines are taken.
    return bytes.subarray(0, bytes.subarray(0, bytesRead).lastIndexOf(lineFeed) + 1);
  } finally {
    await file.close();
  }
}

const lineFeed = 0x0a;

function parse(line: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(line)) as Readonly<Record<string, unknown>>;
  } catch {
    return {};
  }
}

function blocksOf({ message }: Readonly<Record<string, unknown>>): TranscriptBlock[] {
  const content: unknown = isPlainObject(message) ? (message as TranscriptBlock).content : undefined;
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.filter(isPlainObject).map((block) => withoutResult(block as TranscriptBlock));
}

/** Of a result only our notes matter. The whole text would fill the memory. */
function withoutResult(block: TranscriptBlock): TranscriptBlock {
  if (block.type !== "tool_result") return block;
  const notes = textsIn(block.content).flatMap((text) => text.match(/\bplimsoll recall [a-z2-7]{10}\b/g) ?? []);
  return { type: "tool_result", tool_use_id: block.tool_use_id, content: notes.join("\n") };
}
