/** Keeps state in one SQLite file that several processes can use at once. */
export { openSqliteStore, type SqliteStoreOptions } from "../host/store/sqlite.ts";
