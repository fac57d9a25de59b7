import { ContextError } from "../../errors.ts";
import type { Store } from "../../store/index.ts";
import { isText, isTime, objectOf, readJson } from "../../text/index.ts";
import { sessionCollection } from "./session-record.ts";
import { resultCollection, resultPrefix } from "./stored-results.ts";

/** For so long the results of a session are kept after its last call. */
export const mostUnusedDays = 30;

/** Few: whoever starts a session waits for it. What is left goes with the next ones. */
const mostDropped = 200;
/** A record may have a quarter of a megabyte. */
const recordsAtOnce = 20;

export interface UnusedOptions {
  readonly now: Date;
  /** The session that is just starting. */
  readonly except: string;
}

/** Drops results of sessions that nobody has used for a long time. Their records and work logs stay. */
export async function dropUnusedResults(store: Store, { now, except }: UnusedOptions): Promise<void> {
  const since = new Date(now.getTime() - mostUnusedDays * 86_400_000).toISOString();
  let left = mostDropped;
  for (const [id, used] of lastUses(await store.list(sessionCollection))) {
    if (left <= 0) return;
    if (id !== except && used < since) left -= await dropResults(store, id, left);
  }
}

/** By the session that results are stored with: others may have used them later. Records that cannot be read are used for ever. */
function lastUses(records: readonly { readonly key: string; readonly value: string }[]): Map<string, string> {
  const uses = new Map<string, string>();
  for (const { key, value } of records) {
    const { id, used } = useOf(key, value);
    if (used > (uses.get(id) ?? "")) uses.set(id, used);
  }
  return uses;
}

function useOf(key: string, text: string): { readonly id: string; readonly used: string } {
  const record = readJson(text, isUsed);
  if (record === undefined) return { id: key, used: "\uffff" };
  return { id: record.resultsOf ?? key, used: record.lastUsed ?? record.started };
}

const isUsed = objectOf({ started: isTime }, { lastUsed: isTime, resultsOf: isText });

async function dropResults(store: Store, sessionId: string, most: number): Promise<number> {
  const prefix = resultPrefix(sessionId);
  let dropped = 0;
  for (let after: string | undefined; dropped < most; ) {
    const limit = Math.min(recordsAtOnce, most - dropped);
    const records = await store.list(resultCollection, { prefix, after, limit });
    for (const { key, revision } of records) await deleteUnchanged(store, key, revision);
    dropped += records.length;
    after = records.at(-1)?.key;
    if (after === undefined) break;
  }
  return dropped;
}

/** A session that starts again at this moment has written it anew: then it stays. */
async function deleteUnchanged(store: Store, key: string, expectedRevision: number): Promise<void> {
  try {
    await store.delete(resultCollection, key, { expectedRevision });
  } catch (error) {
    if (!(error instanceof ContextError && error.code === "store_conflict")) throw error;
  }
}
