/** What the store keeps of a session beside its results and its work log: one record, written after every call. */
import {
  createLedger,
  type LedgerLimits,
  type LedgerSnapshot,
  type LedgerTiers,
} from "../../budget/index.ts";
import { ContextError } from "../../errors.ts";
import type { Store } from "../../store/index.ts";
import {
  type Check,
  isNumber,
  isSwitch,
  isText,
  isTime,
  isWhole,
  listOf,
  mapOf,
  objectOf,
  pairOf,
  readJson,
} from "../../text/index.ts";

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

/** All sessions, by id. The record is undefined where it cannot be read. */
export async function loadRecords(store: Store): Promise<Map<string, SessionRecord | undefined>> {
  const stored = await store.list(sessionCollection);
  return new Map(stored.map(({ key, value }) => [key, readRecord(value)]));
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
  const record = readRecord(text);
  if (record !== undefined) return record;
  const hint = `Delete it with plimsoll session rm ${id}, or start a session with another id.`;
  if ((readJson(text, isVersioned)?.version ?? 0) > 1) {
    throw new ContextError("store_newer", `session ${id} was written by a newer plimsoll`, { hint });
  }
  throw new ContextError("store_corrupt", `session ${id} cannot be read: its record is damaged`, { hint });
}

const isVersioned = objectOf({ version: isWhole });

/** Undefined where it is damaged, or of another version. */
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

const isOne: Check<1> = (value): value is 1 => value === 1;
const others = { system: isWhole, history: isWhole, user: isWhole, response: isWhole };
const isTiers: Check<LedgerTiers> = objectOf({ ...others, tool_results: isWhole });

const isRecord: Check<SessionRecord> = objectOf(
  {
    version: isOne,
    started: isTime,
    counter: isText,
    calls: isWhole,
    limits: objectOf({
      ...{ total: isWhole, perToolCall: isWhole, warningThreshold: isWhole },
      ...{ tools: mapOf(isWhole), tiers: isTiers },
    }),
    ledger: objectOf(
      {
        ...{ used: objectOf(others), results: listOf(pairOf(isText, isWhole)) },
        ...{ delivered: isWhole, turnsAnnounced: isSwitch },
      },
      { responseRecorded: isSwitch },
    ),
    evictedThrough: isWhole,
    largest: listOf(objectOf({ id: isText, tool: isText, tokens: isWhole })),
    measured: mapOf(objectOf({ units: isNumber, tokens: isNumber })),
    versions: listOf(pairOf(isText, isText)),
  },
  { lastUsed: isTime, resultsOf: isText },
);
