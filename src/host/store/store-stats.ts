import type { MaintainedStore } from "../../core/store/index.ts";

export interface Kind {
  readonly kind: string;
  readonly records: number;
  readonly bytes: number;
  readonly oldest: number;
  readonly newest: number;
}

/** Sums records, bytes and times by kind of record. */
export async function readStats(
  store: MaintainedStore,
): Promise<{ readonly size: number; readonly kinds: readonly Kind[] }> {
  const kinds = new Map<string, Kind>();
  const add = (one: Kind): void => {
    const before = kinds.get(one.kind) ?? one;
    const isFirst = before === one;
    kinds.set(one.kind, {
      kind: one.kind,
      records: one.records + (isFirst ? 0 : before.records),
      bytes: one.bytes + (isFirst ? 0 : before.bytes),
      oldest: Math.min(one.oldest, before.oldest),
      newest: Math.max(one.newest, before.newest),
    });
  };
  // Originals of trimmed content have a collection for each conversation.
  for (const { collection, ...facts } of await store.listCollections())
    add({ kind: collection.replace(/^(history\/recall)\/.*$/s, "$1"), ...facts });
  for (const { stream, entries, bytes, written } of await store.listStreams()) {
    const kind = /^session\/.*\/(ids|log)$/s.exec(stream)?.[1] === "ids" ? "stream of result ids" : "stream of entries";
    add({ kind, records: entries, bytes, oldest: written, newest: written });
  }
  return {
    size: await store.size(),
    kinds: [...kinds.values()].sort((left, right) => (left.kind < right.kind ? -1 : 1)),
  };
}
