import type { Store } from "../../core/store/index.ts";

/** Returns what an intake shortened or a session stored, for the recall tool of a session. */
export async function recallOriginal(source: unknown, id: string): Promise<string | undefined> {
  const { store, sessionId } = Object(source) as { readonly store?: Store; readonly sessionId?: string };
  if (store === undefined) return undefined;
  const { readOriginal } = await import("../intake/index.ts");
  const original = await readOriginal(store, id);
  if (original !== undefined && original.sessionId === sessionId) return original.text;
  const { findStoredResult } = await import("../../results/session/index.ts");
  return (await findStoredResult(store, id, sessionId))?.text;
}
