import type { Store } from "../../store/index.ts";
import { type Check, isText, isWhole, readJson } from "../../text/index.ts";

/** The parts of results that are too large for one record. Together they have at most so many characters: the oldest result gives
 *  way as a whole, never the newest one. */
export interface ResultParts {
  write(id: string, parts: readonly string[]): Promise<void>;
  /** Undefined where the result gave way. */
  read(id: string, index: number): Promise<string | undefined>;
  drop(id: string): Promise<void>;
}

export interface ResultPartsOptions {
  readonly collection: string;
  /** What the keys begin with. */
  readonly prefix: string;
  readonly mostCharacters: number;
}

/** Oldest first. */
type PartsList = readonly ListedResult[];
type ListedResult = readonly [id: string, characters: number, parts: number];

const isListed = (value: unknown): value is ListedResult =>
  Array.isArray(value) && value.length === 3 && isText(value[0]) && isWhole(value[1]) && isWhole(value[2]);
const isPartsList: Check<PartsList> = (value): value is PartsList =>
  Array.isArray(value) && value.every(isListed);

export function createResultParts(store: Store, options: ResultPartsOptions): ResultParts {
  const { collection, prefix, mostCharacters } = options;
  const keyOf = (id: string, index: number): string => `${prefix}part/${id}/${index}`;
  /** Gives what is no longer in the list. */
  const changeList = async (change: (list: PartsList) => PartsList): Promise<PartsList> => {
    let gone: PartsList = [];
    await store.update(collection, `${prefix}parts`, (text) => {
      // A damaged list begins anew. What it listed stays until the session is deleted.
      const list = readJson(text, isPartsList) ?? [];
      const kept = change(list);
      gone = list.filter((each) => !kept.includes(each));
      return JSON.stringify(kept);
    });
    return gone;
  };
  const remove = async (gone: PartsList): Promise<void> => {
    for (const [id, , parts] of gone) {
      for (let index = 0; index < parts; index += 1) await store.delete(collection, keyOf(id, index));
    }
  };
  return {
    async write(id, parts) {
      const characters = parts.reduce((sum, part) => sum + part.length, 0);
      // Listed before they are there: what a killed process leaves behind gives way with the rest.
      await remove(
        await changeList((list) => newest([...list, [id, characters, parts.length]], mostCharacters)),
      );
      for (const [index, part] of parts.entries()) await store.put(collection, keyOf(id, index), part);
    },
    read: async (id, index) => (await store.get(collection, keyOf(id, index)))?.value,
    drop: async (id) => remove(await changeList((list) => list.filter(([each]) => each !== id))),
  };
}

function newest(list: PartsList, mostCharacters: number): PartsList {
  let characters = 0;
  const tooMany = list.findLastIndex(([, each], index) => {
    characters += each;
    return characters > mostCharacters && index < list.length - 1;
  });
  return list.slice(tooMany + 1);
}
