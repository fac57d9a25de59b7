/** The text form of results over MCP, as a client gets it by default. */
import { execFileSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createCounter } from "../../src/core/tokens/index.ts";
import { connectLines, type LineClient, plimsoll, readTextPages } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const estimate = await createCounter("estimate:claude-5");
let sandbox: Sandbox;
let client: LineClient;
function openProject(): void {
  sandbox = createSandbox();
  const lines = Array.from({ length: 900 }, (_, index) => `export const value${index} = compute(${index});`);
  sandbox.write("src/long.ts", `${lines.join("\n")}\n`);
  sandbox.write("src/short.ts", "one\n");
  execFileSync("git", ["init", "--quiet"], { cwd: sandbox.cwd });
}
function closeProject(): void {
  client.child.kill("SIGKILL");
  sandbox.remove();
}

async function start(...args: string[]): Promise<LineClient> {
  client = connectLines(plimsoll("mcp", ...args), sandbox);
  await client.initialize();
  return client;
}

interface Listed {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: object;
  readonly annotations: { readonly readOnlyHint: boolean };
}

async function listTools(): Promise<readonly Listed[]> {
  const { result } = await client.request("tools/list");
  return (result as unknown as { tools: Listed[] }).tools;
}

describe("one server with the defaults", () => {
  beforeAll(async () => {
    openProject();
    await start();
  });
  afterAll(closeProject);

  test("a complete result is its text, without an envelope, a note or structured content", async () => {
    expect(await client.call("read_file", { path: "src/short.ts" })).toEqual({
      content: [{ type: "text", text: "1\tone" }],
    });
  });

  test("an error is marked as one, also for the tools that return pages", async () => {
    for (const [name, args] of [
      ["read_file", { path: "../x" }],
      ["read_file", { path: "src/short.ts", lines: 3 }],
      ["next_page", { token: "r99:offset:1" }],
      ["next_page", {}],
      ["recall", { id: "r99" }],
      ["budget_status", { reset: "maybe" }],
      ["no_such_tool", {}],
    ] as const) {
      const { isError, content, structuredContent } = await client.call(name, args);
      expect({ name, isError, structuredContent }).toEqual({ name, isError: true, structuredContent: undefined });
      expect(content[0]!.text).toMatch(/^Error \(\w+\): .+[.]$/);
    }
  });

  test("all definitions together take at most 1,500 tokens", async () => {
    const tools = await listTools();
    const tokens = tools.map(({ name, description, inputSchema }) =>
      estimate.count(JSON.stringify({ name, description, inputSchema })),
    );
    expect(tools).toHaveLength(10);
    expect(tokens.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(1_500);
  });

  test("parameters that the list leaves out still work", async () => {
    const { content } = await client.call("read_file", { path: "src/long.ts", budget: 600 });
    expect(estimate.count(content[0]!.text)).toBeLessThanOrEqual(600);
    const { content: found } = await client.call("search_content", {
      pattern: "value",
      max_results: 2,
      context_lines: 0,
    });
    expect(found[0]!.text).toMatch(
      /^src\/long\.ts\n1:.*\n2:.*\n\[2 of 900 matches, \d+ tokens; next: offset=2 · id \w{16}\]$/,
    );
  });
});

describe("a server for each test", () => {
  beforeEach(openProject);
  afterEach(closeProject);

  test("pages follow each other by the last line of each, and fit their budget", async () => {
    await start("--per-tool", "2000", "--counter", "estimate:claude-5");
    const pages = await readTextPages(client, { name: "read_file", args: { path: "src/long.ts" } });
    expect(pages.length).toBeGreaterThan(5);
    for (const { result } of pages) expect(estimate.count(result.content[0]!.text)).toBeLessThanOrEqual(2_000);
    const lines = pages.flatMap(({ body }) => body.split("\n"));
    expect(lines).toHaveLength(900);
    expect(lines[899]).toBe("900\texport const value899 = compute(899);");
  });

  test("a page that was asked for with a token continues with a token", async () => {
    await start("--per-tool", "2000");
    const first = await client.call("read_file", { path: "src/long.ts" });
    const offset = / next: offset=(\d+) · id \w{16}\]$/.exec(first.content[0]!.text)![1];
    const second = (await client.call("next_page", { token: `offset:${offset}` })).content[0]!.text;
    expect(second).toMatch(new RegExp(`^${Number(offset) + 1}\\t`));
    expect(second).toMatch(/; next: next_page token=offset:\d+ · id \w{16}\]$/);
    const again = (await client.call("recall", { id: "r1" })).content[0]!.text;
    expect(again.split("\n")[0]).toBe(first.content[0]!.text.split("\n")[0]);
  });

  test("budget_status, which can reset the account, is not marked as read-only", async () => {
    await start();
    const writing = (await listTools()).filter(({ annotations }) => !annotations.readOnlyHint);
    expect(writing.map(({ name }) => name)).toEqual(["budget_status"]);
    await client.call("read_file", { path: "src/short.ts" });
    const { content } = await client.call("budget_status", {});
    expect(content[0]!.text).toMatch(/^Budget: .* delivered\n\w{16} read_file: Read src\/short\.ts \(1 line, 4B\)/);
  });

  test("--tools serves only the named tools and next_page", async () => {
    await start("--tools", "read_file,recall");
    expect((await listTools()).map(({ name }) => name)).toEqual(["read_file", "next_page", "recall"]);
    expect((await client.call("vcs_log", {})).content[0]!.text).toContain('there is no tool "vcs_log"');
    expect((await client.call("budget_status", {})).isError).toBe(true);
    const { code, stderr } = await sandbox.call(["mcp", "--tools", "read_files"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('--tools: there is no tool "read_files"')]);
  });
});
