import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../src/store/index.ts";
import { openSqliteStore } from "../../src/store/sqlite.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 150;
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

/** Names the operation in a counterexample. */
function call<T>(method: string, make: (input: T) => Operation): (input: T) => Operation {
  return (input) =>
    Object.assign(make(input), { [fc.toStringMethod]: () => `${method}(${fc.stringify(input)})` });
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
