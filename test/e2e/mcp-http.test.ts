import { request } from "node:http";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  connectLines,
  joinItems,
  type LineClient,
  officialClients,
  plimsoll,
  readPages,
} from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const paths = Array.from({ length: 100 }, (_, index) => `file-${String(index).padStart(3, "0")}.txt`);

let sandbox: Sandbox;
let server: LineClient;
let url: string;
beforeEach(async () => {
  sandbox = createSandbox();
  for (const path of paths) sandbox.write(path, "text\n");
  server = connectLines(plimsoll("mcp", "--http", "0", "--per-tool", "1000"), sandbox);
  await expect.poll(server.stderr, { timeout: 10_000 }).toMatch(/serving on http/);
  url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(server.stderr())![0];
});
afterEach(() => {
  server.child.kill("SIGKILL");
  sandbox.remove();
});

describe.each(officialClients)("%s", (_name, connect) => {
  test("pages through a large result over HTTP", async () => {
    const client = await connect(sandbox, [], { url });
    const pages = await readPages(client, await client.call("project_files", {}));
    expect(pages.length).toBeGreaterThan(2);
    expect(joinItems(pages, "files").map((file) => (file as { path: string }).path)).toEqual(paths);
    await client.close();
  });
});

test("pages are as large as the client that asks shows them, also beside others", async () => {
  sandbox.write("prose.txt", "These are some words that people know.\n".repeat(2_000));
  server.child.kill("SIGKILL");
  server = connectLines(plimsoll("mcp", "--http", "0"), sandbox);
  await expect.poll(server.stderr, { timeout: 10_000 }).toMatch(/serving on http/);
  url = /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(server.stderr())![0];
  const names = ["codex-mcp-client", "somebody"];
  const clients = officialClients.flatMap(([, connect]) =>
    names.map(async (name) => ({ name, client: await connect(sandbox, [], { url, name }) })),
  );
  for (const { name, client } of await Promise.all(clients)) {
    const { content } = await client.call("read_file", { path: "prose.txt" });
    expect(content[0]!.text.length > 12_000).toBe(name === "somebody");
    await client.close();
  }
});

const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

/** fetch does not let anyone choose the Host. */
function post(headers: Record<string, string>, path = "/mcp"): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const accept = "application/json, text/event-stream";
    const all = { "content-type": "application/json", accept, ...headers };
    const sent = request({ hostname, port, path, method: "POST", headers: all }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
    });
    sent.on("error", reject).end(JSON.stringify(ping));
  });
}

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

test("there is one path, and a client that goes in the middle harms nobody", async () => {
  expect((await post({}, "/other")).status).toBe(404);
  const { hostname, port } = new URL(url);
  const broken = request({
    hostname,
    port,
    path: "/mcp",
    method: "POST",
    headers: { "content-length": 1_000 },
  });
  broken.on("error", () => {}).write("{");
  await new Promise((resolve) => setTimeout(resolve, 100));
  broken.destroy();
  expect((await post({})).status).toBe(200);
});

test("a signal ends it, and nothing was written on stdout", async () => {
  server.child.kill("SIGTERM");
  expect(await server.exit).toBe(0);
  expect(server.lines).toEqual([]);
});

test("a port that is taken, or is none, is told", async () => {
  const { port } = new URL(url);
  const taken = await sandbox.run(["mcp", "--http", port]);
  expect(taken).toMatchObject({ code: 2, stdout: "" });
  expect(taken.stderr).toContain(`port ${port} cannot be listened on: it is in use`);
  expect((await sandbox.run(["mcp", "--http", "99999"])).code).toBe(2);
});

test("the results of HTTP clients can be recalled over stdio", async () => {
  const [, connect] = officialClients[0]!;
  const client = await connect(sandbox, [], { url });
  await client.call("read_file", { path: paths[0] });
  const { recent } = (await client.call("budget_status", {})).structuredContent!.data;
  await client.close();
  const other = connectLines(plimsoll("mcp"), sandbox);
  await other.initialize();
  const again = await other.call("recall", { id: (recent as { id: string }[])[0]!.id });
  expect(again.structuredContent?.data).toMatchObject({ path: paths[0] });
  expect(await other.end()).toBe(0);
});
