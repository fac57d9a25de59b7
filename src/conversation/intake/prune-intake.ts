import type { MaintainedStore } from "../../core/store/index.ts";
import { isText, pairOf, readJson } from "../../core/text/index.ts";
import { contextCollection, originalsCollection, readOriginal } from "./originals.ts";

/** Deletes what conversations that were not used since `before` have stored, with the originals of their results.
 *  Returns how many originals these are. With `dryRun` deletes nothing. */
export async function pruneIntake(
  store: MaintainedStore,
  { before, dryRun }: { readonly before: number; readonly dryRun: boolean },
): Promise<number> {
  const contexts = await store.listFacts(contextCollection);
  const used = new Set(contexts.filter(({ written }) => written >= before).map(({ key }) => readSession(key)));
  const old = contexts.filter(({ key }) => !used.has(readSession(key)));
  for (const { key } of dryRun ? [] : old) await store.delete(contextCollection, key);
  let originals = 0;
  for await (const { key, written, sessionId = "" } of listOriginals(store)) {
    if (written >= before || used.has(sessionId)) continue;
    originals += 1;
    if (!dryRun) await store.delete(originalsCollection, key);
  }
  return originals;
}

/** Returns when each session last stored something, in milliseconds since 1970. */
export async function listIntakeUses(store: MaintainedStore): Promise<Map<string, number>> {
  const uses = new Map<string, number>();
  const note = (id: string, written: number): void => void uses.set(id, Math.max(written, uses.get(id) ?? 0));
  for (const { key, written } of await store.listFacts(contextCollection)) note(readSession(key), written);
  for await (const { sessionId, written } of listOriginals(store))
    if (sessionId !== undefined) note(sessionId, written);
  return uses;
}

/** Deletes what sessions have stored, with the originals of their results. */
export async function forgetIntake(store: MaintainedStore, sessionIds: ReadonlySet<string>): Promise<void> {
  for (const { key } of await store.listFacts(contextCollection)) {
    if (sessionIds.has(readSession(key))) await store.delete(contextCollection, key);
  }
  for await (const { key, sessionId } of listOriginals(store)) {
    if (sessionId !== undefined && sessionIds.has(sessionId)) await store.delete(originalsCollection, key);
  }
}

/** `sessionId` is undefined if the record is damaged. */
async function* listOriginals(
  store: MaintainedStore,
): AsyncGenerator<{ readonly key: string; readonly written: number; readonly sessionId: string | undefined }> {
  for (let after: string | undefined = ""; after !== undefined; ) {
    const page: Awaited<ReturnType<MaintainedStore["listFacts"]>> = await store.listFacts(originalsCollection, {
      after,
      limit: 500,
    });
    for (const { key, written } of page) {
      yield { key, written, sessionId: (await readOriginal(store, key))?.sessionId };
    }
    after = page.at(-1)?.key;
  }
}

function readSession(key: string): string {
  return readJson(key, pairOf(isText, isText))?.[0] ?? key;
}
