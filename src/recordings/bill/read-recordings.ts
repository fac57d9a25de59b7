/** Reads the facts of recordings. A file is read in pieces and once: an index in the state folder keeps what was found,
 *  and how far. The index can be deleted at any time. */

import { closeSync, readSync } from "node:fs";
import { rename, stat, writeFile } from "node:fs/promises";
import { basename, dirname, isAbsolute, join } from "node:path";
import { ContextError } from "../../core/errors.ts";
import type { Caller } from "../../host/index.ts";
import {
  isInside,
  makeDirectory,
  messagesLimit,
  openForeign,
  readForeign,
  stateDirectory,
  systemReason,
} from "../../host/index.ts";
import { readForeignDatabase } from "../foreign-database.ts";
import { findSessionFiles, type SessionFile } from "../places.ts";
import { readOpencodeFacts } from "./other-facts.ts";
import { type PackedFacts, packFacts, unpackFacts } from "./packed-facts.ts";
import type { SessionFacts } from "./session-facts.ts";
import { createSessionScan, factsOfText, type ScanState } from "./session-scan.ts";

export interface Recordings {
  readonly sessions: readonly SessionFacts[];
  /** The file of each session. A database has several. */
  readonly fileOf: ReadonlyMap<SessionFacts, SessionFile>;
  readonly files: number;
  /** Bytes that this run read. */
  readonly bytesRead: number;
  /** Lines that are not JSON. */
  readonly damaged: number;
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
}

/** What is known of a file. */
interface FileEntry {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
  /** How far the file was read. */
  readonly offset: number;
  /** The bytes before the offset. A file that was replaced has others. */
  readonly tail: string;
  readonly facts?: SessionFacts | undefined;
  /** The state of the scan as JSON. Only a file that has grown needs it. */
  readonly state?: string | undefined;
  /** The sessions of a database. */
  readonly sessions?: readonly SessionFacts[] | undefined;
}

/** An entry as a line of the index. */
interface IndexLine extends Omit<FileEntry, "facts" | "sessions"> {
  readonly facts?: PackedFacts | undefined;
  readonly sessions?: readonly PackedFacts[] | undefined;
}

interface RecordingsOptions {
  readonly call: Caller;
  /** Whether to use and write the index. */
  readonly hasIndex: boolean;
}

/** Reads recordings. Each call reads only what is new since the last one. */
export interface RecordingsReader {
  read(paths: readonly string[]): Promise<Recordings>;
}

export async function createRecordingsReader({ call, hasIndex }: RecordingsOptions): Promise<RecordingsReader> {
  const indexFile = join(stateDirectory(call.env), "bill", "index-5.jsonl");
  const index = hasIndex ? readIndex(indexFile) : new Map<string, FileEntry>();
  let isSaved = false;
  return {
    async read(paths) {
      const recordings = await readAll(paths, index, call);
      // Later reads of the same run are few bytes. The next run reads them again.
      if (hasIndex && recordings.bytesRead > 0 && !isSaved) await writeIndex(indexFile, index);
      isSaved = true;
      return recordings;
    },
  };
}

async function readAll(
  paths: readonly string[],
  index: Map<string, FileEntry>,
  { cwd, output }: RecordingsOptions["call"],
): Promise<Recordings> {
  const { files, unreadable } = await findSessionFiles(paths, cwd);
  const problems = [...unreadable];
  const entries: (readonly [SessionFile, FileEntry])[] = [];
  let bytesRead = 0;
  let pausedAt = performance.now();
  for (const [number, file] of files.entries()) {
    const { path } = file;
    try {
      const known = index.get(path);
      const { entry, bytes } = await readEntry(file, known);
      bytesRead += bytes;
      if (entry !== known) index.set(path, entry);
      entries.push([file, entry]);
    } catch (error) {
      problems.push({ path, reason: reasonOf(error) });
    }
    if (performance.now() - pausedAt < pauseMs) continue;
    pausedAt = performance.now();
    output.progress(`reading recordings: ${number + 1} of ${files.length} files, ${megabytes(bytesRead)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { ...recordingsOf(entries), files: files.length, bytesRead, unreadable: problems };
}

function reasonOf(error: unknown): string {
  if (error instanceof ContextError) return error.message;
  return (error as NodeJS.ErrnoException).code === undefined ? String(error) : systemReason(error);
}

function recordingsOf(
  entries: readonly (readonly [SessionFile, FileEntry])[],
): Pick<Recordings, "sessions" | "fileOf" | "damaged"> {
  const fileOf = new Map(
    entries.flatMap(([file, { facts, sessions: several = facts ? [facts] : [] }]) =>
      several.map((each) => [each, file] as const),
    ),
  );
  const sessions = [...fileOf.keys()];
  return { sessions, fileOf, damaged: sessions.reduce((sum, facts) => sum + facts.damaged, 0) };
}

const pauseMs = 100;

export function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(bytes < 10_000_000 ? 1 : 0)} MB`;
}

/** A larger one does not fit into a string. */
const mostIndexBytes = 500_000_000;

function readIndex(file: string): Map<string, FileEntry> {
  const read = readForeign(file, { maxBytes: mostIndexBytes });
  const text = Buffer.isBuffer(read) ? read.toString("utf8") : "";
  const index = new Map<string, FileEntry>();
  for (const line of text.split("\n")) {
    try {
      const { facts, sessions, ...entry } = JSON.parse(line) as IndexLine;
      index.set(entry.path, {
        ...entry,
        ...(facts && { facts: unpackFacts(facts) }),
        ...(sessions && { sessions: sessions.map(unpackFacts) }),
      });
    } catch {
      // A damaged line means that its file is read again.
    }
  }
  return index;
}

/** Leaves out files that are gone. */
async function writeIndex(file: string, index: ReadonlyMap<string, FileEntry>): Promise<void> {
  const lines: string[] = [];
  for (const entry of index.values()) {
    const isThere = await stat(entry.path).then(
      () => true,
      () => false,
    );
    if (isThere) lines.push(`${JSON.stringify(lineOf(entry))}\n`);
  }
  try {
    await makeDirectory(dirname(file), 0o700);
    const temporary = `${file}.${process.pid}.tmp`;
    await writeFile(temporary, lines, { mode: 0o600 });
    await rename(temporary, file);
  } catch {
    // Without a writable state folder, the next run reads the files again.
  }
}

function lineOf({ facts, sessions, ...entry }: FileEntry): IndexLine {
  return {
    ...entry,
    ...(facts && { facts: packFacts(facts) }),
    ...(sessions && { sessions: sessions.map(packFacts) }),
  };
}

interface ReadEntry {
  readonly entry: FileEntry;
  /** Bytes that had to be read. */
  readonly bytes: number;
}

async function readEntry(file: SessionFile, known: FileEntry | undefined): Promise<ReadEntry> {
  const { path } = file;
  if (path.endsWith(".db")) {
    const entry = await readDatabase(path, known);
    return { entry, bytes: entry === known ? 0 : entry.size };
  }
  const { size, mtimeMs } = await stat(path);
  if (known !== undefined && known.size === size && known.mtimeMs === mtimeMs) return { entry: known, bytes: 0 };
  if (path.endsWith(".json")) return { entry: readWhole(file, { size, mtimeMs }), bytes: size };
  const { start, ...read } = readLines(file, known !== undefined && known.size < size ? known : undefined);
  return { entry: { ...read, mtimeMs, facts: withFolder(read.facts, file) }, bytes: read.size - start };
}

/** Some facts are not in the lines: the kind of a sub-agent, and the folder of gemini-cli. */
function withFolder(facts: SessionFacts | undefined, file: SessionFile): SessionFacts | undefined {
  if (facts === undefined) return undefined;
  const { path } = file;
  if (basename(dirname(path)) === "subagents" && facts.subAgent === undefined) {
    const meta = readBeside(path.replace(/\.jsonl$/, ".meta.json"), file);
    const kind = /"agentType"\s*:\s*"([^"]*)"/.exec(meta)?.[1];
    facts.subAgent = kind ?? "sub-agent";
  }
  if (facts.agent === "gemini-cli" && basename(dirname(path)) === "chats") {
    const folder = dirname(dirname(path));
    const root = readBeside(join(folder, ".project_root"), file).trim();
    facts.project = isAbsolute(root) && !/[\r\n]/.test(root) ? root : folder;
  }
  return facts;
}

/** Reads a small file that belongs to a recording, and may be above what was named. A link is refused: anybody can
 *  share recordings, and what such a file says is shown. */
function readBeside(path: string, { within }: SessionFile): string {
  const folder = dirname(path);
  const limit = isInside(folder, within) ? within : folder;
  const read = readForeign(path, { within: limit, refuseLink: true, maxBytes: 65_536 });
  return Buffer.isBuffer(read) ? read.toString("utf8") : "";
}

function readWhole(file: SessionFile, stats: Pick<FileEntry, "size" | "mtimeMs">): FileEntry {
  const { path, within } = file;
  const read = readForeign(path, { within, ...messagesLimit, maxMs: 30_000 });
  if (!Buffer.isBuffer(read)) throw new ContextError("unreadable_input", read.reason);
  const facts = factsOfText(read.toString("utf8"));
  return { path, ...stats, offset: stats.size, tail: "", facts: withFolder(facts, file) };
}

async function readDatabase(path: string, known: FileEntry | undefined): Promise<FileEntry> {
  const all = await Promise.all([path, `${path}-wal`].map((file) => stat(file).catch(() => undefined)));
  const size = all.reduce((sum, stats) => sum + (stats?.size ?? 0), 0);
  const mtimeMs = all.reduce((latest, stats) => Math.max(latest, stats?.mtimeMs ?? 0), 0);
  if (known !== undefined && known.size === size && known.mtimeMs === mtimeMs) return known;
  const sessions: SessionFacts[] = [];
  for await (const session of readForeignDatabase(path)) sessions.push(readOpencodeFacts(session));
  return { path, size, mtimeMs, offset: size, tail: "", sessions };
}

const chunkBytes = 1 << 20;
const tailBytes = 32;
/** A longer line is not read, because its text and its values would take several times its size. */
const mostLineBytes = 32 << 20;
/** Shows what kind of line it is. */
const headBytes = 4096;

/** Reading a larger file takes minutes, and nobody waits for them. */
const mostRecordingBytes = 2_000_000_000;

/** Reads the complete lines of a file, from where the last scan stopped. */
function readLines({ path, within }: SessionFile, known: FileEntry | undefined): ReadLines {
  const opened = openForeign(path, { within });
  if ("reason" in opened) throw new ContextError("unreadable_input", opened.reason);
  const { descriptor: file, stats } = opened;
  const { size } = stats;
  try {
    if (size > mostRecordingBytes) {
      throw new ContextError("unreadable_input", `has ${megabytes(size)}, a recording above 2 GB is not read`);
    }
    if (known !== undefined && tailAt(file, known.offset) === known.tail) {
      // The scan changes its facts, and the index must not keep half of them.
      const earlier: ScanState = {
        facts: structuredClone(known.facts),
        ...(known.state !== undefined && { state: JSON.parse(known.state) }),
      };
      const entry = scanFrom(file, { path, size, start: known.offset, earlier });
      if (entry !== undefined) return entry;
    }
    return scanFrom(file, { path, size, start: 0 }) as ReadLines;
  } finally {
    closeSync(file);
  }
}

type ReadLines = Omit<FileEntry, "mtimeMs"> & { readonly start: number };

interface ScanRange {
  readonly path: string;
  readonly size: number;
  readonly start: number;
  readonly earlier?: ScanState;
}

/** Returns undefined if the new lines depend on older ones that are not known any more. */
function scanFrom(file: number, { path, size, start, earlier }: ScanRange): ReadLines | undefined {
  const scan = createSessionScan(earlier);
  const chunk = Buffer.allocUnsafe(chunkBytes);
  const rest = createLineStart();
  let offset = start;
  for (let position = start; position < size && !scan.isLost; ) {
    const length = readSync(file, chunk, 0, chunkBytes, position);
    if (length === 0) break;
    position += length;
    let from = 0;
    for (let to = chunk.indexOf(10); to >= 0 && to < length; to = chunk.indexOf(10, from)) {
      scan.line(textOf(rest.end(chunk.subarray(from, to))));
      from = to + 1;
      offset = position - length + from;
    }
    if (from < length) rest.add(chunk.subarray(from, length));
  }
  if (scan.isLost && earlier !== undefined) return undefined;
  // A last line without a line break is complete if it is JSON. Otherwise the program is still writing it, unless it
  // is too long to be read anyway.
  const { isTooLong } = rest;
  const last = textOf(rest.end(Buffer.alloc(0)));
  if (isTooLong || isJson(last)) {
    scan.line(last);
    offset = size;
  }
  const { facts, state } = scan.finish();
  return { path, size, start, offset, tail: tailAt(file, offset), facts, state: JSON.stringify(state) };
}

/** Collects the chunks of a line. If a line is too long, it keeps only the head. That is not valid JSON, so the scan counts
 *  the line as damaged. */
interface LineStart {
  readonly isTooLong: boolean;
  add(piece: Buffer): void;
  /** Returns the line with its last piece, and starts the next one. */
  end(piece: Buffer): Buffer;
}

function createLineStart(): LineStart {
  let pieces: Buffer[] = [];
  let length = 0;
  const add = (piece: Buffer): void => {
    length += piece.length;
    if (length <= mostLineBytes) pieces.push(Buffer.from(piece));
    else pieces = pieces.slice(0, 1).map((first) => first.subarray(0, headBytes));
  };
  return {
    get isTooLong() {
      return length > mostLineBytes;
    },
    add,
    end(piece) {
      if (length === 0) return piece;
      add(piece);
      const line = Buffer.concat(pieces);
      pieces = [];
      length = 0;
      return line;
    },
  };
}

function textOf(line: Buffer): string {
  const end = line.at(-1) === 13 ? line.length - 1 : line.length;
  return line.toString("utf8", line[0] === 0xef && line[1] === 0xbb ? 3 : 0, end);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function tailAt(file: number, offset: number): string {
  const length = Math.min(tailBytes, offset);
  const bytes = Buffer.alloc(length);
  readSync(file, bytes, 0, length, offset - length);
  return bytes.toString("latin1");
}
