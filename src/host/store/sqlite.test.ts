import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type Libsql from "libsql";
import { afterAll, describe, expect, test, vi } from "vitest";
import { describeStore, describeUpkeep, expectCallOrder } from "../../core/store/store.contract.ts";
import { openMaintainedSqlite, openSqliteStore } from "./sqlite.ts";
import { applicationId, migrate, migrations } from "./sqlite-connection.ts";
import { loadDriver } from "./sqlite-driver.ts";

// The driver of the store. Another one in this process would release its locks.
const Database = await loadDriver();

const root = mkdtempSync(join(tmpdir(), "plimsoll-sqlite-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const newFolder = (): string => mkdtempSync(join(root, "case-"));
const newPath = (): string => join(newFolder(), "state.db");

describeStore("sqlite", () => openSqliteStore({ path: newPath() }));
describeUpkeep("sqlite", (now) => openMaintainedSqlite({ path: newPath(), now }));

describe("a store on disk", () => {
  test("keeps records, revisions and streams over a reopen", async () => {
    const path = newPath();
    const first = await openSqliteStore({ path });
    const revision = await first.put("c", "k", "a\ud800\0");
    await first.append("log", ["one", "two"]);
    await first.close();
    const second = await openSqliteStore({ path });
    expect(await second.get("c", "k")).toEqual({ key: "k", value: "a\ud800\0", revision });
    expect(await second.append("log", ["three"])).toBe(3);
    await second.delete("c", "k");
    await second.close();
    const third = await openSqliteStore({ path });
    expect(await third.put("c", "k", "again")).toBeGreaterThan(revision);
    await third.close();
  });

  test("only its owner can read it and the folder created for it", async () => {
    const path = join(newFolder(), "made", "for it", "state.db");
    const store = await openSqliteStore({ path });
    await store.put("c", "k", "secret");
    const modes = ["", "-wal", "-shm"].map((suffix) => statSync(path + suffix).mode & 0o777);
    expect(modes).toEqual([0o600, 0o600, 0o600]);
    expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
    await store.close();
  });

  test("has everything in the one file after close", async () => {
    const path = newPath();
    const store = await openSqliteStore({ path });
    await store.put("c", "k", "v");
    await store.close();
    const copied = newPath();
    writeFileSync(copied, readFileSync(path));
    const copy = await openSqliteStore({ path: copied });
    expect((await copy.get("c", "k"))?.value).toBe("v");
    await copy.close();
  });

  test("takes any path literally", async () => {
    const folder = newFolder();
    const names = ["a?mode=ro#x%41 é.db", ":memory:", "file:x.db"];
    for (const name of names) {
      const store = await openSqliteStore({ path: join(folder, name) });
      await store.put("c", "k", name);
      await store.close();
      const again = await openSqliteStore({ path: join(folder, name) });
      expect((await again.get("c", "k"))?.value).toBe(name);
      await again.close();
    }
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(names));
  });

  test("opened twice in one process is one store", async () => {
    const path = newPath();
    const first = await openSqliteStore({ path });
    await first.put("c", "k", "1");
    const second = await openSqliteStore({ path });
    expect((await second.get("c", "k"))?.value).toBe("1");
    await second.put("c", "k", "2");
    await second.close();
    expect((await first.get("c", "k"))?.value).toBe("2");
    await first.close();
  });

  test("eight connections that open a new file at once all succeed", async () => {
    const path = newPath();
    const stores = await Promise.all(Array.from({ length: 8 }, () => openSqliteStore({ path })));
    await Promise.all(stores.map((store) => store.append("log", ["x"])));
    expect(await stores[0]!.append("log", [])).toBe(8);
    await Promise.all(stores.map((store) => store.close()));
  });

  test("that was locked in the middle of its opening can be written afterwards", async () => {
    const path = newPath();
    const older = new Database(path);
    migrate(older, path);
    // Locks the file right after the first call to the driver, as another process that creates the store can.
    const exec = vi.spyOn(Database.prototype as Libsql.Database, "exec").mockImplementation(function (
      this: Libsql.Database,
      sql,
    ) {
      exec.mockRestore();
      this.exec(sql);
      older.exec("BEGIN EXCLUSIVE");
      setTimeout(() => older.exec("COMMIT"), 30);
      return this;
    });
    const stores = [await openSqliteStore({ path, waitMs: 500 }), await openSqliteStore({ path, waitMs: 500 })];
    for (const store of [...stores, ...stores]) await store.append("log", ["entry"]);
    expect(await stores[0]!.append("log", [])).toBe(4);
    await Promise.all(stores.map((store) => store.close()));
  });

  test("waits for a writer without blocking, then says that the file is in use", async () => {
    const path = newPath();
    const store = await openSqliteStore({ path, waitMs: 300 });
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    let ticks = 0;
    const ticking = setInterval(() => ticks++, 1);
    const busy = { code: "store_unavailable", file: path, hint: expect.stringContaining("Try again") };
    await expect(store.put("c", "k", "v")).rejects.toMatchObject(busy);
    clearInterval(ticking);
    // A busy machine allows few of them, but a wait inside SQLite would allow none.
    expect(ticks).toBeGreaterThan(5);
    const late = store.put("c", "k", "late");
    other.exec("COMMIT");
    await late;
    expect((await store.get("c", "k"))?.value).toBe("late");
    await store.close();
    other.close();
  });
});

describe("calls that wait for another writer", () => {
  test("still take effect in order", async () => {
    const path = newPath();
    const store = await openSqliteStore({ path });
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    setTimeout(() => other.exec("COMMIT"), 150);
    await expectCallOrder(store);
    await store.close();
    other.close();
  });

  test("still write if they came before a close, and not if they came after it", async () => {
    const path = newPath();
    const store = await openSqliteStore({ path });
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const writing = store.put("c", "k", "v");
    const closing = [store.close(), store.close()];
    await expect(store.put("c", "k", "late")).rejects.toMatchObject({ message: "the store is closed" });
    other.exec("COMMIT");
    other.close();
    await Promise.all([writing, ...closing]);
    const again = await openSqliteStore({ path });
    expect((await again.get("c", "k"))?.value).toBe("v");
    await again.close();
  });

  test("fail together if it never ends, not one after the other", async () => {
    const path = newPath();
    const store = await openSqliteStore({ path, waitMs: 100 });
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const start = performance.now();
    const results = await Promise.allSettled(Array.from({ length: 200 }, () => store.put("c", "k", "v")));
    expect(results.map(({ status }) => status)).toEqual(results.map(() => "rejected"));
    // One after the other, they would take 20 seconds.
    expect(performance.now() - start).toBeLessThan(5_000);
    other.exec("COMMIT");
    await store.put("c", "k", "v");
    await store.close();
    other.close();
  });
});

describe("refuses a file that is not our store and leaves it unchanged", () => {
  test.each([
    ["text", "store_corrupt", (path: string) => writeFileSync(path, "# Notes\n")],
    ["garbage bytes", "store_corrupt", (path: string) => writeFileSync(path, Buffer.alloc(9_000, 0x5a))],
    ["a database header and garbage", "store_corrupt", writeHeaderAndGarbage],
    ["a database of another application", "store_corrupt", (path: string) => writeDatabase(path, 77)],
    ["a database of no application", "store_corrupt", (path: string) => writeDatabase(path, 0)],
    ["a store of a newer version", "store_newer", (path: string) => writeDatabase(path, applicationId, 99)],
  ])("%s", async (_name, code, write) => {
    const path = newPath();
    write(path);
    const before = digest(path);
    const refused = { name: "ContextError", code, file: path, hint: expect.stringMatching(/\w/) };
    await expect(openSqliteStore({ path })).rejects.toMatchObject(refused);
    expect(digest(path)).toBe(before);
    expect(readdirSync(join(path, ".."))).toEqual(["state.db"]);
  });

  test("a database of another application that is in use, its tables still in its log", async () => {
    const path = newPath();
    const other = new Database(path);
    other.pragma("journal_mode = WAL");
    other.exec("CREATE TABLE x (a); INSERT INTO x VALUES (1)");
    const before = [digest(path), digest(`${path}-wal`)];
    await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "store_corrupt" });
    expect([digest(path), digest(`${path}-wal`)]).toEqual(before);
    other.close();
  });

  test.each([50, 4_096, 10_000])("a store cut off after %i bytes", async (bytes) => {
    const path = newPath();
    const store = await openSqliteStore({ path });
    await store.put("c", "k", "v".repeat(50_000));
    await store.close();
    const cut = newPath();
    writeFileSync(cut, readFileSync(path).subarray(0, bytes));
    const before = digest(cut);
    await expect(openSqliteStore({ path: cut })).rejects.toMatchObject({ code: "store_corrupt", file: cut });
    expect(digest(cut)).toBe(before);
  });

  test.each([
    ["a negative version", 60, 172],
    ["no version", 63, 0],
    ["an unknown format", 47, 192],
    ["the name of another application", 68, 1],
  ])("a store whose header has %s", async (_name, offset, value) => {
    const path = newPath();
    const store = await openSqliteStore({ path });
    await store.put("c", "k", "v");
    await store.close();
    const damaged = newPath();
    const bytes = readFileSync(path);
    bytes[offset] = value;
    writeFileSync(damaged, bytes);
    await expect(openSqliteStore({ path: damaged })).rejects.toMatchObject({
      name: "ContextError",
      code: "store_corrupt",
      file: damaged,
    });
    expect(readFileSync(damaged).equals(bytes)).toBe(true);
    expect(readdirSync(join(damaged, ".."))).toEqual(["state.db"]);
  });

  test("a store without one of its columns", async () => {
    const path = newPath();
    await (await openSqliteStore({ path })).close();
    const database = new Database(path);
    database.exec("ALTER TABLE records RENAME COLUMN revision TO revisiom");
    database.pragma("wal_checkpoint(TRUNCATE)");
    database.close();
    const before = digest(path);
    await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "store_corrupt", file: path });
    expect(digest(path)).toBe(before);
  });

  test("a store cut off to nothing whose log still has the writes", async () => {
    const path = newPath();
    const store = await openSqliteStore({ path });
    await store.put("c", "k", "v");
    const cut = newPath();
    writeFileSync(`${cut}-wal`, readFileSync(`${path}-wal`));
    writeFileSync(cut, "");
    const before = digest(`${cut}-wal`);
    await expect(openSqliteStore({ path: cut })).rejects.toMatchObject({ code: "store_corrupt", file: cut });
    expect(digest(`${cut}-wal`)).toBe(before);
    await store.close();
  });

  test("a store with a damaged page opens, and reading the page reports the damage", async () => {
    const path = newPath();
    const store = await openSqliteStore({ path });
    for (let index = 0; index < 25; index += 1) await store.put("c", `k${index}`, "v".repeat(4_000));
    await store.close();
    const damaged = newPath();
    const bytes = readFileSync(path);
    bytes.fill(0xa5, 4_096 * 2);
    writeFileSync(damaged, bytes);
    const reading = openSqliteStore({ path: damaged }).then((opened) => opened.list("c"));
    await expect(reading).rejects.toMatchObject({ code: "store_corrupt", file: damaged });
  });
});

describe("refuses a path that cannot be a store", () => {
  test("a folder, a path below a file, a link into a missing folder", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, "file"), "x");
    symlinkSync(join(folder, "missing", "target.db"), join(folder, "link"));
    for (const path of [folder, join(folder, "file", "state.db"), join(folder, "link")]) {
      await expect(openSqliteStore({ path })).rejects.toMatchObject({
        code: "store_unavailable",
        file: path,
      });
    }
    expect(readdirSync(folder).sort()).toEqual(["file", "link"]);
  });

  // Root only plays another user here: the system's check still sees root, and Node's SQLite opens the file to read it.
  const onlyPlays = process.getuid?.() === 0 && Database.name !== "Database";
  test.skipIf(onlyPlays)("a file or folder without permission", async () => {
    const folder = newFolder();
    const path = join(folder, "state.db");
    await (await openSqliteStore({ path })).close();
    const closedFolder = join(folder, "closed");
    mkdirSync(closedFolder);
    await asOrdinaryUser(async () => {
      const denied = { code: "store_unavailable", hint: expect.stringContaining("permissions") };
      chmodSync(path, 0o400);
      chmodSync(closedFolder, 0o500);
      await expect(openSqliteStore({ path })).rejects.toMatchObject(denied);
      await expect(openSqliteStore({ path: join(closedFolder, "state.db") })).rejects.toMatchObject(denied);
    }, [root, folder, path, closedFolder]);
    expect(readdirSync(closedFolder)).toEqual([]);
  });

  test.each(["", "a\0b", undefined])("refuses %j as a path", async (path) => {
    const opening = openSqliteStore({ path: path as string });
    await expect(opening).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test.each([-1, Number.NaN])("refuses to wait %d ms, and creates no file", async (waitMs) => {
    const path = newPath();
    await expect(openSqliteStore({ path, waitMs })).rejects.toMatchObject({ code: "invalid_argument" });
    expect(existsSync(path)).toBe(false);
  });
});

describe("migrations", () => {
  test("bring an older store to the newest version and keep its content", async () => {
    const path = newPath();
    const store = await openSqliteStore({ path });
    await store.put("c", "k", "v");
    await store.close();
    const database = new Database(path);
    migrate(database, path, [...migrations, "CREATE TABLE added (a); INSERT INTO added SELECT key FROM records"]);
    expect(database.prepare("SELECT count(*) AS n FROM added").get()).toMatchObject({ n: 1 });
    database.close();
    await expect(openSqliteStore({ path })).rejects.toMatchObject({ code: "store_newer" });
  });

  test("leave a new file empty if a step fails", () => {
    const path = newPath();
    const database = new Database(path);
    database.exec("BEGIN IMMEDIATE");
    expect(() => migrate(database, path, [...migrations, "CREATE TABLE records (a)"])).toThrow("already exists");
    database.exec("ROLLBACK");
    database.close();
    expect(existsSync(path) ? statSync(path).size : 0).toBe(0);
  });
});

function digest(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

function writeHeaderAndGarbage(path: string): void {
  writeFileSync(path, Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(8_176, 0xee)]));
}

/** In the mode that stores use, with everything in the main file and without a log. */
function writeDatabase(path: string, application: number, version = 1): void {
  const scratch = newPath();
  const database = new Database(scratch);
  database.pragma("journal_mode = WAL");
  database.exec(`PRAGMA application_id = ${application}; PRAGMA user_version = ${version}; CREATE TABLE x (a)`);
  database.pragma("wal_checkpoint(TRUNCATE)");
  database.close();
  writeFileSync(path, readFileSync(scratch));
}

/** Root can read and write everything, so the check then runs under another user id. */
async function asOrdinaryUser(check: () => Promise<void>, owned: readonly string[]): Promise<void> {
  if (process.getuid?.() !== 0) return check();
  const { chownSync } = await import("node:fs");
  for (const path of owned) chownSync(path, 65_534, 65_534);
  process.seteuid?.(65_534);
  try {
    await check();
  } finally {
    process.seteuid?.(0);
  }
}
