/** The stream `events` of a store: one entry for each thing that happened, with numbers and names, never with text of a
 *  conversation. Every part of Plimsoll that has a store can write to it, and adds kinds instead of streams. */
import type { Store } from "./store.ts";

/** `call`: an answered call of a model. `trim`: a trim of a history. `intake`: a shortened result. `loss`: a lost cache.
 *  `guard`: a stop by the spend guard. `attempt`: a run of an agent. `error`: something failed beside a call. */
const eventKinds = ["call", "trim", "intake", "loss", "guard", "attempt", "error"] as const;

interface StoredEvent {
  /** The version of this shape. */
  readonly v: 1;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The part of Plimsoll that wrote it: `sdk`, `wrap`, `plugin`. */
  readonly source: string;
  /** The program or package that called the model. */
  readonly client?: string | undefined;
  readonly project?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly callId?: string | undefined;
  readonly kind: (typeof eventKinds)[number];
  /** What was measured, and names such as a model or a cause. */
  readonly numbers: Readonly<Record<string, number | string | undefined>>;
}

const stream = "events";

/** How long events are kept, in milliseconds. */
export const eventLifeMs: number = 30 * 86_400_000;

export interface EventWriter {
  /** Returns at once. Events that are written together go into the store together. */
  write(event: Omit<StoredEvent, "v" | "at">): void;
  /** Resolves when everything written so far is in the store, or could not be written. */
  settled(): Promise<void>;
}

/** Creates a writer for the stream. It also deletes events that are too old: once at the start, then from time to
 *  time. */
export function createEventWriter(
  store: Store,
  // Failures are passed on. The events are then lost.
  { now, onFailure }: { readonly now: () => number; readonly onFailure: (error: unknown) => void },
): EventWriter {
  let pending: string[] = [];
  let writing: Promise<void> | undefined;
  let untilPrune = 0;
  const pruneEvery = 1_000;
  const drain = async (): Promise<void> => {
    try {
      while (pending.length > 0) {
        const values = pending;
        pending = [];
        await store.append(stream, values);
        untilPrune -= values.length;
        if (untilPrune > 0) continue;
        untilPrune = pruneEvery;
        await pruneEvents(store, { before: now() - eventLifeMs });
      }
    } catch (error) {
      pending = [];
      onFailure(error);
    } finally {
      writing = undefined;
    }
  };
  // A store that does not answer must not fill the memory.
  const maxPending = 1_000;
  return {
    write(event) {
      if (pending.length >= maxPending) pending.shift();
      // A name is short and has no spaces, so that no sentence of a conversation gets in by mistake.
      const isAllowed = (value: unknown): boolean =>
        typeof value === "string" ? /^[^\s\p{Cc}]{1,100}$/u.test(value) : Number.isFinite(value);
      pending.push(
        JSON.stringify({
          v: 1,
          at: now(),
          ...event,
          numbers: Object.fromEntries(Object.entries(event.numbers).filter(([, value]) => isAllowed(value))),
        }),
      );
      writing ??= Promise.resolve().then(drain);
    },
    settled: async () => writing,
  };
}

/** Returns events with their places in the stream, oldest first. Skips entries of another version. */
export async function readEvents(
  store: Store,
  options: { readonly after?: number | undefined; readonly limit?: number | undefined } = {},
): Promise<(StoredEvent & { readonly sequence: number })[]> {
  const entries = await store.read(stream, options);
  return entries.flatMap(({ sequence, value }) => {
    const event = parseEvent(value);
    return event === undefined ? [] : [{ ...event, sequence }];
  });
}

function parseEvent(value: string): StoredEvent | undefined {
  try {
    const event = JSON.parse(value) as Partial<StoredEvent> | null;
    const isEvent = event?.v === 1 && Number.isFinite(event.at) && typeof event.numbers === "object";
    return isEvent && event.numbers !== null && eventKinds.includes(event.kind!) ? (event as StoredEvent) : undefined;
  } catch {
    return undefined;
  }
}

/** Deletes the events before a time, in milliseconds since 1970. Returns how many there are. */
export async function pruneEvents(
  store: Store,
  { before, dryRun = false }: { readonly before: number; readonly dryRun?: boolean | undefined },
): Promise<number> {
  let through = 0;
  let count = 0;
  for (;;) {
    const page = await store.read(stream, { after: through, limit: 500 });
    // An entry that cannot be read has no time. It goes with what follows it.
    const firstKept = page.findIndex(({ value }) => (parseEvent(value)?.at ?? 0) >= before);
    const old = firstKept < 0 ? page : page.slice(0, firstKept);
    through = old.at(-1)?.sequence ?? through;
    count += old.length;
    if (firstKept >= 0 || page.length === 0) break;
  }
  if (count > 0 && !dryRun) await store.trimStream(stream, through);
  return count;
}

/** Deletes the events of some sessions. The others move behind what is written meanwhile, so none of them is lost. */
export async function forgetEvents(store: Store, sessionIds: ReadonlySet<string>): Promise<void> {
  const kept: string[] = [];
  let through = 0;
  let count = 0;
  for (;;) {
    const page = await store.read(stream, { after: through, limit: 500 });
    const left = page.filter(({ value }) => !sessionIds.has(parseEvent(value)?.sessionId ?? ""));
    kept.push(...left.map(({ value }) => value));
    count += page.length;
    through = page.at(-1)?.sequence ?? through;
    if (page.length === 0) break;
  }
  if (kept.length === count) return;
  if (kept.length > 0) await store.append(stream, kept);
  await store.trimStream(stream, through);
}
