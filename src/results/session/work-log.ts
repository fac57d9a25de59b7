import { invalidArgument } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import { isText, isTime, isWhole, objectOf, readJson, type ShapeCheck } from "../../core/text/index.ts";
import type { LogEntry } from "./log-entry.ts";

/** The compressed history of a session, oldest first. It has the entries that were not evicted. The store keeps the last
 *  evicted ones too. */
export interface WorkLog {
  add(entry: LogEntry): Promise<void>;
  /** Reads what other processes have added, and drops what they have evicted. */
  refresh(evicted: number): Promise<void>;
  entries(): readonly LogEntry[];
  /** Returns the tokens of entries whose results are no longer current. Current results are still complete in the
   *  conversation. */
  tokens(isCurrent: (id: string) => boolean): number;
  /** Evicts the oldest entry, but never the newest one or one whose result is current. Returns whether it evicted
   *  one. */
  evictOldest(isCurrent: (id: string) => boolean): boolean;
  clear(): void;
  evictedThrough(): number;
  /** Returns the number of steps so far, including evicted ones. */
  steps(): number;
}

/** Returns the stream with a session's work log. */
export function nameLogStream(sessionId: string): string {
  return `session/${sessionId}/log`;
}

/** `evicted` is the last sequence that was evicted. */
export async function openWorkLog(store: Store, stream: string, evicted: number): Promise<WorkLog> {
  const read = await readWorkLog(store, stream, { after: evicted });
  let kept = [...read.entries];
  let evictedThrough = evicted;
  let steps = read.lastSequence;
  const readNew = async (): Promise<void> => {
    const { entries, lastSequence } = await readWorkLog(store, stream, { after: steps });
    // Parallel calls of this process may have read the same entries in the meantime.
    const known = new Set(kept.map(({ sequence }) => sequence));
    const added = entries.filter(({ sequence }) => sequence > evictedThrough && !known.has(sequence));
    kept = [...kept, ...added].sort((left, right) => left.sequence - right.sequence);
    steps = Math.max(steps, lastSequence);
  };
  return {
    async add(entry) {
      const sequence = await store.append(stream, [JSON.stringify(entry)]);
      if (sequence > steps + 1) await readNew();
      if (!kept.some((each) => each.sequence === sequence)) kept.push({ ...entry, sequence });
      steps = Math.max(steps, sequence);
      // Keeps evicted entries about as long as their results. A write a step would be too many.
      if (sequence % 128 === 0) await store.trimStream(stream, Math.max(0, evictedThrough - 1_000));
    },
    async refresh(evictedElsewhere) {
      if (evictedElsewhere > evictedThrough) {
        evictedThrough = evictedElsewhere;
        kept = kept.filter(({ sequence }) => sequence > evictedThrough);
      }
      await readNew();
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
      kept = [];
      evictedThrough = steps;
    },
    evictedThrough: () => evictedThrough,
    steps: () => steps,
  };
}

export interface SequencedEntry extends LogEntry {
  readonly sequence: number;
}

/** Reads entries of a log. `damaged` is the number of those that could not be read. */
export async function readWorkLog(
  store: Store,
  stream: string,
  range: { readonly after?: number; readonly limit?: number },
): Promise<{ readonly entries: readonly SequencedEntry[]; readonly damaged: number; readonly lastSequence: number }> {
  const stored = await store.read(stream, range);
  const entries = stored.flatMap(({ sequence, value }) => {
    const entry = readJson(value, isEntry);
    return entry === undefined ? [] : [{ ...entry, sequence }];
  });
  const lastSequence = stored.at(-1)?.sequence ?? range.after ?? 0;
  return { entries, damaged: stored.length - entries.length, lastSequence };
}

const isEntry: ShapeCheck<LogEntry> = objectOf(
  {
    id: isText,
    tool: isText,
    args: isText,
    time: isTime,
    result: isText,
    tokens: isWhole,
  },
  { note: isText },
);

export const workLogViews = ["minimal", "recent", "full"] as const;
export type WorkLogViewName = (typeof workLogViews)[number];

/** `recent` has the newest entry first, `entries` the oldest one. */
export type WorkLogView =
  | { readonly steps: number; readonly last_result?: string }
  | { readonly total_steps: number; readonly recent: readonly ViewedEntry[] }
  | { readonly total_steps: number; readonly evicted: number; readonly entries: readonly ViewedEntry[] };

type ViewedEntry = Omit<LogEntry, "tokens">;

export function viewWorkLog(log: Pick<WorkLog, "entries" | "steps">, view: WorkLogViewName): WorkLogView {
  const entries = log.entries();
  const viewed = (list: readonly LogEntry[]): ViewedEntry[] => list.map(({ tokens, ...entry }) => entry);
  switch (view) {
    case "minimal": {
      const last = entries.at(-1);
      return { steps: log.steps(), ...(last === undefined ? {} : { last_result: last.result }) };
    }
    case "recent": {
      const maxRecent = 5;
      return { total_steps: log.steps(), recent: viewed(entries.slice(-maxRecent).reverse()) };
    }
    case "full":
      return { total_steps: log.steps(), evicted: log.steps() - entries.length, entries: viewed(entries) };
    default:
      throw invalidArgument(`there is no view ${JSON.stringify(view)}`, `Use one of ${workLogViews.join(", ")}.`);
  }
}
