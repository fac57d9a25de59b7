/** `mcp wrap` around several servers at once: the reference servers on stdio and over HTTP. */
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { connectLines, type LineClient, plimsoll, readTextPages, type ToolResult } from "./mcp-clients.ts";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

const packages = fileURLToPath(new URL("../../node_modules/@modelcontextprotocol/", import.meta.url));
const filesystem = join(packages, "server-filesystem/dist/index.js");
const everything = join(packages, "server-everything/dist/index.js");
const oddServer = fileURLToPath(new URL("mcp-odd-server.mjs", import.meta.url));
const node = process.execPath;

let sandbox: Sandbox;
const opened: (() => unknown)[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
  sandbox.remove();
});

/** Writes a file of servers. Returns the words that wrap them. */
function wrapAll(servers: object, ...flags: readonly string[]): string[] {
  sandbox.write("servers.json", JSON.stringify({ mcpServers: servers }));
  return ["mcp", "wrap", "--config", "servers.json", ...flags];
}

const odd = { command: node, args: [oddServer] };

function startLines(args: readonly string[]): LineClient {
  const client = connectLines(plimsoll(...args), sandbox);
  opened.push(() => client.child.kill("SIGKILL"));
  return client;
}

async function startHttp(): Promise<string> {
  const port = await new Promise<number>((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address() as { port: number };
      probe.close(() => resolve(address.port));
    });
  });
  const child = spawn(node, [everything, "streamableHttp"], { env: { ...sandbox.env, PORT: String(port) } });
  opened.push(() => child.kill("SIGKILL"));
  await new Promise<void>((resolve) => child.stderr.on("data", (text) => /listening/.test(String(text)) && resolve()));
  return `http://127.0.0.1:${port}/mcp`;
}

interface Everything {
  readonly client: Client;
  readonly logged: string[];
  readonly updated: string[];
  readonly progress: unknown[];
}

/** The official client with everything that a client can offer. */
async function connectEverything(args: readonly string[]): Promise<Everything> {
  const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
  const client = new Client({ name: "test", version: "1" }, { capabilities });
  const [logged, updated]: [string[], string[]] = [[], []];
  client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: `file://${sandbox.cwd}` }] }));
  client.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => {
    const { content } = params.messages[0]!;
    const text = `sampled ${JSON.stringify(content)}`;
    return { model: "m", role: "assistant", content: { type: "text", text } };
  });
  client.setRequestHandler(ElicitRequestSchema, async () => ({
    action: "accept",
    content: { name: "Ada", check: true },
  }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, async ({ params }) => void logged.push(params.level));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, async ({ params }) => void updated.push(params.uri));
  const { env, cwd } = sandbox;
  const transport = new StdioClientTransport({ command: node, args: [mainFile, ...args], env, cwd, stderr: "ignore" });
  await client.connect(transport);
  opened.push(() => client.close());
  return { client, logged, updated, progress: progressIn(transport) };
}

/** Collects progress as it arrives. The client itself drops a notice that comes in one chunk with the result. */
function progressIn(transport: StdioClientTransport): unknown[] {
  const progress: unknown[] = [];
  const handle = transport.onmessage;
  transport.onmessage = (message) => {
    if ("method" in message && message.method === "notifications/progress") progress.push(message.params?.progress);
    handle?.(message);
  };
  return progress;
}

const textOf = (result: unknown): string => (result as ToolResult).content.map(({ text }) => text).join("\n");

describe("servers on stdio and over HTTP", () => {
  test("have their names before their tools' names, and share next_page", async () => {
    sandbox.write("large.txt", Array.from({ length: 3_000 }, (_, index) => `line ${index}`).join("\n"));
    const servers = {
      my_files: { command: node, args: [filesystem, sandbox.cwd] },
      web: { type: "http", url: await startHttp() },
      odd,
    };
    const { client } = await connectEverything(wrapAll(servers, "--per-tool", "2000"));
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["my-files_read_text_file", "web_echo", "odd_next_page"]));
    expect(names.slice(-2)).toEqual(["next_page", "recall"]);
    expect(textOf(await client.callTool({ name: "web_echo", arguments: { message: "é" } }))).toBe("Echo: é");
    const own = await client.callTool({ name: "odd_next_page", arguments: { a: 1 } });
    expect(textOf(own)).toBe('the server\'s own: {"a":1}');
    const call = async (name: string, args: Record<string, unknown>): Promise<ToolResult> =>
      (await client.callTool({ name, arguments: args })) as never;
    const path = "large.txt";
    const pages = await readTextPages({ call }, { name: "my-files_read_text_file", args: { path } });
    expect(pages.length).toBeGreaterThan(3);
    const lines = pages.flatMap(({ body }) => body.split("\n"));
    expect(lines).toEqual(Array.from({ length: 3_000 }, (_, index) => `line ${index}`));
    await expect(client.callTool({ name: "echo", arguments: {} })).rejects.toThrow(
      "the servers are my-files, web, odd",
    );
  });

  test.each(["stdio", "http"])(
    "pass everything else of a server through: %s",
    { timeout: 120_000, tags: ["deep"] },
    async (kind) => {
      const local = { command: node, args: [everything] };
      const every = kind === "stdio" ? local : { type: "http", url: await startHttp() };
      const { client, logged, updated, progress } = await connectEverything(wrapAll({ odd, every, other: local }));
      expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain("every_args-prompt");
      const prompt = await client.getPrompt({ name: "every_args-prompt", arguments: { city: "Oslo" } });
      expect(JSON.stringify(prompt)).toContain("Oslo");
      const ref = { type: "ref/prompt", name: "every_completable-prompt" } as const;
      const argument = { name: "department", value: "E" };
      expect((await client.complete({ ref, argument })).completion.values).toEqual(["Engineering"]);
      const { resources } = await client.listResources();
      expect(resources.length).toBeGreaterThan(3);
      expect((await client.readResource({ uri: resources[0]!.uri })).contents).toHaveLength(1);
      expect((await client.readResource({ uri: "demo://resource/dynamic/text/7" })).contents).toHaveLength(1);
      expect((await client.listResourceTemplates()).resourceTemplates.length).toBeGreaterThan(1);
      // Both servers count their requests from 0, so the ids are the same.
      const sample = (server: string) =>
        client.callTool({ name: `${server}_trigger-sampling-request`, arguments: { prompt: server, maxTokens: 9 } });
      const [one, two] = await Promise.all([sample("every"), sample("other")]);
      expect([textOf(one), textOf(two)]).toEqual([
        expect.stringMatching(/sampled .*every/),
        expect.stringMatching(/sampled .*other/),
      ]);
      expect(textOf(await client.callTool({ name: "every_trigger-elicitation-request", arguments: {} }))).toContain(
        "Ada",
      );
      expect(textOf(await client.callTool({ name: "every_get-roots-list", arguments: {} }))).toContain(sandbox.cwd);
      const long = { name: "every_trigger-long-running-operation", arguments: { duration: 0.3, steps: 3 } };
      await client.callTool(long, undefined, { onprogress: () => {} });
      expect(progress).toEqual([1, 2, 3]);
      await client.setLoggingLevel("debug");
      await client.callTool({ name: "every_toggle-simulated-logging", arguments: {} });
      await expect.poll(() => logged.length, { timeout: 30_000 }).toBeGreaterThan(0);
      await client.subscribeResource({ uri: resources[0]!.uri });
      await client.callTool({ name: "every_toggle-subscriber-updates", arguments: {} });
      await expect.poll(() => updated, { timeout: 30_000 }).toContain(resources[0]!.uri);
      const { task, result } = await runTask(client);
      expect([task, result]).toEqual(["completed", expect.stringContaining("Research Report")]);
    },
  );
});

async function runTask(client: Client): Promise<{ task: string; result: string }> {
  const call = { name: "every_simulate-research-query", arguments: { topic: "tides" } };
  let [task, result] = ["", ""];
  for await (const message of client.experimental.tasks.callToolStream(call, undefined, { task: { ttl: 60_000 } })) {
    if (message.type === "taskStatus") task = message.task.status;
    if (message.type === "result") result = textOf(message.result);
    if (message.type === "error") throw message.error;
  }
  return { task, result };
}

describe("a server that fails", () => {
  test("at the start, or that never answers, is reported once, and the others work", {
    timeout: 20_000,
    tags: ["deep"],
  }, async () => {
    const missing = { command: "no-such-server-anywhere" };
    const silent = { command: "sleep", args: ["60"] };
    const closed = { url: "http://127.0.0.1:9/mcp" };
    const client = startLines(wrapAll({ missing, silent, closed, odd }));
    await client.initialize();
    const { result } = (await client.request("tools/list")) as unknown as { result: { tools: { name: string }[] } };
    expect(result.tools.map(({ name }) => name.split("_")[0])).toEqual([...Array(8).fill("odd"), "next", "recall"]);
    const [first, second] = [await client.call("odd_text", { count: 1 }), await client.call("odd_text", { count: 1 })];
    expect(first.content[0]?.text).toBe("some words\n");
    for (const text of [first.content[1]!.text, client.stderr()]) {
      expect(text).toContain('The server "missing" did not start: ');
      expect(text).toContain('The server "silent" has not answered yet');
      expect(text).toContain('The server "closed" refused the greeting: ');
    }
    expect(second.content).toHaveLength(1);
    const { error } = (await client.request("tools/call", { name: "missing_x" })) as never as { error: object };
    expect(error).toMatchObject({ message: expect.stringContaining('The server "missing" did not start') });
    expect(await client.end()).toBe(0);
  });

  test("in the middle of calls again and again leaves the others, and its tools leave the list", async () => {
    const { client } = await connectEverything(wrapAll({ odd, other: odd }));
    const changed = new Promise<void>((resolve) =>
      client.setNotificationHandler(ToolListChangedNotificationSchema, async () => resolve()),
    );
    for (let crash = 0; crash < 4; crash += 1) {
      await expect(client.callTool({ name: "odd_die", arguments: { code: 42 } })).rejects.toThrow(
        'The server "odd" has ended with exit code 42.',
      );
    }
    await changed;
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names.filter((name) => name.startsWith("odd_"))).toEqual([]);
    expect(textOf(await client.callTool({ name: "other_text", arguments: { count: 1 } }))).toContain("some words");
  });

  test("ends the wrapper if no server is left", { tags: ["deep"] }, async () => {
    const client = startLines(wrapAll({ odd, other: odd }));
    await client.initialize();
    const die = (name: string) => client.request("tools/call", { name, arguments: { code: 3 } });
    for (let crash = 0; crash < 4; crash += 1) await Promise.all([die("odd_die"), die("other_die")]).catch(() => {});
    expect(await client.exit).toBe(1);
  });
});

describe("a list of a server that", () => {
  const good = Array.from(
    ["text", "rows", "die", "stderr", "next_page", "partial", "blocks", "raw"],
    (x) => `good_${x}`,
  );

  const toolsBeside = async (mode: string) => {
    const bad = { command: node, args: [oddServer, mode] };
    const { client } = await connectEverything(wrapAll({ bad, good: odd }));
    const { tools } = await client.listTools(undefined, { timeout: 20_000 });
    return tools.map(({ name }) => name);
  };

  test.each([
    ["is too long", "huge", []],
    ["clients would refuse", "invalid", ["bad_text"]],
  ])("%s takes no tools from the others", async (_, mode, names) => {
    expect(await toolsBeside(mode)).toEqual([...names, ...good, "next_page", "recall"]);
  });

  test("never ends takes no tools from the others", { tags: ["deep"] }, async () => {
    expect(await toolsBeside("endless")).toEqual([...good, "next_page", "recall"]);
  });
});

test("a cancellation reaches only the server that has the call", async () => {
  const client = startLines(wrapAll({ odd, other: odd }));
  await client.initialize();
  const params = { name: "odd_no answer", arguments: {} };
  client.write(`${JSON.stringify({ jsonrpc: "2.0", id: 99, method: "tools/call", params })}\n`);
  client.notify("notifications/cancelled", { requestId: 99 });
  expect(await client.end()).toBe(0);
  expect(client.stderr()).toBe("cancelled 99\n");
});

test("one server of a file keeps its names", async () => {
  const client = startLines(wrapAll({ odd, other: odd }, "--server", "other"));
  await client.initialize();
  expect((await client.call("text", { count: 1 })).content[0]?.text).toBe("some words\n");
});

test("an HTTP server that has forgotten the session is greeted again", { tags: ["deep"] }, async () => {
  const url = await startHttp();
  const { client } = await connectEverything(wrapAll({ web: { url }, odd }));
  const echo = async () => textOf(await client.callTool({ name: "web_echo", arguments: { message: "x" } }));
  expect(await echo()).toBe("Echo: x");
  const stop = opened.splice(0, 1)[0]!;
  stop();
  const port = new URL(url).port;
  await expect
    .poll(
      () =>
        fetch(url).then(
          () => "up",
          () => "down",
        ),
      { timeout: 10_000 },
    )
    .toBe("down");
  const child = spawn(node, [everything, "streamableHttp"], { env: { ...sandbox.env, PORT: port } });
  opened.push(() => child.kill("SIGKILL"));
  await new Promise<void>((resolve) => child.stderr.on("data", (text) => /listening/.test(String(text)) && resolve()));
  expect(await echo()).toBe("Echo: x");
});

describe("choosing servers", () => {
  test("--from takes the servers under HOME, never those of the project", async () => {
    sandbox.write(".mcp.json", JSON.stringify({ mcpServers: { hostile: { command: "touch", args: ["owned"] } } }));
    sandbox.write("../home/.claude.json", `{ // mine\n"mcpServers": { "odd": ${JSON.stringify(odd)}, }, }`);
    const client = startLines(["mcp", "wrap", "--from", "claude-code"]);
    await client.initialize();
    expect((await client.call("text", { count: 1 })).content[0]?.text).toBe("some words\n");
  });

  test.each([
    [["--config", "none.json"], "none.json: cannot be read"],
    [["--config", "servers.json", "--server", "ood"], 'there is no server "ood"'],
    [["--config", "servers.json", "--server", "off"], "off: is turned off"],
    [["--config", "servers.json", "--from", "cursor"], "--config and --from cannot be used together"],
    [["--from", "cursor"], "cursor has no file with MCP servers under HOME"],
    [["--from", "nobody"], 'unknown tool "nobody"'],
    [["--server", "odd", "--", "node"], "--server needs --config or --from"],
  ])("refuses %j", async (flags, message) => {
    wrapAll({ odd, off: { ...odd, disabled: true } });
    const { code, stderr } = await sandbox.call(["mcp", "wrap", ...flags]);
    expect(stderr).toContain(message);
    expect(code).toBeGreaterThan(0);
  });
});
