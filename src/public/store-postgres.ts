/** Keeps state in a PostgreSQL database that programs on several machines can use at once. */
export { openPostgresStore, type PostgresStoreOptions } from "../host/store/postgres.ts";
