import type { Store } from "../store/index.ts";
import { forgetOffsetTokens } from "./state/offset-tokens.ts";
import { lastUseOf, loadRecords, sessionCollection } from "./state/session-record.ts";
import { idStream, resultCollection, resultPrefix } from "./state/stored-results.ts";
import { logStream } from "./work-log/work-log.ts";

/** A session as far as deleting it goes. */
export interface StoredSession {
  readonly id: string;
  /** Undefined where the record cannot be read. */
  readonly lastUsed: string | undefined;
  readonly calls: number;
  /** The session that its results are stored with. */
  readonly resultsOf: string;
}

/** Every session of the store, also those without a call, and those whose record is damaged. */
export async function listStoredSessions(store: Store): Promise<StoredSession[]> {
  return [...(await loadRecords(store))].map(([id, record]) => ({
    id,
    lastUsed: record && lastUseOf(record),
    calls: record?.calls ?? 0,
    resultsOf: record?.resultsOf ?? id,
  }));
}

/** Deletes a session: its account, its work log, its results and their tokens. Results that sessions have in common go with the one that
 *  they are named after, or with the last one that uses them. The bytes are gone once the store is purged. */
export async function deleteSession(store: Store, id: string): Promise<void> {
  const records = await loadRecords(store);
  const groupOf = (session: string): string => records.get(session)?.resultsOf ?? session;
  const group = groupOf(id);
  records.delete(id);
  const isUsed = group !== id && [...records.keys()].some((other) => groupOf(other) === group);
  if (!isUsed) await deleteResults(store, group);
  await store.deleteStream(logStream(id));
  await store.delete(sessionCollection, id);
}

/** A record may have a quarter of a megabyte. */
const recordsAtOnce = 20;

async function deleteResults(store: Store, group: string): Promise<void> {
  for (;;) {
    const records = await store.list(resultCollection, { prefix: resultPrefix(group), limit: recordsAtOnce });
    if (records.length === 0) break;
    for (const { key } of records) await store.delete(resultCollection, key);
  }
  await forgetOffsetTokens(store, group);
  await store.deleteStream(idStream(group));
}
