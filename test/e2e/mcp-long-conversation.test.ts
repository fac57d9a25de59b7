/** A wrapped server in a conversation that is much longer than a model's window. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createCounter } from "../../src/public/tokens.ts";
import { connectLines, type LineClient, plimsoll, readTextPages } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const packages = fileURLToPath(new URL("../../node_modules/@modelcontextprotocol/", import.meta.url));
const deep = process.env.PLIMSOLL_DEEP === "1";
const filesystem = join(packages, "server-filesystem/dist/index.js");
const counter = createCounter("estimate:claude-5");

let sandbox: Sandbox;
let clients: LineClient[];
beforeEach(() => {
  sandbox = createSandbox();
  clients = [];
  const line = (index: number) => `export const price${index} = ${index * 7}; // of item ${index}\n`;
  sandbox.write("large.ts", Array.from({ length: 600 }, (_, index) => line(index)).join(""));
  sandbox.write("small.ts", Array.from({ length: 85 }, (_, index) => line(index)).join(""));
});
afterEach(() => {
  for (const { child } of clients) child.kill("SIGKILL");
  sandbox.remove();
});

async function start(name: string, flags: readonly string[] = []): Promise<LineClient> {
  return open(name, plimsoll("mcp", "wrap", ...flags, "--", process.execPath, filesystem, sandbox.cwd));
}

async function open(name: string, command: readonly string[]): Promise<LineClient> {
  const client = connectLines(command, {
    cwd: sandbox.cwd,
    env: { ...sandbox.env, CLAUDE_CODE_SESSION_ID: name === "claude-code" ? "c0ffee" : "" },
  });
  clients.push(client);
  await client.initialize("2025-06-18", name);
  return client;
}

const read = async (client: LineClient, path: string) => {
  const pages = await readTextPages(client, { name: "read_text_file", args: { path: join(sandbox.cwd, path) } });
  return pages.map(({ result }) => result.content[0]!.text);
};

test.each([
  ["claude-code", 1],
  ["opencode", 1],
  ["somebody", 2],
  ["codex-mcp-client", 3],
])("%s needs as many calls for a file at the end as at the beginning", async (name, calls) => {
  const client = await start(name);
  const reads: string[][] = [];
  for (let turn = 0; turn < (deep ? 30 : 10); turn += 1) {
    reads.push(await read(client, "large.ts"));
    // About 200 small results in the deep run.
    for (let index = 0; index < 7; index += 1) expect(await read(client, "small.ts")).toHaveLength(1);
  }
  expect(reads.map((pages) => pages.length)).toEqual(reads.map(() => calls));
  expect(reads.flat().join("")).not.toContain("[Budget");
  const delivered = (await counter).count(reads.flat().join(""));
  expect(delivered).toBeGreaterThan(deep ? 280_000 : 90_000);
});

test("with a total that a person set, pages shrink to what is left, but not below 2,000 tokens", async () => {
  const client = await start("somebody", ["--total", "100000"]);
  const count = (text: string) => counter.then((each) => each.count(text));
  const reads: string[][] = [];
  for (let turn = 0; turn < 12; turn += 1) reads.push(await read(client, "large.ts"));
  const warned = reads.flat().filter((page) => page.includes("[Budget"));
  expect(warned.length).toBeGreaterThan(5);
  for (const page of warned)
    expect(page).toMatch(/\[Budget Alert: ~\d+k tokens remaining\. Consider summarizing or completing soon\.\]/);
  const full = reads.at(-1)!.slice(0, -1);
  expect(full.length).toBeGreaterThan(2);
  for (const page of full) expect(await count(page)).toBeGreaterThan(1_700);
});

test("a compaction that the plugin reports gives the room back, and a resumed conversation keeps its account", async () => {
  const client = await start("claude-code", ["--total", "100000"]);
  const pages = async (): Promise<number> => (await read(client, "large.ts")).length;
  const before: number[] = [];
  for (let turn = 0; turn < 8; turn += 1) before.push(await pages());
  expect(before.at(-1)).toBeGreaterThan(before[0]!);
  expect(await client.end()).toBe(0);
  const resumed = await start("claude-code", ["--total", "100000"]);
  // The account goes on being full.
  expect((await read(resumed, "large.ts")).length).toBeGreaterThan(before[0]!);
  const plugin = await open("claude-code", plimsoll("plugin", "serve", "claude-code"));
  const hook = { session_id: "c0ffee", transcript_path: "", agent_id: "" };
  expect((await plugin.call("after_compact", hook)).content[0]!.text).toBe("{}");
  expect(await read(resumed, "large.ts")).toHaveLength(before[0]!);
});

test("after a compaction, a result refers to nothing from before it", async () => {
  const client = await start("claude-code", ["--intake"]);
  const [whole] = await read(client, "small.ts");
  expect((await read(client, "small.ts"))[0]).toMatch(/Same text as the result/);
  const plugin = await open("claude-code", plimsoll("plugin", "serve", "claude-code"));
  await plugin.call("after_compact", { session_id: "c0ffee", transcript_path: "", agent_id: "" });
  expect((await read(client, "small.ts"))[0]).toBe(whole);
});
