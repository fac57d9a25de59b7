/** Reads the facts of all recordings in files and folders. The index keeps what was found. */

import { existsSync } from "node:fs";
import { stat } from "node:fs/promises";
import { ContextError } from "../core/errors.ts";
import { readEvents, type Store } from "../core/store/index.ts";
import type { Caller } from "../host/index.ts";
import { lookInStore, messagesLimit, readForeign, systemReason } from "../host/index.ts";
import { readForeignDatabase } from "./foreign-database.ts";
import { findSessionFiles, type SessionFile } from "./places.ts";
import {
  continueReading,
  describeFolder,
  type FileEntry,
  indexFile,
  megabytes,
  type ReadEntry,
  readIndex,
  writeIndex,
} from "./recording-index.ts";
import { clientReaders, readFacts } from "./sessions/index.ts";
import { readOpencode } from "./sessions/opencode.ts";
import type { SessionFacts } from "./sessions/session-facts.ts";

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

interface RecordingsOptions {
  readonly call: Caller;
  /** Whether to use and write the index. */
  readonly hasIndex: boolean;
}

/** Reads recordings. Each call reads only what is new since the last one. */
export interface RecordingsReader {
  read(paths: readonly string[]): Promise<Recordings>;
}

export function createRecordingsReader({ call, hasIndex }: RecordingsOptions): RecordingsReader {
  const file = indexFile(call.env, "all");
  const entries = new Map(hasIndex ? readIndex(file).entries : []);
  if (hasIndex) {
    // The status line knows no other client, so a file without facts may have some.
    for (const entry of readIndex(indexFile(call.env, "recent")).entries.values()) {
      if (entry.facts !== undefined && entry.offset > (entries.get(entry.path)?.offset ?? 0)) {
        entries.set(entry.path, entry);
      }
    }
  }
  let isSaved = false;
  return {
    async read(paths) {
      const recordings = await readAll(paths, entries, call);
      // Later reads of the same run are few bytes. The next run reads them again.
      if (hasIndex && recordings.bytesRead > 0 && !isSaved) {
        for (const path of entries.keys()) if (!existsSync(path)) entries.delete(path);
        await writeIndex(file, { entries, head: {} });
      }
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
  const { files, unreadable } = findSessionFiles(paths, cwd);
  const problems = [...unreadable];
  const fileOf = new Map<SessionFacts, SessionFile>();
  let bytesRead = 0;
  let pausedAt = performance.now();
  for (const [number, file] of files.entries()) {
    const { path } = file;
    try {
      const { entry, bytes } = await readEntry(file, index.get(path));
      bytesRead += bytes;
      index.set(path, entry);
      const { facts, sessions = facts ? [facts] : [] } = entry;
      for (const session of sessions) fileOf.set(session, file);
    } catch (error) {
      problems.push({ path, reason: describeReason(error) });
    }
    if (performance.now() - pausedAt < pauseMs) continue;
    pausedAt = performance.now();
    output.progress(`reading recordings: ${number + 1} of ${files.length} files, ${megabytes(bytesRead)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const sessions = [...fileOf.keys()];
  const damaged = sessions.reduce((sum, facts) => sum + facts.damaged, 0);
  return { sessions, fileOf, damaged, files: files.length, bytesRead, unreadable: problems };
}

const pauseMs = 100;

function describeReason(error: unknown): string {
  if (error instanceof ContextError) return error.message;
  return (error as NodeJS.ErrnoException).code === undefined ? String(error) : systemReason(error);
}

async function readEntry(file: SessionFile, known: FileEntry | undefined): Promise<Pick<ReadEntry, "entry" | "bytes">> {
  const { path, within } = file;
  if (path.endsWith(".db")) return readDatabase(path, known);
  if (!path.endsWith(".json")) return continueReading(file, known, { readers: clientReaders });
  const { size, mtimeMs } = await stat(path);
  if (known !== undefined && known.size === size && known.mtimeMs === mtimeMs) return { entry: known, bytes: 0 };
  const read = readForeign(path, { within, ...messagesLimit, maxMs: 30_000 });
  if (!Buffer.isBuffer(read)) throw new ContextError("unreadable_input", read.reason);
  const facts = readFacts(read.toString("utf8"));
  describeFolder(facts, file);
  return { entry: { path, size, mtimeMs, offset: size, tail: 0, facts }, bytes: size };
}

async function readDatabase(path: string, known: FileEntry | undefined): Promise<Pick<ReadEntry, "entry" | "bytes">> {
  const all = await Promise.all([path, `${path}-wal`].map((file) => stat(file).catch(() => undefined)));
  const size = all.reduce((sum, stats) => sum + (stats?.size ?? 0), 0);
  const mtimeMs = all.reduce((latest, stats) => Math.max(latest, stats?.mtimeMs ?? 0), 0);
  if (known !== undefined && known.size === size && known.mtimeMs === mtimeMs) return { entry: known, bytes: 0 };
  const sessions: SessionFacts[] = [];
  for await (const session of readForeignDatabase(path)) sessions.push(readOpencode(session));
  return { entry: { path, size, mtimeMs, offset: size, tail: 0, sessions }, bytes: size };
}

/** Reads when Plimsoll trimmed the history of each session, from the events of the store. Returns nothing if there is no
 *  store, or if it cannot be read. */
export async function readTrims(place: string): Promise<ReadonlyMap<string, readonly number[]>> {
  const trims = new Map<string, number[]>();
  const readPage = async (store: Store, after: number): Promise<number | undefined> => {
    const events = await readEvents(store, { after, limit: eventsAtOnce });
    for (const { kind, sessionId, at, numbers } of events) {
      const isTrim = kind === "trim" || (kind === "loss" && numbers.cause === "epoch");
      if (isTrim && sessionId !== undefined) trims.set(sessionId, [...(trims.get(sessionId) ?? []), at]);
    }
    return events.at(-1)?.sequence;
  };
  const readAllEvents = async (store: Store): Promise<void> => {
    for (let after: number | undefined = 0; after !== undefined; ) after = await readPage(store, after);
  };
  // A store that is damaged or in use elsewhere must not stop a bill.
  await lookInStore(place, readAllEvents).catch(() => undefined);
  return trims;
}

const eventsAtOnce = 1_000;
