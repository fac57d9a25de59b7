import { existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createCounter } from "../../src/core/tokens/index.ts";
import {
  connectLines,
  joinItems,
  type LineClient,
  officialClients,
  type PageData,
  plimsoll,
  readPages,
  type TestClient,
  type ToolResult,
} from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";
const fileCount = deep ? 300 : 150;
/** In the order of the list. */
const paths = Array.from({ length: fileCount }, (_, index) => `src/file-${String(index).padStart(4, "0")}.txt`);

let sandbox: Sandbox;
const opened: (() => unknown)[] = [];
beforeEach(() => {
  sandbox = createProject();
});
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
  sandbox.remove();
});

function createProject(): Sandbox {
  const project = createSandbox();
  mkdirSync(join(project.cwd, "src"));
  for (const path of paths) writeFileSync(join(project.cwd, path), `text of ${path}\n`);
  return project;
}

function start(args: readonly string[] = [], env: Record<string, string> = {}): LineClient {
  const client = connectLines(plimsoll("mcp", "--format", "json", ...args), {
    ...sandbox,
    env: { ...sandbox.env, ...env },
  });
  opened.push(() => client.child.kill("SIGKILL"));
  return client;
}

async function startReady(args: readonly string[] = [], name?: string): Promise<LineClient> {
  const client = start(args);
  await client.initialize(undefined, name);
  return client;
}

const dataOf = ({ structuredContent }: ToolResult): PageData => structuredContent!.data;
const pathsOf = (files: readonly unknown[]): string[] => files.map((file) => (file as { path: string }).path);

describe.each(deep ? officialClients : officialClients.slice(1, 2))("%s", (_name, connect) => {
  let project: Sandbox;
  let client: TestClient;
  beforeAll(async () => {
    project = createProject();
    client = await connect(project, ["mcp", "--format", "json", "--per-tool", "1000"]);
  });
  afterAll(async () => {
    await client?.close();
    project.remove();
  });

  test("lists the tools, always the same", async () => {
    const tools = await client.tools();
    expect(tools.map(({ name }) => name)).toEqual([
      ...["project_files", "search_content", "read_file", "vcs_log", "vcs_diff", "vcs_status", "vcs_blame"],
      ...["next_page", "recall", "budget_status"],
    ]);
    await client.call("project_files", { mode: "files" });
    expect(await client.tools()).toEqual(tools);
    const shown = tools.map(({ _meta, ...tool }) => JSON.stringify(tool, null, 2));
    await expect(shown.join("\n")).toMatchFileSnapshot("golden/mcp-tools.txt");
  });

  test("pages through a large result to its end, the same in text and structured content", async () => {
    const first = await client.call("project_files", { mode: "files" });
    expect(JSON.parse(first.content[0]!.text)).toEqual(first.structuredContent);
    const pages = await readPages(client, first);
    expect(pages.length).toBeGreaterThan(5);
    expect(pathsOf(joinItems(pages, "files"))).toEqual(paths);
  });

  test("gets an error as an envelope", async () => {
    const { isError, content, structuredContent } = await client.call("read_file", { path: "../secret" });
    expect(isError).toBe(true);
    expect(structuredContent?.status).toBe("error");
    expect(JSON.parse(content[0]!.text)).toEqual(structuredContent);
  });
});

const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
// The official client above speaks the latest one in every run.
test.each(revisions)("speaks revision %s, and pages to the end", { tags: ["deep"] }, async (version) => {
  const client = start(["--per-tool", "2000"]);
  expect(await client.initialize(version)).toMatchObject({ protocolVersion: version });
  const first = await client.call("project_files", { mode: "files" });
  expect(pathsOf(joinItems(await readPages(client, first), "files"))).toEqual(paths);
  expect(await client.end()).toBe(0);
});

test("a server that was killed between two pages goes on with them after it is started again", {
  tags: ["deep"],
}, async () => {
  const before = await startReady(["--per-tool", "1000"]);
  const files = await before.call("project_files", { mode: "files" });
  const { recent } = dataOf(await before.call("budget_status", {}));
  const { id } = (recent as { id: string }[])[0]!;
  const stored = await before.call("recall", { id, budget: 600 });
  const tokens = [files, stored].map((result) => dataOf(result).continuation_token);
  expect(tokens[0]).toMatch(/^offset:\d+$/);
  expect(tokens[1]).toMatch(/^\w{16}:offset:\d+$/);
  before.child.kill("SIGKILL");
  expect(await before.exit).toBe("SIGKILL");

  const after = await startReady(["--per-tool", "1000"]);
  expect(pathsOf(joinItems(await readPages(after, files), "files"))).toEqual(paths);
  const rest = await after.call("next_page", { token: tokens[1] });
  expect(dataOf(rest)).toMatchObject({ offset: dataOf(stored).returned });
  const status = await after.call("budget_status", {});
  expect(dataOf(status).delivered).toBeGreaterThan(dataOf(files).returned);
  expect(dataOf(status).calls).toBeGreaterThan(3);
});

test("the account of a client that went in good order is not that of the next, but its results can be recalled", {
  tags: ["deep"],
}, async () => {
  const first = await startReady();
  const read = await first.call("read_file", { path: paths[0] });
  const { recent } = dataOf(await first.call("budget_status", {}));
  expect(await first.end()).toBe(0);

  const second = await startReady();
  const status = dataOf(await second.call("budget_status", {}));
  expect(status).toMatchObject({ used: { tool_results: 0 }, recent: [] });
  const { id } = (recent as { id: string }[])[0]!;
  const again = dataOf(await second.call("recall", { id }));
  expect(again.lines).toEqual(dataOf(read).lines);
});

test("budget_status tells what is used, and resets it", async () => {
  const client = await startReady(["--total", "50000"]);
  await client.call("project_files", { mode: "files" });
  const { total_budget, used, summary, recent } = dataOf(await client.call("budget_status", {}));
  expect(total_budget).toBe(50_000);
  expect((used as { tool_results: number }).tool_results).toBeGreaterThan(1_000);
  expect(summary).toMatch(/^Budget: \d+k of 50k left \(/);
  expect(recent).toMatchObject([{ tool: "project_files", result: expect.stringContaining("Listed") }]);
  const reset = dataOf(await client.call("budget_status", { reset: true }));
  expect(reset).toMatchObject({ used: { tool_results: 0 }, delivered: 0, lifetime: expect.any(Number) });
  expect(reset.lifetime).toBeGreaterThan(1_000);
});

// A client keeps old results in its window, although they leave the server's tool tier.
test("the first warning comes when the conversation has used the budget, and pages then shrink to what is left", {
  tags: ["deep"],
}, async () => {
  const client = await startReady(["--format", "text", "--total", "100000"]);
  const pages: string[] = [];
  for (let offset = 0; pages.length < 100; offset += 1) {
    pages.push((await client.call("project_files", { mode: "files", offset })).content[0]!.text);
    if (pages.at(-1)!.includes("[Budget Alert: ~0k")) break;
  }
  const counter = await createCounter("estimate:claude-5");
  const tokens = pages.map((page) => counter.count(page));
  const sumTo = (index: number) => tokens.slice(0, index + 1).reduce((sum, each) => sum + each, 0);
  const alert = sumTo(pages.findIndex((page) => page.includes("[Budget Alert: ~1")));
  expect(alert).toBeGreaterThan(40_000);
  expect(alert).toBeLessThan(60_000);
  for (const [index, size] of tokens.entries()) {
    const left = 70_000 - sumTo(index - 1);
    expect(size).toBeLessThanOrEqual(Math.max(2_000, left));
  }
  const reset = await client.call("budget_status", { reset: true });
  expect(reset.content[0]!.text).toMatch(/^Budget: 6\dk of 100k left .* 6\dk in all conversations/);
  const { text } = (await client.call("project_files", { mode: "files" })).content[0]!;
  expect(text).not.toContain("[Budget");
  expect(counter.count(text)).toBeGreaterThan(1_000);
});

test("calls at once are all answered, each within its share", async () => {
  const client = await startReady(["--per-tool", "1000"]);
  const count = deep ? 200 : 10;
  const results = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      index % 2 === 0
        ? client.call("read_file", { path: paths[index] })
        : client.call("project_files", { mode: "files", offset: index }),
    ),
  );
  results.forEach((result, index) => {
    const data = dataOf(result);
    if (index % 2 === 0) expect(JSON.stringify(data)).toContain(`text of ${paths[index]}`);
    else expect(pathsOf(data.files as unknown[])[0]).toBe(paths[index]);
  });
  const ids = dataOf(await client.call("budget_status", {})).calls;
  expect(ids).toBe(count);
});

test("a call that is cancelled is not answered, and the next one is", { tags: ["deep"] }, async () => {
  const client = await startReady();
  const slow = { name: "search_content", arguments: { pattern: "(a+)+$", is_regex: true } };
  client.write(`${JSON.stringify({ jsonrpc: "2.0", id: 900, method: "tools/call", params: slow })}\n`);
  client.notify("notifications/cancelled", { requestId: 900, reason: "no longer wanted" });
  expect(dataOf(await client.call("read_file", { path: paths[0] })).returned).toBeGreaterThan(0);
  expect(await client.end()).toBe(0);
  expect(client.lines.filter((line) => line.includes('"id":900'))).toEqual([]);
});

test("stdout is protocol only, whatever comes in, and what is wrong is told on stderr", async () => {
  const client = start();
  client.write("garbage\n{}\n[]\n\n42\n");
  await client.initialize();
  client.write(Buffer.from([0xff, 0xfe, 0x0a]));
  client.write(`{"jsonrpc":"2.0","id":1000,"method":"nothing/like/it"}\n`);
  await client.call("read_file", { path: paths[0] });
  const unknown = await client.call("read_fil", {});
  expect(unknown).toMatchObject({ isError: true, structuredContent: { error: { code: "unknown_tool" } } });
  expect(await client.end()).toBe(0);
  for (const line of client.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" });
  expect(client.lines.filter((line) => line.includes('"id":1000'))).toEqual([expect.stringContaining('"code":-32601')]);
  expect(client.stderr()).toContain("a line on stdin is not JSON");
});

test("what was asked is answered when stdin ends right behind it", async () => {
  const clientInfo = { name: "pipe", version: "1" };
  const messages = [
    { id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } },
    { id: null, method: "notifications/initialized", params: null },
    { id: 2, method: "tools/call", params: { name: "read_file", arguments: { path: paths[0] } } },
    { id: 3, method: "ping", jsonrpc: "1.0" },
  ];
  const lines = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const input = `${lines.join("")}{"jsonrpc":"2.0","id":1763300000000000001,"method":"ping"}\n`;
  const { code, stdout, stderr } = await sandbox.run(["mcp", "--format", "json"], { input });
  const told = "plimsoll: a message on stdin is not JSON-RPC 2.0\n";
  expect({ code, stderr }).toEqual({ code: 0, stderr: told });
  const ids = stdout
    .trimEnd()
    .split("\n")
    .map((line) => /"id":(\d+)[,}]/.exec(line)?.[1]);
  expect(ids.sort()).toEqual(["1", "1763300000000000001", "2", "3"]);
  const next = await startReady();
  expect(dataOf(await next.call("budget_status", {}))).toMatchObject({
    used: { tool_results: 0 },
    recent: [],
  });
});

test("a client that reads no more ends the server in good order, also while it holds its stdin", {
  tags: ["deep"],
}, async () => {
  const client = await startReady();
  await client.call("read_file", { path: paths[0] });
  client.child.stdout.destroy();
  client.request("ping").catch(() => {});
  expect(await client.exit).toBe(0);
  const next = await startReady();
  expect(dataOf(await next.call("budget_status", {}))).toMatchObject({
    used: { tool_results: 0 },
    recent: [],
  });
});

test("a signal ends the server in good order: the next one begins anew", { tags: ["deep"] }, async () => {
  const fresh = { used: { tool_results: 0 }, recent: [] };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    const client = await startReady();
    expect(dataOf(await client.call("budget_status", {}))).toMatchObject(fresh);
    await client.call("read_file", { path: paths[0] });
    client.child.kill(signal);
    expect({ signal, code: await client.exit }).toEqual({ signal, code: 0 });
  }
  const last = await startReady();
  expect(dataOf(await last.call("budget_status", {}))).toMatchObject(fresh);
});

test("pages are smaller for a client that cuts earlier, unless told otherwise", { tags: ["deep"] }, async () => {
  const length = async (name: string, args: readonly string[] = []): Promise<number> => {
    const client = await startReady(args, name);
    const { content } = await client.call("read_file", { path: "prose.txt" });
    await client.end();
    return content[0]!.text.length;
  };
  writeFileSync(join(sandbox.cwd, "prose.txt"), "These are some words that people know.\n".repeat(2_000));
  const usual = await length("somebody");
  expect(usual).toBeGreaterThan(15_000);
  const codex = await length("codex-mcp-client");
  expect(codex).toBeLessThan(12_000);
  expect(codex).toBeGreaterThan(9_000);
  const chosen = await length("codex-mcp-client", ["--page-characters", "50000"]);
  expect(chosen).toBeGreaterThan(45_000);
  expect(chosen).toBeLessThanOrEqual(50_000);
});

test("the configuration gives the budget, and the command line overrides it", async () => {
  sandbox.write(
    ".plimsoll/config.yaml",
    "session: { total: 60000, per_tool_call: 2000, tools: { read_file: 900 } }\ncounter: bytes/4\n",
  );
  sandbox.write("../home/.config/plimsoll/config.yaml", "store: kept.db\n");
  const client = await startReady(["--per-tool", "1500"]);
  const { total_budget, per_tool_budget } = dataOf(await client.call("budget_status", {}));
  expect({ total_budget, per_tool_budget }).toEqual({ total_budget: 60_000, per_tool_budget: 1_500 });
  writeFileSync(join(sandbox.cwd, "many.txt"), "some words\n".repeat(2_000));
  const tokens = async (name: string, args: Record<string, unknown>): Promise<number> =>
    Math.ceil((await client.call(name, args)).content[0]!.text.length / 4);
  const [files, read] = [
    await tokens("project_files", { mode: "files" }),
    await tokens("read_file", { path: "many.txt" }),
  ];
  expect([files > 1_200 && files <= 1_500, read > 700 && read <= 900]).toEqual([true, true]);
  await client.end();
  expect(existsSync(join(sandbox.home, "kept.db"))).toBe(true);
});

test("what is not configured follows from the total", { tags: ["deep"] }, async () => {
  sandbox.write(".plimsoll/config.yaml", "session: { total: 32000 }\n");
  const client = await startReady();
  const { total_budget, per_tool_budget } = dataOf(await client.call("budget_status", {}));
  expect({ total_budget, per_tool_budget }).toEqual({ total_budget: 32_000, per_tool_budget: 2_560 });
});

test("the account has the list of tools and the instructions, which the client's context has", {
  tags: ["deep"],
}, async () => {
  const client = start(["--counter", "bytes/4", "--total", "100000"]);
  const { instructions } = (await client.initialize()) as { instructions?: string };
  const listed = (await client.request("tools/list")).result as unknown as { tools: Tool[] };
  const told = listed.tools.map(({ name, description, inputSchema }) =>
    JSON.stringify({ name, description, inputSchema }),
  );
  const tokens = [instructions!, ...told].reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / 4), 0);
  expect(tokens).toBeGreaterThan(800);
  const status = dataOf(await client.call("budget_status", {}));
  expect(status).toMatchObject({ used: { system: tokens }, remaining: 100_000 - tokens });
  const reset = dataOf(await client.call("budget_status", { reset: true }));
  expect(reset).toMatchObject({ used: { system: tokens } });
});

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: object;
}

test("a session that is named goes on, also after an end in good order", { tags: ["deep"] }, async () => {
  for (const calls of [1, 2]) {
    const client = await startReady(["--session", "mine"]);
    await client.call("read_file", { path: paths[0] });
    expect(dataOf(await client.call("budget_status", {}))).toMatchObject({ session: "mine", calls });
    await client.end();
  }
});

test("nothing outside the root is read", async () => {
  sandbox.write("inner/file.txt", "inside\n");
  symlinkSync(join(sandbox.cwd, paths[0]!), join(sandbox.cwd, "inner/link.txt"));
  const client = await startReady(["--root", "inner"]);
  expect(pathsOf(dataOf(await client.call("project_files", { mode: "files" })).files as unknown[])).toContain(
    "file.txt",
  );
  for (const path of ["../src/file-0000.txt", join(sandbox.cwd, paths[0]!), "link.txt", "a\0b"]) {
    const result = await client.call("read_file", { path });
    expect(result).toMatchObject({ isError: true });
    expect(result.content[0]?.text).not.toContain("text of");
  }
});

test.each([
  [["--root", "nowhere"], "--root nowhere is missing. Name the directory that the tools may read."],
  [["--root", "src/file-0000.txt"], "is not a directory"],
  [["--total", "many"], '--total is "many". Use a whole number of at least 1000.'],
  [["--per-tool", "10"], '--per-tool is "10". Use a whole number of at least 512.'],
  [["serve", "extra"], 'unexpected argument "extra". See "plimsoll mcp --help".'],
  [["--dry-run"], "--dry-run cannot be used with serve. It belongs to install and uninstall."],
  [["wrap", "--http", "1"], "--http cannot be used with wrap. It belongs to serve."],
  [["wrap"], "the command of the server is missing"],
])("%j is wrong usage", async (args, message) => {
  const { code, stdout, stderr } = await sandbox.call(["mcp", ...args]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain(message);
});
