import type Libsql from "libsql";
import { ContextError } from "../errors.ts";
import { damagedError } from "./sqlite-errors.ts";

/** "PLIM", written into the file's header: tells a store from the database of another application. */
export const applicationId = 0x504c494d;

/**
 * The schema, one step a version; a step that was released never changes.
 * Names and values are blobs: SQLite text ends at a NUL, and blobs sort by their UTF-8 bytes.
 */
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
];

export interface Identity {
  applicationId: number;
  version: number;
}

export function readIdentity(database: Libsql.Database): Identity {
  return {
    applicationId: readPragma(database, "application_id"),
    version: readPragma(database, "user_version"),
  };
}

/** Throws unless the file is a store that this version can work with. */
export function checkIdentity(identity: Identity, file: string, newest: number = migrations.length): void {
  if (identity.applicationId !== applicationId) {
    throw new ContextError("store_corrupt", "the file is a database of another application", {
      file,
      hint: "It was left as it is. Choose another path for the store.",
    });
  }
  if (identity.version < 1) throw damagedError(file, `the file is damaged (version ${identity.version})`);
  if (identity.version > newest) {
    const versions = `version ${identity.version}, this program knows up to ${newest}`;
    throw new ContextError("store_newer", `the store was written by a newer plimsoll (${versions})`, {
      file,
      hint: "It was left as it is. Update plimsoll, or choose another path for the store.",
    });
  }
}

/** Brings a new or older store to the newest version. Runs inside the caller's write transaction: all or nothing. */
export function migrate(
  database: Libsql.Database,
  file: string,
  steps: readonly string[] = migrations,
): void {
  const identity = readIdentity(database);
  if (identity.applicationId === 0 && identity.version === 0 && isEmpty(database)) {
    database.exec(`PRAGMA application_id = ${applicationId}`);
  } else checkIdentity(identity, file, steps.length);
  for (const step of steps.slice(identity.version)) database.exec(step);
  database.exec(`PRAGMA user_version = ${steps.length}`);
}

function isEmpty(database: Libsql.Database): boolean {
  return database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
}

function readPragma(database: Libsql.Database, name: string): number {
  const row = database.prepare(`PRAGMA ${name}`).get() as Record<string, number>;
  return row[name] ?? 0;
}
