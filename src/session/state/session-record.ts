/** What the store keeps of a session beside its results and its work log: one record, written after every call. */
import type { LedgerLimits, LedgerSnapshot } from "../../budget/index.ts";
import { ContextError } from "../../errors.ts";
import type { Store } from "../../store/index.ts";

export interface SessionRecord {
  readonly version: 1;
  /** ISO 8601. */
  readonly started: string;
  /** When the last call came, ISO 8601. Absent before the first one. */
  readonly lastUsed?: string | undefined;
  /** The session that its results are stored with; absent where that is itself. */
  readonly resultsOf?: string | undefined;
  readonly counter: string;
  readonly calls: number;
  readonly limits: LedgerLimits;
  readonly ledger: LedgerSnapshot;
  /** The last sequence of the work log that was evicted; what is behind it is kept. */
  readonly evictedThrough: number;
  /** Delivered results, largest first. */
  readonly largest: readonly LargeResult[];
  /** By tool, what results so far had: units of the hint and their tokens. */
  readonly measured: Readonly<Record<string, Measured>>;
  /** Of results with a continuation, oldest first. */
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

export const sessionCollection = "sessions";

export async function saveRecord(store: Store, id: string, record: SessionRecord): Promise<void> {
  await store.put(sessionCollection, id, JSON.stringify(record));
}

export async function loadRecord(store: Store, id: string): Promise<SessionRecord | undefined> {
  const stored = await store.get(sessionCollection, id);
  return stored === undefined ? undefined : parseRecord(stored.value, id);
}

/** All sessions, by id. */
export async function loadRecords(store: Store): Promise<(SessionRecord & { readonly id: string })[]> {
  const stored = await store.list(sessionCollection);
  return stored.map(({ key, value }) => ({ ...parseRecord(value, key), id: key }));
}

/** The time of its last call, else of its start. */
export function lastUseOf({ started, lastUsed = started }: SessionRecord): string {
  return lastUsed;
}

/** Writes the record only if no other session has that id. */
export async function claimSession(store: Store, id: string, record: SessionRecord): Promise<boolean> {
  try {
    await store.put(sessionCollection, id, JSON.stringify(record), { expectedRevision: 0 });
    return true;
  } catch (error) {
    if (error instanceof ContextError && error.code === "store_conflict") return false;
    throw error;
  }
}

function parseRecord(text: string, id: string): SessionRecord {
  const record = parseJson(text);
  if (record?.version === 1) return record;
  const hint = "Start a session with another id.";
  if (record !== undefined && Number(record.version) > 1) {
    throw new ContextError("store_newer", `session ${id} was written by a newer plimsoll`, { hint });
  }
  throw new ContextError("store_corrupt", `session ${id} cannot be read`, { hint });
}

function parseJson(text: string): SessionRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as SessionRecord) : undefined;
  } catch {
    return undefined;
  }
}
