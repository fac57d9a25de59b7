import { resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import type { MaintainedStore } from "../../core/store/index.ts";
import { countNoun, formatNumber, printable } from "../../core/text/index.ts";
import { exists, isStoreAddress, openStore, shownStore } from "../../host/index.ts";
import { type Command, defineCommand } from "../command.ts";

export const migrateCommand: Command = defineCommand({
  options: {
    from: { value: "PLACE", summary: "file or address of the store to copy" },
    to: { value: "PLACE", summary: "file or address of the new store, which must be empty" },
  },
  details: `Copies all records and streams with their times, then reads both stores and compares every value. The source
stays as it is. If a program writes to it during the copy, the comparison fails and says so. From PostgreSQL, it copies
the namespace of the address. Revisions are new, because nothing outside of a running program keeps them.`,
  examples: [
    {
      line: "plimsoll store migrate --from ~/.local/state/plimsoll/state.db --to postgres://plimsoll@db/team",
      meaning: "from a file to PostgreSQL",
    },
    { line: "plimsoll store migrate --from postgres://plimsoll@db/team --to state.db", meaning: "and back" },
  ],
  async run(call) {
    const { options, cwd, env, output } = call;
    const placeOf = (name: "from" | "to"): string => {
      const place = options[name];
      if (place === undefined) {
        throw new ContextError("usage", `--${name} is missing`, { hint: "Name a file or postgres://…" });
      }
      return isStoreAddress(place) ? place : resolve(cwd, place);
    };
    const [from, to] = [placeOf("from"), placeOf("to")];
    if (!isStoreAddress(from) && !(await exists(from))) {
      throw new ContextError("unreadable_input", "there is no such store", { file: shownStore(from, cwd, env) });
    }
    const source = await openStore({ place: from });
    try {
      const target = await openStore({ place: to });
      try {
        await refuseFilled(target, shownStore(to, cwd, env));
        const copied = await copyAll(source, target, output.progress);
        await compareAll(source, target, output.progress);
        const { records, entries, characters } = copied;
        const text = `copied ${countNoun(records, "record")} and ${formatNumber(entries)} entries (${formatNumber(characters)} characters) to ${printable(shownStore(to, cwd, env))}; both stores have the same values`;
        return { json: { from: shownStore(from, cwd, env), to: shownStore(to, cwd, env), ...copied }, text };
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
  },
});

async function refuseFilled(target: MaintainedStore, shown: string): Promise<void> {
  const collections = await target.listCollections();
  const streams = await target.listStreams({ limit: 1 });
  if (collections.length === 0 && streams.length === 0) return;
  const records = collections.reduce((sum, each) => sum + each.records, 0);
  throw new ContextError("usage", `the store in ${shown} already has ${countNoun(records, "record")}`, {
    hint: "Name a new file, or another namespace: postgres://…?namespace=NAME.",
  });
}

interface Copied {
  readonly records: number;
  readonly entries: number;
  readonly characters: number;
}

/** A record can have a megabyte. */
const pageSize = 100;

type Progress = (text: string) => void;

async function copyAll(source: MaintainedStore, target: MaintainedStore, progress: Progress): Promise<Copied> {
  let [records, entries, characters] = [0, 0, 0];
  for (const { collection } of await source.listCollections()) {
    for await (const page of pagesOf(source, collection)) {
      await target.copyRecords(collection, page);
      records += page.length;
      characters += page.reduce((sum, { value }) => sum + value.length, 0);
      progress(`copying: ${countNoun(records, "record")}`);
    }
  }
  for await (const facts of streamsOf(source)) {
    // A stream whose entries are all trimmed still has its last sequence.
    await target.copyStream({ ...facts, entries: [] });
    for await (const page of entriesOf(source, facts.stream)) {
      await target.copyStream({ ...facts, entries: page });
      entries += page.length;
      characters += page.reduce((sum, { value }) => sum + value.length, 0);
      progress(`copying: ${formatNumber(entries)} entries`);
    }
  }
  return { records, entries, characters };
}

/** Compares both stores, so that a write to the source during the copy is found too. */
async function compareAll(source: MaintainedStore, target: MaintainedStore, progress: Progress): Promise<void> {
  const names = async (store: MaintainedStore): Promise<string> =>
    JSON.stringify((await store.listCollections()).map(({ collection, records }) => [collection, records]));
  if ((await names(source)) !== (await names(target))) throw different("their collections");
  for (const { collection } of await source.listCollections()) {
    progress(`comparing: ${printable(collection)}`);
    await compare(pagesOf(source, collection), pagesOf(target, collection), `collection ${collection}`);
  }
  await compare(streamsOf(source), streamsOf(target), "their streams");
  for await (const { stream } of streamsOf(source)) {
    await compare(entriesOf(source, stream), entriesOf(target, stream), `stream ${stream}`);
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

interface CopiedPage {
  readonly key: string;
  readonly value: string;
  readonly written: number;
}

async function* pagesOf(store: MaintainedStore, collection: string): AsyncGenerator<CopiedPage[]> {
  for (let after = ""; ; ) {
    const facts = await store.listFacts(collection, { after, limit: pageSize });
    if (facts.length === 0) return;
    const values = await store.list(collection, { after, limit: pageSize });
    const written = new Map(facts.map((each) => [each.key, each.written]));
    yield values.map(({ key, value }) => ({ key, value, written: written.get(key) ?? 0 }));
    after = facts.at(-1)!.key;
  }
}

type Facts = Awaited<ReturnType<MaintainedStore["listStreams"]>>[number];

async function* streamsOf(store: MaintainedStore): AsyncGenerator<Facts> {
  for (let after = ""; ; ) {
    const page = await store.listStreams({ after, limit: pageSize });
    yield* page;
    if (page.length === 0) return;
    after = page.at(-1)!.stream;
  }
}

async function* entriesOf(
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
