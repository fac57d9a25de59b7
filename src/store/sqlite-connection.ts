import { access, constants, mkdir, open, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import type Libsql from "libsql";
import { ContextError } from "../errors.ts";
import { checkIdentity, type Identity, migrate, migrations, readIdentity } from "./migrations.ts";
import { damagedError, driverCode, unavailableError } from "./sqlite-errors.ts";
import { createRetry, pause, type Retry } from "./sqlite-retry.ts";
import { closedError } from "./store.ts";

/** Operations run in the order of their calls, awaited or not, also while the file is busy. */
export interface SqliteConnection {
  prepare(sql: string): Libsql.Statement;
  read<T>(operation: () => T): Promise<T>;
  /** Runs `operation` in a transaction that holds the write lock from its start; a busy file may make it run again. */
  write<T>(operation: () => T): Promise<T>;
  /** Rewrites the file without free space, and empties its log. */
  purge(): Promise<void>;
  close(): Promise<void>;
}

type Driver = new (file: string, options?: Libsql.Options) => Libsql.Database;

/** Opens or creates the file at an absolute path. A file that is no store of ours is refused and left untouched. */
export async function connect(file: string, waitMs: number): Promise<SqliteConnection> {
  const Database = await loadDriver();
  const retry = createRetry(file, waitMs);
  const isNew = await retry(() => prepareFile(file));
  if (!isNew) await retry(() => inspectFile(Database, file));

  const database = await retry(() => new Database(file, { timeout: 0 }));
  try {
    await setUp(database, file, retry);
  } catch (error) {
    database.close();
    throw error;
  }
  return createConnection(database, retry);
}

/** Loaded on first use: importing this door must stay cheap. */
async function loadDriver(): Promise<Driver> {
  try {
    return (await import("libsql")).default as unknown as Driver;
  } catch (error) {
    throw new ContextError("store_unavailable", "the SQLite driver could not be loaded", {
      hint: `Install plimsoll again with its optional dependencies (${process.platform} ${process.arch}).`,
      cause: error,
    });
  }
}

/** Makes sure that there is a file, private to its owner, and tells whether it has no content yet. */
async function prepareFile(file: string): Promise<boolean> {
  await makeFolder(dirname(file));
  await createFile(file);
  // Before the file's size: a log of a store that was created in between is no sign of damage.
  const logBytes = (await stat(`${file}-wal`).catch(() => undefined))?.size ?? 0;
  const stats = await stat(file);
  if (!stats.isFile()) throw unavailableError(file, "the path is not a file");
  // Not by opening it: closing it again would drop the locks of a connection that this process has already.
  await access(file, constants.R_OK | constants.W_OK);
  // SQLite would take the file as new and delete the log, with the last writes in it.
  if (stats.size === 0 && logBytes > 0) throw damagedError(file, "the file is empty but its log is not");
  return stats.size === 0;
}

/** Node's own `recursive` tries for ever below /proc, where Linux says that the folder around a new one is missing though it is there. */
async function makeFolder(folder: string): Promise<void> {
  try {
    await makeOne(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(folder) === folder) throw error;
    await makeFolder(dirname(folder));
    await makeOne(folder);
  }
}

async function makeOne(folder: string): Promise<void> {
  const isThere = () => stat(folder).then((stats) => stats.isDirectory());
  await mkdir(folder, { mode: 0o700 }).catch(async (error: unknown) => {
    if (!(await isThere().catch(() => false))) throw error;
  });
}

async function createFile(file: string): Promise<void> {
  try {
    await (await open(file, "wx", 0o600)).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** Looks into the file in a way that takes no lock and leaves no log beside a file that is not ours. */
function inspectFile(Database: Driver, file: string): void {
  const database = new Database(`${pathToFileURL(file).href}?mode=ro&immutable=1`);
  try {
    checkIdentity(readIdentity(database), file);
  } catch (error) {
    // Without its log a store that is just being written can look too short: left to the connection, which has locks.
    if (driverCode(error) !== "SQLITE_CORRUPT") throw error;
  } finally {
    database.close();
  }
}

async function setUp(database: Libsql.Database, file: string, retry: Retry): Promise<void> {
  await retry(() => database.exec("PRAGMA synchronous = FULL"));
  const isCurrent = await retry(() => isCurrentStore(readIdentity(database), file));
  if (!isCurrent) await retry(() => inTransaction(database, () => migrate(database, file)));
  // Only now, so that the file itself and not just its log says whose it is.
  await retry(() => database.pragma("journal_mode = WAL"));
}

function isCurrentStore(identity: Identity, file: string): boolean {
  if (identity.applicationId !== 0) checkIdentity(identity, file);
  return identity.version === migrations.length;
}

function createConnection(database: Libsql.Database, retry: Retry): SqliteConnection {
  let closing: Promise<void> | undefined;
  // Asked when it is called: what was called before the close still runs, however long it waits.
  const read = async <T>(operation: () => T): Promise<T> => {
    if (closing !== undefined) throw closedError();
    return retry(operation);
  };
  return {
    prepare: (sql) => database.prepare(sql),
    read,
    write: (operation) => read(() => inTransaction(database, operation)),
    purge: () =>
      read(() => {
        database.exec("VACUUM");
        // What was deleted may still stand in the log, until nobody reads from it.
        if (!isLogEmptied(database)) throw busy();
      }),
    close() {
      closing ??= retry(() => emptyLog(database)).finally(() => database.close());
      return closing;
    },
  };
}

/**
 * The driver lets go of the file when its objects are collected, maybe never: leave nothing in the log. While others
 * use the file that may be impossible, and the last of them does it.
 */
async function emptyLog(database: Libsql.Database): Promise<void> {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    if (isLogEmptied(database)) return;
    await pause();
  }
}

function isLogEmptied(database: Libsql.Database): boolean {
  const [result] = database.pragma("wal_checkpoint(TRUNCATE)") as [{ busy: number }];
  return result.busy === 0;
}

/** As the driver says it: the retry waits for the others. */
function busy(): Error {
  return Object.assign(new Error("the log is in use"), { code: "SQLITE_BUSY" });
}

function inTransaction<T>(database: Libsql.Database, operation: () => T): T {
  database.exec("BEGIN IMMEDIATE");
  try {
    const result = operation();
    database.exec("COMMIT");
    return result;
  } catch (error) {
    // SQLite has rolled back by itself after some errors (full disk, failed read).
    if (database.inTransaction) database.exec("ROLLBACK");
    throw error;
  }
}
