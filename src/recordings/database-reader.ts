/** Prints the rows of opencode's database, one line each. It runs as a process of its own, because nothing in a process
 *  can interrupt SQLite: the process that started it watches the lines and ends it.
 *
 *  A line is a JSON array that starts with the row's kind. For messages and parts, a tab and the JSON of the row
 *  follow. */
import { once } from "node:events";
import type Libsql from "libsql";
import { loadDriver } from "../host/store/sqlite-driver.ts";

/** SQLite's own memory. Above it a query fails. */
const mostHeapBytes = 96 << 20;

/** The driver fetches 100 rows at once. Longer values are fetched one by one. */
const shortBytes = 65_536;

/** A longer value is left out: its text and its values would take several times its size. */
const mostValueBytes = 16 << 20;

const mostIdBytes = 1_000;
const mostPathBytes = 16_384;

/** SQLite must write no file, call no function of the file's schema, and copy no table into an index of its own. */
const settings = ["temp_store = MEMORY", "trusted_schema = OFF", "query_only = ON", "automatic_index = OFF"];

const tables = ["session", "message", "part"] as const;

interface Row {
  readonly id: string;
  readonly owner: string | null;
  readonly time: unknown;
  readonly data: string | null;
  readonly bytes: number;
}

async function printDatabase(url: string, only: string | undefined): Promise<void> {
  const database = new (await loadDriver())(url);
  database.exec(`PRAGMA hard_heap_limit = ${mostHeapBytes}`);
  for (const setting of settings) database.exec(`PRAGMA ${setting}`);
  for (const table of tables) refuseComputed(database, table);
  const owned = [
    { kind: "message", rows: "FROM message WHERE session_id = ?", owner: "session_id", time: "time_created" },
    {
      kind: "part",
      rows: "FROM part WHERE message_id IN (SELECT id FROM message WHERE session_id = ?)",
      ...{ owner: "message_id", time: "NULL" },
    },
  ].map((each) => ({ kind: each.kind, ...prepareRows(database, each) }));
  for (const session of listSessions(database, only)) {
    await print(JSON.stringify(["session", session.id, session.directory, session.parent]));
    for (const { kind, rows, value } of owned) {
      for (const { id, owner, time, data, bytes } of rows.iterate([session.id]) as Iterable<Row>) {
        const text = bytes <= shortBytes ? data : (value.get([id]) as Pick<Row, "data"> | undefined)?.data;
        // In JSON, line breaks are only between words.
        await print(`${JSON.stringify([kind, id, owner, time])}\t${String(text ?? "{}").replaceAll(/[\n\r]/g, " ")}`);
      }
    }
  }
}

/** A view or a generated column can run for ever, and a virtual table is another program's code. */
function refuseComputed(database: Libsql.Database, table: string): void {
  const found = database.prepare("SELECT type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE").all([table]) as {
    readonly type: string;
    readonly sql: string | null;
  }[];
  if (found.length === 0) throw new Error(`it has no table ${table}`);
  const isPlain = found.every(({ type, sql }) => type === "table" && !/^\s*CREATE\s+VIRTUAL\b/i.test(sql ?? ""));
  if (!isPlain) throw new Error(`${table} is not a plain table`);
  if (listColumns(database, table).some(({ hidden }) => hidden !== 0)) {
    throw new Error(`the table ${table} has computed columns`);
  }
}

function listColumns(database: Libsql.Database, table: string): { readonly name: string; readonly hidden: number }[] {
  return database.prepare("SELECT name, hidden FROM pragma_table_xinfo(?)").all([table]) as ReturnType<
    typeof listColumns
  >;
}

interface SessionRow {
  readonly id: string;
  readonly directory: string | null;
  readonly parent: string | null;
}

function listSessions(database: Libsql.Database, only: string | undefined): Iterable<SessionRow> {
  const known = new Set(listColumns(database, "session").map(({ name }) => name));
  const cut = (name: string): string =>
    known.has(name) ? `CASE WHEN octet_length(${name}) <= ${mostPathBytes} THEN ${name} END` : "NULL";
  const query = `SELECT id, ${cut("directory")} AS directory, ${cut("parent_id")} AS parent FROM session
    WHERE octet_length(id) <= ${mostIdBytes} ${only === undefined ? "" : "AND id = ?"} ORDER BY time_created, id`;
  return database.prepare(query).iterate(only === undefined ? [] : [only]) as Iterable<SessionRow>;
}

/** Rows come in no order: sorting long values would take SQLite's memory. */
function prepareRows(database: Libsql.Database, { kind, rows, owner, time }: Readonly<Record<string, string>>) {
  const isShort = `octet_length(data) <= ${shortBytes}`;
  return {
    rows: database.prepare(`SELECT id, ${owner} AS owner, ${time} AS time, octet_length(data) AS bytes,
      CASE WHEN ${isShort} THEN data END AS data ${rows} AND octet_length(id) <= ${mostIdBytes}`),
    value: database.prepare(`SELECT data FROM ${kind} WHERE id = ? AND octet_length(data) <= ${mostValueBytes}`),
  };
}

let waiting: string[] = [];
let waitingLength = 0;

/** Writing each short line alone would take most of the time. */
async function print(line: string): Promise<void> {
  waiting.push(line, "\n");
  waitingLength += line.length;
  if (waitingLength >= shortBytes) await flush();
}

async function flush(): Promise<void> {
  const text = waiting.join("");
  [waiting, waitingLength] = [[], 0];
  if (!process.stdout.write(text)) await once(process.stdout, "drain");
}

// The reader is gone.
process.stdout.on("error", () => process.exit(1));
const [url = "", only] = process.argv.slice(2);
try {
  await printDatabase(url, only);
  await print('["end"]');
} catch (error) {
  await print(JSON.stringify(["error", error instanceof Error ? error.message : String(error)]));
}
await flush();
