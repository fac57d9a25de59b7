import { access, constants, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type Libsql from "libsql";
import { ContextError } from "../../core/errors.ts";
import { makeDirectory } from "../files/make-directory.ts";
import { type Driver, loadDriver, sqliteCode } from "./sqlite-driver.ts";

/** A connection to the file. Operations run in the order of their calls, awaited or not, also while the file is
 *  busy. */
export interface SqliteConnection {
  prepare(sql: string): Libsql.Statement;
  read<T>(operation: () => T): Promise<T>;
  /** Runs `operation` in a transaction that holds the write lock from its start. If the file is busy, it may run
   *  again. */
  write<T>(operation: () => T): Promise<T>;
  /** Rewrites the file without free space and empties its log. */
  purge(): Promise<void>;
  close(): Promise<void>;
}

/** Opens or creates the file at an absolute path. Throws, and changes nothing, if the file is not one of our stores. */
export async function connect(file: string, waitMs: number): Promise<SqliteConnection> {
  const Database = await loadDriver();
  const retry = createRetry(file, waitMs);
  const isNew = await retry(() => prepareFile(file));
  if (!isNew) await retry(() => inspectFile(Database, file));

  const database = await retry(() => new Database(file, { timeout: 0 }));
  try {
    await retry(() => database.exec("PRAGMA synchronous = FULL"));
    const identity = await retry(() => prepareIdentity(database));
    const isCurrent = await retry(() => {
      const found = readIdentity(identity);
      if (found.applicationId !== 0) checkIdentity(found, file);
      return found.version === migrations.length;
    });
    if (!isCurrent) await retry(() => inTransaction(database, () => migrate(database, file)));
    // Set last, so that the main file and not only its log says that this is our store.
    await retry(() => database.exec("PRAGMA journal_mode = WAL"));
  } catch (error) {
    database.close();
    throw error;
  }
  return createConnection(database, retry);
}

/** Creates the file if it is missing, readable for its owner only. Returns whether it is empty. */
async function prepareFile(file: string): Promise<boolean> {
  makeDirectory(dirname(file), 0o700);
  try {
    await (await open(file, "wx", 0o600)).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  // Read before the file's size: another process may create the store in between, and its log would look like damage.
  const logBytes = (await stat(`${file}-wal`).catch(() => undefined))?.size ?? 0;
  const stats = await stat(file);
  if (!stats.isFile()) throw unavailableError(file, "the path is not a file");
  // Checked without opening the file: closing it would drop the locks of another connection of this process.
  await access(file, constants.R_OK | constants.W_OK);
  // SQLite would treat the file as new and delete the log, which has the last writes.
  if (stats.size === 0 && logBytes > 0) throw damagedError(file, "the file is empty but its log is not");
  return stats.size === 0;
}

/** Reads the file's header without a lock, and without creating a log next to a file that is not ours. */
function inspectFile(Database: Driver, file: string): void {
  const database = new Database(`${pathToFileURL(file).href}?mode=ro&immutable=1`);
  try {
    checkIdentity(readIdentity(prepareIdentity(database)), file);
  } catch (error) {
    // A store that another process is writing can look too short without its log. The connection, which has locks,
    // checks it.
    if (driverCode(error) !== "SQLITE_CORRUPT") throw error;
  } finally {
    database.close();
  }
}

function createConnection(database: Libsql.Database, retry: Retry): SqliteConnection {
  return {
    prepare: (sql) => database.prepare(sql),
    read: retry,
    write: (operation) => retry(() => inTransaction(database, operation)),
    purge: () =>
      retry(() => {
        database.exec("VACUUM");
        // Deleted values can still be in the log while somebody reads from it.
        // An error like the driver's, so that the retry waits for the other processes.
        if (!isLogEmptied(database)) throw Object.assign(new Error("the log is in use"), { code: "SQLITE_BUSY" });
      }),
    // Empties the log, because the driver closes the file only when its objects are garbage-collected, which may never
    // happen. While others use the file this can fail. Then the last one to close empties the log. Operations that were
    // called before still run, however long they wait.
    close() {
      const emptyLog = async () => {
        for (let attempt = 0; attempt < 5 && !isLogEmptied(database); attempt += 1) await pause();
      };
      return retry(emptyLog).finally(() => database.close());
    },
  };
}

function isLogEmptied(database: Libsql.Database): boolean {
  const [result] = database.pragma("wal_checkpoint(TRUNCATE)") as [{ busy: number }];
  return result.busy === 0;
}

function inTransaction<T>(database: Libsql.Database, operation: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = operation();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    // After some errors (full disk, failed read) SQLite has already rolled back.
    if (database.inTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

/** Runs operations in the order of their calls, one at a time. Repeats an operation while the file is busy, and turns
 *  errors of the driver into a `ContextError`. After a failed operation the next one still runs. */
type Retry = <T>(operation: () => T | Promise<T>) => Promise<T>;

function createRetry(file: string, waitMs: number): Retry {
  let last: Promise<unknown> = Promise.resolve();
  let lastDone = 0;
  const repeat = async <T>(operation: () => T | Promise<T>, called: number): Promise<T> => {
    for (;;) {
      try {
        const result = await operation();
        lastDone = performance.now();
        return result;
      } catch (error) {
        if (!/^SQLITE_(BUSY|LOCKED)/.test(driverCode(error))) throw translate(error, file);
        // Counted from the last success, not from this operation's start. Otherwise every queued call would wait the
        // full time again.
        if (performance.now() - Math.max(called, lastDone) >= waitMs)
          throw new ContextError("store_unavailable", `the store was in use by another process for ${waitMs} ms`, {
            file,
            hint: "Try again, or end the process that holds the file.",
            cause: error,
          });
      }
      await pause();
    }
  };
  return (operation) => {
    const called = performance.now();
    const result = last.then(() => repeat(operation, called));
    last = result.catch(() => {});
    return result;
  };
}

/** The driver's own wait would block the whole process. The time is random, so that two waiting processes do not stay
 *  in step. */
async function pause(): Promise<void> {
  await sleep(5 + 15 * Math.random());
}

// Errors of the driver and the system as `ContextError`s.

/** Returns the code of the SQLite driver or of the file system, or "" for any other error. */
function driverCode(error: unknown): string {
  return error instanceof Error ? (sqliteCode(error) ?? "") : "";
}

function unavailableError(file: string, problem: string, cause?: unknown): ContextError {
  return new ContextError("store_unavailable", `the store cannot be used: ${problem}`, {
    file,
    hint: "Check the path, its permissions and the free space, or choose another path for the store.",
    cause,
  });
}

function damagedError(file: string, problem: string, cause?: unknown): ContextError {
  return new ContextError("store_corrupt", `the store cannot be read: ${problem}`, {
    file,
    hint: "The file was not changed. Restore it from a backup, or move it away to start with an empty store.",
    cause,
  });
}

const fileReasons: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "its file system is read-only",
  ENOTDIR: "a part of its path is not a directory",
  EEXIST: "a part of its path is not a directory",
  ENOSPC: "the disk is full",
};

/** Returns an unknown error unchanged: it is a bug. */
function translate(error: unknown, file: string): unknown {
  const code = driverCode(error);
  const reason = error instanceof Error ? error.message : "";
  if (code.startsWith("SQLITE_NOTADB")) return damagedError(file, "the file is not a database", error);
  // SQLITE_ERROR means wrong SQL. Ours is right, so the file lacks tables that its version should have.
  if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_ERROR") {
    return damagedError(file, `the file is damaged (${reason})`, error);
  }
  if (code.startsWith("SQLITE_CANTOPEN")) return unavailableError(file, "the file cannot be opened", error);
  if (/^SQLITE_(READONLY|IOERR|FULL|PERM|NOLFS|PROTOCOL)/.test(code)) {
    return unavailableError(file, reason, error);
  }
  if (/^E[A-Z]+$/.test(code)) return unavailableError(file, fileReasons[code] ?? reason, error);
  return error;
}

/** "PLIM" in the file's header, which distinguishes a store from another application's database. */
export const applicationId = 0x504c494d;

/** Stands for the time in a step of the schema. SQLite accepts only a constant as the default of a new column. */
const timeOfStep = ":now";

/** The schema, one step per version. A released step never changes. Names and values are blobs, because SQLite text
 *  ends at a NUL and blobs sort by their bytes. */
export const migrations: readonly string[] = [
  `CREATE TABLE records (
     collection BLOB NOT NULL, key BLOB NOT NULL, revision INTEGER NOT NULL, value BLOB NOT NULL,
     PRIMARY KEY (collection, key)
   ) STRICT;
   CREATE TABLE entries (
     stream BLOB NOT NULL, sequence INTEGER NOT NULL, value BLOB NOT NULL,
     PRIMARY KEY (stream, sequence)
   ) STRICT;
   CREATE TABLE revisions (last INTEGER NOT NULL) STRICT;
   INSERT INTO revisions VALUES (0);`,
  // Adds the time of the last write, in milliseconds since 1970, and the last sequence of streams, which may be trimmed.
  // What is older counts as written at the time of this step.
  `ALTER TABLE records ADD COLUMN written INTEGER NOT NULL DEFAULT ${timeOfStep};
   CREATE TABLE streams (
     stream BLOB NOT NULL PRIMARY KEY, last INTEGER NOT NULL, written INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   INSERT INTO streams (stream, last, written) SELECT stream, max(sequence), ${timeOfStep} FROM entries GROUP BY stream;`,
];

interface Identity {
  applicationId: number;
  version: number;
}

/** A statement that finds the file busy keeps its connection's locks until it runs again. So whoever may find the file
 *  busy prepares it once and repeats the same statement. A new statement for each try would block all writes. */
function prepareIdentity(database: Libsql.Database): Libsql.Statement {
  return database.prepare(`SELECT application_id AS applicationId, user_version AS version
    FROM pragma_application_id, pragma_user_version`);
}

function readIdentity(identity: Libsql.Statement): Identity {
  return identity.all()[0] as Identity;
}

/** Throws unless this version can use the file. */
function checkIdentity(identity: Identity, file: string, newest: number = migrations.length): void {
  if (identity.applicationId !== applicationId) {
    throw new ContextError("store_corrupt", "the file is a database of another application", {
      file,
      hint: "The file was not changed. Choose another path for the store.",
    });
  }
  if (identity.version < 1) throw damagedError(file, `the file is damaged (version ${identity.version})`);
  if (identity.version > newest) {
    const versions = `version ${identity.version}, this program knows up to ${newest}`;
    throw new ContextError("store_newer", `the store was written by a newer plimsoll (${versions})`, {
      file,
      hint: "The file was not changed. Update plimsoll, or choose another path for the store.",
    });
  }
}

/** Updates a new or older store to the newest version. Runs inside the caller's write transaction, so it happens
 *  completely or not at all. */
export function migrate(database: Libsql.Database, file: string, steps: readonly string[] = migrations): void {
  const identity = readIdentity(prepareIdentity(database));
  if (
    identity.applicationId === 0 &&
    identity.version === 0 &&
    database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined
  ) {
    database.exec(`PRAGMA application_id = ${applicationId}`);
  } else checkIdentity(identity, file, steps.length);
  const now = String(Date.now());
  for (const step of steps.slice(identity.version)) database.exec(step.replaceAll(timeOfStep, now));
  database.exec(`PRAGMA user_version = ${steps.length}`);
}
