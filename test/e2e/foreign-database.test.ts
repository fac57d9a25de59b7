/** opencode's database, as somebody made it who wants `bill` and `replay` to hang, to fill the memory, or to write. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadDriver } from "../../src/host/store/sqlite-driver.ts";
import { createSandbox, mainFile, type Run, type Sandbox } from "./run-plimsoll.ts";

// The driver of the store, because some commands run in this process.
const Database = await loadDriver();

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)";
const tables = {
  session: "CREATE TABLE session (id TEXT, directory TEXT, parent_id TEXT, time_created INTEGER)",
  message: "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)",
  part: "CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)",
};

function createDatabase(changes: Partial<typeof tables> = {}, more: readonly string[] = []): string {
  const path = join(sandbox.cwd, "opencode.db");
  const database = new Database(path);
  for (const sql of [...Object.values({ ...tables, ...changes }), ...more]) database.exec(sql);
  database.close();
  return path;
}

/** One session with two messages. */
const rows: readonly string[] = [
  "INSERT INTO session VALUES ('ses_1', '/repo', NULL, 1)",
  `INSERT INTO message VALUES ('m1', 'ses_1', 1, '{"role":"user","time":{"created":1}}')`,
  `INSERT INTO message VALUES ('m2', 'ses_1', 2, '{"role":"assistant","modelID":"claude-sonnet-4-5",
    "tokens":{"input":7,"output":2,"cache":{"read":0,"write":0}},"time":{"created":2,"completed":3}}')`,
  `INSERT INTO part VALUES ('p1', 'm1', '{"type":"text","text":"hello"}')`,
  `INSERT INTO part VALUES ('p2', 'm2', '{"type":"text","text":"hi"}')`,
];

async function refuses(reason: string | RegExp, command: "bill" | "replay" = "bill"): Promise<void> {
  const startedAt = performance.now();
  const { code, stdout, stderr } = await sandbox.call([command, "opencode.db"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("opencode.db: the database cannot be read: ");
  expect(stderr).toMatch(reason);
  expect(performance.now() - startedAt).toBeLessThan(5_000);
}

test("a plain database is read, and nothing is left beside it", async () => {
  createDatabase({}, rows);
  const { code, stdout } = await sandbox.run(["bill", "opencode.db", "--json", "--no-index"]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout).total).toMatchObject({ calls: 1 });
  expect(readdirSync(sandbox.cwd)).toEqual(["opencode.db"]);
});

test.each([["-wal"], ["-wal", "-shm"]])("a log is read and not changed (%s)", async (...endings) => {
  const path = createDatabase({}, ["PRAGMA journal_mode = WAL"]);
  const database = new Database(path);
  for (const row of rows) database.exec(row);
  const copied = join(sandbox.cwd, "copy.db");
  for (const ending of ["", ...endings]) copyFileSync(`${path}${ending}`, `${copied}${ending}`);
  database.close();
  const contents = () => ["", "-wal"].map((ending) => readFileSync(`${copied}${ending}`, "hex"));
  const before = contents();
  const { stdout } = await sandbox.call(["bill", "copy.db", "--json", "--no-index"]);
  expect(JSON.parse(stdout).total).toMatchObject({ calls: 1 });
  expect(contents()).toEqual(before);
});

test("a database is read as what opencode exports of it", async () => {
  const info = (id: string, role: string, created: number) => ({
    ...{ id, role, modelID: "claude-sonnet-4-5", time: { created, completed: created + 5 } },
    tokens: { input: 7, output: 2, cache: { read: 5 * created, write: 9 } },
  });
  const state = { status: "completed", input: { filePath: "a.ts" }, output: "one\ntwo\u2028three\n".repeat(9_000) };
  const messages = [
    { info: info("m4", "user", 1), parts: [{ id: "p1", type: "text", text: "Read a.ts." }] },
    {
      info: info("m3", "assistant", 2),
      parts: [
        { id: "p2", type: "text", text: "Reading." },
        { id: "p3", type: "tool", tool: "read", callID: "c", state },
      ],
    },
    { info: info("m2", "user", 3), parts: [{ id: "p4", type: "text", text: "And?" }] },
    { info: info("m1", "assistant", 4), parts: [{ id: "p5", type: "text", text: "It has\tthree\nlines." }] },
  ];
  sandbox.write("export.json", JSON.stringify({ info: { id: "ses_1", directory: "/repo" }, messages }));
  const database = new Database(createDatabase({}, rows.slice(0, 1)));
  for (const { info: own, parts } of messages.toReversed()) {
    const data = JSON.stringify(own, null, 2);
    database.prepare("INSERT INTO message VALUES (?, 'ses_1', ?, ?)").run([own.id, own.time.created, data]);
    for (const part of parts.toReversed()) {
      database.prepare("INSERT INTO part VALUES (?, ?, ?)").run([part.id, own.id, JSON.stringify(part, null, 2)]);
    }
  }
  database.close();
  for (const [command, ...options] of [
    ["bill", "--no-index"],
    ["replay", "--prefix-tokens", "0"],
  ] as const) {
    const [fromFile, fromDatabase] = await Promise.all(
      ["export.json", "opencode.db"].map(async (path) => {
        const { stdout } = await sandbox.call([command, path, "--json", "--quiet", ...options]);
        return stdout
          .replaceAll(/opencode\.db(#ses_1)?|export\.json/g, "FILE")
          .replaceAll(/.*(bytes|ms|seconds).*\n/gi, "");
      }),
    );
    expect(fromFile?.length).toBeGreaterThan(300);
    expect(fromDatabase).toBe(fromFile);
  }
});

describe("refused, with the reason", () => {
  test.each([
    ["session", `CREATE VIEW session AS ${endless} SELECT 's' || i AS id, i AS time_created FROM n`],
    ["message", `CREATE VIEW message AS ${endless} SELECT i AS id, 'ses_1' AS session_id, '{}' AS data FROM n`],
    ["part", `CREATE VIEW part AS ${endless} SELECT i AS id, 'm1' AS message_id, zeroblob(9999999) AS data FROM n`],
  ])("an endless view in place of %s", async (name, sql) => {
    createDatabase({ [name]: sql });
    await refuses(`${name} is not a plain table`);
    await refuses(`${name} is not a plain table`, "replay");
  });

  test("a column that is computed", async () => {
    createDatabase({ part: "CREATE TABLE part (id TEXT, message_id TEXT, data TEXT AS (hex(zeroblob(100000000))))" });
    await refuses("the table part has computed columns");
  });

  test("a virtual table", async () => {
    createDatabase({ part: "CREATE VIRTUAL TABLE part USING fts5(id, message_id, data)" });
    await refuses("part is not a plain table");
  });

  test("pages that lead to each other, so that a table repeats its rows", async () => {
    repeatPages(createDatabase({}, [...rows, ...manyParts("m1")]));
    await refuses(/it returned more than its files can hold \(the limit is [\d,]+ bytes\)/);
  });

  test("pages that are random bytes", async () => {
    const path = createDatabase({}, [...rows, ...manyParts("m1")]);
    const bytes = readFileSync(path);
    for (let at = 4_096; at < bytes.length; at += 7) bytes[at] = (at * 31) % 256;
    writeFileSync(path, bytes);
    await refuses(/malformed|not a database|no table|corrupt/);
  });

  test("a file that is cut", async () => {
    const path = createDatabase({}, [...rows, ...manyParts("m1")]);
    writeFileSync(path, readFileSync(path).subarray(0, 9_000));
    await refuses(/malformed|corrupt/);
  });

  test.skipIf(process.platform === "win32").each(["", "-wal", "-journal"])(
    "a FIFO as opencode.db%s",
    async (ending) => {
      const path = createDatabase({}, rows);
      if (ending === "") rmSync(path);
      spawnSync("mkfifo", [`${path}${ending}`]);
      await refuses("is not a file");
    },
  );

  test.skipIf(process.platform === "win32").each(["-wal", "-shm"])("a link as opencode.db%s", async (ending) => {
    const path = createDatabase({}, rows);
    sandbox.write("secret", "a secret");
    symlinkSync("secret", `${path}${ending}`);
    await refuses("is not a file");
    expect(readFileSync(join(sandbox.cwd, "secret"), "utf8")).toBe("a secret");
  });
});

test.runIf(process.platform === "linux")(
  "an endless search ends in time",
  { tags: ["deep"], timeout: 20_000 },
  async () => {
    repeatPages(createDatabase({}, [...rows, ...manyParts("of no message")]));
    const { run, seconds } = await measure(["bill", "opencode.db", "--no-index"]);
    expect(run.stderr).toContain("opencode.db: the database cannot be read: it took longer than 3");
    expect(seconds).toBeLessThan(5);
  },
);

test.runIf(process.platform === "linux")(
  "long values are read within 400 MB, and longer ones are left out",
  { tags: ["deep"], timeout: 60_000 },
  async () => {
    const value = (megabytes: number): string =>
      `'{"type":"text","text":"' || replace(hex(zeroblob(${megabytes * 250_000})), '0', 'é') || '"}'`;
    const parts = Array.from({ length: 8 }, (_, at) => `INSERT INTO part VALUES ('q${at}', 'm1', ${value(15)})`);
    createDatabase({}, [...rows, ...parts, `INSERT INTO part VALUES ('z', 'm1', ${value(20)})`]);
    const { run, megabytes } = await measure(["bill", "opencode.db", "--no-index", "--json"]);
    expect(JSON.parse(run.stdout).total).toMatchObject({ calls: 1 });
    expect(megabytes).toBeLessThan(400);
  },
);

function manyParts(message: string): string[] {
  const of = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)`;
  return [`INSERT INTO part ${of} SELECT 'q' || i, '${message}', '{"type":"text","text":"word"}' FROM n`];
}

/** Lets every pointer of the table's first page lead to one new page, every pointer of that one to another, and so on.
 *  SQLite accepts this and returns the last page's rows some hundred million times. */
function repeatPages(path: string): void {
  const database = new Database(path);
  const { rootpage } = database.prepare("SELECT rootpage FROM sqlite_schema WHERE name = 'part'").get() as {
    rootpage: number;
  };
  database.close();
  const size = 4_096;
  const bytes = readFileSync(path);
  const root = bytes.subarray((rootpage - 1) * size, rootpage * size);
  expect(root[0]).toBe(5);
  const leaf = root.readUInt32BE(8);
  const first = bytes.length / size + 1;
  root.set(pageOfPointers(first));
  const pages = [bytes, pageOfPointers(first + 1), pageOfPointers(first + 2), pageOfPointers(leaf)];
  bytes.writeUInt32BE(first + 2, 28);
  writeFileSync(path, Buffer.concat(pages));
}

/** An inner page of a table: https://www.sqlite.org/fileformat2.html#b_tree_pages */
function pageOfPointers(child: number): Buffer {
  const page = Buffer.alloc(4_096);
  const count = 500;
  page.writeUInt8(5, 0);
  page.writeUInt16BE(count, 3);
  page.writeUInt16BE(page.length - 5 * count, 5);
  page.writeUInt32BE(child, 8);
  for (let at = 0; at < count; at += 1) {
    const cell = page.length - 5 * (at + 1);
    page.writeUInt16BE(cell, 12 + 2 * at);
    page.writeUInt32BE(child, cell);
    page.writeUInt8(1, cell + 4);
  }
  return page;
}

/** The most memory that the command and the processes below it had at one time. */
async function measure(args: readonly string[]): Promise<{ run: Run; seconds: number; megabytes: number }> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [mainFile, ...args], { cwd: sandbox.cwd, env: sandbox.env });
  const run: Run = { code: null, stdout: "", stderr: "" };
  child.stdout.on("data", (text) => {
    run.stdout += text;
  });
  child.stderr.on("data", (text) => {
    run.stderr += text;
  });
  let most = 0;
  const timer = setInterval(() => {
    const all = [child.pid!, ...childrenOf(child.pid!)];
    most = Math.max(
      most,
      all.reduce((sum, pid) => sum + kilobytesOf(pid), 0),
    );
  }, 20);
  [run.code] = (await once(child, "close")) as [number];
  clearInterval(timer);
  return { run, seconds: (performance.now() - startedAt) / 1_000, megabytes: most / 1_024 };
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function kilobytesOf(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
  } catch {
    return 0;
  }
}
