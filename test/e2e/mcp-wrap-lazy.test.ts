/** `mcp wrap --lazy`: the tools of real servers behind six fixed ones. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createCounter } from "../../src/core/tokens/index.ts";
import { connectLines, type LineClient, officialClients, plimsoll } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const manyTools = fileURLToPath(new URL("mcp-many-tools-server.mjs", import.meta.url));
const many = { command: process.execPath, args: [manyTools] };

let sandbox: Sandbox;
const opened: (() => unknown)[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
  sandbox.remove();
});

interface Tool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: object;
  readonly annotations: object;
}

async function start(place: Sandbox, ...flags: readonly string[]): Promise<LineClient> {
  place.write("servers.json", JSON.stringify({ mcpServers: { web: many, other: many } }));
  const client = connectLines(plimsoll("mcp", "wrap", "--config", "servers.json", ...flags), place);
  await client.initialize();
  return client;
}

const toolsOf = async (client: LineClient): Promise<readonly Tool[]> =>
  ((await client.request("tools/list")).result as unknown as { tools: Tool[] }).tools;

async function textOf(client: LineClient, name: string, args: Record<string, unknown>): Promise<string> {
  return (await client.call(name, args)).content[0]!.text;
}

test("the definitions of 120 tools take at most 900 tokens, and never change", async () => {
  const counter = await createCounter("estimate:claude-5");
  const cost = (tools: readonly Tool[]): number =>
    tools.reduce((sum, { name, description, inputSchema }) => {
      return sum + counter.count(JSON.stringify({ name, description, inputSchema }));
    }, 0);
  const [plain, client] = [await start(sandbox), await start(sandbox, "--lazy")];
  for (const { child } of [plain, client]) opened.push(() => child.kill("SIGKILL"));
  expect(cost(await toolsOf(plain))).toBeGreaterThan(17_900);
  const tools = await toolsOf(client);
  const names = ["find_tool", "describe_tool", "call_read_tool", "call_tool", "next_page", "recall"];
  expect(tools.map(({ name }) => name)).toEqual(names);
  expect(cost(tools)).toBeLessThanOrEqual(900);
  expect(tools.map(({ annotations }) => annotations)).toEqual(
    names.map((name) =>
      name === "call_tool" ? { readOnlyHint: false, destructiveHint: true } : { readOnlyHint: true },
    ),
  );
  await client.call("call_tool", { name: "web_resize_page", arguments: { uid: "1" } });
  expect(await toolsOf(client)).toEqual(tools);
  expect(client.lines.filter((line) => line.includes("list_changed"))).toEqual([]);
  expect(await textOf(client, "find_tool", { query: "kite" })).toContain(
    "web_fly_kite [may be destructive]: Fly a kite.",
  );
});

// Codex sends its first request without the tools of a server that is not there after about a second.
test("a client is greeted before slow servers are, and their tools are still found", { tags: ["deep"] }, async () => {
  const greeted = join(sandbox.cwd, "greeted");
  const slow = { ...many, args: [...many.args, "3000", greeted] };
  sandbox.write("servers.json", JSON.stringify({ mcpServers: { slow, other: many } }));
  const client = connectLines(plimsoll("mcp", "wrap", "--config", "servers.json", "--lazy"), sandbox);
  opened.push(() => client.child.kill("SIGKILL"));
  await client.initialize();
  expect(await toolsOf(client)).toHaveLength(6);
  expect(existsSync(greeted)).toBe(false);
  expect(await textOf(client, "find_tool", { query: "drag dialog" })).toContain("slow_drag_dialog");
  expect(existsSync(greeted)).toBe(true);
});

test("a result that only mentions a change of the list arrives", async () => {
  const oddServer = fileURLToPath(new URL("mcp-odd-server.mjs", import.meta.url));
  const odd = { command: process.execPath, args: [oddServer] };
  sandbox.write("servers.json", JSON.stringify({ mcpServers: { odd } }));
  const client = connectLines(plimsoll("mcp", "wrap", "--config", "servers.json", "--lazy"), sandbox);
  opened.push(() => client.child.kill("SIGKILL"));
  await client.initialize();
  const text = "rg: notifications/tools/list_changed";
  const args = { name: "blocks", arguments: { texts: [text] } };
  expect(await textOf(client, "call_tool", args)).toBe(text);
});

test("a search says so if no server has a tool yet", async () => {
  sandbox.write("empty.mjs", emptyServer);
  const client = connectLines(plimsoll("mcp", "wrap", "--lazy", "--", process.execPath, "empty.mjs"), sandbox);
  opened.push(() => client.child.kill("SIGKILL"));
  await client.initialize();
  expect(await textOf(client, "find_tool", { query: "read" })).toBe("No server offers a tool yet. Try again later.");
});

const emptyServer = `import { createInterface } from "node:readline";
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const greeting = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "e", version: "1" } };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: method === "initialize" ? greeting : { tools: [] } }));
});
`;

describe("one wrapper", () => {
  let place: Sandbox;
  let client: LineClient;
  beforeAll(async () => {
    place = createSandbox();
    client = await start(place, "--lazy");
  });
  afterAll(() => {
    client?.child.kill("SIGKILL");
    place.remove();
  });

  test("find_tool returns the best eight, with one line each", async () => {
    const lines = (await textOf(client, "find_tool", { query: "list the network requests" })).split("\n");
    expect(lines).toHaveLength(8);
    expect(lines.slice(0, 2)).toEqual([
      "other_list_network_request [read-only]: List a network request.",
      "web_list_network_request [read-only]: List a network request.",
    ]);
    expect(await textOf(client, "find_tool", { query: "zebra" })).toMatch(
      /^No tool has a word of "zebra"\. All 120 tools: /,
    );
    expect(await textOf(client, "find_tool", { query: "" })).toMatch(/^120 tools: web_click_page, /);
  });

  test("describe_tool shows the annotations and the schema", async () => {
    const text = await textOf(client, "describe_tool", { name: "web_click_page" });
    expect(text).toMatch(/^web_click_page \[may be destructive\], to be called with call_tool\n/);
    expect(text).toContain('Annotations: {"readOnlyHint":false}');
    expect(text).toContain('"required":["uid"]');
    expect(await textOf(client, "describe_tool", { name: "web_list_page" })).toContain(
      "to be called with call_read_tool",
    );
    const wrong = await client.call("describe_tool", { name: "list_pages" });
    expect(wrong).toMatchObject({ isError: true, content: [{ text: expect.stringContaining("web_list_page") }] });
  });
  test("call_tool passes the arguments with their bytes", async () => {
    const args = '{ "uid": "é", "options": {"id":12345678901234567890} }';
    client.write(
      `{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"web_click_page","arguments":${args}}}}\n`,
    );
    await expect.poll(() => client.lines.find((line) => line.includes('"id":77')), { timeout: 10_000 }).toBeDefined();
    const answer = JSON.parse(client.lines.find((line) => line.includes('"id":77'))!);
    expect(answer.result.content[0].text).toBe(`click_page got ${args}`);
  });

  test("call_read_tool calls only tools that are marked as read-only", async () => {
    expect(await textOf(client, "call_read_tool", { name: "web_list_page", arguments: { uid: "1" } })).toContain(
      "list_page got",
    );
    const refused = await client.call("call_read_tool", { name: "web_click_page", arguments: { uid: "1" } });
    expect(refused).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("not marked as read-only") }],
    });
  });

  test.each([
    [{ name: "web_click_page" }, /are not valid: .*"uid".*\. It takes: \{"type":"object"/],
    [{ name: "web_click_page", arguments: { uid: 7 } }, /are not valid: .*uid/],
    [{ name: "web_click_page", arguments: "uid" }, /are not valid/],
    [{ name: "click_page", arguments: {} }, /There is no tool "click_page"/],
  ])("call_tool refuses %j with a reason", async (args, reason) => {
    const result = await client.call("call_tool", args);
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(reason) }] });
  });
});

test("pages large results under the tool's own name", async () => {
  sandbox.write(".plimsoll/config.yaml", "session: { tools: { web_list_page: 600 } }\n");
  const [, connect] = officialClients[0]!;
  sandbox.write("servers.json", JSON.stringify({ mcpServers: { web: many, other: many } }));
  const client = await connect(sandbox, ["mcp", "wrap", "--config", "servers.json", "--lazy"]);
  opened.push(client.close);
  const call = { name: "web_list_page", arguments: { uid: "1", times: 1_000 } };
  const { text } = (await client.call("call_read_tool", call)).content[0]!;
  expect(text.length).toBeLessThan(3_000);
  const token = /next_page token=(\S+)/.exec(text)![1]!;
  expect((await client.call("next_page", { token })).content[0]!.text).toContain("list_page got");
});
