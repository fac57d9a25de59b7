import { resolve } from "node:path";
import type Libsql from "libsql";
import { ContextError } from "../errors.ts";
import { connect, type SqliteConnection } from "./sqlite-connection.ts";
import {
  checkListOptions,
  checkNames,
  checkReadOptions,
  checkRevision,
  checkRevisionOption,
  checkValues,
  checkWhole,
  type ListOptions,
  loneSurrogate,
  type ReadOptions,
  type RevisionOptions,
  type Store,
  type StoreRecord,
  type StreamEntry,
} from "./store.ts";

export interface SqliteStoreOptions {
  path: string;
  /** How long a call waits for other processes before it fails; 10 seconds unless told. */
  waitMs?: number | undefined;
}

/** Opens the store in that file, and creates the file and its folder, private to their owner, where they are missing. */
export async function openSqliteStore({ path, waitMs = 10_000 }: SqliteStoreOptions): Promise<Store> {
  if (typeof path !== "string" || path === "" || path.includes("\0")) {
    throw new ContextError("invalid_argument", "path is not a file path", {
      hint: "Pass a non-empty string.",
    });
  }
  checkWhole("waitMs", waitMs, 0);
  const connection = await connect(resolve(path), waitMs);
  const statements = await connection.read(() => prepareStatements(connection));

  return {
    async get(collection, key) {
      checkNames({ collection, key });
      return connection.read(() => getRecord(statements, collection, key));
    },
    async put(collection, key, value, options = {}) {
      checkNames({ collection, key });
      checkValues([value]);
      checkRevisionOption(options);
      return connection.write(() => {
        checkCurrent(statements, { collection, key, ...options });
        return putRecord(statements, { collection, key, value });
      });
    },
    async update(collection, key, change) {
      checkNames({ collection, key });
      return connection.write(() => {
        const current = getRecord(statements, collection, key);
        const value = change(current?.value);
        checkValues([value]);
        if (current?.value === value) return current;
        return { key, value, revision: putRecord(statements, { collection, key, value }) };
      });
    },
    async delete(collection, key, options = {}) {
      checkNames({ collection, key });
      checkRevisionOption(options);
      return connection.write(() => {
        checkCurrent(statements, { collection, key, ...options });
        return statements.delete.run([encode(collection), encode(key)]).changes > 0;
      });
    },
    async list(collection, options = {}) {
      checkNames({ collection });
      checkListOptions(options);
      return connection.read(() => listRecords(statements, collection, options));
    },
    async append(stream, values) {
      checkNames({ stream });
      checkValues(values);
      return connection.write(() => appendEntries(statements, stream, values));
    },
    async read(stream, options = {}) {
      checkNames({ stream });
      checkReadOptions(options);
      return connection.read(() => readEntries(statements, stream, options));
    },
    async deleteStream(stream) {
      checkNames({ stream });
      return connection.write(() => statements.deleteStream.run([encode(stream)]).changes > 0);
    },
    purge: () => connection.purge(),
    close: () => connection.close(),
  };
}

type Statements = Readonly<Record<keyof typeof sql, Libsql.Statement>>;

interface Address {
  collection: string;
  key: string;
}

interface Row {
  key: ArrayBuffer;
  value: ArrayBuffer;
  revision: number;
  sequence: number;
}

const sql = {
  get: "SELECT value, revision FROM records WHERE collection = ? AND key = ?",
  revision: "SELECT revision FROM records WHERE collection = ? AND key = ?",
  nextRevision: "UPDATE revisions SET last = last + 1 RETURNING last AS revision",
  put: `INSERT INTO records (collection, key, revision, value) VALUES (?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET revision = excluded.revision, value = excluded.value`,
  delete: "DELETE FROM records WHERE collection = ? AND key = ?",
  list: `SELECT key, value, revision FROM records
    WHERE collection = ? AND key > ? AND key >= ? AND key < ? ORDER BY key LIMIT ?`,
  lastEntry: "SELECT sequence FROM entries WHERE stream = ? ORDER BY sequence DESC LIMIT 1",
  append: "INSERT INTO entries (stream, sequence, value) VALUES (?, ?, ?)",
  deleteStream: "DELETE FROM entries WHERE stream = ?",
  read: "SELECT sequence, value FROM entries WHERE stream = ? AND sequence > ? ORDER BY sequence LIMIT ?",
} as const;

function prepareStatements({ prepare }: SqliteConnection): Statements {
  const prepared = Object.entries(sql).map(([name, text]) => [name, prepare(text)]);
  return Object.fromEntries(prepared) as Statements;
}

function getRecord(statements: Statements, collection: string, key: string): StoreRecord | undefined {
  const [row] = rows(statements.get, [encode(collection), encode(key)]);
  return row === undefined ? undefined : { key, value: decode(row.value), revision: row.revision };
}

function checkCurrent(
  statements: Statements,
  { collection, key, ...options }: Address & RevisionOptions,
): void {
  if (options.expectedRevision === undefined) return;
  const [row] = rows(statements.revision, [encode(collection), encode(key)]);
  checkRevision(row?.revision ?? 0, options.expectedRevision, `${collection}/${key}`);
}

function putRecord(statements: Statements, { collection, key, value }: Address & { value: string }): number {
  const revision = rows(statements.nextRevision, [])[0]!.revision;
  statements.put.run([encode(collection), encode(key), revision, encode(value)]);
  return revision;
}

function listRecords(statements: Statements, collection: string, options: ListOptions): StoreRecord[] {
  const { prefix = "", after = "", limit = -1 } = options;
  const first = encode(prefix);
  // 0xff occurs in no UTF-8, so this is above every key that starts with the prefix and below all others.
  const end = Buffer.concat([first, Buffer.of(0xff)]);
  const found = rows(statements.list, [encode(collection), encode(after), first, end, limit]);
  return found.map(({ key, value, revision }) => ({ key: decode(key), value: decode(value), revision }));
}

function appendEntries(statements: Statements, stream: string, values: readonly string[]): number {
  const name = encode(stream);
  let sequence = rows(statements.lastEntry, [name])[0]?.sequence ?? 0;
  for (const value of values) {
    sequence += 1;
    statements.append.run([name, sequence, encode(value)]);
  }
  return sequence;
}

function readEntries(statements: Statements, stream: string, options: ReadOptions): StreamEntry[] {
  const { after = 0, limit = -1 } = options;
  const found = rows(statements.read, [encode(stream), after, limit]);
  return found.map(({ sequence, value }) => ({ sequence, value: decode(value) }));
}

/**
 * Parameters go in as an array, because the driver takes a single buffer for named parameters and crashes. Never by
 * its `get`, which leaves a statement that failed unfit for the next call.
 */
function rows(statement: Libsql.Statement, parameters: readonly (Buffer | number)[]): Row[] {
  return statement.all([...parameters]) as Row[];
}

/** UTF-8, or where a lone surrogate has none: 0xff, which begins no UTF-8, and then UTF-16. */
function encode(text: string): Buffer {
  if (!loneSurrogate.test(text)) return Buffer.from(text);
  return Buffer.concat([Buffer.of(0xff), Buffer.from(text, "utf16le")]);
}

function decode(bytes: ArrayBuffer): string {
  const buffer = Buffer.from(bytes);
  return buffer[0] === 0xff ? buffer.toString("utf16le", 1) : buffer.toString();
}
