/** What people see of a session (the account, the work log, evicted entries, the largest results) and how it is deleted. */
import { type LedgerTier, ledgerTiers } from "../../core/budget/index.ts";
import type { MaintainedStore, Store } from "../../core/store/index.ts";
import { createOffsetTokens } from "./continuations.ts";
import { createLedger, describeLimit, type Ledger } from "./ledger.ts";
import type { LogEntry } from "./log-entry.ts";
import {
  type LargeResult,
  listGroups,
  loadRecord,
  loadRecords,
  type SessionRecord,
  sessionCollection,
} from "./session-record.ts";
import { readStored } from "./sources.ts";
import { createStoredResults } from "./stored-results.ts";
import { nameLogStream, readWorkLog, type SequencedEntry } from "./work-log.ts";

/** The account of a session. All numbers but `calls` are tokens. */
export interface SessionStatus {
  readonly id: string;
  /** When the session started, in ISO 8601. */
  readonly started: string;
  /** The name of the counter. */
  readonly counter: string;
  readonly calls: number;
  /** The budget for everything. */
  readonly total: number | "unlimited";
  /** What each kind of content uses, and how much it may use. */
  readonly ledger: Readonly<Record<LedgerTier, { readonly used: number; readonly limit: number | "unlimited" }>>;
  /** The total minus system text, history and tool results. If the program never calls
   *  `beginTurn`, everything that was delivered in this conversation counts. */
  readonly remaining: number | "unlimited";
  /** `remaining` minus the user's message and the reserve for the response. Texts call this number "left". */
  readonly available: number | "unlimited";
  /** What tools have returned in this conversation. */
  readonly delivered: number;
  /** What tools have returned in all conversations of the session. */
  readonly lifetime: number;
  /** The account in one line. */
  readonly summary: string;
  /** What to tell the model if little is available. */
  readonly warning?: string;
  /** The ten largest results, largest first. */
  readonly largest: readonly LargeResult[];
}

/** The account of a session with its work log. */
export interface SessionReport extends SessionStatus {
  /** The compressed history, oldest first. */
  readonly workLog: readonly LogEntry[];
  /** Entries that left the work log to save tokens: how many, and the last ones, newest last. */
  readonly evicted: { readonly count: number; readonly entries: readonly LogEntry[] };
  /** The number of entries of the work log that could not be read. */
  readonly damaged: number;
}

/** One session of a list. */
export interface SessionLine {
  readonly id: string;
  readonly started: string;
  /** The time of the last call. */
  readonly lastUsed: string;
  readonly calls: number;
  readonly remaining: number | "unlimited";
  /** `remaining` minus the user's message and the reserve for the response. */
  readonly available: number | "unlimited";
}

export function createStatus(id: string, record: Omit<SessionRecord, "ledger">, ledger: Ledger): SessionStatus {
  const { started, counter, calls, largest } = record;
  const warning = ledger.warning();
  const used = ledger.used();
  const tiers = ledgerTiers.map((tier) => [
    tier,
    { used: used[tier], limit: describeLimit(ledger.limits.tiers[tier]) },
  ]);
  return {
    id,
    started,
    counter,
    calls,
    total: describeLimit(ledger.limits.total),
    ledger: Object.fromEntries(tiers) as SessionStatus["ledger"],
    remaining: describeLimit(ledger.remaining()),
    available: describeLimit(ledger.available()),
    delivered: ledger.delivered(),
    lifetime: ledger.lifetime(),
    summary: ledger.summary(),
    ...(warning === undefined ? {} : { warning }),
    largest,
  };
}

/** Lists the sessions of a store that have at least one call, the last used one first.
 *
 * @example
 * ```ts
 * import { listSessions } from "plimsoll/session";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "state.db" });
 * for (const { id, calls, lastUsed } of await listSessions(store)) console.log(id, calls, lastUsed);
 * ```
 */
export async function listSessions(store: Store): Promise<SessionLine[]> {
  const lines = [...(await loadRecords(store))].flatMap(([id, record]) => {
    if (record === undefined || record.calls === 0) return [];
    const { started, calls } = record;
    const ledger = createLedger(record.limits, record.ledger);
    const left = { remaining: describeLimit(ledger.remaining()), available: describeLimit(ledger.available()) };
    return { id, started, lastUsed: findLastUse(record), calls, ...left };
  });
  return lines.sort((left, right) => (left.lastUsed < right.lastUsed ? 1 : -1));
}

const maxEvicted = 20;

/** Reads the account and the work log of a session, or returns `undefined` if the store does not have it. The session
 *  may be running: this function writes nothing.
 *
 * @example
 * ```ts
 * import { readSessionReport } from "plimsoll/session";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "state.db" });
 * const report = await readSessionReport(store, "build-7");
 * console.log(report?.summary, report?.workLog.length);
 * ```
 */
export async function readSessionReport(store: Store, sessionId: string): Promise<SessionReport | undefined> {
  const record = await loadRecord(store, sessionId);
  if (record === undefined) return undefined;
  const { evictedThrough } = record;
  const viewEntry = ({ sequence, ...entry }: SequencedEntry): LogEntry => ({
    ...entry,
    id: renderId(record, entry.id),
  });
  const status = createStatus(sessionId, record, createLedger(record.limits, record.ledger));
  const stream = nameLogStream(sessionId);
  const workLog = await readWorkLog(store, stream, { after: evictedThrough });
  const evicted =
    evictedThrough === 0
      ? { entries: [] }
      : await readWorkLog(store, stream, { after: Math.max(0, evictedThrough - maxEvicted), limit: maxEvicted });
  return {
    ...status,
    largest: status.largest.map((each) => ({ ...each, id: renderId(record, each.id) })),
    workLog: workLog.entries.map(viewEntry),
    damaged: workLog.damaged,
    evicted: {
      count: evictedThrough,
      entries: evicted.entries.filter(({ sequence }) => sequence <= evictedThrough).map(viewEntry),
    },
  };
}

/** Names the group of a result only if the session has several. */
function renderId({ resultsOf, alsoResultsOf }: SessionRecord, id: string): string {
  return alsoResultsOf === undefined && id.startsWith(`${resultsOf}/`) ? id.slice(id.indexOf("/") + 1) : id;
}

/** What a user needs to know to decide whether to delete a session. */
export interface StoredSession {
  readonly id: string;
  /** Undefined if the record cannot be read. */
  readonly lastUsed: string | undefined;
  readonly calls: number;
  /** The ids that its results are stored under. */
  readonly resultsOf: readonly string[];
}

/** Returns every session of the store, including those without a call and those with a damaged record. */
export async function listStoredSessions(store: Store): Promise<StoredSession[]> {
  return [...(await loadRecords(store))].map(([id, record]) => ({
    id,
    lastUsed: record && findLastUse(record),
    calls: record?.calls ?? 0,
    resultsOf: listGroups(id, record ?? {}),
  }));
}

/** Deletes a session: its account, its work log, its results and their tokens. Results that several sessions share are
 *  deleted with the session whose id is the `groupId`, or with the last session of the group. Call `store.purge()`
 *  afterwards to remove the bytes from the disk.
 *
 * @example
 * ```ts
 * import { deleteSession } from "plimsoll/session";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "state.db" });
 * await deleteSession(store, "build-7");
 * await store.purge();
 * ```
 */
export async function deleteSession(store: Store, sessionId: string): Promise<void> {
  const records = await loadRecords(store);
  const own = listGroups(sessionId, records.get(sessionId) ?? {});
  records.delete(sessionId);
  const others = new Set([...records].flatMap(([id, record]) => listGroups(id, record ?? {})));
  for (const group of own) {
    if (group !== sessionId && others.has(group)) continue;
    await deleteResults(store, group);
  }
  await store.deleteStream(nameLogStream(sessionId));
  await store.delete(sessionCollection, sessionId);
}

async function deleteResults(store: Store, group: string): Promise<void> {
  await createStoredResults(store, group).deleteAll();
  await createOffsetTokens(store, group).forget();
}

/** Deletes results and work logs that no session refers to and that nobody wrote since `before`: a killed process may
 *  leave them. Returns how many streams these are. */
export async function pruneOrphans(
  store: MaintainedStore,
  { before, dryRun }: { readonly before: number; readonly dryRun: boolean },
): Promise<number> {
  const records = await loadRecords(store);
  const known = new Set([...records].flatMap(([id, record]) => [id, ...listGroups(id, record ?? {})]));
  let orphans = 0;
  for (const { stream, written } of await store.listStreams({ prefix: "session/" })) {
    const [, id = "", kind] = /^session\/(.*)\/(ids|log)$/s.exec(stream) ?? [];
    if (kind === undefined || written >= before || known.has(id)) continue;
    orphans += 1;
    if (dryRun) continue;
    if (kind === "ids") await deleteResults(store, id);
    else await store.deleteStream(stream);
  }
  return orphans;
}

/** Returns a result of a session by its id; without `sessionId` of any session. */
export async function findStoredResult(
  store: Store,
  id: string,
  sessionId?: string,
): Promise<Awaited<ReturnType<typeof readStored>>> {
  const records = [...(await loadRecords(store))];
  const chosen = records.filter(([session]) => session === (sessionId ?? session));
  for (const group of new Set(chosen.flatMap(([session, record]) => listGroups(session, record ?? {})))) {
    const found = await readStored(createStoredResults(store, group), id);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the time of the last call, or of the start if there was no call. */
function findLastUse({ started, lastUsed = started }: SessionRecord): string {
  return lastUsed;
}
