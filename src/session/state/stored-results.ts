/** Results in the store. A session has a fixed number of places for them, and a result takes the place of the one that is so many steps
 *  older: a store does not grow with the steps of a session, and what may still be asked for is never looked at to be cleared away. */
import type { Store } from "../../store/index.ts";
import { createResultParts } from "./result-parts.ts";
import {
  damagedResult,
  type ResultToStore,
  readHeader,
  readReference,
  readResult,
  renderResult,
  type StoredReference,
  type StoredResult,
} from "./result-record.ts";

export interface StoredResults {
  /** Never one that another call has, of this process or another. */
  claimId(): Promise<string>;
  save(id: string, result: ResultToStore | StoredReference): Promise<void>;
  /** `dropped`: it was there, and gave way to later ones. Rejects where its record is damaged. */
  load(id: string): Promise<StoredResult | StoredReference | "dropped" | undefined>;
}

export interface StoredLimits {
  /** For so many steps, calls and pages, a result is kept at least. */
  readonly steps: number;
  /** Of all results together that are too large for one record. */
  readonly characters: number;
}

export const storedLimits: StoredLimits = { steps: 1_000, characters: 200_000_000 };

export const resultCollection = "session-results";

/** What the keys of a session's results begin with. */
export function resultPrefix(sessionId: string): string {
  return `${sessionId}/`;
}

/** An entry for each id that was given. */
export function idStream(sessionId: string): string {
  return `session/${sessionId}/ids`;
}

/** Pages of stored results have places of their own: however long a result is paged, its pages do not drive it out. */
type Kind = "result" | "page";

/** Ids are claimed some at a time, which saves a write a call. Those that are left unused are never given, and take places: so a session
 *  claims no more than it had so far. */
const mostIds = 16;

export function createStoredResults(
  store: Store,
  sessionId: string,
  { steps, characters }: StoredLimits = storedLimits,
): StoredResults {
  const prefix = resultPrefix(sessionId);
  const parts = createResultParts(store, {
    collection: resultCollection,
    prefix,
    mostCharacters: characters,
  });
  const placeOf = (kind: Kind, id: string): string => `${prefix}${kind}/${numberOf(id) % steps}`;
  const read = async (kind: Kind, id: string): Promise<string | undefined> =>
    (await store.get(resultCollection, placeOf(kind, id)))?.value;
  const claimed: number[] = [];
  let ids = 0;
  return {
    async claimId() {
      if (claimed.length === 0) {
        const count = Math.min(Math.max(ids, 1), mostIds);
        ids += count;
        const last = await store.append(idStream(sessionId), new Array<string>(count).fill(""));
        for (let number = last - count + 1; number <= last; number += 1) claimed.push(number);
      }
      return `r${claimed.shift()!}`;
    },
    async save(id, result) {
      const isPage = "of" in result;
      const value = isPage ? JSON.stringify({ id, ...result }) : await renderResult(result, id, parts);
      const before = await exchange(store, placeOf(isPage ? "page" : "result", id), value);
      const large = idOfLarge(before);
      if (large !== undefined) await parts.drop(large);
    },
    async load(id) {
      if (!/^r\d{1,15}$/.test(id)) return undefined;
      const result = await read("result", id);
      const header = result && readHeader(result);
      if (result && header && header.id === id) return readResult(result, header, parts);
      const text = await read("page", id);
      const page = text && readReference(text);
      if (page && page.id === id) return page;
      const others = [header, page].filter((found) => typeof found === "object");
      const stored = [result, text].filter((found) => found !== undefined);
      if (others.length < stored.length) throw damagedResult(id, "its record is damaged");
      return others.some((other) => numberOf(other.id) > numberOf(id)) ? "dropped" : undefined;
    },
  };
}

function numberOf(id: string): number {
  return Number(id.slice(1));
}

/** Gives what was there before. */
async function exchange(store: Store, key: string, value: string): Promise<string | undefined> {
  let before: string | undefined;
  await store.update(resultCollection, key, (found) => {
    before = found;
    return value;
  });
  return before;
}

/** What cannot be read is in nobody's way any more. */
function idOfLarge(record: string | undefined): string | undefined {
  const header = record === undefined ? undefined : readHeader(record);
  return header?.parts === undefined ? undefined : header.id;
}
