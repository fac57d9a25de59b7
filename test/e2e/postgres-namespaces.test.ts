/** Roles of one PostgreSQL database as docs/fleet.md sets them up: each sees its own namespace and nothing else. */
import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describeStore, describeUpkeep } from "../../src/core/store/store.contract.ts";
import { openMaintainedPostgres, openPostgresStore, postgresMigrations } from "../../src/host/store/postgres.ts";
import { noPostgres, type PostgresServer, startPostgres } from "../postgres-server.ts";
import { createSandbox } from "./run-plimsoll.ts";

/** The statements of the page: of the administrator, of the owner, and for each role. */
function readStatements(): string[] {
  const page = readFileSync(new URL("../../docs/fleet.md", import.meta.url), "utf8");
  const section = page.split("### A role for each namespace")[1]!.split(/^##/m)[0]!;
  return [...section.matchAll(/```sql\n(.*?)```/gs)].map(([, statements]) => statements!);
}

describe.skipIf(noPostgres !== undefined)("a role for each namespace", () => {
  let server: PostgresServer;
  const address = (role: string): string => server.address("team", role);
  const asRole = async (role: string, sql: string): Promise<unknown[][]> => {
    const client = new pg.Client({ connectionString: address(role) });
    await client.connect();
    try {
      return (await client.query({ text: sql, rowMode: "array" })).rows;
    } finally {
      await client.end();
    }
  };
  /** The code and the message of the server's refusal. */
  const refusal = (role: string, sql: string): Promise<string> =>
    asRole(role, sql).then(
      (rows) => `allowed: ${JSON.stringify(rows)}`,
      (error: { code: string; message: string }) => `${error.code} ${error.message}`,
    );
  const readRows = (): string =>
    ["records", "entries", "streams"]
      .map((table) => server.query(`SELECT * FROM plimsoll.${table} WHERE namespace = 'ann'`, "team"))
      .join("\n");

  beforeAll(async () => {
    server = await startPostgres();
    const [administrator = "", owner = "", roles = ""] = readStatements();
    const [before = "", inside = ""] = administrator.split("\\c team\n");
    for (const statement of before.split(/;\n/).filter((text) => text.trim() !== "")) server.query(statement);
    server.query(inside, "team");
    await (await openPostgresStore({ url: address("plimsoll_owner") })).close();
    await asRole("plimsoll_owner", owner);
    server.query(roles);
    const ann = await openPostgresStore({ url: address("ann") });
    await ann.put("notes", "plan", "ann's plan");
    await ann.append("log", ["ann's first", "ann's second"]);
    await ann.close();
  }, 60_000);
  afterAll(() => server?.remove());

  describe("the contract of stores", { tags: ["deep"] }, () => {
    let roles = 0;
    // Only the owner can purge, as a test below shows.
    const open = async (now?: () => number) => {
      roles += 1;
      server.query(`CREATE ROLE contract_${roles} LOGIN IN ROLE plimsoll_users`);
      const store = await openMaintainedPostgres({ url: address(`contract_${roles}`), now });
      const purge = () =>
        store.purge().catch((error: Error) => {
          if (!error.message.includes("only their owner can do that")) throw error;
        });
      return { ...store, purge };
    };
    describeStore("postgres as a limited role", () => open());
    describeUpkeep("postgres as a limited role", open);
  });

  test("the store of another role reads, lists, counts and deletes nothing, and cannot write", async () => {
    const before = readRows();
    const bob = await openMaintainedPostgres({ url: `${address("bob")}&namespace=ann` });
    expect([await bob.get("notes", "plan"), await bob.list("notes"), await bob.read("log")]).toEqual([
      undefined,
      [],
      [],
    ]);
    expect([await bob.listCollections(), await bob.listFacts("notes"), await bob.listStreams()]).toEqual([[], [], []]);
    expect([await bob.delete("notes", "plan"), await bob.deleteStream("log"), await bob.trimStream("log", 9)]).toEqual([
      false,
      false,
      0,
    ]);
    const refused = {
      code: "store_unavailable",
      message: "the store cannot be used: the namespace belongs to another role",
      hint: "Name no namespace in the address, or the role's own. See docs/fleet.md.",
    };
    // An existing key and a new one are refused alike.
    for (const key of ["plan", "new"]) {
      await expect(bob.put("notes", key, "bob's")).rejects.toMatchObject(refused);
      await expect(bob.put("notes", key, "bob's", { expectedRevision: 0 })).rejects.toMatchObject(refused);
      await expect(bob.update("notes", key, () => "bob's")).rejects.toMatchObject(refused);
    }
    await expect(bob.append("log", ["bob's"])).rejects.toMatchObject(refused);
    await expect(bob.copyRecords("notes", [{ key: "plan", value: "bob's", written: 1 }])).rejects.toMatchObject(
      refused,
    );
    await bob.close();
    expect(readRows()).toBe(before);
  });

  test("SQL of another role sees no row, and cannot add, change, move or remove one", async () => {
    const before = readRows();
    for (const table of ["records", "streams", "entries"]) {
      expect(await asRole("bob", `SELECT count(*)::int FROM plimsoll.${table}`)).toEqual([[0]]);
      expect(await asRole("bob", `DELETE FROM plimsoll.${table} RETURNING 1`)).toEqual([]);
      expect(await refusal("bob", `TRUNCATE plimsoll.${table}`)).toMatch(/^42501 permission denied/);
      expect(await refusal("bob", `COPY plimsoll.${table} FROM STDIN`)).toMatch(/^0A000 COPY FROM not supported/);
      expect(await refusal("bob", `ALTER TABLE plimsoll.${table} DISABLE ROW LEVEL SECURITY`)).toMatch(
        /^42501 must be owner/,
      );
      expect(await refusal("bob", `DROP POLICY own_namespace ON plimsoll.${table}`)).toMatch(/^42501 must be owner/);
      expect(await refusal("bob", `SET row_security = off; SELECT * FROM plimsoll.${table}`)).toMatch(
        /^42501 query would be/,
      );
      expect(await refusal("bob", `SELECT most_common_vals FROM pg_stats WHERE tablename = '${table}'`)).toBe(
        "allowed: []",
      );
    }
    expect(await asRole("bob", "UPDATE plimsoll.records SET value = '' RETURNING 1")).toEqual([]);
    const insert = (namespace: string, key: string): string =>
      `INSERT INTO plimsoll.records VALUES ('${namespace}', 'notes', '${key}', 1, '', 0)`;
    const violation = /^42501 new row violates row-level security policy for table "records"$/;
    // Whether the key exists does not show.
    for (const key of ["plan", "new"]) {
      expect(await refusal("bob", insert("ann", key))).toMatch(violation);
      expect(await refusal("bob", `${insert("ann", key)} ON CONFLICT DO NOTHING`)).toMatch(violation);
      const move = `${insert("bob", key)}; UPDATE plimsoll.records SET namespace = 'ann' WHERE key = '${key}'`;
      expect(await refusal("bob", `BEGIN; ${move}; COMMIT`)).toMatch(violation);
    }
    expect(readRows()).toBe(before);
  });

  test("another role can become nobody else, plant nothing, and leave no trap for others", async () => {
    for (const role of ["ann", "plimsoll_owner", "postgres"]) {
      expect(await refusal("bob", `SET ROLE ${role}`)).toMatch(/^42501 permission denied to set role/);
    }
    const trap = "RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'";
    const forbidden = [
      ...["CREATE TABLE public.records (x int)", `CREATE FUNCTION public.length(bytea) ${trap}`, "CREATE SCHEMA ann"],
      ...[
        "CREATE VIEW plimsoll.all_records AS SELECT 1",
        "CREATE RULE r AS ON SELECT TO plimsoll.records DO INSTEAD SELECT 1",
      ],
      ...["CREATE POLICY more ON plimsoll.records USING (true)", "CREATE TEMPORARY TABLE records (x int)"],
      ...["CREATE TRIGGER t AFTER INSERT ON plimsoll.records EXECUTE FUNCTION suppress_redundant_updates_trigger()"],
      ...["INSERT INTO plimsoll.versions VALUES (9, 9)", "SELECT last_value FROM plimsoll.revisions"],
      ...["SELECT setval('plimsoll.revisions', 1)", "ALTER SEQUENCE plimsoll.revisions RESTART"],
      ...["CREATE ROLE eve", "ALTER ROLE bob BYPASSRLS"],
    ];
    for (const sql of forbidden) expect(await refusal("bob", sql), sql).toMatch(/^42501 /);
  });

  test("commands work in their own namespace, and say what only the owner can do", async () => {
    const sandbox = createSandbox();
    try {
      const call = (...words: string[]) => sandbox.call([...words, "--store", address("bob")]);
      expect((await call("store", "stats")).stdout).not.toContain("notes");
      const pruned = await call("store", "prune", "--older-than", "1d", "--purge");
      expect(pruned.stderr).toContain("the tables were not rewritten: only their owner can do that");
      const ann = await sandbox.call(["store", "stats", "--store", address("ann")]);
      expect(ann.stdout).toContain("notes");
      const copied = await sandbox.call(["store", "migrate", "--from", address("ann"), "--to", `${address("bob")}`]);
      expect(copied.stdout).toContain("copied 1 record and 2 entries");
    } finally {
      sandbox.remove();
    }
  });

  test("a role without tables or rights is told to ask the owner", async () => {
    const hint = expect.stringContaining("the owner of the schema opens the store once");
    server.query("CREATE ROLE stranger LOGIN; GRANT CONNECT ON DATABASE team TO stranger");
    await expect(openPostgresStore({ url: address("stranger"), waitMs: 0 })).rejects.toMatchObject({ hint });
    const unknown = { url: address("bob"), schema: "later", waitMs: 0 };
    server.query("CREATE SCHEMA later AUTHORIZATION plimsoll_owner; GRANT USAGE ON SCHEMA later TO bob", "team");
    await expect(openPostgresStore(unknown)).rejects.toMatchObject({ hint });
    // A step that only adds something waits for the owner. The role works on.
    const step = { oldest: 1, sql: (schema: string) => `CREATE TABLE ${schema}.more (id int)` };
    const store = await openMaintainedPostgres({ url: address("bob") }, [...postgresMigrations, step]);
    expect(await store.get("none", "none")).toBeUndefined();
    await store.close();
  });
});
