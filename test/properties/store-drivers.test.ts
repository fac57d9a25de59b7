import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ContextError } from "../../src/core/errors.ts";
import { createMemoryStore, type RevisionOptions, type Store, type StoreRecord } from "../../src/core/store/index.ts";
import { openPostgresStore } from "../../src/host/store/postgres.ts";
import { openSqliteStore } from "../../src/host/store/sqlite.ts";
import { caseCount } from "../case-count.ts";
import { noPostgres, type PostgresServer, startPostgres } from "../postgres-server.ts";

const numRuns = caseCount({ few: 12, deep: 2_000, long: 10_000 });
const root = mkdtempSync(join(tmpdir(), "plimsoll-drivers-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

type Operation = (store: Store) => Promise<unknown>;

/** Few names, so that operations meet; among them the ones that UTF-16 sorts differently. */
const name = fc.constantFrom("a", "ab", "a\0", "b", "\uffff", "😀", "\u{10ffff}", "", "\ud800");
const collection = fc.constantFrom("c", "d");
const value = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "\0", "\udfff", "a\ud800", "\ufeff", "\ufffd"),
);
const number = fc.option(fc.oneof(fc.integer({ min: 0, max: 12 }), fc.constantFrom(-1, 0.5)), {
  nil: undefined,
});
const text = fc.option(name, { nil: undefined });

const operation: fc.Arbitrary<Operation> = fc.oneof(
  fc.tuple(collection, name, value, number).map(
    call(
      "put",
      ([c, k, v, expectedRevision]) =>
        (store) =>
          store.put(c, k, v, { expectedRevision }),
    ),
  ),
  fc.tuple(name).map(
    call(
      "deleteStream",
      ([stream]) =>
        (store) =>
          store.deleteStream(stream),
    ),
  ),
  fc.tuple(collection, name).map(
    call(
      "get",
      ([c, k]) =>
        (store) =>
          store.get(c, k),
    ),
  ),
  fc.tuple(collection, name, value).map(
    call(
      "update",
      ([c, k, v]) =>
        (store) =>
          store.update(c, k, (current) => (current === undefined ? v : current.slice(0, 20) + v)),
    ),
  ),
  fc.tuple(collection, name, number).map(
    call(
      "delete",
      ([c, k, expectedRevision]) =>
        (store) =>
          store.delete(c, k, { expectedRevision }),
    ),
  ),
  fc.tuple(collection, text, text, number).map(
    call(
      "list",
      ([c, prefix, after, limit]) =>
        (store) =>
          store.list(c, { prefix, after, limit }),
    ),
  ),
  fc.tuple(name, fc.array(value, { maxLength: 3 })).map(
    call(
      "append",
      ([s, values]) =>
        (store) =>
          store.append(s, values),
    ),
  ),
  fc.tuple(name, fc.integer({ min: 0, max: 6 })).map(
    call(
      "trimStream",
      ([s, through]) =>
        (store) =>
          store.trimStream(s, through),
    ),
  ),
  fc.tuple(name, number, number).map(
    call(
      "read",
      ([s, after, limit]) =>
        (store) =>
          store.read(s, { after, limit }),
    ),
  ),
);

test("any sequence of operations gives the same results on memory and on SQLite", {
  timeout: 1_200_000,
}, async () => {
  let files = 0;
  const property = fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
    files += 1;
    const memory = createMemoryStore();
    const sqlite = await openSqliteStore({ path: join(root, `${files}.db`) });
    for (const run of operations) expect(await outcome(run, sqlite)).toEqual(await outcome(run, memory));
    await sqlite.close();
    for (const suffix of ["", "-wal", "-shm"]) rmSync(join(root, `${files}.db${suffix}`), { force: true });
  });
  await fc.assert(property, { numRuns });
});

describe.skipIf(noPostgres !== undefined)("PostgreSQL", () => {
  let server: PostgresServer;
  let url: string;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.newDatabase();
  }, 60_000);
  afterAll(() => server?.remove());

  test("any sequence of operations gives the same results on memory and on PostgreSQL", {
    timeout: 1_200_000,
  }, async () => {
    let runs = 0;
    const property = fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async (operations) => {
      runs += 1;
      const memory = createMemoryStore();
      const postgres = await openPostgresStore({ url, namespace: `run-${runs}` });
      const counted = withCountedRevisions(postgres);
      for (const run of operations) expect(await outcome(run, counted)).toEqual(await outcome(run, memory));
      await postgres.close();
    });
    // A hundredth of the time of a file, and as many operations as a person waits for.
    await fc.assert(property, { numRuns: Math.min(numRuns, 1_000) });
  });
});

/** Revisions of PostgreSQL grow, but not by one. Numbers them by their order, as the other stores do. */
function withCountedRevisions(store: Store): Store {
  const revisions: number[] = [];
  const counted = (revision: number): number => {
    const known = revisions.indexOf(revision);
    return known < 0 ? revisions.push(revision) : known + 1;
  };
  const own = ({ expectedRevision: given }: RevisionOptions = {}): RevisionOptions => ({
    // One that was never given.
    expectedRevision:
      given === undefined || !(given >= 1) || given % 1 !== 0 ? given : (revisions[given - 1] ?? 2 ** 40 + given),
  });
  const told = <T>(call: Promise<T>): Promise<T> =>
    call.catch((error: ContextError) => {
      const real = (text: string): string => {
        const number = Number(text);
        return String(number > 2 ** 40 ? number - 2 ** 40 : revisions.includes(number) ? counted(number) : number);
      };
      const message = error.message.replace(/(?<=revision |, not )\d+/g, real);
      throw new ContextError(error.code, message, { hint: error.hint });
    });
  const record = <T extends StoreRecord | undefined>(found: T): T =>
    found === undefined ? found : { ...found, revision: counted(found.revision) };
  return {
    ...store,
    get: async (...args) => record(await store.get(...args)),
    put: async (c, k, v, options) => counted(await told(store.put(c, k, v, own(options)))),
    update: async (...args) => record(await store.update(...args)),
    delete: (c, k, options) => told(store.delete(c, k, own(options))),
    list: async (...args) => (await store.list(...args)).map(record),
  };
}

/** Names the operation in a counterexample. */
function call<T>(method: string, make: (input: T) => Operation): (input: T) => Operation {
  return (input) => Object.assign(make(input), { [fc.toStringMethod]: () => `${method}(${fc.stringify(input)})` });
}

/** A refusal is a result too: its code and its message. */
async function outcome(run: Operation, store: Store): Promise<unknown> {
  try {
    return { value: await run(store) };
  } catch (error) {
    const { code, message, hint } = error as Record<string, unknown>;
    return { code, message, hint };
  }
}
