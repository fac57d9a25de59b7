import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Client, ClientConfig } from "pg";
import { ContextError, invalidArgument } from "../../core/errors.ts";
import { shownAddress } from "../../core/store/index.ts";

/** A connection that is opened again after it was lost. Operations run in the order of their calls, awaited or not. */
export interface PostgresConnection {
  /** The role that the server knows us as. */
  readonly user: string;
  /** Runs `operation`. Repeats it if the connection is lost before anything can have been written. */
  run<T>(operation: (session: PostgresSession) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export interface PostgresSession {
  /** Runs one statement that writes nothing, or one in a transaction that `commit` ends. */
  read(sql: string, values?: readonly unknown[]): Promise<PostgresRow[]>;
  /** Runs one statement that is a transaction of its own. If the connection is lost meanwhile, nobody knows whether it
   *  was stored, so the operation is not repeated. */
  write(sql: string, values?: readonly unknown[]): Promise<PostgresRow[]>;
  /** Runs the statements of `work` in a transaction. */
  transaction<T>(work: () => Promise<T>): Promise<T>;
}

/** A row by column. Numbers arrive as numbers, `bytea` as buffers. Callers know the columns of their statements. */
// biome-ignore lint/suspicious/noExplicitAny: the type of a column is known only to the statement.
export type PostgresRow = Readonly<Record<string, any>>;

interface PostgresPlace {
  readonly url: string;
  readonly schema: string;
  readonly waitMs: number;
}

/** One step of the schema. A released step never changes. `oldest` is the oldest version of the schema that a program
 *  must know to use a store with this step. A step that only adds tables, or columns with defaults, keeps the number
 *  of the step before it, so that programs of both versions can work side by side. */
export interface PostgresMigration {
  readonly oldest: number;
  readonly sql: (schema: string) => string;
}

export async function connectPostgres(
  place: PostgresPlace,
  migrations: readonly PostgresMigration[],
): Promise<PostgresConnection> {
  const config = {
    connectionString: place.url,
    types: { getTypeParser: (type: number) => parsers[type] ?? ((text: string) => text) },
    fallback_application_name: "plimsoll",
    connectionTimeoutMillis: Math.max(place.waitMs, 1_000),
    keepAlive: true,
  } as ClientConfig;
  const pg = await loadDriver();
  const open = () => openClient(() => new pg.Client(config), place);
  const link = createLink(open, place);
  try {
    const run = createQueue(link, place);
    const [row] = await run((session) => session.read("SELECT current_user::text AS name"));
    await setUp(run, place, migrations);
    // Operations that were called before the close still run.
    const close = () => run(async () => {}, { offline: true }).finally(link.end);
    return { user: row!.name, run, close };
  } catch (error) {
    await link.end();
    throw error;
  }
}

/** Loads the driver on first use: it is an optional peer dependency. */
async function loadDriver(): Promise<{ Client: typeof Client }> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    throw new ContextError("store_unavailable", "the PostgreSQL driver is not installed", {
      hint: "Run npm install pg@8 in the project that has plimsoll, or npm install --global pg@8 if plimsoll is installed globally.",
      cause: error,
    });
  }
}

/** By the server's number of a type: bool, bytea, int8, int4. The driver reads every answer as UTF-8, so its binary form
 *  would lose bytes (pg 8.23). It would return int8 as text. */
const parsers: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => text === "t",
  17: (text) => Buffer.from(text.slice(2), "hex"),
  20: Number,
  23: Number,
};

/** A purge may take long. Every other statement must end within the time that a call waits. */
async function openClient(create: () => Client, { url, waitMs }: PostgresPlace): Promise<Client> {
  const client = createClient(create, url);
  // Without a listener, a lost connection would end the process. The next statement fails and reports it.
  client.on("error", () => {});
  try {
    await client.connect();
    const limit = Math.max(waitMs, 1_000);
    await client.query(`SET bytea_output = hex; SET statement_timeout = ${limit}; SET lock_timeout = ${limit};
      SET idle_in_transaction_session_timeout = ${6 * limit};
      SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`);
    return client;
  } catch (error) {
    void client.end().catch(() => {});
    throw translate(error, url);
  }
}

/** The driver reads the files of certificates when it creates a client. */
function createClient(create: () => Client, url: string): Client {
  const addressHint =
    "Use postgres://USER@HOST:PORT/DATABASE with a port up to 65535, and write @ in a password as %40, / as %2F and # as %23.";
  try {
    return create();
  } catch (error) {
    const { path, code = "" } = error as NodeJS.ErrnoException;
    // Without a cause: the driver's error has the address, and with it the password.
    if (code === "ERR_INVALID_URL") throw invalidArgument("url is not an address that can be read", addressHint);
    if (path === undefined) throw translate(error, url);
    const hint = "Check sslrootcert, sslcert and sslkey in the address.";
    throw unavailable(`the file ${path} cannot be read (${code})`, { file: shownAddress(url), hint, cause: error });
  }
}

function createLink(open: () => Promise<Client>, { waitMs }: PostgresPlace) {
  let current: Client | undefined;
  let wasOpen = false;
  const keep = (client: Client): Client => {
    const forget = () => {
      if (current === client) current = undefined;
    };
    client.on("end", forget);
    client.on("error", forget);
    current = client;
    wasOpen = true;
    return client;
  };
  /** Whether it helps to try again: the server starts, stops, or has no free connection. A server that was there may
   *  come back. One that never answered is probably the wrong address. */
  const canWait = (error: unknown): boolean => {
    const cause = error instanceof ContextError ? error.cause : error;
    const code = getErrorCode(cause);
    return (isLost(cause) || code === "53300") && (wasOpen || !["ECONNREFUSED", "ENOENT"].includes(code));
  };
  return {
    /** Returns the living connection, or opens one. */
    async client(): Promise<Client> {
      if (current !== undefined) return current;
      const start = performance.now();
      for (;;) {
        try {
          return keep(await open());
        } catch (error) {
          if (!canWait(error) || performance.now() - start >= waitMs) throw error;
        }
        await sleep(20 + 80 * Math.random());
      }
    },
    drop(): void {
      const client = current;
      current = undefined;
      void client?.end().catch(() => {});
    },
    async end(): Promise<void> {
      const client = current;
      current = undefined;
      await client?.end().catch(() => {});
    },
  };
}

type Run = <T>(
  operation: (session: PostgresSession) => Promise<T>,
  options?: { readonly offline?: boolean },
) => Promise<T>;

function createQueue(link: ReturnType<typeof createLink>, place: PostgresPlace): Run {
  let last: Promise<unknown> = Promise.resolve();
  let usesNames = true;
  /** Returns if the operation can be repeated. */
  const settle = (error: unknown, { failure, inDoubt }: SessionState): void => {
    // Not an error of the driver but of the caller, for example of its `change`.
    if (error !== failure) throw error;
    // Whether a prepared statement is missing, or there already: a pooler has given us another connection of the
    // server. The statement did not run.
    if (usesNames && ["26000", "42P05"].includes(getErrorCode(error))) {
      usesNames = false;
      return;
    }
    if (!isLost(error)) throw translate(error, place.url);
    link.drop();
    if (inDoubt)
      throw new ContextError("store_unavailable", "the connection to the store was lost during a write", {
        file: shownAddress(place.url),
        hint: "The last write is stored completely or not at all. Read the record again before you repeat it.",
        cause: error,
      });
  };
  const repeat = async <T>(operation: (session: PostgresSession) => Promise<T>): Promise<T> => {
    const start = performance.now();
    for (;;) {
      const client = await link.client();
      const state: SessionState = { inDoubt: false, failure: undefined };
      try {
        return await operation(createSession(client, { state, usesNames }));
      } catch (error) {
        settle(error, state);
        if (performance.now() - start >= place.waitMs) throw translate(error, place.url);
      }
    }
  };
  return (operation, { offline = false } = {}) => {
    const result = last.then(() => (offline ? (undefined as never) : repeat(operation)));
    last = result.catch(() => {});
    return result;
  };
}

interface SessionState {
  /** Whether a statement is under way whose effect is unknown if the connection is lost. */
  inDoubt: boolean;
  /** The driver's last error. */
  failure: unknown;
}

function createSession(
  client: Client,
  { state, usesNames }: { readonly state: SessionState; readonly usesNames: boolean },
): PostgresSession {
  const read: PostgresSession["read"] = async (sql, values = []) => {
    const name = usesNames && values.length > 0 ? getStatementName(sql) : undefined;
    try {
      return (await client.query({ text: sql, values: [...values], name })).rows;
    } catch (error) {
      state.failure = error;
      throw error;
    }
  };
  const write: PostgresSession["write"] = async (sql, values) => {
    state.inDoubt = true;
    const rows = await read(sql, values);
    state.inDoubt = false;
    return rows;
  };
  return {
    read,
    write,
    async transaction(work) {
      await read("BEGIN");
      try {
        const result = await work();
        await write("COMMIT");
        return result;
      } catch (error) {
        const failure = state.failure;
        if (error !== failure || !isLost(error)) await read("ROLLBACK");
        state.failure = failure;
        throw error;
      }
    },
  };
}

/** The server parses a statement with a name once for each connection. A pooler may give a connection of the server to
 *  several programs, so a name means the same statement in all of them. */
const statementNames = new Map<string, string>();

function getStatementName(sql: string): string {
  const name = statementNames.get(sql) ?? `plimsoll_${createHash("sha256").update(sql).digest("hex").slice(0, 16)}`;
  statementNames.set(sql, name);
  return name;
}

// The schema.

async function setUp(run: Run, place: PostgresPlace, migrations: readonly PostgresMigration[]): Promise<void> {
  const { schema, url } = place;
  const known = await run((session) => readVersion(session, schema));
  if (known !== undefined) checkVersion(known, migrations.length, url);
  if ((known?.version ?? 0) >= migrations.length) return;
  try {
    await run((session) => session.transaction(() => migrate(session, place, migrations)));
  } catch (error) {
    // Another program that still knows fewer steps may use the store meanwhile: only the owner updates the schema.
    const isForbidden = error instanceof ContextError && getErrorCode(error.cause) === "42501";
    if (!isForbidden || known === undefined || migrations.at(-1)!.oldest > known.version) throw error;
  }
}

interface SchemaVersion {
  readonly version: number;
  readonly oldest: number;
}

async function readVersion(session: PostgresSession, schema: string): Promise<SchemaVersion | undefined> {
  try {
    const [row] = await session.read(`SELECT version, oldest FROM ${schema}.versions`);
    return row as SchemaVersion | undefined;
  } catch (error) {
    // There is no such table, or no such schema.
    if (["42P01", "3F000"].includes(getErrorCode(error))) return undefined;
    throw error;
  }
}

function checkVersion({ version, oldest }: SchemaVersion, newest: number, url: string): void {
  if (oldest <= newest) return;
  const versions = `version ${version}, which needs a program that knows version ${oldest}; this one knows ${newest}`;
  throw new ContextError("store_newer", `the store was written by a newer plimsoll (${versions})`, {
    file: shownAddress(url),
    hint: "Nothing was changed. Update plimsoll on this machine.",
  });
}

/** Runs in a transaction, so a step happens completely or not at all. The lock lets one process do it. */
async function migrate(
  session: PostgresSession,
  { schema, url }: PostgresPlace,
  migrations: readonly PostgresMigration[],
): Promise<void> {
  await session.read("SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))", [`plimsoll ${schema}`]);
  const [found] = await session.read("SELECT to_regclass($1::text) IS NOT NULL AS there", [`${schema}.versions`]);
  const isThere = found!.there;
  const known = isThere ? await readVersion(session, schema) : undefined;
  if (known !== undefined) checkVersion(known, migrations.length, url);
  const [space] = await session.read("SELECT to_regnamespace($1::text) IS NOT NULL AS there", [schema]);
  // IF NOT EXISTS asks for the right to create schemas even if nothing is to be created.
  if (!space!.there) await session.read(`CREATE SCHEMA ${schema}`);
  for (const { sql } of migrations.slice(known?.version ?? 0)) {
    for (const statement of sql(schema).split(";\n")) await session.read(statement);
  }
  const newest = { version: migrations.length, oldest: migrations.at(-1)!.oldest };
  if (known !== undefined && known.version >= newest.version) return;
  if (!isThere) await session.read(`CREATE TABLE ${schema}.versions (version int NOT NULL, oldest int NOT NULL)`);
  await session.read(`DELETE FROM ${schema}.versions`);
  await session.read(`INSERT INTO ${schema}.versions (version, oldest) VALUES ($1::int, $2::int)`, [
    newest.version,
    newest.oldest,
  ]);
}

// Errors of the driver and the server as `ContextError`s.

function getErrorCode(error: unknown): string {
  const { code } = Object(error) as { code?: unknown };
  return typeof code === "string" ? code : "";
}

/** Whether the connection is gone. Class 08 is a broken connection, 57P01 to 57P03 a server that stops or starts. */
function isLost(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof ContextError) return false;
  const code = getErrorCode(error);
  if (/^(08|57P0[1-5])/.test(code)) return true;
  if (/^(ECONNRESET|EPIPE|ETIMEDOUT|ECONNREFUSED|ENOENT|ECONNABORTED)$/.test(code)) return true;
  return /^(Connection terminated|Client has encountered a connection error|timeout expired|Client was closed)/.test(
    error.message,
  );
}

/** Reasons and hints by code of the server or the system. */
const serverReasons: Readonly<Record<string, readonly [reason: string, hint: string]>> = {
  ECONNREFUSED: ["the server refuses connections", "Check that PostgreSQL runs there, and the host and port."],
  ENOENT: ["there is no such socket", "Check that PostgreSQL runs, and the folder of its socket."],
  ENOTFOUND: ["the host is not known", "Check the host in the address."],
  EAI_AGAIN: ["the host's name cannot be looked up", "Check the network and the host in the address."],
  // The server does not say whether it knows the user.
  "28P01": [
    "the user or the password is wrong",
    "Check the user and the password in the address, PGPASSWORD or PGPASSFILE.",
  ],
  "28000": ["the server does not let this user in", "Check the user in the address, and the server's pg_hba.conf."],
  "3D000": ["there is no such database", "Create it, or name another one in the address."],
  "42501": [
    "a privilege is missing",
    "The role needs a schema of its own: CREATE SCHEMA plimsoll AUTHORIZATION its_name. Or the owner of the schema opens the store once and grants this role its rights. See docs/fleet.md.",
  ],
  "53300": ["the server has no free connection", "Raise max_connections, or put a pooler in front of the server."],
  "57014": ["a statement took too long", "Try again, or look for a session that holds a lock."],
  "55P03": ["a lock was not free in time", "Try again, or look for a session that holds a lock."],
  "25006": ["the server is read-only", "Name the primary server in the address, not a replica."],
};

/** Returns an unknown error unchanged: it is a bug. */
function translate(error: unknown, url: string): unknown {
  if (!(error instanceof Error) || error instanceof ContextError) return error;
  const code = getErrorCode(error);
  const known = serverReasons[code];
  const file = shownAddress(url);
  if (code === "42501" && error.message.includes("row-level security")) {
    const hint = "Name no namespace in the address, or the role's own. See docs/fleet.md.";
    return unavailable("the namespace belongs to another role", { file, hint, cause: error });
  }
  if (known !== undefined) {
    const detail = code === "42501" ? ` (${error.message})` : describePlace(error);
    return unavailable(`${known[0]}${detail}`, { file, hint: known[1], cause: error });
  }
  if (error.message.includes("client password must be a string") || /SASL|SCRAM/.test(error.message)) {
    return unavailable("the server asks for a password", { file, hint: serverReasons["28P01"]![1], cause: error });
  }
  if (isLost(error)) {
    const hint = "Check that the server runs and can be reached.";
    return unavailable("the connection was lost or could not be made in time", { file, hint, cause: error });
  }
  if (/certificate|SSL|TLS/i.test(error.message) || /^(DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|ERR_TLS|CERT_)/.test(code)) {
    const hint = "Check sslmode and sslrootcert in the address.";
    return unavailable(`no secure connection can be made (${error.message})`, { file, hint, cause: error });
  }
  // Class 42 means wrong SQL. Ours is right, so the schema does not have our tables as they should be.
  if (/^(42|3F)/.test(code)) {
    return new ContextError("store_corrupt", `the store cannot be read: ${error.message}`, {
      file,
      hint: "Its schema lacks tables that it should have, or has some of another program. Restore it from a backup, or name another schema.",
      cause: error,
    });
  }
  // 53: out of disk or memory. 58: the server's own system failed. XX: its files are damaged. 54: a value is too large.
  if (/^(53|54|58|XX|25)/.test(code)) {
    return unavailable(error.message, { file, hint: "See the server's log.", cause: error });
  }
  return error;
}

/** Returns where a connection failed. A host can have several addresses. */
function describePlace(error: Error): string {
  const failures = (error instanceof AggregateError ? error.errors : [error]) as { address?: string; port?: number }[];
  const places = failures.flatMap(({ address, port }) => {
    if (address === undefined) return [];
    return port === undefined ? address : `${address.includes(":") ? `[${address}]` : address}:${port}`;
  });
  return places.length === 0 ? "" : ` at ${[...new Set(places)].join(" and ")}`;
}

function unavailable(problem: string, details: { file: string; hint: string; cause: unknown }): ContextError {
  return new ContextError("store_unavailable", `the store cannot be used: ${problem}`, details);
}
