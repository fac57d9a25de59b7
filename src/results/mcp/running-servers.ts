/** What `mcp status` shows. Each server process keeps one small record in its store: since when it runs, how often its
 *  server was started again, its last errors, and how many tokens the pages saved. */
import { hostname } from "node:os";
import type { Store } from "../../core/store/index.ts";
import { isText, isWhole, listOf, objectOf, readJson, shorten } from "../../core/text/index.ts";
import { ownIdentity } from "../../host/index.ts";
import { isRunning } from "./open-session.ts";

/** What is added to the record. */
interface ServerCounts {
  readonly results: number;
  /** Tokens of results that the client got. */
  readonly shown: number;
  /** Tokens of results that it did not get. */
  readonly saved: number;
}

export interface ServerRecorder {
  add(counts: Partial<ServerCounts>): void;
  restarted(): void;
  failed(message: string): void;
  /** Marks the record as ended. */
  close(): Promise<void>;
}

interface ServerAbout {
  readonly kind: "wrap" | "serve";
  /** The wrapped servers, or the directory that is served. */
  readonly name: string;
  /** The working directory. */
  readonly cwd: string;
}

interface ServerRecord extends ServerAbout, ServerCounts {
  readonly pid: number;
  readonly started?: string | undefined;
  readonly host: string;
  readonly state: "running" | "ended";
  /** Milliseconds since 1970. */
  readonly since: number;
  /** When the record was written. Milliseconds since 1970. */
  readonly time: number;
  readonly restarts: number;
  /** The last three, oldest first. */
  readonly errors: readonly { readonly time: number; readonly message: string }[];
}

const collection = "servers";
const dayMs = 86_400_000;

/** Starts the record of this process. Nobody waits for its writes, and a store that fails reports that itself. */
export function recordServer(store: Store, about: ServerAbout): ServerRecorder {
  const since = Date.now();
  const identity = { ...ownIdentity(), host: hostname() };
  // One process may serve several directories.
  const key = `${identity.host}/${identity.pid}/${since}/${about.name}`;
  let record: ServerRecord = {
    ...{ ...identity, ...about, state: "running", since, time: since },
    ...{ restarts: 0, errors: [], results: 0, shown: 0, saved: 0 },
  };
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<unknown> = Promise.resolve();
  const write = (): void => {
    clearTimeout(timer);
    timer = undefined;
    writing = writing
      .then(() => store.put(collection, key, JSON.stringify({ ...record, time: Date.now() })))
      .catch(() => {});
  };
  const change = (changes: Partial<ServerRecord>): void => {
    record = { ...record, ...changes };
    // Calls come in bursts, and each write costs time on the disk.
    timer ??= setTimeout(write, 1_000).unref();
  };
  write();
  void dropOld(store).catch(() => {});
  return {
    add({ results = 0, shown = 0, saved = 0 }) {
      change({ results: record.results + results, shown: record.shown + shown, saved: record.saved + saved });
    },
    restarted: () => change({ restarts: record.restarts + 1 }),
    failed(message) {
      const error = { time: Date.now(), message: shorten(message, 300) };
      change({ errors: [...record.errors, error].slice(-3) });
    },
    async close() {
      record = { ...record, state: "ended" };
      write();
      await writing;
    },
  };
}

/** Returns the servers of this machine, running ones first, then the latest. A killed server has ended. */
export async function listServers(store: Store): Promise<readonly ServerRecord[]> {
  const found = (await store.list(collection)).flatMap(({ value }) => readRecord(value) ?? []);
  return found
    .filter(({ host }) => host === hostname())
    .map((record) => ({
      ...record,
      state: record.state === "running" && isRunning(record) ? ("running" as const) : ("ended" as const),
      saved: Math.max(0, record.saved),
    }))
    .sort((a, b) => b.state.localeCompare(a.state) || b.since - a.since);
}

/** Deletes records of servers that ended more than a day ago. */
async function dropOld(store: Store): Promise<void> {
  for (const { key, value } of await store.list(collection)) {
    const record = readRecord(value);
    // A record that this version cannot read stays.
    if (record === undefined || record.time > Date.now() - dayMs) continue;
    if (record.state === "ended" || !isRunning(record)) await store.delete(collection, key);
  }
}

function readRecord(text: string): ServerRecord | undefined {
  const isState = (value: unknown): value is ServerRecord["state"] => value === "running" || value === "ended";
  const isKind = (value: unknown): value is ServerRecord["kind"] => value === "wrap" || value === "serve";
  const isSum = (value: unknown): value is number => Number.isSafeInteger(value);
  const times = { since: isWhole, time: isWhole };
  const names = { kind: isKind, name: isText, cwd: isText, host: isText, state: isState };
  const counts = { restarts: isWhole, results: isWhole, shown: isWhole, saved: isSum };
  const errors = listOf(objectOf({ time: isWhole, message: isText }));
  const record = readJson(text, objectOf({ pid: isWhole, ...times, ...names, ...counts, errors }, { started: isText }));
  // 0 is our own process group.
  return record?.pid === 0 ? undefined : record;
}
