import { ContextError, invalidArgument } from "../../core/errors.ts";
import {
  checkNames,
  checkRevision,
  checkWhole,
  createStore,
  decode,
  encode,
  encodeRange,
  type MaintainedStore,
  type Store,
  type StoreDriver,
  type StoreRecord,
} from "../../core/store/index.ts";
import {
  connectPostgres,
  type PostgresConnection,
  type PostgresMigration,
  type PostgresRow,
  type PostgresSession,
} from "./postgres-connection.ts";

/** Options of `openPostgresStore`. */
export interface PostgresStoreOptions {
  /** The address of the database: `postgres://USER@HOST:PORT/DATABASE`. It can have parameters for TLS (`sslmode`,
   *  `sslrootcert`, `sslcert`, `sslkey`), and `schema` and `namespace`. */
  readonly url: string;
  /** The schema that has the tables. It is created if it is missing.
   *  @default "plimsoll", or `schema` of the address */
  readonly schema?: string | undefined;
  /** Whose state this is. A store uses only this namespace. The server enforces it if each namespace has a role, as
   *  docs/fleet.md shows.
   *  @default the database user, or `namespace` of the address */
  readonly namespace?: string | undefined;
  /** How many milliseconds a call waits for the server before it rejects with `store_unavailable`.
   *  @default 10_000 */
  readonly waitMs?: number | undefined;
  /** Returns the time of a write, in milliseconds since 1970. Retention goes by it.
   *  @default Date.now */
  readonly now?: (() => number) | undefined;
}

/** Opens a store in a PostgreSQL database, which programs on several machines can use at once. Needs the package `pg`.
 *  If the connection is lost during a write, that write is stored or not, and its call rejects. Every other call
 *  connects again.
 *
 * @example
 * ```ts
 * import { openPostgresStore } from "plimsoll/store/postgres";
 *
 * const store = await openPostgresStore({ url: "postgres://plimsoll@db.example.com/team?sslmode=verify-full" });
 * await store.update("counters", "visits", (value) => String(Number(value ?? 0) + 1));
 * await store.close();
 * ```
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  return openMaintainedPostgres(options);
}

/** The steps of the schema are a parameter for tests, which add one from the future. */
export async function openMaintainedPostgres(
  options: PostgresStoreOptions,
  steps: readonly PostgresMigration[] = postgresMigrations,
): Promise<MaintainedStore> {
  const { waitMs = 10_000, now = Date.now } = options;
  checkWhole("waitMs", waitMs, 0);
  const { url, schema, namespace } = readPlace(options);
  const connection = await connectPostgres({ url, schema, waitMs }, steps);
  const tables = { connection, now, sql: statements(schema), namespace: encode(namespace ?? connection.user) };
  return createStore({
    ...createRecords(tables),
    ...createStreams(tables),
    ...createUpkeep(tables),
    purge: () =>
      connection.run(async (session) => {
        await session.read("SET statement_timeout = 0");
        for (const table of ["records", "entries", "streams"]) await rewrite(session, `${schema}.${table}`);
        await session.read(`SET statement_timeout = ${Math.max(waitMs, 1_000)}`);
      }),
    close: () => connection.close(),
  });
}

/** Rewrites a table into a new file. For a role that may not do that, the server skips the table and only warns. */
async function rewrite({ read }: PostgresSession, table: string): Promise<void> {
  const file = async () => (await read("SELECT pg_relation_filenode($1::regclass)::int8 AS file", [table]))[0]!.file;
  const before = await file();
  await read(`VACUUM (FULL) ${table}`);
  if ((await file()) !== before) return;
  throw new ContextError("store_unavailable", "the tables were not rewritten: only their owner can do that", {
    hint: "What was deleted is gone for every program, but its bytes are still in the tables. Let the owner run plimsoll store prune with --purge.",
  });
}

/** Takes our own parameters out of the address: the driver would pass them to the server. */
function readPlace(options: PostgresStoreOptions): Required<Pick<PostgresStoreOptions, "url" | "schema">> & {
  readonly namespace: string | undefined;
} {
  const given = options.url;
  if (typeof given !== "string" || !/^postgres(ql)?:\/\//.test(given)) {
    throw invalidArgument("url is not the address of a PostgreSQL database", "Use postgres://USER@HOST/DATABASE.");
  }
  const [base = "", query = ""] = given.split(/\?(.*)/s);
  const parameters = new URLSearchParams(query);
  const schema = options.schema ?? parameters.get("schema") ?? "plimsoll";
  const namespace = options.namespace ?? parameters.get("namespace") ?? undefined;
  for (const name of ["schema", "namespace"]) parameters.delete(name);
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) {
    throw invalidArgument(`schema is "${schema}"`, "Use up to 63 lower-case letters, digits and _.");
  }
  if (namespace !== undefined) {
    checkNames({ namespace });
    // Beside a collection and a key it must fit into a row of the index.
    const bytes = Buffer.byteLength(namespace);
    if (bytes > 256) throw invalidArgument(`namespace has ${bytes} bytes`, "Use 1 to 256 bytes.");
  }
  settleTls(parameters);
  return { url: parameters.size > 0 ? `${base}?${parameters}` : base, schema, namespace };
}

/** TLS modes of the address, and what the driver gets for them. */
const tlsModes: Readonly<Record<string, string>> = {
  disable: "disable",
  "no-verify": "no-verify",
  "verify-full": "verify-full",
  // pg 8 checks certificates in these modes too, and warns that pg 9 will not. They keep their meaning.
  require: "verify-full",
  "verify-ca": "verify-full",
  prefer: "verify-full",
};

/** Gives each TLS mode one meaning, whatever the version of the driver. */
function settleTls(parameters: URLSearchParams): void {
  const mode = parameters.get("sslmode");
  if (mode === null || parameters.has("uselibpqcompat")) return;
  if (!Object.hasOwn(tlsModes, mode)) {
    throw invalidArgument(`sslmode is "${mode}"`, `Use one of ${Object.keys(tlsModes).join(", ")}.`);
  }
  parameters.set("sslmode", tlsModes[mode]!);
}

/** Names and values are `bytea`: text cannot have a NUL, and `bytea` sorts by bytes whatever the collation. */
export const postgresMigrations: readonly PostgresMigration[] = [
  {
    oldest: 1,
    sql: (schema) => `CREATE TABLE ${schema}.records (
  namespace bytea NOT NULL, collection bytea NOT NULL, key bytea NOT NULL,
  revision bigint NOT NULL, value bytea NOT NULL, written bigint NOT NULL,
  PRIMARY KEY (namespace, collection, key)
);
CREATE TABLE ${schema}.streams (
  namespace bytea NOT NULL, stream bytea NOT NULL, last bigint NOT NULL, written bigint NOT NULL,
  PRIMARY KEY (namespace, stream)
);
CREATE TABLE ${schema}.entries (
  namespace bytea NOT NULL, stream bytea NOT NULL, sequence bigint NOT NULL, value bytea NOT NULL,
  PRIMARY KEY (namespace, stream, sequence)
);
CREATE SEQUENCE ${schema}.revisions`,
  },
];

interface Tables {
  readonly connection: PostgresConnection;
  readonly namespace: Buffer;
  readonly sql: ReturnType<typeof statements>;
  readonly now: () => number;
}

/** A revision comes from a sequence, so writers of different records never wait for each other. The expressions of an
 *  update are evaluated when its row is locked, so the revisions of a record grow. */
function statements(schema: string) {
  const next = `nextval('${schema}.revisions')`;
  const record = "namespace = $1 AND collection = $2 AND key = $3";
  const insert = `INSERT INTO ${schema}.records (namespace, collection, key, revision, value, written)
    VALUES ($1, $2, $3, ${next}, $4, $5) ON CONFLICT (namespace, collection, key)`;
  const range = (column: string, first: number): string =>
    `${column} > $${first} AND ${column} >= $${first + 1} AND ${column} < $${first + 2}
      ORDER BY ${column} LIMIT $${first + 3}`;
  return {
    get: `SELECT value, revision FROM ${schema}.records WHERE ${record}`,
    getLocked: `SELECT value, revision FROM ${schema}.records WHERE ${record} FOR UPDATE`,
    revision: `SELECT revision FROM ${schema}.records WHERE ${record}`,
    put: `${insert} DO UPDATE SET revision = ${next}, value = excluded.value, written = excluded.written
      RETURNING revision`,
    create: `${insert} DO NOTHING RETURNING revision`,
    replace: `UPDATE ${schema}.records SET revision = ${next}, value = $4, written = $5
      WHERE ${record} AND revision = $6 RETURNING revision`,
    delete: `DELETE FROM ${schema}.records WHERE ${record} RETURNING revision`,
    deleteRevision: `DELETE FROM ${schema}.records WHERE ${record} AND revision = $4 RETURNING revision`,
    list: `SELECT key, value, revision FROM ${schema}.records
      WHERE namespace = $1 AND collection = $2 AND ${range("key", 3)}`,
    last: `SELECT last FROM ${schema}.streams WHERE namespace = $1 AND stream = $2`,
    // The row of the stream is locked until the end of the statement, so there are no gaps.
    append: `WITH moved AS (
        INSERT INTO ${schema}.streams (namespace, stream, last, written) VALUES ($1, $2, $3, $4)
        ON CONFLICT (namespace, stream) DO UPDATE SET last = streams.last + $3, written = $4 RETURNING last
      ), added AS (
        INSERT INTO ${schema}.entries (namespace, stream, sequence, value)
        SELECT $1, $2, last - $3 + place, value FROM moved, unnest($5::bytea[]) WITH ORDINALITY AS new (value, place)
      ) SELECT last FROM moved`,
    read: `SELECT sequence, value FROM ${schema}.entries
      WHERE namespace = $1 AND stream = $2 AND sequence > $3 ORDER BY sequence LIMIT $4`,
    trimStream: `WITH gone AS (DELETE FROM ${schema}.entries WHERE namespace = $1 AND stream = $2 AND sequence <= $3
      RETURNING 1) SELECT count(*) AS count FROM gone`,
    deleteStream: `DELETE FROM ${schema}.streams WHERE namespace = $1 AND stream = $2 RETURNING last`,
    deleteEntries: `DELETE FROM ${schema}.entries WHERE namespace = $1 AND stream = $2`,
    listCollections: `SELECT collection, count(*) AS count, sum(length(value))::bigint AS bytes,
      min(written) AS oldest, max(written) AS newest
      FROM ${schema}.records WHERE namespace = $1 GROUP BY collection ORDER BY collection`,
    listFacts: `SELECT key, revision, length(value) AS bytes, written FROM ${schema}.records
      WHERE namespace = $1 AND collection = $2 AND ${range("key", 3)}`,
    listStreams: `SELECT stream, last, written, count, bytes FROM ${schema}.streams AS listed, LATERAL (
        SELECT count(*) AS count, coalesce(sum(length(value)), 0)::bigint AS bytes
        FROM ${schema}.entries WHERE namespace = $1 AND stream = listed.stream) AS counted
      WHERE namespace = $1 AND ${range("stream", 2)}`,
    size: `SELECT sum(pg_total_relation_size(('${schema}.' || name)::regclass))::bigint AS bytes
      FROM unnest(ARRAY['records', 'streams', 'entries']) AS name`,
    copyRecords: `INSERT INTO ${schema}.records (namespace, collection, key, revision, value, written)
      SELECT $1, $2, key, ${next}, value, written
      FROM unnest($3::bytea[], $4::bytea[], $5::bigint[]) AS new (key, value, written)
      ON CONFLICT (namespace, collection, key)
      DO UPDATE SET revision = ${next}, value = excluded.value, written = excluded.written`,
    copyStream: `WITH moved AS (
        INSERT INTO ${schema}.streams (namespace, stream, last, written) VALUES ($1, $2, $3, $4)
        ON CONFLICT (namespace, stream) DO UPDATE SET last = $3, written = $4
      ) INSERT INTO ${schema}.entries (namespace, stream, sequence, value)
        SELECT $1, $2, sequence, value FROM unnest($5::bigint[], $6::bytea[]) AS new (sequence, value)`,
  } as const;
}

function createRecords(tables: Tables): Pick<StoreDriver, "get" | "put" | "update" | "delete" | "list"> {
  const { connection, namespace, sql, now } = tables;
  const place = (collection: string, key: string): Buffer[] => [namespace, encode(collection), encode(key)];
  const refuse = async (session: PostgresSession, [collection, key]: [string, string], expected: number) => {
    const [row] = await session.read(sql.revision, place(collection, key));
    checkRevision(row === undefined ? 0 : row.revision, expected, `${collection}/${key}`);
  };
  return {
    async get(collection, key) {
      const [row] = await connection.run(({ read }) => read(sql.get, place(collection, key)));
      return row && toRecord(key, row);
    },
    async put(collection, key, value, { expectedRevision }) {
      const values = [...place(collection, key), encode(value), now(), ...(expectedRevision ? [expectedRevision] : [])];
      const statement = expectedRevision === undefined ? sql.put : expectedRevision === 0 ? sql.create : sql.replace;
      return connection.run(async (session) => {
        for (;;) {
          const [row] = await session.write(statement, values);
          if (row !== undefined) return row.revision;
          // Throws, unless the record was deleted or written in between.
          await refuse(session, [collection, key], expectedRevision ?? 0);
        }
      });
    },
    update: (collection, key, change) =>
      connection.run((session) => updateRecord(session, tables, { key, place: place(collection, key), change })),
    async delete(collection, key, { expectedRevision }) {
      return connection.run(async (session) => {
        const all = place(collection, key);
        if (expectedRevision === undefined) return (await session.write(sql.delete, all)).length > 0;
        if (expectedRevision > 0) {
          const gone = await session.write(sql.deleteRevision, [...all, expectedRevision]);
          if (gone.length > 0) return true;
        }
        await refuse(session, [collection, key], expectedRevision);
        return false;
      });
    },
    async list(collection, options) {
      const values = [namespace, encode(collection), ...encodeRange(options), options.limit ?? null];
      const rows = await connection.run(({ read }) => read(sql.list, values));
      return rows.map((row) => toRecord(decode(row.key), row));
    },
  };
}

/** Tries without a lock first: reads, changes, and writes if nobody wrote in between. If somebody did, other writers are
 *  at work on this record, and it waits for its turn. */
async function updateRecord(
  session: PostgresSession,
  { sql, now }: Tables,
  {
    key,
    place,
    change,
  }: {
    readonly key: string;
    readonly place: readonly Buffer[];
    readonly change: (value: string | undefined) => string;
  },
): Promise<StoreRecord> {
  const attempt = async (statement: string, write: PostgresSession["write"]): Promise<StoreRecord | undefined> => {
    const [row] = await session.read(statement, place);
    const current = row && toRecord(key, row);
    const value = change(current?.value);
    if (current?.value === value) return current;
    const values = [...place, encode(value), now()];
    const [written] =
      current === undefined ? await write(sql.create, values) : await write(sql.replace, [...values, current.revision]);
    return written && { key, value, revision: written.revision };
  };
  let result = await attempt(sql.get, session.write);
  while (result === undefined) result = await session.transaction(() => attempt(sql.getLocked, session.read));
  return result;
}

function createStreams(tables: Tables): Pick<StoreDriver, "append" | "read" | "trimStream" | "deleteStream"> {
  const { connection, namespace, sql, now } = tables;
  return {
    async append(stream, values) {
      const name = encode(stream);
      const parameters = [namespace, name, values.length, now(), values.map(encode)];
      const [row] = await connection.run(({ read, write }) =>
        values.length === 0 ? read(sql.last, [namespace, name]) : write(sql.append, parameters),
      );
      return row === undefined ? 0 : row.last;
    },
    async read(stream, { after = 0, limit = null }) {
      const rows = await connection.run(({ read }) => read(sql.read, [namespace, encode(stream), after, limit]));
      return rows.map(({ sequence, value }) => ({ sequence, value: decode(value) }));
    },
    async trimStream(stream, through) {
      const values = [namespace, encode(stream), through];
      const [row] = await connection.run(({ write }) => write(sql.trimStream, values));
      return row!.count;
    },
    async deleteStream(stream) {
      const values = [namespace, encode(stream)];
      // Two statements: the second sees the entries of a writer that the first had to wait for.
      return connection.run((session) =>
        session.transaction(async () => {
          const gone = await session.read(sql.deleteStream, values);
          await session.read(sql.deleteEntries, values);
          return gone.length > 0;
        }),
      );
    },
  };
}

function createUpkeep(tables: Tables): Omit<MaintainedStore, keyof Store> {
  const { connection, namespace, sql } = tables;
  return {
    async listCollections() {
      const rows = await connection.run(({ read }) => read(sql.listCollections, [namespace]));
      return rows.map(({ collection, count, bytes, oldest, newest }) => {
        return { collection: decode(collection), records: count, bytes, oldest, newest };
      });
    },
    async listFacts(collection, options = {}) {
      const values = [namespace, encode(collection), ...encodeRange(options), options.limit ?? null];
      const rows = await connection.run(({ read }) => read(sql.listFacts, values));
      return rows.map(({ key, revision, bytes, written }) => ({ key: decode(key), revision, bytes, written }));
    },
    async listStreams(options = {}) {
      const rows = await connection.run(({ read }) =>
        read(sql.listStreams, [namespace, ...encodeRange(options), options.limit ?? null]),
      );
      return rows.map(({ stream, count, bytes, last, written }) => {
        return { stream: decode(stream), entries: count, bytes, last, written };
      });
    },
    async size() {
      const [row] = await connection.run(({ read }) => read(sql.size));
      return row!.bytes;
    },
    async copyRecords(collection, records) {
      const keys = records.map(({ key }) => encode(key));
      const values = records.map(({ value }) => encode(value));
      const times = records.map(({ written }) => written);
      await connection.run(({ write }) => write(sql.copyRecords, [namespace, encode(collection), keys, values, times]));
    },
    async copyStream({ stream, last, written, entries }) {
      const sequences = entries.map(({ sequence }) => sequence);
      const values = entries.map(({ value }) => encode(value));
      await connection.run(({ write }) =>
        write(sql.copyStream, [namespace, encode(stream), last, written, sequences, values]),
      );
    },
  };
}

function toRecord(key: string, { value, revision }: PostgresRow): StoreRecord {
  return { key, value: decode(value), revision };
}
