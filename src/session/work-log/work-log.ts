import type { Store } from "../../store/index.ts";
import { type Check, isText, isTime, isWhole, objectOf, readJson } from "../../text/index.ts";
import type { LogEntry } from "./log-entry.ts";

/** The compressed history of a session, oldest first. The store keeps all of it; here is what was not evicted. */
export interface WorkLog {
  add(entry: LogEntry): Promise<void>;
  entries(): readonly LogEntry[];
  /** Of the entries whose results are no longer current: those still stand in the conversation whole. */
  tokens(isCurrent: (id: string) => boolean): number;
  /** Gives up the oldest entry, never the newest one, nor one whose result is current. Whether there was one to give up. */
  evictOldest(isCurrent: (id: string) => boolean): boolean;
  clear(): void;
  evictedThrough(): number;
  /** Steps so far, evicted ones included. */
  steps(): number;
}

export async function openWorkLog(store: Store, sessionId: string, evicted = 0): Promise<WorkLog> {
  const stream = logStream(sessionId);
  const read = await readLog(store, sessionId, { after: evicted });
  const kept = [...read.entries];
  let evictedThrough = evicted;
  let steps = read.lastSequence;
  return {
    async add(entry) {
      const sequence = await store.append(stream, [JSON.stringify(entry)]);
      kept.push({ ...entry, sequence });
      steps = Math.max(steps, sequence);
    },
    entries: () => kept.map(({ sequence, ...entry }) => entry),
    tokens: (isCurrent) => kept.reduce((sum, { id, tokens }) => sum + (isCurrent(id) ? 0 : tokens), 0),
    evictOldest(isCurrent) {
      const oldest = kept[0];
      if (oldest === undefined || kept.length === 1 || isCurrent(oldest.id)) return false;
      kept.shift();
      evictedThrough = oldest.sequence;
      return true;
    },
    clear() {
      kept.length = 0;
      evictedThrough = steps;
    },
    evictedThrough: () => evictedThrough,
    steps: () => steps,
  };
}

export interface SequencedEntry extends LogEntry {
  readonly sequence: number;
}

export interface ReadLog {
  readonly entries: readonly SequencedEntry[];
  /** How many could not be read, and are left out. */
  readonly damaged: number;
  readonly lastSequence: number;
}

export async function readLog(
  store: Store,
  sessionId: string,
  range: { after?: number; limit?: number } = {},
): Promise<ReadLog> {
  const stored = await store.read(logStream(sessionId), range);
  const entries = stored.flatMap(({ sequence, value }) => {
    const entry = readJson(value, isEntry);
    return entry === undefined ? [] : [{ ...entry, sequence }];
  });
  const lastSequence = stored.at(-1)?.sequence ?? range.after ?? 0;
  return { entries, damaged: stored.length - entries.length, lastSequence };
}

const isEntry: Check<LogEntry> = objectOf({
  ...{ id: isText, tool: isText, args: isText, time: isTime },
  ...{ result: isText, tokens: isWhole },
});

export function logStream(sessionId: string): string {
  return `session/${sessionId}/log`;
}
