/** Measures `mcp wrap` beside the bare server: what definitions cost with and without --lazy, the time that a call takes
 *  longer, and a result of 100 MB. Real servers are installed elsewhere: `npm install @playwright/mcp
 *  chrome-devtools-mcp` in a folder, then `npm run bench:wrap -- --packages FOLDER`. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { createCounter } from "../src/core/tokens/index.ts";

const project = fileURLToPath(new URL("../../", import.meta.url));
const command = join(project, "dist/cli/main.js");
const oddServer = join(project, "test/e2e/mcp-odd-server.mjs");
const { values } = parseArgs({ options: { packages: { type: "string" }, calls: { type: "string", default: "300" } } });

interface Connection {
  readonly client: Client;
  readonly pid: number;
}

async function connect(args: readonly string[]): Promise<Connection> {
  const client = new Client({ name: "bench", version: "1" });
  const transport = new StdioClientTransport({ command: process.execPath, args: [...args], stderr: "ignore" });
  await client.connect(transport);
  return { client, pid: transport.pid! };
}

const wrap = (...flags: readonly string[]): string[] => [command, "mcp", "wrap", "--no-store", ...flags];
const print = (line: string): void => void process.stdout.write(`${line}\n`);

async function withServers<Result>(servers: object, use: (file: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "plimsoll-bench-"));
  const file = join(folder, "servers.json");
  await writeFile(file, JSON.stringify({ mcpServers: servers }));
  return use(file).finally(() => rm(folder, { recursive: true }));
}

async function measureDefinitions(packages: string): Promise<void> {
  const counter = await createCounter("estimate:claude-5");
  const bin = (path: string) => ({ command: process.execPath, args: [join(packages, "node_modules", path)] });
  const servers = {
    playwright: bin("@playwright/mcp/cli.js"),
    "chrome-devtools": bin("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"),
  };
  await withServers(servers, async (file) => {
    for (const flags of [[], ["--lazy"]]) {
      const { client } = await connect(wrap("--config", file, ...flags));
      const { tools } = await client.listTools();
      const costs = tools.map(({ name, description, inputSchema }) =>
        counter.count(JSON.stringify({ name, description, inputSchema })),
      );
      const tokens = costs.reduce((sum, each) => sum + each, 0);
      print(`definitions ${flags.join(" ") || "of both servers"}: ${tools.length} tools, ${tokens} tokens`);
      await client.close();
    }
  });
}

/** The calls alternate, so that a busy machine slows all of them down alike. */
async function measureCalls(count: number): Promise<void> {
  const odd = { command: process.execPath, args: [oddServer] };
  await withServers({ odd, other: odd }, async (file) => {
    const ways = [
      { name: "bare", tool: "text", connection: await connect([oddServer]) },
      { name: "wrap", tool: "text", connection: await connect(wrap("--", process.execPath, oddServer)) },
      { name: "wrap of two", tool: "odd_text", connection: await connect(wrap("--config", file)) },
    ];
    const times = ways.map((): number[] => []);
    for (let call = 0; call < count; call += 1) {
      for (const [index, { tool, connection }] of ways.entries()) {
        const start = performance.now();
        await connection.client.callTool({ name: tool, arguments: { count: 20 } });
        times[index]!.push(performance.now() - start);
      }
    }
    for (const [index, { name, connection }] of ways.entries()) {
      const [own, bare] = [times[index]!, times[0]!].map(
        (all) => all.toSorted((left, right) => left - right)[count >> 1]!,
      );
      print(`a call, ${name}: ${own!.toFixed(2)} ms p50, ${(own! - bare!).toFixed(2)} ms more than bare`);
      await connection.client.close();
    }
  });
}

async function measureLarge(megabytes: number): Promise<void> {
  const odd = { command: process.execPath, args: [oddServer] };
  const count = Math.ceil((megabytes * 1_000_000) / "some words\n".length);
  await withServers({ odd, other: odd }, async (file) => {
    const ways = [
      { name: "wrap", tool: "text", args: wrap("--", process.execPath, oddServer) },
      { name: "wrap of two", tool: "odd_text", args: wrap("--config", file) },
    ];
    for (const { name, tool, args } of ways) {
      const { client, pid } = await connect(args);
      const start = performance.now();
      await client.callTool({ name: tool, arguments: { count } }, undefined, { timeout: 120_000 });
      const seconds = (performance.now() - start) / 1_000;
      const peak = Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
      print(`${megabytes} MB, ${name}: ${seconds.toFixed(1)} s, ${Math.round(peak)} MB at most`);
      await client.close();
    }
  });
}

if (values.packages !== undefined) await measureDefinitions(values.packages);
await measureCalls(Number(values.calls));
if (process.platform === "linux") await measureLarge(100);
