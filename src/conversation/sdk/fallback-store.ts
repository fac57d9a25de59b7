/** A store that cannot stop a call: if it fails or does not answer, the conversation goes on from memory. */
import { ContextError } from "../../core/errors.ts";
import { createMemoryStore, type Store } from "../../core/store/index.ts";

interface FallbackOptions {
  /** Called with each failure. */
  readonly onFailure: (error: unknown) => void;
  readonly now: () => number;
  /** How long to wait for an answer of the store.
   * @default 5000 */
  readonly waitMs?: number | undefined;
}

/** The store of one conversation. */
export interface FallbackStore {
  /** Goes on in memory. */
  readonly store: Store;
  /** Rejects once the store has failed, for content that must not be replaced by a note unless it can be recalled. */
  readonly strict: Store;
}

/** Returns a function that opens the store for one conversation. A conversation whose store failed stays in memory: what
 *  it has stored and what it knows must not disagree. Conversations that start later use the store again. */
export function createFallbackStores(store: Store, options: FallbackOptions): () => FallbackStore {
  const health: Health = { failedAt: Number.NEGATIVE_INFINITY };
  return () => openFallback(store, { waitMs: defaultWaitMs, ...options, health });
}

/** Far longer than a store takes, and short enough for a person who waits for an answer. */
const defaultWaitMs = 5_000;
/** A store that does not answer would delay every new conversation. */
const pauseMs = 60_000;

interface Health {
  failedAt: number;
}

type Attempt = <Answer>(
  call: (target: Store) => Promise<Answer>,
  keep?: (answer: Answer) => Promise<unknown> | undefined,
) => Promise<Answer>;

function openFallback(base: Store, options: FallbackOptions & { health: Health; waitMs: number }): FallbackStore {
  const { health, now, onFailure, waitMs } = options;
  const memory = createMemoryStore();
  let failure: unknown = now() - health.failedAt < pauseMs ? new Error("the store failed a moment ago") : undefined;
  const ask: Attempt = async (call, keep) => {
    if (failure !== undefined) throw failure;
    try {
      const answer = await within(waitMs, () => call(base));
      await keep?.(answer);
      return answer;
    } catch (error) {
      if (isCallersOwn(error)) throw error;
      failure = error;
      health.failedAt = now();
      onFailure(error);
      throw error;
    }
  };
  const askOrRemember: Attempt = async (call, keep) => {
    try {
      return await ask(call, keep);
    } catch (error) {
      if (failure === undefined || isCallersOwn(error)) throw error;
      return call(memory);
    }
  };
  return { store: createStore(askOrRemember, memory), strict: createStore(ask, memory) };
}

/** Memory has the last records that were read, and what was written to them, so that it can take over. */
function createStore(attempt: Attempt, memory: Store): Store {
  const known = new Set<string>();
  const keep = async (collection: string, key: string, value: string | undefined): Promise<void> => {
    const name = JSON.stringify([collection, key]);
    known.delete(name);
    known.add(name);
    if (value !== undefined) await memory.put(collection, key, value);
    const [oldest] = known;
    if (known.size <= maxKnown || oldest === undefined) return;
    known.delete(oldest);
    await memory.delete(...(JSON.parse(oldest) as [string, string]));
  };
  const isKnown = (collection: string, key: string): boolean => known.has(JSON.stringify([collection, key]));
  return {
    get: (collection, key) =>
      attempt(
        (target) => target.get(collection, key),
        (record) => keep(collection, key, record?.value),
      ),
    put: (collection, key, value, options) =>
      attempt(
        (target) => target.put(collection, key, value, target === memory ? {} : options),
        () => (isKnown(collection, key) ? keep(collection, key, value) : undefined),
      ),
    update: (collection, key, change) =>
      attempt(
        (target) => target.update(collection, key, change),
        ({ value }) => keep(collection, key, value),
      ),
    delete: (collection, key, options) =>
      attempt(
        (target) => target.delete(collection, key, target === memory ? {} : options),
        () => memory.delete(collection, key),
      ),
    list: (collection, options) => attempt((target) => target.list(collection, options)),
    purge: () => attempt((target) => target.purge()),
    append: (stream, values) => attempt((target) => target.append(stream, values)),
    read: (stream, options) => attempt((target) => target.read(stream, options)),
    trimStream: (stream, through) => attempt((target) => target.trimStream(stream, through)),
    deleteStream: (stream) => attempt((target) => target.deleteStream(stream)),
    close: async () => undefined,
  };
}

/** A conversation has a checkpoint, the times of its calls and the state of its intake. */
const maxKnown = 8;

/** Another process trimmed the conversation, or the caller passed a wrong name. The store itself works. */
function isCallersOwn(error: unknown): boolean {
  return error instanceof ContextError && (error.code === "store_conflict" || error.code === "invalid_argument");
}

/** Rejects if the call takes longer. A write that arrives late is not repeated. */
async function within<Answer>(waitMs: number, call: () => Promise<Answer>): Promise<Answer> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const error = new ContextError("store_unavailable", `it did not answer within ${waitMs} ms`);
    timer = setTimeout(() => reject(error), waitMs);
  });
  try {
    return await Promise.race([call(), late]);
  } finally {
    clearTimeout(timer);
  }
}
