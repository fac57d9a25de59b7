import { resolve } from "node:path";
import type Libsql from "libsql";
import { invalidArgument } from "../../core/errors.ts";
import {
  checkRevision,
  checkWhole,
  createStore,
  decode as decodeBytes,
  encode,
  encodeRange,
  type MaintainedStore,
  type Store,
  type StoreDriver,
  type StoreRecord,
} from "../../core/store/index.ts";
import { connect, type SqliteConnection } from "./sqlite-connection.ts";

/** Options of `openSqliteStore`. */
export interface SqliteStoreOptions {
  /** The path of the database file. */
  readonly path: string;
  /** How many milliseconds a call waits for other processes before it rejects with `store_unavailable`.
   *  @default 10_000 */
  readonly waitMs?: number | undefined;
  /** Returns the time of a write, in milliseconds since 1970. Retention goes by it.
   *  @default Date.now */
  readonly now?: (() => number) | undefined;
}

/** Opens a store in a SQLite file, which several processes can use at once. Creates the file and its folder if they are
 *  missing, readable for their owner only.
 *
 * @example
 * ```ts
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const store = await openSqliteStore({ path: "state.db" });
 * await store.update("counters", "visits", (value) => String(Number(value ?? 0) + 1));
 * await store.close();
 * ```
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  return openMaintainedSqlite(options);
}

export async function openMaintainedSqlite(options: SqliteStoreOptions): Promise<MaintainedStore> {
  const { path, waitMs = 10_000, now = Date.now } = options;
  if (typeof path !== "string" || path === "" || path.includes("\0")) {
    throw invalidArgument("path is not a file path", "Pass a non-empty string.");
  }
  checkWhole("waitMs", waitMs, 0);
  const connection = await connect(resolve(path), waitMs);
  const statements = await connection.read(() => {
    const prepared = Object.entries(sql).map(([name, text]) => [name, connection.prepare(text)]);
    return Object.fromEntries(prepared) as Statements;
  });
  const getRecord = (collection: string, key: string): StoreRecord | undefined => {
    const [row] = readRows(statements.get, [encode(collection), encode(key)]);
    return row === undefined ? undefined : { key, value: decode(row.value), revision: row.revision };
  };
  const refuse = (collection: string, key: string, expectedRevision: number | undefined): void => {
    if (expectedRevision === undefined) return;
    const [row] = readRows(statements.revision, [encode(collection), encode(key)]);
    checkRevision(row?.revision ?? 0, expectedRevision, `${collection}/${key}`);
  };
  return createStore({
    get: (collection, key) => connection.read(() => getRecord(collection, key)),
    put: (collection, key, value, { expectedRevision }) =>
      connection.write(() => {
        refuse(collection, key, expectedRevision);
        return putRecord(statements, { collection, key, value, written: now() });
      }),
    update: (collection, key, change) =>
      connection.write(() => {
        const current = getRecord(collection, key);
        const value = change(current?.value);
        if (current?.value === value) return current;
        return { key, value, revision: putRecord(statements, { collection, key, value, written: now() }) };
      }),
    delete: (collection, key, { expectedRevision }) =>
      connection.write(() => {
        refuse(collection, key, expectedRevision);
        return statements.delete.run([encode(collection), encode(key)]).changes > 0;
      }),
    async list(collection, options) {
      const found = await connection.read(() =>
        readRows(statements.list, [encode(collection), ...encodeRange(options), options.limit ?? -1]),
      );
      return found.map(({ key, value, revision }) => ({ key: decode(key), value: decode(value), revision }));
    },
    ...createStreams(connection, statements, now),
    ...createUpkeep(connection, statements),
    purge: () => connection.purge(),
    close: () => connection.close(),
  });
}

type Statements = Readonly<Record<keyof typeof sql, Libsql.Statement>>;

/** Each driver has a type of its own. */
type Bytes = ArrayBuffer | Uint8Array;

interface SqliteRow {
  key: Bytes;
  value: Bytes;
  revision: number;
  sequence: number;
  name: Bytes;
  bytes: number;
  count: number;
  last: number;
  written: number;
  oldest: number;
}

const sql = {
  get: "SELECT value, revision FROM records WHERE collection = ? AND key = ?",
  revision: "SELECT revision FROM records WHERE collection = ? AND key = ?",
  nextRevision: "UPDATE revisions SET last = last + 1 RETURNING last AS revision",
  put: `INSERT INTO records (collection, key, revision, value, written) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET revision = excluded.revision, value = excluded.value, written = excluded.written`,
  delete: "DELETE FROM records WHERE collection = ? AND key = ?",
  list: `SELECT key, value, revision FROM records
    WHERE collection = ? AND key > ? AND key >= ? AND key < ? ORDER BY key LIMIT ?`,
  lastEntry: "SELECT last FROM streams WHERE stream = ?",
  moveStream: `INSERT INTO streams (stream, last, written) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET last = excluded.last, written = excluded.written`,
  append: "INSERT INTO entries (stream, sequence, value) VALUES (?, ?, ?)",
  trimStream: "DELETE FROM entries WHERE stream = ? AND sequence <= ?",
  deleteEntries: "DELETE FROM entries WHERE stream = ?",
  deleteStream: "DELETE FROM streams WHERE stream = ?",
  read: "SELECT sequence, value FROM entries WHERE stream = ? AND sequence > ? ORDER BY sequence LIMIT ?",
  listCollections: `SELECT collection AS name, count(*) AS count, sum(length(value)) AS bytes, min(written) AS oldest,
    max(written) AS written FROM records GROUP BY collection ORDER BY collection`,
  listFacts: `SELECT key, revision, length(value) AS bytes, written FROM records
    WHERE collection = ? AND key > ? AND key >= ? AND key < ? ORDER BY key LIMIT ?`,
  listStreams: `SELECT stream AS name, last, written,
      (SELECT count(*) FROM entries WHERE stream = streams.stream) AS count,
      (SELECT coalesce(sum(length(value)), 0) FROM entries WHERE stream = streams.stream) AS bytes
    FROM streams WHERE stream > ? AND stream >= ? AND stream < ? ORDER BY stream LIMIT ?`,
  size: "SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size",
} as const;

function putRecord(
  statements: Statements,
  { collection, key, value, written }: Readonly<Record<"collection" | "key" | "value", string>> & { written: number },
): number {
  const revision = readRows(statements.nextRevision, [])[0]!.revision;
  statements.put.run([encode(collection), encode(key), revision, encode(value), written]);
  return revision;
}

function createStreams(
  connection: SqliteConnection,
  statements: Statements,
  now: () => number,
): Pick<StoreDriver, "append" | "read" | "trimStream" | "deleteStream"> {
  return {
    append: (stream, values) =>
      connection.write(() => {
        const name = encode(stream);
        let sequence = readRows(statements.lastEntry, [name])[0]?.last ?? 0;
        if (values.length === 0) return sequence;
        for (const value of values) {
          sequence += 1;
          statements.append.run([name, sequence, encode(value)]);
        }
        statements.moveStream.run([name, sequence, now()]);
        return sequence;
      }),
    async read(stream, { after = 0, limit = -1 }) {
      const found = await connection.read(() => readRows(statements.read, [encode(stream), after, limit]));
      return found.map(({ sequence, value }) => ({ sequence, value: decode(value) }));
    },
    trimStream: (stream, through) =>
      connection.write(() => statements.trimStream.run([encode(stream), through]).changes),
    deleteStream: (stream) =>
      connection.write(() => {
        statements.deleteEntries.run([encode(stream)]);
        return statements.deleteStream.run([encode(stream)]).changes > 0;
      }),
  };
}

function createUpkeep(connection: SqliteConnection, statements: Statements): Omit<MaintainedStore, keyof Store> {
  return {
    listCollections: () =>
      connection.read(() =>
        readRows(statements.listCollections, []).map(({ name, count, bytes, oldest, written }) => {
          return { collection: decode(name), records: count, bytes, oldest, newest: written };
        }),
      ),
    async listFacts(collection, options = {}) {
      const found = await connection.read(() =>
        readRows(statements.listFacts, [encode(collection), ...encodeRange(options), options.limit ?? -1]),
      );
      return found.map(({ key, revision, bytes, written }) => ({ key: decode(key), revision, bytes, written }));
    },
    async listStreams(options = {}) {
      const found = await connection.read(() =>
        readRows(statements.listStreams, [...encodeRange(options), options.limit ?? -1]),
      );
      return found.map(({ name, count, bytes, last, written }) => {
        return { stream: decode(name), entries: count, bytes, last, written };
      });
    },
    size: () => connection.read(() => readRows(statements.size, [])[0]!.bytes),
    async copyRecords(collection, records) {
      await connection.write(() => {
        for (const record of records) putRecord(statements, { collection, ...record });
      });
    },
    async copyStream({ stream, last, written, entries }) {
      const name = encode(stream);
      await connection.write(() => {
        for (const { sequence, value } of entries) statements.append.run([name, sequence, encode(value)]);
        statements.moveStream.run([name, last, written]);
      });
    },
  };
}

/** Parameters are passed as an array, because the driver treats a single buffer as named parameters and crashes. Rows
 *  are read with `all`, because after an error in `get` the statement cannot be used again. */
function readRows(statement: Libsql.Statement, parameters: readonly (Buffer | number)[]): SqliteRow[] {
  return statement.all([...parameters]) as SqliteRow[];
}

function decode(bytes: Bytes): string {
  const buffer =
    bytes instanceof Uint8Array ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length) : Buffer.from(bytes);
  return decodeBytes(buffer);
}
