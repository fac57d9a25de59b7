/** The store of a server. A store that is damaged, locked, full, read-only or newer must not stop the server. Then the
 *  server continues in memory, says so once, and returns to the store when it can be used again. */
import { ContextError } from "../../core/errors.ts";
import { createMaintainedMemory, createMemoryStore, type MaintainedStore, type Store } from "../../core/store/index.ts";
import { messageOf, shorten } from "../../core/text/index.ts";
import { isStoreAddress, openStore } from "../../host/index.ts";

export interface ServerStore {
  readonly store: Store;
  /** Returns sentences for the client: why results are not in the named file now, and the consequences. */
  problem(): string | undefined;
}

export type StoreUpkeep = (store: MaintainedStore) => Promise<void>;

export async function openServerStore(options: {
  /** The file or address. Undefined for a store in memory. */
  readonly file: string | undefined;
  /** Deletes what is too old. Runs once, beside the first calls. */
  readonly upkeep?: StoreUpkeep | undefined;
  log(text: string): void;
}): Promise<ServerStore> {
  const { file, log } = options;
  if (file === undefined) return { store: createMemoryStore(), problem: () => undefined };
  let problem: string | undefined;
  const fail = (error: unknown): void => {
    const message = messageOf(error);
    const reason = message.replace(/^the store cannot be (used|read): /, "");
    const consequence = "Results are kept in memory until it can be used again, or until this server ends.";
    problem = `The store cannot be used: ${shorten(reason, 200)}. ${consequence}`;
    const { hint = "", file: place = isStoreAddress(file) ? "the store" : file } = error as Partial<ContextError>;
    log([`${place}: ${message}.`, hint, consequence].filter((text) => text !== "").join(" "));
  };
  // Short, because clients wait only a few seconds for a server to start.
  const open = (): Promise<MaintainedStore> => openStore({ place: file, waitMs: 5_000 });
  const opened = await open().catch((error: unknown) => {
    fail(error);
    return undefined;
  });
  const kept = withFallback(opened, {
    open,
    fail,
    recovered() {
      problem = undefined;
      log("The store can be used again. It has everything that was kept in memory.");
    },
  });
  const upkeep = opened && options.upkeep?.(opened).catch(fail);
  const close = async (): Promise<void> => {
    await upkeep;
    await kept.close();
  };
  return { store: { ...kept, close }, problem: () => problem };
}

const firstPauseMs = 5_000;

interface FallbackOptions {
  open(): Promise<Store>;
  fail(error: unknown): void;
  /** Called when the file has everything again. */
  recovered(): void;
}

/** Continues in memory from the first call on that the file cannot answer, and returns to the file when it can be written
 *  again. */
function withFallback(opened: Store | undefined, { open, fail, recovered }: FallbackOptions): Store {
  let file = opened;
  let memory = file === undefined ? createStandIn(undefined, new Map()) : undefined;
  // It waits before it tries the file again, each time twice as long, up to a minute.
  let [pauseMs, nextTry, isUsable] = [firstPauseMs, Date.now() + firstPauseMs, false];
  /** The last sequence in the file, by stream. Ids of results are sequences and must not be used twice. */
  const lastSequences = new Map<string, number>();
  const check = async (): Promise<void> => {
    file ??= await open();
    // A full or locked file can still be read.
    await file.put("checks", "server", "");
    await file.delete("checks", "server");
    isUsable = true;
  };
  /** Runs beside the calls, because a locked file answers late. */
  const tryFile = (): void => {
    if (isUsable || Date.now() < nextTry) return;
    nextTry = Number.POSITIVE_INFINITY;
    check()
      .catch(() => {})
      .finally(() => {
        pauseMs = Math.min(pauseMs * 2, 60_000);
        nextTry = Date.now() + pauseMs;
      });
  };
  const returnToFile = async (standIn: StandIn, target: Store): Promise<void> => {
    isUsable = false;
    try {
      await standIn.writeTo(target);
      [memory, pauseMs] = [undefined, firstPauseMs];
      recovered();
    } catch {
      // It stays in memory until the next try.
    }
  };
  let last: Promise<unknown> = Promise.resolve();
  const run = <Result>(call: (store: Store) => Promise<Result>): Promise<Result> => {
    if (memory === undefined) return call(file!).catch((error: unknown) => fallBack(error, call));
    tryFile();
    // One after the other: what is written must not change while it is copied to the file.
    const done = last.then(async () => {
      if (isUsable && memory !== undefined && file !== undefined) await returnToFile(memory, file);
      return call(memory?.store ?? file!);
    });
    last = done.catch(() => {});
    return done;
  };
  const fallBack = <Result>(error: unknown, call: (store: Store) => Promise<Result>): Promise<Result> => {
    if (!isBroken(error)) throw error;
    if (memory === undefined) {
      fail(error);
      memory = createStandIn(file, lastSequences);
      nextTry = Date.now() + pauseMs;
    }
    return run(call);
  };
  const calls = delegated.map((name) => [
    name,
    (...args: never[]) => run((store) => (store[name] as (...args: never[]) => Promise<unknown>)(...args)),
  ]);
  return {
    ...(Object.fromEntries(calls) as Pick<Store, (typeof delegated)[number]>),
    append: (stream, values) =>
      run(async (store) => {
        const sequence = await store.append(stream, values);
        lastSequences.set(stream, sequence);
        return sequence;
      }),
    async close() {
      await memory?.store.close();
      // The problem with the file was already reported.
      await file?.close().catch((error: unknown) => {
        if (!isBroken(error)) throw error;
      });
    },
  };
}

const delegated = ["get", "put", "update", "delete", "list", "read", "trimStream", "deleteStream", "purge"] as const;

interface StandIn {
  readonly store: Store;
  /** Copies everything that was written. */
  writeTo(file: Store): Promise<void>;
}

/** A store in memory in the place of a file that cannot be written. It takes over what the file has as long as that can be
 *  read, so earlier results stay there. */
function createStandIn(file: Store | undefined, lastSequences: ReadonlyMap<string, number>): StandIn {
  const memory = createMaintainedMemory();
  /** What the file had, by collection and key. Absent if nobody has asked for it. */
  const records = new Map<string, Map<string, string | undefined>>();
  /** The last sequence in the file, by stream. */
  const streams = new Map<string, number>();
  let isReadable = file !== undefined;
  const readFile = async <Result>(read: (file: Store) => Promise<Result>): Promise<Result | undefined> => {
    if (!isReadable) return undefined;
    return read(file!).catch(() => {
      // Each try may take seconds.
      isReadable = false;
      return undefined;
    });
  };
  const takeRecord = async (collection: string, key: string, value: string | undefined): Promise<void> => {
    const known = records.get(collection) ?? new Map<string, string | undefined>();
    records.set(collection, known);
    if (known.has(key)) return;
    known.set(key, value);
    if (value !== undefined) await memory.put(collection, key, value);
  };
  const takeKey = async (...[collection, key]: readonly [string, string, ...unknown[]]): Promise<void> => {
    if (records.get(collection)?.has(key)) return;
    await takeRecord(collection, key, (await readFile((store) => store.get(collection, key)))?.value);
  };
  const takeStream = async (...[stream]: readonly [string, ...unknown[]]): Promise<void> => {
    if (streams.has(stream)) return;
    const entries = (await readFile((store) => store.read(stream))) ?? [];
    const last = Math.max(lastSequences.get(stream) ?? 0, entries.at(-1)?.sequence ?? 0);
    streams.set(stream, last);
    if (last > 0) await memory.copyStream({ stream, last, written: Date.now(), entries });
  };
  return {
    store: {
      ...memory,
      get: (...args) => takeKey(...args).then(() => memory.get(...args)),
      put: (...args) => takeKey(...args).then(() => memory.put(...args)),
      update: (...args) => takeKey(...args).then(() => memory.update(...args)),
      delete: (...args) => takeKey(...args).then(() => memory.delete(...args)),
      async list(collection, options) {
        const found = (await readFile((store) => store.list(collection, options))) ?? [];
        for (const { key, value } of found) await takeRecord(collection, key, value);
        return memory.list(collection, options);
      },
      append: (...args) => takeStream(...args).then(() => memory.append(...args)),
      read: (...args) => takeStream(...args).then(() => memory.read(...args)),
      trimStream: (...args) => takeStream(...args).then(() => memory.trimStream(...args)),
      deleteStream: (...args) => takeStream(...args).then(() => memory.deleteStream(...args)),
    },
    writeTo: (target) => copyChanges(memory, { records, streams }, target),
  };
}

/** Copies what was written since. If another process has changed the same record, the last writer wins. */
async function copyChanges(
  memory: Store,
  {
    records,
    streams,
  }: Record<"records", ReadonlyMap<string, ReadonlyMap<string, string | undefined>>> &
    Record<"streams", ReadonlyMap<string, number>>,
  target: Store,
): Promise<void> {
  const all = [...records].flatMap(([collection, known]) =>
    [...known].map(([key, before]) => ({ collection, key, before })),
  );
  for (const { collection, key, before } of all) {
    const value = (await memory.get(collection, key))?.value;
    if (value === before) continue;
    await (value === undefined ? target.delete(collection, key) : target.put(collection, key, value));
  }
  for (const [stream, last] of streams) {
    const values = (await memory.read(stream, { after: last })).map(({ value }) => value);
    if (values.length > 0) await target.append(stream, values);
  }
}

/** Whether the whole store cannot be used. */
function isBroken(error: unknown): boolean {
  if (!(error instanceof ContextError)) return true;
  return ["store_unavailable", "store_corrupt", "store_newer"].includes(error.code);
}
