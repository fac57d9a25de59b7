import type { MaintainedStore } from "../store/index.ts";
import { isText, pairOf, readJson } from "../text/index.ts";
import { heldCollection, originalsCollection, readOriginal } from "./intake.ts";

/** Deletes what conversations that were not used since `before` have stored, with the originals of their results.
 *  Returns how many originals these are. With `dryRun` deletes nothing. */
export async function pruneIntake(
  store: MaintainedStore,
  { before, dryRun }: { readonly before: number; readonly dryRun: boolean },
): Promise<number> {
  const contexts = await store.listFacts(heldCollection);
  const sessionOf = (key: string): string => readJson(key, isContextKey)?.[0] ?? key;
  const used = new Set(contexts.filter(({ written }) => written >= before).map(({ key }) => sessionOf(key)));
  const old = contexts.filter(({ key }) => !used.has(sessionOf(key)));
  for (const { key } of dryRun ? [] : old) await store.delete(heldCollection, key);
  let originals = 0;
  for (let after: string | undefined = ""; after !== undefined; ) {
    const page: RecordFacts[] = await store.listFacts(originalsCollection, { after, limit: 500 });
    for (const { key } of page.filter(({ written }) => written < before)) {
      if (used.has((await readOriginal(store, key))?.sessionId ?? "")) continue;
      originals += 1;
      if (!dryRun) await store.delete(originalsCollection, key);
    }
    after = page.at(-1)?.key;
  }
  return originals;
}

type RecordFacts = Awaited<ReturnType<MaintainedStore["listFacts"]>>[number];

const isContextKey = pairOf(isText, isText);
