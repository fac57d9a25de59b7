/** Reads the transcript that Claude Code writes: a tree of rows, one JSON line each. A rewind leaves the old rows in the
 *  file and goes on from an earlier one, so what the model sees is the branch of the last row. */
import { closeSync } from "node:fs";
import { type FoundNote, findNotes } from "../../conversation/intake/index.ts";
import { ContextError } from "../../core/errors.ts";
import { textsIn } from "../../core/messages/index.ts";
import { isPlainObject, readJson } from "../../core/text/index.ts";
import { openForeign } from "../../host/index.ts";
import { readLines } from "../../recordings/index.ts";

/** A block of a message in the transcript. */
export type TranscriptBlock = Readonly<Record<string, unknown>>;

export interface Transcript {
  /** Reads what was added since the last call. */
  read(): Promise<void>;
  /** Returns whether the context has the result of a call; undefined if the file does not say, because the client writes
   *  it with a delay. */
  resultState(): (callId: string) => boolean | undefined;
  /** Returns the blocks of the branch up to the last compaction, oldest first. */
  blocks(): TranscriptBlock[];
}

interface Row {
  readonly parent: string | undefined;
  /** The id of the model's answer. Parallel calls of one answer are rows of their own, and so are their results. */
  readonly answer: unknown;
  /** In milliseconds since 1970; NaN if the row does not say. */
  readonly time: number;
  readonly blocks: readonly TranscriptBlock[];
}

export function createTranscript(path: string): Transcript {
  const rows = new Map<string, Row>();
  let offset = 0;
  let last: string | undefined;
  const add = (line: string): true => {
    const row = readJson(line, isPlainObject) ?? {};
    const { uuid, parentUuid, isSidechain, timestamp } = row;
    if (typeof uuid === "string" && isSidechain !== true) {
      const parent = typeof parentUuid === "string" ? parentUuid : undefined;
      const time = Date.parse(String(timestamp));
      rows.set(uuid, { parent, answer: Object(row.message).id, time, blocks: readBlocks(row) });
      last = uuid;
    }
    return true;
  };
  return {
    async read() {
      const file = openForeign(path);
      if ("reason" in file) throw new ContextError("unreadable_input", file.reason, { file: path });
      const { descriptor, stats } = file;
      try {
        // A longer transcript is not worth the time: then nothing counts as sent.
        if (stats.size > 100_000_000) throw new RangeError(`the transcript has ${stats.size} bytes`);
        offset = readLines(descriptor, { start: offset, size: stats.size }, add).offset;
      } finally {
        closeSync(descriptor);
      }
    },
    resultState() {
      const [all, here] = [collectIds([...rows.values()]), collectIds(afterPause(findBranch(rows, last)))];
      return (id) => {
        if (here.results.has(id)) return true;
        if (all.results.has(id)) return false;
        return here.calls.has(id) || !all.calls.has(id) ? undefined : false;
      };
    },
    blocks: () => findBranch(rows, last).flatMap(({ blocks }) => blocks),
  };
}

/** Returns the last row and its ancestors, oldest first, and the other rows of the same answers with their results.
 *  Parallel calls of one answer are separate rows, and only one of them is an ancestor. */
function findBranch(rows: ReadonlyMap<string, Row>, last: string | undefined): Row[] {
  const ancestors = new Set<Row>();
  for (let row = rows.get(last ?? ""); row !== undefined && !ancestors.has(row); row = rows.get(row.parent ?? ""))
    ancestors.add(row);
  const answers = new Set<unknown>([...ancestors].flatMap(({ answer }) => answer ?? []));
  const isOfAnswer = (row: Row): boolean => ancestors.has(row) || answers.has(row.answer);
  const all = [...rows.values()];
  const made = all.filter(isOfAnswer).flatMap(({ blocks }) => blocks);
  const calls = new Set(made.flatMap(({ type, id }) => (type === "tool_use" ? [id] : [])));
  const isResult = ({ type, tool_use_id: id }: TranscriptBlock): boolean => type === "tool_result" && calls.has(id);
  return all.filter((row) => isOfAnswer(row) || row.blocks.some(isResult));
}

/** After a pause of 65 minutes, the client may clear all but the newest results, and the transcript does not say so
 *  (2.1.325). */
function afterPause(branch: readonly Row[]): readonly Row[] {
  const start = branch.findLastIndex(({ time }, index) => time - (branch[index - 1]?.time ?? time) >= clearingPauseMs);
  return start < 0 ? branch : branch.slice(start);
}

const clearingPauseMs = 3_900_000;

function collectIds(rows: readonly Row[]): Readonly<Record<"calls" | "results", ReadonlySet<unknown>>> {
  const blocks = rows.flatMap((row) => row.blocks);
  const [calls, results] = [new Set<unknown>(), new Set<unknown>()];
  for (const { type, id, tool_use_id, isLost } of blocks) {
    if (type === "tool_use") calls.add(id);
    if (type === "tool_result" && isLost !== true) results.add(tool_use_id);
  }
  return { calls, results };
}

function readBlocks({ message }: TranscriptBlock): TranscriptBlock[] {
  const content: unknown = isPlainObject(message) ? (message as TranscriptBlock).content : undefined;
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return (content.filter(isPlainObject) as TranscriptBlock[]).map((block) => {
    if (block.type !== "tool_result") return block;
    // Only our notes matter, and whether the client lost the result in a crash. The whole text would fill the memory.
    const texts = textsIn(block.content);
    const isLost = texts.some((text) => text.startsWith("[Tool call interrupted"));
    return { type: "tool_result", tool_use_id: block.tool_use_id, notes: texts.flatMap(findNotes), isLost };
  });
}

/** Returns what a result of a transcript has that looks like notes about shortened results. */
export function notesIn({ notes }: TranscriptBlock): readonly FoundNote[] {
  return Array.isArray(notes) ? (notes as readonly FoundNote[]) : [];
}
