/** TLS to a server of the tests' own, whose certificate an authority of their own signed. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { noPostgres, type PostgresServer, startPostgres, type TlsPlace } from "../../../test/postgres-server.ts";
import { openPostgresStore } from "./postgres.ts";

const unavailable = { name: "ContextError", code: "store_unavailable" };

describe.skipIf(noPostgres !== undefined)("a store in PostgreSQL with TLS", () => {
  let server: PostgresServer;
  let tls: TlsPlace;
  const address = (parameters: Record<string, string>, host?: string) => tls.address("postgres", parameters, host);
  /** Returns how the connection of a store at this address is protected, as the server sees it. */
  const protectionOf = async (url: string): Promise<string> => {
    const store = await openPostgresStore({ url });
    try {
      await store.put("c", "k", "v");
      expect((await store.get("c", "k"))?.value).toBe("v");
      return server.query(
        `SELECT s.ssl, coalesce(s.client_dn, '-') FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
          WHERE a.application_name = 'plimsoll'`,
      );
    } finally {
      await store.close();
    }
  };
  beforeAll(async () => {
    server = await startPostgres({ tls: true });
    tls = server.tls!;
    server.query("CREATE ROLE certified LOGIN SUPERUSER");
  }, 60_000);
  afterAll(() => server?.remove());

  test.each(["require", "verify-ca", "verify-full"])(
    "sslmode=%s connects to a server whose authority is known, without a warning",
    async (sslmode) => {
      const warnings: Error[] = [];
      const note = (warning: Error) => void warnings.push(warning);
      process.on("warning", note);
      try {
        expect(await protectionOf(address({ sslmode, sslrootcert: tls.authority }))).toBe("t|-");
        // Warnings arrive one turn later.
        await new Promise(setImmediate);
      } finally {
        process.off("warning", note);
      }
      expect(warnings).toEqual([]);
    },
  );

  test.each(["require", "verify-full"])("sslmode=%s refuses a server whose authority is not known", async (sslmode) => {
    for (const url of [address({ sslmode }), address({ sslmode, sslrootcert: tls.stranger })]) {
      await expect(openPostgresStore({ url, waitMs: 600_000 })).rejects.toMatchObject({
        ...unavailable,
        message: expect.stringMatching(/^the store cannot be used: no secure connection can be made \(.*certificate/),
        hint: "Check sslmode and sslrootcert in the address.",
      });
    }
  });

  test("sslmode=verify-full refuses a server whose certificate is for another name", async () => {
    const url = address({ sslmode: "verify-full", sslrootcert: tls.authority }, "localhost");
    await expect(openPostgresStore({ url, waitMs: 600_000 })).rejects.toMatchObject({
      ...unavailable,
      message: expect.stringContaining("does not match certificate's altnames"),
    });
  });

  test("sslmode=no-verify encrypts and checks nothing, and disable does not encrypt", async () => {
    expect(await protectionOf(address({ sslmode: "no-verify" }))).toBe("t|-");
    expect(await protectionOf(address({ sslmode: "disable" }))).toBe("f|-");
  });

  test("sslcert and sslkey say who we are", async () => {
    const parameters = { sslmode: "verify-full", sslrootcert: tls.authority };
    const url = (more: Record<string, string>) =>
      address({ ...parameters, ...more }).replace("postgres@", "certified@");
    expect(await protectionOf(url(tls.client))).toBe("t|/CN=certified");
    await expect(openPostgresStore({ url: url({}), waitMs: 600_000 })).rejects.toMatchObject(unavailable);
  });

  test("a file that is missing, and a mode that does not exist, are reported at once", async () => {
    const sslrootcert = join(server.data, "missing.pem");
    const url = address({ sslmode: "verify-full", sslrootcert });
    await expect(openPostgresStore({ url, waitMs: 600_000 })).rejects.toMatchObject({
      ...unavailable,
      message: `the store cannot be used: the file ${sslrootcert} cannot be read (ENOENT)`,
      hint: "Check sslrootcert, sslcert and sslkey in the address.",
    });
    await expect(openPostgresStore({ url: address({ sslmode: "verfy-full" }) })).rejects.toMatchObject({
      code: "invalid_argument",
      message: 'sslmode is "verfy-full"',
    });
  });

  test("a server without TLS is refused if TLS is required", async () => {
    server.query("ALTER SYSTEM SET ssl = off");
    server.query("SELECT pg_reload_conf()");
    await expect.poll(() => server.query("SHOW ssl")).toBe("off");
    for (const sslmode of ["require", "verify-full", "no-verify"]) {
      await expect(openPostgresStore({ url: address({ sslmode }), waitMs: 600_000 })).rejects.toMatchObject({
        ...unavailable,
        message:
          "the store cannot be used: no secure connection can be made (The server does not support SSL connections)",
      });
    }
    expect(await protectionOf(address({}))).toBe("f|-");
  });
});
