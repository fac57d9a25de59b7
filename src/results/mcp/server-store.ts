/** The store of a server. A store that is damaged, locked, full, read-only or newer must not stop the server. Then the
 *  server continues with a store in memory and says so. */
import { ContextError } from "../../core/errors.ts";
import { createMemoryStore, type MaintainedStore, type Store } from "../../core/store/index.ts";
import { messageOf, shorten } from "../../core/text/index.ts";
import { isStoreAddress, openStore } from "../../host/index.ts";

export interface ServerStore {
  readonly store: Store;
  /** Returns sentences for the client: why results are not kept although a file was named, and the consequences. */
  problem(): string | undefined;
}

export type StoreUpkeep = (store: MaintainedStore) => Promise<void>;

export async function openServerStore(options: {
  /** The file or address. Undefined for a store in memory. */
  readonly file: string | undefined;
  /** The consequences if the file cannot be used, in one sentence. */
  readonly consequence: string;
  /** Deletes what is too old. Runs once, beside the first calls. */
  readonly upkeep?: StoreUpkeep | undefined;
  log(text: string): void;
}): Promise<ServerStore> {
  const { file, consequence, log } = options;
  if (file === undefined) return { store: createMemoryStore(), problem: () => undefined };
  let problem: string | undefined;
  const fail = (error: unknown): void => {
    if (problem !== undefined) return;
    const message = messageOf(error);
    const reason = message.replace(/^the store cannot be (used|read): /, "");
    problem = `The store cannot be used: ${shorten(reason, 200)}. ${consequence}`;
    const { hint = "", file: place = isStoreAddress(file) ? "the store" : file } = error as Partial<ContextError>;
    log([`${place}: ${message}.`, hint, consequence].filter((text) => text !== "").join(" "));
  };
  // Short, because clients wait only a few seconds for a server to start.
  const opened = await openStore({ place: file, waitMs: 5_000 }).catch((error: unknown) => {
    fail(error);
    return undefined;
  });
  if (opened === undefined) return { store: createMemoryStore(), problem: () => problem };
  const kept = withFallback(opened, fail);
  const upkeep = options.upkeep?.(opened).catch(fail);
  const close = async (): Promise<void> => {
    await upkeep;
    await kept.close();
  };
  return { store: { ...kept, close }, problem: () => problem };
}

/** Continues in memory from the first call on that the file cannot answer. */
function withFallback(file: Store, onFailure: (error: unknown) => void): Store {
  let memory: Store | undefined;
  /** The last sequence in the file, by stream. Ids of results are sequences and must not be used twice. */
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
    trimStream: (stream, through) =>
      run((store, isFile) => store.trimStream(stream, isFile ? through : Math.max(0, through - base(stream)))),
    deleteStream: (...args) => run((store) => store.deleteStream(...args)),
    purge: () => run((store) => store.purge()),
    async close() {
      await memory?.close();
      // The problem with the file was already reported.
      await file.close().catch((error: unknown) => {
        if (!isBroken(error)) throw error;
      });
    },
  };
}

/** Whether the whole store cannot be used. */
function isBroken(error: unknown): boolean {
  if (!(error instanceof ContextError)) return true;
  return ["store_unavailable", "store_corrupt", "store_newer"].includes(error.code);
}
