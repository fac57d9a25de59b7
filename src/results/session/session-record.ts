/** The stored record of a session, written after every call. Results and the work log are stored separately. Several
 *  processes may have the session open, so a write merges what this process has changed into what is stored. */

import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import {
  isNumber,
  isText,
  isTime,
  isWhole,
  listOf,
  mapOf,
  objectOf,
  pairOf,
  readJson,
  type ShapeCheck,
} from "../../core/text/index.ts";
import { createLedger, type LedgerLimits, type LedgerSnapshot } from "./ledger.ts";
import { nameLogStream, openWorkLog } from "./work-log.ts";

export interface SessionRecord {
  readonly version: 1;
  /** ISO 8601. */
  readonly started: string;
  /** When the last call came, in ISO 8601. Absent before the first call. */
  readonly lastUsed?: string | undefined;
  /** The id that its results are stored under. Absent if that is the session's own id. */
  readonly resultsOf?: string | undefined;
  /** Further ids with results of the session, if servers with different results share it. */
  readonly alsoResultsOf?: readonly string[] | undefined;
  readonly counter: string;
  readonly calls: number;
  readonly limits: LedgerLimits;
  readonly ledger: LedgerSnapshot;
  /** The last sequence of the work log that was evicted. Later entries are kept. */
  readonly evictedThrough: number;
  /** Delivered results, largest first. */
  readonly largest: readonly LargeResult[];
  /** By tool: the units and tokens of the results so far. */
  readonly measured: Readonly<Record<string, Measured>>;
  /** Versions of results with a continuation, oldest first. */
  readonly versions: readonly (readonly [call: string, version: string])[];
}

export interface LargeResult {
  readonly id: string;
  readonly tool: string;
  readonly tokens: number;
}

export interface Measured {
  readonly units: number;
  readonly tokens: number;
}

/** The collection with the records of sessions. */
export const sessionCollection = "sessions";

/** Returns undefined if there is no such session. Rejects if its record is damaged or of a newer version. */
export async function loadRecord(store: Store, id: string): Promise<SessionRecord | undefined> {
  const stored = await store.get(sessionCollection, id);
  const record = stored && readRecord(stored.value);
  if (stored === undefined || record !== undefined) return record;
  const hint = `Delete it with plimsoll session rm ${id}, or start a session with another id.`;
  if ((readJson(stored.value, objectOf({ version: isWhole }))?.version ?? 0) > 1) {
    throw new ContextError("store_newer", `session ${id} was written by a newer plimsoll`, { hint });
  }
  throw new ContextError("store_corrupt", `session ${id} cannot be read: its record is damaged`, { hint });
}

/** Returns all sessions by id. A record is undefined if it cannot be read. */
export async function loadRecords(store: Store): Promise<Map<string, SessionRecord | undefined>> {
  return new Map((await store.list(sessionCollection)).map(({ key, value }) => [key, readRecord(value)]));
}

/** Returns the last use of each group of results. A record that cannot be read counts as always in use. */
export async function listLastUses(store: Store): Promise<Map<string, string>> {
  const isUsed = objectOf({ started: isTime }, { lastUsed: isTime, resultsOf: isText, alsoResultsOf: listOf(isText) });
  const uses = new Map<string, string>();
  for (const { key, value } of await store.list(sessionCollection)) {
    // A damaged record may still say when it was used.
    const record = readJson(value, isUsed);
    const lastUsed = record === undefined ? "\uffff" : (record.lastUsed ?? record.started);
    for (const group of listGroups(key, record ?? {})) {
      if (lastUsed > (uses.get(group) ?? "")) uses.set(group, lastUsed);
    }
  }
  return uses;
}

/** Writes the record only if no other session has this id. Returns whether it did. */
export async function claimRecord(store: Store, id: string, record: SessionRecord): Promise<boolean> {
  try {
    await store.put(sessionCollection, id, JSON.stringify(record), { expectedRevision: 0 });
    return true;
  } catch (error) {
    if (error instanceof ContextError && error.code === "store_conflict") return false;
    throw error;
  }
}

/** Gives the room of delivered results back, because the client has compacted the conversation. Processes that have the
 *  session open notice it with their next call. Returns false if there is no such session. */
export async function compactSession(store: Store, id: string): Promise<boolean> {
  const record = await loadRecord(store, id);
  if (record === undefined) return false;
  const log = await openWorkLog(store, nameLogStream(id), record.evictedThrough);
  await store.update(sessionCollection, id, (text) => {
    const stored = readRecord(text ?? "") ?? record;
    const ledger = createLedger(stored.limits, stored.ledger);
    ledger.reset();
    ledger.record("history", 0);
    return JSON.stringify({ ...stored, ledger: ledger.snapshot(), evictedThrough: log.steps() });
  });
  return true;
}

/** Connects the state of this process with the record in the store, which other processes may change too. `save` merges
 *  the changes of this process into what is stored. `refresh` takes over what others have changed. */
export function shareRecord(
  store: Store,
  state: {
    readonly id: string;
    /** The record as it was loaded. */
    readonly record: SessionRecord;
    /** Returns the record with the changes of this process. */
    current(base: SessionRecord): SessionRecord;
    /** `isNew` says whether another process has changed the record. */
    restore(record: SessionRecord, isNew: boolean): Promise<void>;
  },
): { save(): Promise<void>; refresh(): Promise<void> } {
  const { id, record, current, restore } = state;
  /** The record as it was stored when this process last saw it. */
  let base = record;
  let baseText: string | undefined;
  let last: Promise<unknown> = Promise.resolve();
  // One at a time: a change must not be merged twice.
  const inTurn = (task: () => Promise<void>): Promise<void> => {
    const done = last.then(task);
    last = done.catch(() => {});
    return done;
  };
  const save = async (): Promise<void> => {
    let [sent, merged, before] = [base, base, undefined as string | undefined];
    const { value } = await store.update(sessionCollection, id, (text) => {
      // Nearly always no other process has changed the record since.
      const stored = text === undefined ? undefined : text === baseText ? base : readRecord(text);
      before = text;
      sent = current(base);
      merged = stored === undefined ? sent : mergeRecords({ base, mine: sent, stored });
      return JSON.stringify(merged);
    });
    const isNew = before !== baseText;
    base = merged;
    baseText = value;
    await restore(mergeRecords({ base: sent, mine: current(sent), stored: merged }), isNew);
  };
  const refresh = async (): Promise<void> => {
    const text = (await store.get(sessionCollection, id))?.value;
    const stored = text === undefined || text === baseText ? undefined : readRecord(text);
    if (stored === undefined) return;
    const merged = mergeRecords({ base, mine: current(base), stored });
    base = stored;
    baseText = text;
    await restore(merged, true);
  };
  return { save: () => inTurn(save), refresh: () => inTurn(refresh) };
}

/** Returns the ids that the results of a session are stored under. */
export function listGroups(
  id: string,
  { resultsOf = id, alsoResultsOf = [] }: Pick<SessionRecord, "resultsOf" | "alsoResultsOf">,
): string[] {
  return [resultsOf, ...alsoResultsOf];
}

/** Three versions of a record: as this process last saw it, as this process has changed it, and as it is stored now. */
interface RecordVersions<Value> {
  readonly base: Value;
  readonly mine: Value;
  readonly stored: Value;
}

/** Returns the stored record with the changes of this process. Sums add up, so nothing is lost or counted twice. */
function mergeRecords({ base, mine, stored }: RecordVersions<SessionRecord>): SessionRecord {
  const resultsOf = stored.resultsOf ?? (stored.calls === 0 ? mine.resultsOf : undefined);
  const groups = new Set([stored.alsoResultsOf ?? [], mine.alsoResultsOf ?? [], mine.resultsOf ?? []].flat());
  if (resultsOf !== undefined) groups.delete(resultsOf);
  const largest = new Map([...stored.largest, ...mine.largest].map((each) => [each.id, each]));
  const versions = new Map(stored.versions);
  const seen = new Map(base.versions);
  for (const [call, version] of mine.versions) if (seen.get(call) !== version) versions.set(call, version);
  const nothing: Measured = { units: 0, tokens: 0 };
  const merged = Object.entries(mine.measured).map(([tool, { units, tokens }]) => {
    const [before, now] = [base.measured[tool] ?? nothing, stored.measured[tool] ?? nothing];
    return [tool, { units: now.units + units - before.units, tokens: now.tokens + tokens - before.tokens }] as const;
  });
  return {
    ...mine,
    started: stored.started,
    lastUsed: [stored.lastUsed ?? "", mine.lastUsed ?? ""].sort()[1] || undefined,
    resultsOf,
    alsoResultsOf: groups.size === 0 ? undefined : [...groups],
    calls: stored.calls + mine.calls - base.calls,
    ledger: mergeLedgers({ base: base.ledger, mine: mine.ledger, stored: stored.ledger }),
    evictedThrough: Math.max(stored.evictedThrough, mine.evictedThrough),
    largest: [...largest.values()].sort((left, right) => right.tokens - left.tokens).slice(0, 10),
    measured: { ...stored.measured, ...Object.fromEntries(merged) },
    versions: [...versions],
  };
}

function mergeLedgers({ base, mine, stored }: RecordVersions<LedgerSnapshot>): LedgerSnapshot {
  const changed = (tier: keyof LedgerSnapshot["used"]): number =>
    (mine.used[tier] === base.used[tier] ? stored : mine).used[tier];
  const before = readSystemParts(base);
  const changedParts = Object.entries(readSystemParts(mine)).filter(([part, tokens]) => before[part] !== tokens);
  const systemParts = { ...readSystemParts(stored), ...Object.fromEntries(changedParts) };
  const system = Object.values(systemParts).reduce((sum, tokens) => sum + tokens, 0);
  return {
    used: { system, history: changed("history"), user: changed("user"), response: changed("response") },
    systemParts,
    results: mergeResults({ base: base.results, mine: mine.results, stored: stored.results }),
    delivered: stored.delivered + mine.delivered - base.delivered,
    deliveredBefore: (stored.deliveredBefore ?? 0) + (mine.deliveredBefore ?? 0) - (base.deliveredBefore ?? 0),
    turnsAnnounced: stored.turnsAnnounced || mine.turnsAnnounced,
    responseRecorded: stored.responseRecorded || mine.responseRecorded || false,
  };
}

function readSystemParts({ systemParts, used }: LedgerSnapshot): Readonly<Record<string, number>> {
  return systemParts ?? { "": used.system };
}

function mergeResults({ base, mine, stored }: RecordVersions<LedgerSnapshot["results"]>): LedgerSnapshot["results"] {
  // Each call adds a result, and their number has no limit.
  if (stored === base) return mine;
  const merged = new Map(stored);
  const [before, now] = [new Map(base), new Map(mine)];
  for (const id of before.keys()) if (!now.has(id)) merged.delete(id);
  for (const [id, tokens] of now) {
    const known = before.get(id);
    if (known !== tokens) merged.set(id, tokens - (known ?? 0) + (merged.get(id) ?? 0));
  }
  return [...merged];
}

/** Returns undefined if the record is damaged or of another version. */
function readRecord(text: string): SessionRecord | undefined {
  const record = readJson(text, isRecord);
  if (record === undefined) return undefined;
  try {
    createLedger(record.limits, record.ledger);
    return record;
  } catch {
    return undefined;
  }
}

const tiers = { system: isWhole, history: isWhole, user: isWhole, response: isWhole };
const isBoolean = (value: unknown): value is boolean => typeof value === "boolean";

const isRecord: ShapeCheck<SessionRecord> = objectOf(
  {
    version: (value): value is 1 => value === 1,
    started: isTime,
    counter: isText,
    calls: isWhole,
    limits: objectOf(
      {
        total: isWhole,
        perToolCall: isWhole,
        warningThreshold: isWhole,
        tools: mapOf(isWhole),
        tiers: objectOf({ ...tiers, tool_results: isWhole }),
      },
      { minPerCall: isWhole },
    ),
    ledger: objectOf(
      {
        used: objectOf(tiers),
        results: listOf(pairOf(isText, isWhole)),
        delivered: isWhole,
        turnsAnnounced: isBoolean,
      },
      { responseRecorded: isBoolean, systemParts: mapOf(isWhole), deliveredBefore: isWhole },
    ),
    evictedThrough: isWhole,
    largest: listOf(objectOf({ id: isText, tool: isText, tokens: isWhole })),
    measured: mapOf(objectOf({ units: isNumber, tokens: isNumber })),
    versions: listOf(pairOf(isText, isText)),
  },
  { lastUsed: isTime, resultsOf: isText, alsoResultsOf: listOf(isText) },
);
