import { execFileSync } from "node:child_process";
import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort, noPostgres, type PostgresServer, startPostgres } from "../../../test/postgres-server.ts";
import { shownAddress } from "../../core/store/index.ts";
import { describeStore, describeUpkeep, expectCallOrder } from "../../core/store/store.contract.ts";
import { openMaintainedPostgres, openPostgresStore, postgresMigrations } from "./postgres.ts";

const unavailable = { name: "ContextError", code: "store_unavailable" };

describe.skipIf(noPostgres !== undefined)("a store in PostgreSQL", () => {
  let server: PostgresServer;
  let url: string;
  let namespaces = 0;
  beforeAll(async () => {
    server = await startPostgres();
    url = await server.newDatabase();
  }, 60_000);
  afterAll(() => server?.remove());

  describeStore("postgres", () => {
    namespaces += 1;
    return openPostgresStore({ url, namespace: `contract-${namespaces}` });
  });

  describeUpkeep("postgres", (now) => {
    namespaces += 1;
    return openMaintainedPostgres({ url, now, namespace: `upkeep-${namespaces}` });
  });

  test("namespaces do not see each other, and the default one is the database user", async () => {
    const [ann, bob] = [
      await openMaintainedPostgres({ url: `${url}&namespace=ann` }),
      await openMaintainedPostgres({ url, namespace: "bob" }),
    ];
    await ann.put("c", "k", "ann's");
    await ann.append("log", ["ann's"]);
    expect(await bob.get("c", "k")).toBeUndefined();
    expect(await bob.list("c")).toEqual([]);
    expect([await bob.listCollections(), await bob.listStreams(), await bob.read("log")]).toEqual([[], [], []]);
    expect([await bob.delete("c", "k"), await bob.deleteStream("log"), await bob.trimStream("log", 9)]).toEqual([
      false,
      false,
      0,
    ]);
    expect((await ann.get("c", "k"))?.value).toBe("ann's");
    const own = await openPostgresStore({ url });
    await own.put("c", "own", "");
    await Promise.all([ann, bob, own].map((store) => store.close()));
    const database = new URL(url.replace("@/", "@x/")).pathname.slice(1);
    expect(
      server.query("SELECT convert_from(namespace, 'UTF8') FROM plimsoll.records WHERE key = 'own'", database),
    ).toBe("postgres");
  });

  test("ten programs that create the schema at once all succeed, and migrate it once", async () => {
    const empty = await server.newDatabase();
    const stores = await Promise.all(Array.from({ length: 10 }, () => openPostgresStore({ url: empty })));
    await Promise.all(stores.map((store) => store.append("log", ["x"])));
    expect(await stores[0]!.append("log", [])).toBe(10);
    await Promise.all(stores.map((store) => store.close()));
  });

  test("an older program works beside a newer one whose step only adds, and stops at one that changes", async () => {
    const shared = await server.newDatabase();
    const older = await openPostgresStore({ url: shared });
    const adding = { oldest: 1, sql: (schema: string) => `ALTER TABLE ${schema}.records ADD COLUMN note text` };
    const newer = await openMaintainedPostgres({ url: shared }, [...postgresMigrations, adding]);
    await older.put("c", "k", "1");
    await newer.update("c", "k", (value) => `${value}2`);
    await older.update("c", "k", (value) => `${value}3`);
    expect((await newer.get("c", "k"))?.value).toBe("123");
    const again = await openPostgresStore({ url: shared });
    expect((await again.get("c", "k"))?.value).toBe("123");
    const changing = { oldest: 3, sql: (schema: string) => `CREATE TABLE ${schema}.more (id int)` };
    const newest = await openMaintainedPostgres({ url: shared }, [...postgresMigrations, adding, changing]);
    await expect(openPostgresStore({ url: shared })).rejects.toMatchObject({
      code: "store_newer",
      message:
        "the store was written by a newer plimsoll (version 3, which needs a program that knows version 3; this one knows 1)",
    });
    await Promise.all([older, newer, again, newest].map((store) => store.close()));
  });

  test("a step that fails changes nothing", async () => {
    const empty = await server.newDatabase();
    const failing = { oldest: 1, sql: () => "SELECT 1 / 0" };
    await expect(openMaintainedPostgres({ url: empty }, [...postgresMigrations, failing])).rejects.toThrow();
    const store = await openPostgresStore({ url: empty });
    expect(await store.append("log", ["x"])).toBe(1);
    await store.close();
  });

  test("connects again after the server was stopped and started, and keeps the order of calls", async () => {
    const store = await openPostgresStore({ url, namespace: "restart" });
    await store.put("c", "k", "before");
    await server.stop();
    const waiting = store.get("c", "k");
    await server.start();
    expect((await waiting)?.value).toBe("before");
    await expectCallOrder(store);
    await store.close();
  });

  test("says within its time that the server is gone, and works again once it is back", async () => {
    const store = await openPostgresStore({ url, namespace: "gone", waitMs: 100 });
    await server.stop();
    try {
      const missing = { ...unavailable, hint: expect.stringContaining("Check that PostgreSQL runs") };
      await expect(store.put("c", "k", "v")).rejects.toMatchObject(missing);
      await expect(openPostgresStore({ url, waitMs: 100 })).rejects.toMatchObject(missing);
    } finally {
      await server.start();
    }
    await store.put("c", "k", "v");
    expect((await store.get("c", "k"))?.value).toBe("v");
    await store.close();
  });

  test("a server that refuses the first connection is reported at once, with its host and port", async () => {
    // The test fails by its own time limit if the store is patient.
    const waitMs = 600_000;
    const port = await freePort();
    const url = `postgres://ann:hush@127.0.0.1:${port}/team`;
    const refused = await openPostgresStore({ url, waitMs }).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      ...unavailable,
      message: `the store cannot be used: the server refuses connections at 127.0.0.1:${port}`,
      hint: "Check that PostgreSQL runs there, and the host and port.",
      file: `postgres://ann@127.0.0.1:${port}/team`,
    });
    expect(inspect(refused, { depth: 9 })).not.toContain("hush");
    await expect(openPostgresStore({ url: "postgres://ann@/team?host=/nowhere", waitMs })).rejects.toMatchObject({
      ...unavailable,
      message: "the store cannot be used: there is no such socket at /nowhere/.s.PGSQL.5432",
    });
  });

  test("a write whose connection is cut is not sent again", async () => {
    const store = await openPostgresStore({ url, namespace: "cut", waitMs: 5_000 });
    await store.append("log", ["first"]);
    const database = new URL(url.replace("@/", "@x/")).pathname.slice(1);
    // Holds the stream's row, so that the append waits until its connection is ended.
    const blocker = openPostgresStore({ url, namespace: "cut" });
    server.query(
      "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(5); RETURN NEW; END'",
      database,
    );
    server.query("CREATE TRIGGER slow AFTER INSERT ON plimsoll.entries EXECUTE FUNCTION slow()", database);
    const failing = expect(store.append("log", ["second"])).rejects.toMatchObject({
      ...unavailable,
      message: "the connection to the store was lost during a write",
    });
    await expect
      .poll(() => server.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", database))
      .toBe("1");
    server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", database);
    await failing;
    server.query("DROP TRIGGER slow ON plimsoll.entries", database);
    expect((await store.read("log")).map(({ value }) => value)).toEqual(["first"]);
    await store.close();
    await (await blocker).close();
  });

  test("goes on without prepared statements where they get lost, as behind a pooler", async () => {
    const own = await server.newDatabase();
    const database = new URL(own.replace("@/", "@x/")).pathname.slice(1);
    const store = await openPostgresStore({ url: own, waitMs: 600_000 });
    await store.append("log", ["a"]);
    server.query(
      "CREATE FUNCTION forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN EXECUTE ''DEALLOCATE ALL''; RETURN NEW; END'",
      database,
    );
    server.query("CREATE TRIGGER forget AFTER INSERT ON plimsoll.entries EXECUTE FUNCTION forget()", database);
    for (const value of ["b", "c"]) await store.append("log", [value]);
    await store.update("c", "k", (value) => `${value ?? ""}1`);
    expect((await store.read("log")).map(({ value }) => value)).toEqual(["a", "b", "c"]);
    expect((await store.get("c", "k"))?.value).toBe("1");
    await store.close();
  });

  test("gives a statement the same name in every program, so that a pooler cannot confuse two", async () => {
    const own = await server.newDatabase();
    const database = new URL(own.replace("@/", "@x/")).pathname.slice(1);
    const store = await openPostgresStore({ url: own });
    // Only the connection itself sees its prepared statements.
    server.query(
      `CREATE FUNCTION names() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN
        CREATE TABLE IF NOT EXISTS seen (name text, statement text);
        INSERT INTO seen SELECT name, statement FROM pg_prepared_statements; RETURN NEW; END'`,
      database,
    );
    server.query("CREATE TRIGGER names AFTER INSERT ON plimsoll.entries EXECUTE FUNCTION names()", database);
    await store.append("log", ["a"]);
    await store.close();
    const seen = server.query(
      "SELECT name || ' ' || encode(sha256(convert_to(statement, 'UTF8')), 'hex') FROM seen",
      database,
    );
    expect(seen.split("\n").length).toBeGreaterThan(1);
    for (const line of seen.split("\n")) expect(line).toMatch(/^plimsoll_([0-9a-f]{16}) \1/);
  });

  test("a statement that waits for a lock ends within its time", { tags: ["deep"] }, async () => {
    const store = await openPostgresStore({ url, namespace: "lock", waitMs: 1_000 });
    const other = await openPostgresStore({ url, namespace: "lock" });
    await store.append("log", ["x"]);
    const database = new URL(url.replace("@/", "@x/")).pathname.slice(1);
    server.query(
      "CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(4); RETURN NEW; END'",
      database,
    );
    server.query("CREATE TRIGGER slow AFTER INSERT ON plimsoll.entries EXECUTE FUNCTION slow()", database);
    const slow = other.append("log", ["slow"]);
    await expect
      .poll(() => server.query("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", database))
      .toBe("1");
    await expect(store.append("log", ["y"])).rejects.toMatchObject(unavailable);
    expect(await slow).toBe(2);
    server.query("DROP TRIGGER slow ON plimsoll.entries", database);
    await Promise.all([store.close(), other.close()]);
  });

  test("says what is wrong with the password, the database, the schema and the privileges, and shows no password", async () => {
    const database = new URL(url.replace("@/", "@x/")).pathname.slice(1);
    server.query("CREATE ROLE guarded LOGIN PASSWORD 'right-secret'; CREATE ROLE poor LOGIN");
    const guarded = server.address(database, "guarded:wrong-secret");
    const wrong = await openPostgresStore({ url: guarded, waitMs: 0 }).catch((error: unknown) => error);
    expect(wrong).toMatchObject({
      ...unavailable,
      message: "the store cannot be used: the user or the password is wrong",
    });
    expect(JSON.stringify([wrong, String(wrong), (wrong as { file: string }).file])).not.toContain("wrong-secret");
    await expect(openPostgresStore({ url: server.address("nowhere"), waitMs: 0 })).rejects.toMatchObject({
      message: "the store cannot be used: there is no such database",
    });
    const own = await server.newDatabase();
    const poor = own.replace("postgres@", "poor@");
    await expect(openPostgresStore({ url: poor, waitMs: 0 })).rejects.toMatchObject({
      ...unavailable,
      message: expect.stringContaining("a privilege is missing (permission denied for database"),
      hint: expect.stringContaining("CREATE SCHEMA plimsoll AUTHORIZATION"),
    });
    server.query("CREATE SCHEMA plimsoll AUTHORIZATION poor", new URL(own.replace("@/", "@x/")).pathname.slice(1));
    const store = await openPostgresStore({ url: poor });
    await store.put("c", "k", "v");
    await store.delete("c", "k");
    await store.purge();
    await store.close();
    await expect(openPostgresStore({ url, schema: "a; DROP" })).rejects.toMatchObject({ code: "invalid_argument" });
    await expect(openPostgresStore({ url: "mysql://x/y" })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  test("rejects a purge that the server skips because the role does not own the tables", async () => {
    const own = await server.newDatabase();
    const database = new URL(own.replace("@/", "@x/")).pathname.slice(1);
    await (await openPostgresStore({ url: own })).close();
    server.query(
      `CREATE ROLE guest LOGIN; GRANT USAGE ON SCHEMA plimsoll TO guest; GRANT USAGE ON SEQUENCE plimsoll.revisions TO guest;
       GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA plimsoll TO guest`,
      database,
    );
    const store = await openPostgresStore({ url: own.replace("postgres@", "guest@") });
    await store.put("c", "k", "v");
    await store.delete("c", "k");
    await expect(store.purge()).rejects.toMatchObject({
      ...unavailable,
      message: "the tables were not rewritten: only their owner can do that",
    });
    expect(await store.get("c", "k")).toBeUndefined();
    await store.close();
  });

  test("refuses a schema with tables of another program, and one whose version is lost", async () => {
    const own = await server.newDatabase();
    const database = new URL(own.replace("@/", "@x/")).pathname.slice(1);
    const corrupt = { code: "store_corrupt", hint: expect.stringContaining("name another schema") };
    server.query("CREATE SCHEMA a; CREATE TABLE a.records (x text)", database);
    await expect(openPostgresStore({ url: own, schema: "a" })).rejects.toMatchObject(corrupt);
    await (await openPostgresStore({ url: own })).close();
    server.query("DELETE FROM plimsoll.versions", database);
    await expect(openPostgresStore({ url: own })).rejects.toMatchObject(corrupt);
  });

  test.each(["postgres://ann:lovelace@127.0.0.1:99999/team", "postgres://a b:lovelace@[::/x"])(
    "refuses the address %s, and shows no password",
    async (address) => {
      const error = await openPostgresStore({ url: address, waitMs: 0 }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        code: "invalid_argument",
        message: expect.stringMatching(/^url is not an address/),
      });
      expect(`${error}${(error as Error).stack}`).not.toContain("lovelace");
    },
  );

  test("a purge leaves no byte of deleted and replaced values in the tables", async () => {
    const store = await openPostgresStore({ url, namespace: "purge" });
    const secrets = ["deletedsecretvalue", "replacedsecretvalue", "secretentryvalue"];
    await store.put("c", "gone", secrets[0]!);
    await store.put("c", "changed", secrets[1]!);
    await store.put("c", "changed", "new");
    await store.append("log", [secrets[2]!]);
    await store.deleteStream("log");
    await store.delete("c", "gone");
    const find = (): string[] => {
      server.query("CHECKPOINT");
      const found = secrets.filter((secret) => isInFiles(secret, `${server.data}/base`));
      return found;
    };
    expect(find()).toEqual(secrets);
    await store.purge();
    expect(find()).toEqual([]);
    await store.close();
  });
});

test("an address is shown without its password", () => {
  // A person may forget to encode the password.
  expect(shownAddress("postgres://ann:p@ss:w/rd@db/x?sslmode=require&password=y&schema=z")).toBe(
    "postgres://ann@db/x?sslmode=require&schema=z",
  );
  expect(shownAddress("postgres://ann:p%40ss:w@db:5432/x?password=y")).toBe("postgres://ann@db:5432/x");
  expect(shownAddress("postgres://ann@/x?host=/run")).toBe("postgres://ann@/x?host=/run");
  expect(shownAddress("/a/file.db")).toBe("/a/file.db");
});

function isInFiles(text: string, folder: string): boolean {
  try {
    return execFileSync("grep", ["-rlaF", text, folder], { encoding: "utf8" }).trim() !== "";
  } catch {
    return false;
  }
}
