/** Originals in the store: results as the tools returned them, and the notes in conversations that name them. */
import { ContextError } from "../../core/errors.ts";
import type { Store } from "../../core/store/index.ts";
import {
  createMark,
  isText,
  isWhole,
  markPattern,
  objectOf,
  originalIdPattern,
  readJson,
  type ShapeCheck,
} from "../../core/text/index.ts";

/** The collections of the store. */
export const originalsCollection = "intake-originals";
export const contextCollection = "intake-context";

/** The text of a result that was edited, as the tool returned it. */
export interface StoredOriginal {
  readonly sessionId: string;
  readonly agentId: string;
  /** The call: the tool and what it was about. */
  readonly call: string;
  readonly text: string;
  /** The number of its first line, if lines without numbers are not counted from 1. */
  readonly first?: number | undefined;
}

const isOriginal: ShapeCheck<StoredOriginal> = objectOf(
  { sessionId: isText, agentId: isText, call: isText, text: isText },
  { first: isWhole },
);

/** Returns the original with this id, of any session. */
export async function readOriginal(store: Pick<Store, "get">, id: string): Promise<StoredOriginal | undefined> {
  const record = await store.get(originalsCollection, id);
  return readJson(record?.value, isOriginal);
}

/** An id names one text. If the store has another one there, it is not overwritten, and the result is sent whole. */
export async function keepOriginal(store: Pick<Store, "get" | "put">, id: string, value: string): Promise<void> {
  try {
    await store.put(originalsCollection, id, value, { expectedRevision: 0 });
  } catch (error) {
    const isThere = error instanceof ContextError && error.code === "store_conflict";
    if (!isThere || (await store.get(originalsCollection, id))?.value !== value) throw error;
  }
}

/** A note about a shortened result, as a conversation has it. */
export interface FoundNote {
  readonly mark: string;
  readonly id: string;
}

/** Finds the lines of a text that are notes and name an original. Any file may contain such text, so check them with
 *  `isOwnNote`. If a file contains a note of another session, `quoteWords` stands before that note, so it is not found.
 *  */
export function findNotes(text: string): FoundNote[] {
  return [...text.matchAll(noteWithId)].map(([, mark = "", id = ""]) => ({ mark, id }));
}

const noteWithId = new RegExp(
  `^(?: {0,7}\\d{1,7}[\\t→])?\\[(${markPattern}): [^[\\]\\n]{1,400}\\b(${originalIdPattern})\\b[^[\\]\\n]{0,60}\\]`,
  "gm",
);

/** Returns whether we wrote a note: it has the mark of the context whose original it names. */
export async function isOwnNote(store: Pick<Store, "get">, { mark, id }: FoundNote): Promise<boolean> {
  const original = await readOriginal(store, id);
  const record = original && (await store.get(contextCollection, contextKey(original)));
  const known = readJson(record?.value, objectOf({ seed: isText }));
  return known !== undefined && createMark(known.seed) === mark;
}

/** Returns the key of what a context holds. */
export function contextKey({ sessionId, agentId }: Pick<StoredOriginal, "sessionId" | "agentId">): string {
  return JSON.stringify([sessionId, agentId]);
}
