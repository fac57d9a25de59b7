import type { Store } from "../store/index.ts";
import { checkpointCollection } from "./checkpoint.ts";
import { recallCollection } from "./recall.ts";

/** By the session's id. Integrations keep there when it last called each model. */
const collections = [checkpointCollection, "history/calls"];

/** The sessions whose history the store keeps something of. */
export async function listHistories(store: Store): Promise<string[]> {
  const found = await Promise.all(collections.map((collection) => store.list(collection)));
  return [...new Set(found.flat().map(({ key }) => key))];
}

/** Deletes all that the store keeps of a session's history: its checkpoint, the originals of what was trimmed, the times of its calls.
 *  The bytes are gone once the store is purged. */
export async function forgetHistory(store: Store, sessionId: string): Promise<void> {
  for (const collection of collections) await store.delete(collection, sessionId);
  const originals = recallCollection(sessionId);
  for (;;) {
    const records = await store.list(originals, { limit: 20 });
    if (records.length === 0) return;
    for (const { key } of records) await store.delete(originals, key);
  }
}
