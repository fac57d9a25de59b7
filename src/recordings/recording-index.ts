/** Reads recordings in pieces and once: an index in the state folder keeps the facts that were found, and how far each
 *  file was read. `bill`, the guard and the status line use it. It can be deleted at any time. */

import { closeSync, existsSync, readSync, renameSync, statSync, writeFileSync } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { ContextError } from "../core/errors.ts";
import { type Environment, isInside, openForeign, readForeign, stateDirectory } from "../host/index.ts";
import { type PackedFacts, packFacts, unpackFacts } from "./packed-facts.ts";
import type { SessionFile } from "./places.ts";
import { readLines } from "./read-lines.ts";
import type { DraftState, SessionFacts } from "./sessions/session-facts.ts";
import { type ClientReader, createSessionScan, parseFields, type ScanState } from "./sessions/session-scan.ts";

/** What is known of a file. */
export interface FileEntry {
  readonly path: string;
  /** How much of the file there was to read. */
  readonly size: number;
  readonly mtimeMs: number;
  /** How far the file was read. */
  readonly offset: number;
  /** A checksum of the bytes before the offset. A file that was replaced has another. */
  readonly tail: number;
  readonly facts?: SessionFacts | undefined;
  /** The state of the scan as JSON. Only a file that has grown needs it. */
  readonly state?: string | undefined;
  readonly lostUsage?: number | undefined;
  /** The sessions of a database. */
  readonly sessions?: readonly SessionFacts[] | undefined;
  /** The line of the index that has this entry, so that writing the index again does not take long. */
  readonly line?: string | undefined;
}

/** The files of the index. `recent` has the transcripts of a day: a status line has no time to read all. */
export function indexFile(env: Environment, part: "all" | "recent"): string {
  return join(stateDirectory(env), "recordings", `${part}-2.jsonl`);
}

/** An entry as a line of the index. */
interface IndexLine extends Omit<FileEntry, "facts" | "sessions" | "line"> {
  readonly facts?: PackedFacts | undefined;
  readonly sessions?: readonly PackedFacts[] | undefined;
}

export interface RecordingIndex {
  readonly entries: ReadonlyMap<string, FileEntry>;
  /** What else the first line has. */
  readonly head: Readonly<Record<string, unknown>>;
}

/** A larger one does not fit into a string. */
const mostIndexBytes = 500_000_000;

export function readIndex(file: string): RecordingIndex {
  const read = readForeign(file, { maxBytes: mostIndexBytes });
  const [first = "", ...lines] = Buffer.isBuffer(read) ? read.toString("utf8").split("\n") : [];
  const entries = new Map<string, FileEntry>();
  for (const line of lines) {
    try {
      const { path, size, mtimeMs, offset, tail, facts, state, lostUsage, sessions } = JSON.parse(line) as IndexLine;
      if (typeof path !== "string" || typeof tail !== "number" || !(offset >= 0)) continue;
      entries.set(path, {
        path,
        size,
        mtimeMs,
        offset,
        tail,
        facts: facts && unpackFacts(facts),
        state,
        lostUsage,
        sessions: sessions?.map(unpackFacts),
        line,
      });
    } catch {
      // A damaged line means that its file is read again.
    }
  }
  return { entries, head: parseFields(first) ?? {} };
}

/** Two processes may write at once. The index of either one is right, and the next run reads what is missing. */
export async function writeIndex(file: string, { entries, head }: RecordingIndex): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    if (!existsSync(dirname(file))) {
      // Loaded only if a folder is missing: loading it takes as long as a whole status line.
      const { makeDirectory } = await import("../host/index.ts");
      makeDirectory(dirname(file), 0o700);
    }
    const lines = [...entries.values()].map(({ line, facts, sessions, ...entry }): string => {
      if (line !== undefined) return line;
      const packed: IndexLine = {
        ...entry,
        ...(facts && { facts: packFacts(facts) }),
        ...(sessions && { sessions: sessions.map(packFacts) }),
      };
      return JSON.stringify(packed);
    });
    const text = `${[JSON.stringify(head), ...lines].join("\n")}\n`;
    writeFileSync(temporary, text, { mode: 0o600 });
    renameSync(temporary, file);
  } catch {
    // Without a writable state folder, the next run reads the files again.
  }
}

export interface ReadingOptions {
  readonly readers: readonly ClientReader[];
  /** How many bytes may still be read. */
  readonly budget?: { bytes: number } | undefined;
}

export interface ReadEntry {
  readonly entry: FileEntry;
  /** Bytes that had to be read. */
  readonly bytes: number;
  /** Whether the budget was enough for the whole file. */
  readonly isWhole: boolean;
}

/** Reads the lines that a file has more than its entry knows. Throws with the reason if the file cannot be read. */
export function continueReading(file: SessionFile, known: FileEntry | undefined, options: ReadingOptions): ReadEntry {
  const { path, within } = file;
  const before = statSync(path, { throwIfNoEntry: false });
  if (known !== undefined && known.size === before?.size && known.mtimeMs === before.mtimeMs) {
    return { entry: known, bytes: 0, isWhole: true };
  }
  const opened = openForeign(path, { within });
  if ("reason" in opened) throw new ContextError("unreadable_input", opened.reason);
  const { descriptor, stats } = opened;
  const { size, mtimeMs } = stats;
  try {
    if (size > mostRecordingBytes) {
      throw new ContextError("unreadable_input", `has ${megabytes(size)}, a recording above 2 GB is not read`);
    }
    const isGrown = known !== undefined && known.offset <= known.size && known.size < size;
    const earlier = isGrown && tailAt(descriptor, known.offset) === known.tail ? readState(known) : undefined;
    const start = known?.offset ?? 0;
    const continued = earlier && scanFrom(descriptor, { start, size, earlier }, options);
    const read = continued ?? (scanFrom(descriptor, { start: 0, size }, options) as ScannedRange);
    const { end, offset, facts, state, lostUsage } = read;
    const tail = tailAt(descriptor, offset);
    describeFolder(facts, file);
    return {
      entry: { path, size: end, mtimeMs, offset, tail, facts, state: JSON.stringify(state), lostUsage },
      bytes: end - (continued === undefined ? 0 : start),
      isWhole: end === size,
    };
  } finally {
    closeSync(descriptor);
  }
}

/** Reading a larger file takes minutes, and nobody waits for them. */
const mostRecordingBytes = 2_000_000_000;
const tailBytes = 32;

export function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}

/** Returns undefined if the index has lost the state. */
function readState({ facts, state: text, lostUsage = 0 }: FileEntry): ScanState | undefined {
  if (facts === undefined) return { facts, lostUsage };
  const state = parseFields(text ?? "") as DraftState | undefined;
  // The scan adds to these lists, and the index must not keep half of what it finds.
  return state && { facts: { ...facts, calls: [...facts.calls], results: [...facts.results] }, state, lostUsage };
}

interface ScanRange {
  readonly start: number;
  readonly size: number;
  readonly earlier?: ScanState;
}

interface ScannedRange extends ScanState {
  /** Where complete lines end. */
  readonly offset: number;
  /** Where reading ended. */
  readonly end: number;
}

/** Returns undefined if the new lines depend on older ones that are not known any more. */
function scanFrom(
  file: number,
  { start, size, earlier }: ScanRange,
  { readers, budget }: ReadingOptions,
): ScannedRange | undefined {
  const scan = createSessionScan(readers, earlier);
  const { offset, end, rest } = readLines(file, { start, size, budget }, (text, isCut) => {
    scan.line(text, isCut);
    return !scan.isLost;
  });
  if (scan.isLost && earlier !== undefined) return undefined;
  // A last line without a line break is complete if it is JSON. Otherwise the program is still writing it, unless it
  // is too long to be read anyway.
  if (rest === undefined || !(rest.isCut || parseFields(rest.text))) return { ...scan.finish(), offset, end };
  scan.line(rest.text, rest.isCut);
  return { ...scan.finish(), offset: size, end };
}

/** Returns a checksum of the bytes before the offset. The bytes themselves do not go into the index: a transcript may be a
 *  link to a secret. */
function tailAt(file: number, offset: number): number {
  const bytes = Buffer.alloc(Math.min(tailBytes, offset));
  readSync(file, bytes, 0, bytes.length, offset - bytes.length);
  return bytes.reduce((sum, byte) => Math.imul(sum ^ byte, 0x01000193), 0x811c9dc5);
}

/** Adds facts that are not in the lines: the kind of a sub-agent, and the folder of cline and gemini-cli. */
export function describeFolder(facts: SessionFacts | undefined, file: SessionFile): void {
  if (facts === undefined) return;
  const { path } = file;
  if (basename(dirname(path)) === "subagents" && facts.subAgent === undefined) {
    const meta = readBeside(path.replace(/\.jsonl$/, ".meta.json"), file);
    const kind = /"agentType"\s*:\s*"([^"]*)"/.exec(meta)?.[1];
    facts.subAgent = kind ?? "sub-agent";
  }
  if (facts.agent === "cline") {
    const head = readBeside(path.replace(/\.messages\.json$/, ".json"), file);
    facts.project ||= String(parseFields(head)?.cwd ?? "");
  }
  if (facts.agent === "gemini-cli" && basename(dirname(path)) === "chats") {
    const folder = dirname(dirname(path));
    const root = readBeside(join(folder, ".project_root"), file).trim();
    facts.project = isAbsolute(root) && !/[\r\n]/.test(root) ? root : folder;
  }
}

/** Reads a small file that belongs to a recording, and may be above what was named. A link is refused: anybody can
 *  share recordings, and what such a file says is shown. */
function readBeside(path: string, { within }: SessionFile): string {
  const folder = dirname(path);
  const limit = isInside(folder, within) ? within : folder;
  const read = readForeign(path, { within: limit, refuseLink: true, maxBytes: 65_536 });
  return Buffer.isBuffer(read) ? read.toString("utf8") : "";
}
