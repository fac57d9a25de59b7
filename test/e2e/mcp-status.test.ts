/** `mcp status`: what server processes leave in the store about themselves. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { connectLines, type LineClient, plimsoll } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const oddServer = fileURLToPath(new URL("mcp-odd-server.mjs", import.meta.url));

let sandbox: Sandbox;
let clients: LineClient[];
beforeEach(() => {
  sandbox = createSandbox();
  clients = [];
});
afterEach(async () => {
  for (const { child, exit } of clients) {
    child.kill("SIGKILL");
    await exit;
  }
  sandbox.remove();
});

async function start(...args: readonly string[]): Promise<LineClient> {
  const client = connectLines(plimsoll("mcp", ...args), sandbox);
  clients.push(client);
  await client.initialize();
  return client;
}

const wrapOdd = (...flags: readonly string[]) => start("wrap", ...flags, "--", process.execPath, oddServer, "plain");

async function readStatus() {
  const { stdout } = await sandbox.call(["mcp", "status", "--json"]);
  return JSON.parse(stdout);
}

test("says how to begin and writes nothing if no server has run", async () => {
  const { code, stdout, stderr } = await sandbox.call(["mcp", "status"]);
  expect(code).toBe(0);
  expect(stdout).toBe("");
  expect(stderr).toContain("plimsoll mcp install");
  expect(await readStatus()).toEqual([]);
  expect(existsSync(join(sandbox.home, ".local"))).toBe(false);
});

test("shows a wrapped server with its restarts, its errors and the tokens that pages saved", async () => {
  const client = await wrapOdd("--per-tool", "2000");
  await client.call("text", { count: 10 });
  const page = await client.call("text", { count: 20_000 });
  await client.call("die", { code: 7 });
  await vi.waitFor(async () => expect((await readStatus())[0]?.restarts).toBe(1), { timeout: 10_000 });
  const [server, ...others] = await readStatus();
  expect(others).toEqual([]);
  expect(server).toMatchObject({ kind: "wrap", pid: client.child.pid, state: "running", results: 2 });
  expect(server.name).toContain("mcp-odd-server.mjs");
  expect(Date.parse(server.since)).toBeGreaterThan(Date.now() - 60_000);
  expect(server.errors[0].message).toContain("has ended with exit code 7. It was started again");
  expect(server.tokens.shown).toBeGreaterThan(1_000);
  expect(server.tokens.shown).toBeLessThan(2_100);
  // Two words and a line break, 20,000 times, less the page.
  expect(server.tokens.saved).toBeGreaterThan(30_000);

  // A page that is read later was not saved.
  await client.call("next_page", { token: /token=(\S+)/.exec(page.content[0]!.text)?.[1] });
  await vi.waitFor(async () => expect((await readStatus())[0].tokens.shown).toBeGreaterThan(2_500), {
    timeout: 10_000,
  });
  const later = (await readStatus())[0].tokens;
  expect(later.shown + later.saved).toBe(server.tokens.shown + server.tokens.saved);

  const { stdout } = await sandbox.call(["mcp", "status"]);
  expect(stdout).toMatch(
    / \(wrap\): running, process \d+, since \S+Z\n {2}\d results, [\d,]+ tokens shown, [\d,]+ saved, 1 restart\n/,
  );
  expect(stdout).toMatch(/^ {2}\S+Z {2}The server ".*" has ended with exit code 7\./m);
  await client.end();
  expect((await readStatus())[0]).toMatchObject({ state: "ended", tokens: later });
});

test("counts what the intake leaves out", async () => {
  const client = await wrapOdd("--intake");
  for (let call = 0; call < 2; call += 1) await client.call("text", { count: 300 });
  await client.end();
  const [{ results, tokens }] = await readStatus();
  expect(results).toBe(2);
  expect(tokens.saved).toBeGreaterThan(tokens.shown * 0.8);
});

test("shows a killed server as ended", async () => {
  const client = await wrapOdd();
  await client.call("text", { count: 10 });
  await vi.waitFor(async () => expect((await readStatus())[0]?.state).toBe("running"), { timeout: 10_000 });
  client.child.kill("SIGKILL");
  await client.exit;
  expect((await readStatus())[0]).toMatchObject({ pid: client.child.pid, state: "ended" });
});

test("shows a server that reads the project after its first call", async () => {
  sandbox.write("a.txt", "some text\n");
  const client = await start("serve", "--root", ".");
  expect(await readStatus()).toEqual([]);
  await client.call("read_file", { path: "a.txt" });
  await vi.waitFor(async () => expect((await readStatus())[0]?.results).toBe(1), { timeout: 10_000 });
  expect((await readStatus())[0]).toMatchObject({ kind: "serve", state: "running" });
  await client.end();
  expect((await readStatus())[0].state).toBe("ended");
});

test("a server without a store leaves no trace", async () => {
  const client = await wrapOdd("--no-store");
  await client.call("text", { count: 10 });
  await client.end();
  expect(existsSync(join(sandbox.home, ".local"))).toBe(false);
});
