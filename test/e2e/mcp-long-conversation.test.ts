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
  const client = connectLines(
    plimsoll("mcp", "wrap", ...flags, "--", process.execPath, filesystem, sandbox.cwd),
    sandbox,
  );
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
