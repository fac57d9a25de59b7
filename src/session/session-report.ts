/** A session as people look at it: the account, the work log, what was evicted, the largest results. */
import { createLedger, type Ledger, type LedgerTier, ledgerTiers } from "../budget/index.ts";
import type { Store } from "../store/index.ts";
import {
  type LargeResult,
  lastUseOf,
  loadRecord,
  loadRecords,
  type SessionRecord,
} from "./state/session-record.ts";
import type { LogEntry } from "./work-log/log-entry.ts";
import { viewWorkLog, type WorkLogView, type WorkLogViewName } from "./work-log/views.ts";
import { readLog } from "./work-log/work-log.ts";

export interface SessionStatus {
  readonly id: string;
  readonly started: string;
  readonly counter: string;
  readonly calls: number;
  readonly total: number;
  readonly ledger: Readonly<Record<LedgerTier, { readonly used: number; readonly limit: number }>>;
  readonly remaining: number;
  readonly available: number;
  /** By tools, in the whole session. */
  readonly delivered: number;
  readonly summary: string;
  readonly warning?: string;
  readonly largest: readonly LargeResult[];
}

export interface SessionReport extends SessionStatus {
  readonly workLog: readonly LogEntry[];
  /** Newest last; `count` tells how many there are in all. */
  readonly evicted: { readonly count: number; readonly entries: readonly LogEntry[] };
  /** Entries of the work log that cannot be read, and are left out. */
  readonly damaged: number;
}

export interface SessionLine {
  readonly id: string;
  readonly started: string;
  /** The last call. */
  readonly lastUsed: string;
  readonly calls: number;
  readonly remaining: number;
}

export function statusOf(id: string, record: Omit<SessionRecord, "ledger">, ledger: Ledger): SessionStatus {
  const { started, counter, calls, largest } = record;
  const warning = ledger.warning();
  const used = ledger.used();
  const tiers = ledgerTiers.map((tier) => [tier, { used: used[tier], limit: ledger.limits.tiers[tier] }]);
  return {
    id,
    started,
    counter,
    calls,
    total: ledger.limits.total,
    ledger: Object.fromEntries(tiers) as SessionStatus["ledger"],
    remaining: ledger.remaining(),
    available: ledger.available(),
    delivered: ledger.delivered(),
    summary: ledger.summary(),
    ...(warning === undefined ? {} : { warning }),
    largest,
  };
}

/** The sessions of a store, latest used first. One without a call, as of a server that did not start, has nothing to tell. */
export async function listSessions(store: Store): Promise<SessionLine[]> {
  const lines = [...(await loadRecords(store))].flatMap(([id, record]) => {
    if (record === undefined || record.calls === 0) return [];
    const { started, calls } = record;
    return { id, started, lastUsed: lastUseOf(record), calls, remaining: reopenLedger(record).remaining() };
  });
  return lines.sort((left, right) => (left.lastUsed < right.lastUsed ? 1 : -1));
}

const mostEvicted = 20;

/** Undefined where the store has no session of that id. Reads only: the session may be running. */
export async function readSession(store: Store, id: string): Promise<SessionReport | undefined> {
  const record = await loadRecord(store, id);
  if (record === undefined) return undefined;
  const { evictedThrough } = record;
  const workLog = await readLog(store, id, { after: evictedThrough });
  const evicted =
    evictedThrough === 0
      ? []
      : (await readLog(store, id, { after: Math.max(0, evictedThrough - mostEvicted), limit: mostEvicted }))
          .entries;
  return {
    ...statusOf(id, record, reopenLedger(record)),
    workLog: workLog.entries.map(withoutSequence),
    damaged: workLog.damaged,
    evicted: {
      count: evictedThrough,
      entries: evicted.filter(({ sequence }) => sequence <= evictedThrough).map(withoutSequence),
    },
  };
}

/** The work log of a report as a model gets it. */
export function viewReport({ workLog, evicted, damaged }: SessionReport, view: WorkLogViewName): WorkLogView {
  const steps = evicted.count + workLog.length + damaged;
  return viewWorkLog({ entries: () => workLog, steps: () => steps }, view);
}

function reopenLedger({ limits, ledger }: Pick<SessionRecord, "limits" | "ledger">): Ledger {
  return createLedger(limits, ledger);
}

function withoutSequence({ sequence, ...entry }: LogEntry & { readonly sequence: number }): LogEntry {
  return entry;
}
