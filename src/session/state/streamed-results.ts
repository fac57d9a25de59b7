import type { Store } from "../../store/index.ts";
import { itemsFrom } from "./item-chunks.ts";
import {
  damagedResult,
  parseStored,
  type ResultFacts,
  type StoredReference,
  type StoredResult,
} from "./result-record.ts";

/** A result as stores had it first: a stream of its own, with the header, the fields, then chunks of items. Streams cannot be deleted,
 *  so that these stay. */
export async function loadStreamedResult(
  store: Store,
  stream: string,
  id: string,
): Promise<StoredResult | StoredReference | undefined> {
  const [first] = await store.read(stream, { limit: 1 });
  if (first === undefined) return undefined;
  const header = parseStored<StreamHeader | StoredReference>(first.value, id);
  if ("of" in header) return header;
  const readEntry = async (index: number): Promise<string> => {
    const [entry] = await store.read(stream, { after: index, limit: 1 });
    if (entry === undefined) throw damagedResult(id, `entry ${index + 1} is missing`);
    return entry.value;
  };
  const { starts, ...facts } = header;
  return {
    ...facts,
    fieldsText: await readEntry(1),
    items: (offset) => itemsFrom(starts, offset, (chunk) => readEntry(chunk + 2)),
  };
}

interface StreamHeader extends ResultFacts {
  readonly starts: readonly number[];
}
