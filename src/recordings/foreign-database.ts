/** Reads opencode's database, which anybody may have made. Another process does it, within limits, and is ended when it
 *  exceeds one. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { lstat, stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";
import { ContextError } from "../core/errors.ts";
import { compareText, type Fields, formatNumber, messageOf } from "../core/text/index.ts";
import type { OpencodeExport } from "./sessions/opencode.ts";

/** Yields the sessions of the database, or the one with an id. Keeps one session in memory at a time. */
export async function* readForeignDatabase(path: string, session?: string): AsyncGenerator<OpencodeExport> {
  try {
    const { url, bytes } = await inspectFiles(path);
    // A slow disk reads 10,000 bytes in a millisecond.
    const limits = { maxBytes: 4 * bytes + 1_048_576, maxMs: Math.round(3_000 + bytes / 10_000) };
    yield* joinRows(readRows(session === undefined ? [url] : [url, session], limits));
  } catch (error) {
    const reason = messageOf(error).replace(/\.$/, "");
    throw new ContextError("unreadable_input", `the database cannot be read: ${reason}`, { file: path, cause: error });
  }
}

/** Throws if SQLite would read from something else than a file. Returns how to open it without a change to these files,
 *  and what they take on the disk. */
async function inspectFiles(path: string): Promise<{ readonly url: string; readonly bytes: number }> {
  const [index, ...logs] = await Promise.all(
    ["-shm", "-wal", "-journal"].map((ending) => lstat(`${path}${ending}`).catch(() => undefined)),
  );
  const found = [await stat(path), index, ...logs].filter((each) => each !== undefined);
  if (!found.every((each) => each.isFile())) throw new Error("it, or the log beside it, is not a file");
  // Without a log, nobody is writing, and SQLite needs no locks. If a log has no index, SQLite has to make one.
  const mode = found.length === 1 ? "&immutable=1" : index === undefined ? "" : "&readonly_shm=1";
  // A sparse file claims any size. A file system that compresses may store a sixteenth.
  const bytes = found.reduce((sum, { size, blocks }) => sum + Math.min(size, (blocks ?? size) * 512 * 16), 0);
  return { url: `${pathToFileURL(path).href}?mode=ro${mode}`, bytes };
}

interface ReadLimits {
  /** Of all lines. A database that returns more than its files can hold repeats itself. */
  readonly maxBytes: number;
  /** The time that we wait for lines, altogether. */
  readonly maxMs: number;
}

/** Of the reader's own objects. A row has at most 16 MB. */
const heapMegabytes = 192;

/** Everything that the reader's process allocates. The shell's unit is a kilobyte. From version 24 on, Node reserves so much room
 *  for its code that it would not start. */
const dataKilobytes = Number.parseInt(process.versions.node, 10) < 24 ? 400_000 : 700_000;

type RowLine = readonly [head: readonly unknown[], data: Fields];

/** Yields the lines of the reader. */
async function* readRows(args: readonly string[], limits: ReadLimits): AsyncGenerator<RowLine> {
  const reader = startReader(args, Math.ceil(limits.maxMs / 1_000) * 2);
  const end = (): void => void reader.kill("SIGKILL");
  process.once("exit", end);
  const exit = once(reader, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  exit.catch(() => {});
  try {
    for await (const line of splitLines(readChunks(reader.stdout, limits))) {
      const row = readLine(line);
      if (row[0][0] === "end") return;
      if (row[0][0] === "error") throw new Error(String(row[0][1]));
      yield row;
    }
    const [code, signal] = await exit;
    throw new Error(`its reader ended too early (${signal ?? `exit code ${code}`})`);
  } finally {
    end();
    process.off("exit", end);
  }
}

/** Passes on what the reader prints, and throws at a limit. Only the time that passes here counts. */
async function* readChunks(stream: Readable, { maxBytes, maxMs }: ReadLimits): AsyncGenerator<Buffer> {
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let [bytes, leftMs] = [0, maxMs];
  for (;;) {
    const startedAt = performance.now();
    const late = new Error(`it took longer than ${maxMs / 1_000} s`);
    const timer = setTimeout(() => stream.destroy(late), Math.max(0, leftMs));
    const { done, value } = await chunks.next().finally(() => clearTimeout(timer));
    if (done === true) return;
    leftMs -= performance.now() - startedAt;
    bytes += value.length;
    if (bytes > maxBytes) {
      const limit = `the limit is ${formatNumber(maxBytes)} bytes`;
      throw new Error(`it returned more than its files can hold (${limit})`);
    }
    yield value;
  }
}

/** The system ends a process that needs more, even if this one is gone. Windows has no such limits. */
function startReader(args: readonly string[], maxSeconds: number): ChildProcessByStdio<null, Readable, null> {
  // This module is in dist/cli/ or in dist/cli/bundle/.
  const program = fileURLToPath(new URL("./database-reader.js", import.meta.url));
  const words = [process.execPath, `--max-old-space-size=${heapMegabytes}`, program, ...args];
  const limited = `ulimit -d ${dataKilobytes}; ulimit -t ${maxSeconds}; exec "$0" "$@"`;
  const [command = "", ...rest] = process.platform === "win32" ? words : ["/bin/sh", "-c", limited, ...words];
  return spawn(command, rest, { stdio: ["ignore", "pipe", "ignore"], windowsHide: true });
}

async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  for await (const chunk of chunks) {
    let start = 0;
    for (let at = chunk.indexOf(0x0a); at >= 0; at = chunk.indexOf(0x0a, start)) {
      begun.push(chunk.subarray(start, at));
      yield begun.length === 1 ? begun[0]! : Buffer.concat(begun);
      [begun, start] = [[], at + 1];
    }
    begun.push(chunk.subarray(start));
  }
}

/** A row that another version wrote differently is empty. */
function readLine(line: Buffer): RowLine {
  const tab = line.indexOf(0x09);
  const head = JSON.parse(line.toString("utf8", 0, tab < 0 ? line.length : tab)) as readonly unknown[];
  try {
    return [head, tab < 0 ? {} : (Object(JSON.parse(line.toString("utf8", tab + 1))) as Fields)];
  } catch {
    return [head, {}];
  }
}

interface SessionRows {
  readonly info: Fields;
  readonly messages: (MessageRow & { readonly time: number })[];
  /** By the id of their message. */
  readonly parts: Map<unknown, MessageRow[]>;
}

interface MessageRow {
  readonly id: string;
  readonly data: Fields;
}

async function* joinRows(rows: AsyncIterable<RowLine>): AsyncGenerator<OpencodeExport> {
  let current: SessionRows | undefined;
  for await (const [[kind, id, owner, third], data] of rows) {
    if (kind === "session") {
      if (current !== undefined) yield exportSession(current);
      current = { info: { id, directory: owner, parentID: third }, messages: [], parts: new Map() };
    } else if (kind === "message") current?.messages.push({ id: String(id), time: Number(third), data });
    else {
      const others = current?.parts.get(owner) ?? [];
      current?.parts.set(owner, others);
      others.push({ id: String(id), data });
    }
  }
  if (current !== undefined) yield exportSession(current);
}

/** Returns the session as `opencode export` would write it. */
function exportSession({ info, messages, parts }: SessionRows): OpencodeExport {
  messages.sort((one, two) => one.time - two.time || compareText(one.id, two.id));
  const withId = ({ id, data }: MessageRow): Fields => ({ ...data, id });
  return {
    info,
    messages: messages.map((message) => ({
      info: withId(message),
      parts: (parts.get(message.id) ?? []).sort((one, two) => compareText(one.id, two.id)).map(withId),
    })),
  };
}
