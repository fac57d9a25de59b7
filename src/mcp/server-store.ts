/** The store of a server. A store that is damaged, locked, full, read-only or newer must not take the server down: then the server goes on
 *  with a store in memory, and says so. */
import { ContextError } from "../errors.ts";
import { createMemoryStore, type Store } from "../store/index.ts";
import { messageOf, shorten } from "../text/index.ts";

export interface ServerStore {
  readonly store: Store;
  /** Sentences for the client: why results are not kept, although a file was named, and what follows. */
  problem(): string | undefined;
}

export interface ServerStoreOptions {
  /** Undefined for a store in memory. */
  readonly file: string | undefined;
  /** What follows where the file cannot be used, a sentence. */
  readonly consequence: string;
  log(text: string): void;
}

/** Short, since clients wait only some seconds for a server to start. */
const waitMs = 5_000;

export async function openServerStore(options: ServerStoreOptions): Promise<ServerStore> {
  const { file, consequence, log } = options;
  if (file === undefined) return { store: createMemoryStore(), problem: () => undefined };
  let problem: string | undefined;
  const fail = (error: unknown): void => {
    if (problem !== undefined) return;
    const message = messageOf(error);
    const reason = message.replace(/^the store cannot be (used|read): /, "");
    problem = `The store cannot be used: ${shorten(reason, 200)}. ${consequence}`;
    const { hint = "", file: place = file } = error as Partial<ContextError>;
    log([`${place}: ${message}.`, hint, consequence].filter((text) => text !== "").join(" "));
  };
  const opened = await openFile(file).catch((error: unknown) => {
    fail(error);
    return undefined;
  });
  return {
    store: opened === undefined ? createMemoryStore() : withFallback(opened, fail),
    problem: () => problem,
  };
}

async function openFile(path: string): Promise<Store> {
  const { openSqliteStore } = await import("../store/sqlite.ts");
  return openSqliteStore({ path, waitMs });
}

/** Goes on in memory from the first call on that the file cannot answer. */
function withFallback(file: Store, onFailure: (error: unknown) => void): Store {
  let memory: Store | undefined;
  /** By stream, the last sequence that the file told. Ids of results are sequences, and must not come twice. */
  const lastSequences = new Map<string, number>();
  const run = async <Result>(call: (store: Store, isFile: boolean) => Promise<Result>): Promise<Result> => {
    if (memory === undefined) {
      try {
        return await call(file, true);
      } catch (error) {
        if (!isBroken(error)) throw error;
        onFailure(error);
        memory ??= createMemoryStore();
      }
    }
    return call(memory, false);
  };
  const base = (stream: string): number => lastSequences.get(stream) ?? 0;
  return {
    get: (...args) => run((store) => store.get(...args)),
    put: (...args) => run((store) => store.put(...args)),
    update: (...args) => run((store) => store.update(...args)),
    delete: (...args) => run((store) => store.delete(...args)),
    list: (...args) => run((store) => store.list(...args)),
    append: (stream, values) =>
      run(async (store, isFile) => {
        const last = await store.append(stream, values);
        if (isFile) lastSequences.set(stream, last);
        return isFile ? last : base(stream) + last;
      }),
    read: (stream, options = {}) =>
      run(async (store, isFile) => {
        if (isFile) return store.read(stream, options);
        const after = Math.max(0, (options.after ?? 0) - base(stream));
        const entries = await store.read(stream, { ...options, after });
        return entries.map(({ sequence, value }) => ({ sequence: sequence + base(stream), value }));
      }),
    deleteStream: (...args) => run((store) => store.deleteStream(...args)),
    purge: () => run((store) => store.purge()),
    async close() {
      await memory?.close();
      // What is wrong with the file was told.
      await file.close().catch((error: unknown) => {
        if (!isBroken(error)) throw error;
      });
    },
  };
}

/** Whether the store as a whole cannot be used. */
function isBroken(error: unknown): boolean {
  if (!(error instanceof ContextError)) return true;
  return ["store_unavailable", "store_corrupt", "store_newer"].includes(error.code);
}
