/** Finds the SQLite that this process uses: Node's own, or the package libsql. Never both in one process: each releases the
 *  file locks of the other. */
import type Libsql from "libsql";
import { ContextError } from "../../core/errors.ts";

/** libsql's interface, as far as we use it. */
export type Driver = new (file: string, options?: Libsql.Options) => Libsql.Database;

/** Loads the driver on first use, so that importing a store stays fast. */
export async function loadDriver(): Promise<Driver> {
  const builtin = findBuiltin();
  if (builtin !== undefined) return adapt(builtin);
  try {
    return (await import("libsql")).default as unknown as Driver;
  } catch (error) {
    throw new ContextError(
      "store_unavailable",
      `Node ${process.versions.node} has no SQLite, and libsql is not installed`,
      {
        hint: `Use Node 22.16 or newer, or install the package libsql (${process.platform} ${process.arch}).`,
        cause: error,
      },
    );
  }
}

/** The parts of node:sqlite that we use. The types of the oldest Node that we support do not have it. */
interface NodeSqlite {
  readonly DatabaseSync: new (
    place: string | URL,
  ) => { readonly isTransaction: boolean; exec(sql: string): void; prepare(sql: string): NodeStatement; close(): void };
}

interface NodeStatement {
  all(...parameters: unknown[]): unknown[];
  get(...parameters: unknown[]): unknown;
  run(...parameters: unknown[]): { readonly changes: number | bigint };
  iterate(...parameters: unknown[]): Iterable<unknown>;
}

/** Returns node:sqlite if it can do all that we need. Tries it, because a version says little: Node 22.13 has the module, but
 *  opens no URL and knows no state of a transaction. */
function findBuiltin(): NodeSqlite | undefined {
  const { emitWarning } = process;
  try {
    // It is experimental in Node 22. A command that prints a warning of its own accord would puzzle people.
    process.emitWarning = () => {};
    const found = process.getBuiltinModule?.("node:sqlite") as NodeSqlite | undefined;
    if (found === undefined) return undefined;
    const database = new found.DatabaseSync(new URL("file:/plimsoll?mode=memory"));
    const isWhole = database.isTransaction === false;
    database.close();
    return isWhole ? found : undefined;
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

function adapt({ DatabaseSync }: NodeSqlite): Driver {
  return class extends DatabaseSync {
    constructor(place: string) {
      super(place.startsWith("file:") ? new URL(place) : place);
    }

    get inTransaction(): boolean {
      return this.isTransaction;
    }

    pragma(text: string): unknown[] {
      return super.prepare(`PRAGMA ${text}`).all();
    }

    override prepare(sql: string): NodeStatement {
      const statement = super.prepare(sql);
      return {
        all: (parameters: readonly unknown[] = []) => statement.all(...parameters),
        get: (parameters: readonly unknown[] = []) => statement.get(...parameters),
        run: (parameters: readonly unknown[] = []) => statement.run(...parameters),
        iterate: (parameters: readonly unknown[] = []) => statement.iterate(...parameters),
      };
    }
  } as unknown as Driver;
}

/** Returns SQLite's name for an error, such as SQLITE_BUSY, or undefined if the error is not from SQLite. libsql gives names, and
 *  Node the numbers of https://sqlite.org/rescode.html. */
export function sqliteCode(error: Error): string | undefined {
  // If libsql cannot open a connection, its code is only at the end of the message.
  if (error.message.startsWith("ConnectionFailed")) return "SQLITE_CANTOPEN";
  const { code, errcode } = error as { readonly code?: unknown; readonly errcode?: unknown };
  if (typeof errcode === "number") return `SQLITE_${resultNames[errcode & 0xff] ?? errcode}`;
  return typeof code === "string" ? code : undefined;
}

const resultNames: Readonly<Record<number, string>> = {
  1: "ERROR",
  3: "PERM",
  5: "BUSY",
  6: "LOCKED",
  7: "NOMEM",
  8: "READONLY",
  10: "IOERR",
  11: "CORRUPT",
  13: "FULL",
  14: "CANTOPEN",
  15: "PROTOCOL",
  22: "NOLFS",
  26: "NOTADB",
};
