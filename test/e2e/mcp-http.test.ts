import { chmodSync, readFileSync, statSync } from "node:fs";
import { type ClientRequest, request } from "node:http";
import { dirname, join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  connectLines,
  joinItems,
  type LineClient,
  officialClients,
  plimsoll,
  readPages,
  readToken,
  type TestClient,
} from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const paths = Array.from({ length: 100 }, (_, index) => `file-${String(index).padStart(3, "0")}.txt`);

let sandbox: Sandbox;
let server: LineClient;
let url: string;
let token: string;
beforeEach(async () => {
  sandbox = createSandbox();
  for (const path of paths) sandbox.write(path, "text\n");
  await start("0", "--per-tool", "1000");
});
afterEach(() => {
  server.child.kill("SIGKILL");
  sandbox.remove();
});

async function start(port: string, ...args: string[]): Promise<void> {
  server = connectLines(plimsoll("mcp", "--format", "json", "--total", "100000", "--http", port, ...args), sandbox);
  await expect.poll(server.stderr, { timeout: 10_000 }).toMatch(/serving on http/);
  url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(server.stderr())![0];
  token = readToken(sandbox);
}

describe.each(process.env.PLIMSOLL_DEEP === "1" ? officialClients : officialClients.slice(0, 1))(
  "%s",
  (_name, connect) => {
    test("pages through a large result over HTTP", async () => {
      const client = await connect(sandbox, [], { url, token });
      const pages = await readPages(client, await client.call("project_files", { mode: "files" }));
      expect(pages.length).toBeGreaterThan(2);
      expect(joinItems(pages, "files").map((file) => (file as { path: string }).path)).toEqual(paths);
      await client.close();
    });
  },
);

test("pages are as large as the client that asks shows them, also beside others", { tags: ["deep"] }, async () => {
  sandbox.write("prose.txt", "These are some words that people know.\n".repeat(2_000));
  server.child.kill("SIGKILL");
  await start("0");
  const names = ["codex-mcp-client", "somebody"];
  const clients = officialClients.flatMap(([, connect]) =>
    names.map(async (name) => ({ name, client: await connect(sandbox, [], { url, name, token }) })),
  );
  for (const { name, client } of await Promise.all(clients)) {
    const { content } = await client.call("read_file", { path: "prose.txt" });
    expect(content[0]!.text.length > 12_000).toBe(name === "somebody");
    await client.close();
  }
});

const statusOf = async (client: Pick<TestClient, "call">) =>
  (await client.call("budget_status", {})).structuredContent!.data as unknown as {
    readonly session: string;
    readonly available: number;
    readonly calls: number;
    readonly recent: readonly unknown[];
  };

test("clients at once have a budget each, but for those of the revision without sessions, and tokens of all", {
  tags: ["deep"],
}, async () => {
  const clients = await Promise.all(
    [0, 1, 2, 2].map((index) => officialClients[index]![1](sandbox, [], { url, token })),
  );
  const calls = clients.map((client) => client.call("project_files", { mode: "files" }));
  const [first, ...others] = await Promise.all(calls);
  const { available } = await statusOf(clients[0]!);
  const pages = await readPages(clients[0]!, first!);
  expect(joinItems(pages, "files")).toHaveLength(paths.length);
  const all = await Promise.all(clients.map(statusOf));
  expect(all.map(({ calls }) => calls)).toEqual([pages.length, 1, 2, 2]);
  expect(all[0]!.available).toBeLessThan(available);
  expect(all[1]!.available).toBe(available);
  expect(new Set(all.map(({ session }) => session)).size).toBe(3);
  expect(all[2]!.session).toBe(all[3]!.session);
  expect((await readPages(clients[1]!, others[0]!)).length).toBe(pages.length);
  const { stdout } = await sandbox.run(["session", "list", "--json"]);
  const listed = (JSON.parse(stdout) as { id: string; calls: number }[]).map(({ id, calls }) => [id, calls]);
  const ids = all.map(({ session }) => session);
  expect(Object.fromEntries(listed)).toEqual({
    [ids[0]!]: pages.length,
    [ids[1]!]: pages.length,
    [ids[2]!]: 2,
  });
});

test("clients go on after a restart with their tokens and their account, the last one first", {
  tags: ["deep"],
}, async () => {
  const clients = await Promise.all([0, 1].map((index) => officialClients[index]![1](sandbox, [], { url, token })));
  const first: string[] = [];
  for (const client of clients) {
    const { structuredContent } = await client.call("project_files", { mode: "files" });
    first.push(structuredContent!.data.continuation_token!);
  }
  const before = await Promise.all(clients.map(statusOf));
  for (const signal of ["SIGKILL", "SIGTERM"] as const) {
    server.child.kill(signal);
    await server.exit;
    await start(new URL(url).port, "--per-tool", "1000");
    const after = [await statusOf(clients[1]!), await statusOf(clients[0]!)].reverse();
    expect(after).toEqual(before);
  }
  const next = await Promise.all(clients.map((client, index) => client.call("next_page", { token: first[index] })));
  for (const { structuredContent } of next)
    expect((structuredContent!.data.files as { path: string }[])[0]!.path).not.toBe(paths[0]);
  expect((await statusOf(clients[0]!)).calls).toBe(2);
});

test("a client that ends its session gives its account to the next one, empty", { tags: ["deep"] }, async () => {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  const client = new Client({ name: "one", version: "1" }, { versionNegotiation: { mode: "legacy" } });
  await client.connect(transport);
  await client.callTool({ name: "vcs_status", arguments: {} });
  expect(transport.sessionId).toBeDefined();
  await transport.terminateSession();
  expect(transport.sessionId).toBeUndefined();
  const { session, recent } = await statusOf(await officialClients[0]![1](sandbox, [], { url, token }));
  expect(session).not.toMatch(/\.\d+$/);
  expect(recent).toEqual([]);
});

const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

interface Answer {
  readonly status: number;
  readonly session: unknown;
}

/** fetch does not let anyone choose the Host. */
function post(headers: Record<string, string>, path = "/mcp", message: object = ping): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const accept = "application/json, text/event-stream";
    const authorization = `Bearer ${token}`;
    const all = { "content-type": "application/json", accept, authorization, ...headers };
    const sent = request({ hostname, port, path, method: "POST", headers: all }, (response) => {
      const answer = { status: response.statusCode ?? 0, session: response.headers["mcp-session-id"] };
      response.resume().on("end", () => resolve(answer));
    });
    sent.on("error", reject).end(JSON.stringify(message));
  });
}

test("a client is known from its first request, however that is sent", { tags: ["deep"] }, async () => {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "a", version: "1" } };
  const initialize = { jsonrpc: "2.0", id: 1, method: "initialize", params };
  for (const headers of [{ "mcp-protocol-version": "2025-11-25" }, { "transfer-encoding": "chunked" }] as Record<
    string,
    string
  >[]) {
    const { status, session } = await post(headers, "/mcp", initialize);
    expect({ status, session }).toEqual({
      status: 200,
      session: expect.stringMatching(/^[\da-f-]{36}\.YQ$/),
    });
  }
  // Longer than any initialize: it passes on as it comes.
  const long = { ...ping, params: { padding: "x".repeat(300_000) } };
  const passed = await post({ "transfer-encoding": "chunked" }, "/mcp", long);
  expect(passed).toEqual({ status: 200, session: undefined });
});

test("requests are taken from this machine only, and from no page of another site", async () => {
  const cases: [status: number, headers: Record<string, string>][] = [
    [200, {}],
    [200, { origin: "http://localhost:5173" }],
    [200, { host: "localhost:1" }],
    [403, { origin: "https://example.com" }],
    [403, { origin: "null" }],
    // As after a DNS rebinding.
    [403, { host: "example.com" }],
    [403, { host: "127.0.0.1.example.com" }],
  ];
  for (const [status, headers] of cases) {
    expect({ headers, status: (await post(headers)).status }).toEqual({ headers, status });
  }
});

test("a request that is too large is refused, also if it does not say its length", { tags: ["deep"] }, async () => {
  const long = { ...ping, params: { padding: "x".repeat(17_000_000) } };
  expect(await post({}, "/mcp", long)).toMatchObject({ status: 413 });
  const { hostname, port } = new URL(url);
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
  const status = await new Promise((resolve) => {
    const sent = request({ hostname, port, path: "/mcp", method: "POST", headers }, (response) =>
      resolve(response.statusCode),
    );
    sent.on("error", resolve);
    for (let count = 0; count < 17; count += 1) sent.write("x".repeat(1_000_000));
  });
  expect(status).toBe(413);
  expect(await post({})).toMatchObject({ status: 200 });
});

describe("the token", () => {
  const tokenFile = () => join(sandbox.home, ".local/state/plimsoll/mcp-token");
  const begin = async (args: readonly string[], env: Record<string, string> = {}): Promise<void> => {
    server.child.kill("SIGKILL");
    server = connectLines(plimsoll("mcp", "--format", "json", "--http", "0", ...args), {
      ...sandbox,
      env: { ...sandbox.env, ...env },
    });
    await expect.poll(server.stderr, { timeout: 10_000 }).toMatch(/serving on http/);
    url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(server.stderr())![0];
  };
  const statusWith = async (authorization: string): Promise<number> => (await post({ authorization })).status;

  test("is made at the first start, kept for its owner alone, and never printed", async () => {
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(server.stderr()).not.toContain(token);
    expect(server.stderr()).toContain("plimsoll: the token is in ~/.local/state/plimsoll/mcp-token; ");
    expect(readFileSync(tokenFile(), "utf8")).toBe(`${token}\n`);
    expect(statSync(tokenFile()).mode & 0o777).toBe(0o600);
    expect(statSync(dirname(tokenFile())).mode & 0o777).toBe(0o700);
    await begin([]);
    expect(readToken(sandbox)).toBe(token);
    chmodSync(tokenFile(), 0o644);
    await begin([]);
    expect(readToken(sandbox)).not.toBe(token);
    expect(statSync(tokenFile()).mode & 0o777).toBe(0o600);
  });

  test("is needed by each request", async () => {
    const wrong = ["", "Bearer", `Bearer ${token}x`, `Bearer ${token.slice(1)}`, `Basic ${token}`, token];
    for (const authorization of wrong) expect(await statusWith(authorization)).toBe(401);
    expect(await statusWith(`Bearer ${token}`)).toBe(200);
    expect(await statusWith(`bearer  ${token} `)).toBe(200);
    await expect(officialClients[0]![1](sandbox, [], { url })).rejects.toThrow();
    const answer = await fetch(url, { method: "POST", body: "{}" });
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
    expect(await answer.text()).not.toContain(token);
  });

  test("can be named, in a file or in the environment, and is then not printed", { tags: ["deep"] }, async () => {
    const own = "a-token-of-ones-own";
    sandbox.write("token.txt", `${own}\n`);
    for (const [args, env] of [
      [["--token-file", "token.txt"], {}],
      [[], { PLIMSOLL_MCP_TOKEN: own }],
    ] as [string[], Record<string, string>][]) {
      await begin(args, env);
      expect(server.stderr()).not.toContain(own);
      expect([await statusWith(`Bearer ${own}`), await statusWith(`Bearer ${token}`)]).toEqual([200, 401]);
    }
  });

  test("can be turned off, and what makes no sense is told", { tags: ["deep"] }, async () => {
    await begin(["--no-token"]);
    expect(await statusWith("")).toBe(200);
    expect((await post({ authorization: "", origin: "https://example.com" })).status).toBe(403);
    sandbox.write("short.txt", "short\n");
    for (const [args, told] of [
      [["mcp", "--no-token"], "--no-token needs --http"],
      [["mcp", "--http", "0", "--no-token", "--token-file", "x"], "cannot be used together"],
      [["mcp", "--http", "0", "--token-file", "none.txt"], "the token cannot be read"],
      [["mcp", "--http", "0", "--token-file", "short.txt"], "does not contain a token"],
      [["mcp", "wrap", "--no-token", "--", "x"], "--no-token cannot be used with wrap"],
    ] as [string[], string][]) {
      const { code, stderr } = await sandbox.run(args);
      expect({ args, code: [1, 2].includes(code!), told: stderr.includes(told) }).toEqual({
        ...{ args, code: true, told: true },
      });
    }
  });
});

/** One whose body does not come. */
function beginRequest(): ClientRequest {
  const { hostname, port } = new URL(url);
  const headers = { "content-length": 1_000, authorization: `Bearer ${token}` };
  const begun = request({ hostname, port, path: "/mcp", method: "POST", headers }).on("error", () => {});
  begun.write("{");
  return begun;
}

test("there is one path, and a client that goes in the middle harms nobody", { tags: ["deep"] }, async () => {
  for (const path of ["/other", "//", "*"]) expect((await post({}, path)).status).toBe(404);
  const broken = beginRequest();
  await new Promise((resolve) => setTimeout(resolve, 100));
  broken.destroy();
  expect((await post({})).status).toBe(200);
});

test("a signal ends it at once, whoever is still there, and nothing was written on stdout", async () => {
  const client = await officialClients[0]![1](sandbox, [], { url, token });
  await client.call("vcs_status", {});
  const begun = beginRequest();
  await expect.poll(() => begun.socket?.bytesWritten ?? 0).toBeGreaterThan(0);
  const signalled = Date.now();
  server.child.kill("SIGTERM");
  expect(await server.exit).toBe(0);
  expect(Date.now() - signalled).toBeLessThan(2_000);
  expect(server.lines).toEqual([]);
});

test("a port that is taken, or is none, is told", { tags: ["deep"] }, async () => {
  const { port } = new URL(url);
  const taken = await sandbox.run(["mcp", "--http", port]);
  expect(taken).toMatchObject({ code: 2, stdout: "" });
  expect(taken.stderr).toContain(`cannot listen on port ${port}: it is in use`);
  expect((await sandbox.run(["mcp", "--http", "99999"])).code).toBe(2);
});

test("the results of HTTP clients can be recalled over stdio", { tags: ["deep"] }, async () => {
  const [, connect] = officialClients[0]!;
  const client = await connect(sandbox, [], { url, token });
  await client.call("read_file", { path: paths[0] });
  const { recent } = (await client.call("budget_status", {})).structuredContent!.data;
  await client.close();
  const other = connectLines(plimsoll("mcp", "--format", "json"), sandbox);
  await other.initialize();
  const again = await other.call("recall", { id: (recent as { id: string }[])[0]!.id });
  expect(again.structuredContent?.data).toMatchObject({ path: paths[0] });
  expect(await other.end()).toBe(0);
});
