/** Works on a whole store: sums up what it holds, copies it to another one and compares both. */
import { ContextError } from "../../core/errors.ts";
import type { MaintainedStore } from "../../core/store/index.ts";
import { countNoun, formatNumber, printable } from "../../core/text/index.ts";

export async function refuseFilled(target: MaintainedStore, shown: string): Promise<void> {
  const collections = await target.listCollections();
  const streams = await target.listStreams({ limit: 1 });
  if (collections.length === 0 && streams.length === 0) return;
  const records = collections.reduce((sum, each) => sum + each.records, 0);
  throw new ContextError("usage", `the store in ${shown} already has ${countNoun(records, "record")}`, {
    hint: "Name a new file, or another namespace: postgres://…?namespace=NAME.",
  });
}

/** A record can have a megabyte. */
const pageSize = 100;

type Progress = (text: string) => void;

/** Copies all records and streams with their times. */
export async function copyStore(
  source: MaintainedStore,
  target: MaintainedStore,
  progress: Progress,
): Promise<{ readonly records: number; readonly entries: number; readonly characters: number }> {
  let [records, entries, characters] = [0, 0, 0];
  for (const { collection } of await source.listCollections()) {
    for await (const page of readPages(source, collection)) {
      await target.copyRecords(collection, page);
      records += page.length;
      characters += page.reduce((sum, { value }) => sum + value.length, 0);
      progress(`copying: ${countNoun(records, "record")}`);
    }
  }
  for await (const facts of readStreams(source)) {
    // A stream whose entries are all trimmed still has its last sequence.
    await target.copyStream({ ...facts, entries: [] });
    for await (const page of readEntries(source, facts.stream)) {
      await target.copyStream({ ...facts, entries: page });
      entries += page.length;
      characters += page.reduce((sum, { value }) => sum + value.length, 0);
      progress(`copying: ${formatNumber(entries)} entries`);
    }
  }
  return { records, entries, characters };
}

/** Compares both stores, so that a write to the source during the copy is found too. */
export async function compareStores(
  source: MaintainedStore,
  target: MaintainedStore,
  progress: Progress,
): Promise<void> {
  const names = async (store: MaintainedStore): Promise<string> =>
    JSON.stringify((await store.listCollections()).map(({ collection, records }) => [collection, records]));
  if ((await names(source)) !== (await names(target))) throw different("their collections");
  for (const { collection } of await source.listCollections()) {
    progress(`comparing: ${printable(collection)}`);
    await compare(readPages(source, collection), readPages(target, collection), `collection ${collection}`);
  }
  await compare(readStreams(source), readStreams(target), "their streams");
  for await (const { stream } of readStreams(source)) {
    await compare(readEntries(source, stream), readEntries(target, stream), `stream ${stream}`);
  }
}

async function compare(left: AsyncGenerator<unknown>, right: AsyncGenerator<unknown>, what: string): Promise<void> {
  for (;;) {
    const [mine, other] = [await left.next(), await right.next()];
    if (JSON.stringify(mine) !== JSON.stringify(other)) throw different(what);
    if (mine.done === true) return;
  }
}

function different(what: string): ContextError {
  return new ContextError("store_conflict", `the stores differ in ${printable(what)}`, {
    hint: "A program wrote to the source during the copy. End it, empty the new store, and try again.",
  });
}

async function* readPages(
  store: MaintainedStore,
  collection: string,
): AsyncGenerator<{ readonly key: string; readonly value: string; readonly written: number }[]> {
  for (let after = ""; ; ) {
    const facts = await store.listFacts(collection, { after, limit: pageSize });
    if (facts.length === 0) return;
    const values = await store.list(collection, { after, limit: pageSize });
    const written = new Map(facts.map((each) => [each.key, each.written]));
    yield values.map(({ key, value }) => ({ key, value, written: written.get(key) ?? 0 }));
    after = facts.at(-1)!.key;
  }
}

async function* readStreams(
  store: MaintainedStore,
): AsyncGenerator<Awaited<ReturnType<MaintainedStore["listStreams"]>>[number]> {
  for (let after = ""; ; ) {
    const page = await store.listStreams({ after, limit: pageSize });
    yield* page;
    if (page.length === 0) return;
    after = page.at(-1)!.stream;
  }
}

async function* readEntries(
  store: MaintainedStore,
  stream: string,
): AsyncGenerator<Awaited<ReturnType<MaintainedStore["read"]>>> {
  for (let after = 0; ; ) {
    const page = await store.read(stream, { after, limit: pageSize });
    if (page.length === 0) return;
    yield page;
    after = page.at(-1)!.sequence;
  }
}

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
