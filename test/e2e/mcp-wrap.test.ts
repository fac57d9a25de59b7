import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  connectLines,
  joinItems,
  type LineClient,
  officialClients,
  type PageData,
  plimsoll,
  readPages,
  readTextPages,
  type ToolResult,
} from "./mcp-clients.ts";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

const deep = process.env.PLIMSOLL_DEEP === "1";
const packages = fileURLToPath(new URL("../../node_modules/@modelcontextprotocol/", import.meta.url));
const filesystem = join(packages, "server-filesystem/dist/index.js");
const everything = join(packages, "server-everything/dist/index.js");
const oddServer = fileURLToPath(new URL("mcp-odd-server.mjs", import.meta.url));

let sandbox: Sandbox;
const opened: (() => unknown)[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
  sandbox.remove();
});

function startLines(command: readonly string[]): LineClient {
  const client = connectLines(command, sandbox);
  opened.push(() => client.child.kill("SIGKILL"));
  return client;
}

/** With JSON, whose facts are easier to check. */
const wrapped = (server: readonly string[], flags: readonly string[] = []): string[] =>
  plimsoll("mcp", "wrap", "--format", "json", ...flags, "--", process.execPath, ...server);

async function startOdd(flags: readonly string[] = [], mode = "plain"): Promise<LineClient> {
  const client = startLines(wrapped([oddServer, mode], flags));
  await client.initialize();
  return client;
}

const dataOf = ({ content }: ToolResult): PageData => (JSON.parse(content[0]!.text) as { data: PageData }).data;

interface Asked {
  readonly method: string;
  readonly params?: object;
}

const callOf = (name: string, args: object = {}): Asked => ({
  method: "tools/call",
  params: { name, arguments: args },
});

const small: readonly (readonly [name: string, server: () => string[], asked: readonly Asked[]])[] = [
  [
    "filesystem",
    () => [filesystem, sandbox.cwd],
    [
      { method: "ping" },
      callOf("list_directory", { path: "." }),
      callOf("read_text_file", { path: "file.txt" }),
      callOf("read_media_file", { path: "image.png" }),
      callOf("write_file", { path: "new.txt", content: "new é\u0000 \ud83d\ude00" }),
      callOf("directory_tree", { path: "." }),
      callOf("get_file_info", { path: "file.txt" }),
      callOf("read_text_file", { path: "../out" }),
      callOf("no_such_tool"),
      { method: "no/such/method" },
    ],
  ],
  [
    "everything",
    () => [everything],
    [
      { method: "ping" },
      callOf("echo", { message: 'line one\nline "two" \u2028 é' }),
      callOf("get-sum", { a: 1.5, b: 2e3 }),
      callOf("get-sum", { a: "x" }),
      callOf("get-structured-content", { location: "New York" }),
      callOf("get-annotated-message", { messageType: "error", includeImage: true }),
      callOf("get-tiny-image"),
      callOf("get-resource-links", { count: 3 }),
      callOf("trigger-long-running-operation", { duration: 0.2, steps: 2 }),
      { method: "prompts/list" },
      { method: "prompts/get", params: { name: "simple-prompt" } },
      { method: "resources/list" },
      { method: "resources/templates/list" },
      { method: "logging/setLevel", params: { level: "error" } },
      { method: "resources/read", params: { uri: "no://such/resource" } },
    ],
  ],
];

test.each(deep ? small : small.slice(0, 1))(
  "the lines of the server %s pass byte for byte while results are small",
  async (_name, server, asked) => {
    sandbox.write("file.txt", "some\r\ntext\n");
    sandbox.write("image.png", Buffer.from([0x89, 0x50, 0x4e, 0x47, 1, 2, 3]));
    const converse = async (command: readonly string[]): Promise<string[]> => {
      const client = startLines(command);
      await client.initialize("2025-06-18", "byte-for-byte");
      const answers: string[] = [];
      for (const { method, params } of asked) answers.push(await client.requestLine(method, params));
      await client.end();
      return answers;
    };
    const direct = await converse([process.execPath, ...server()]);
    // What it tells of time changes from run to run: the second direct run shows which answers those are.
    const again = await converse([process.execPath, ...server()]);
    const through = await converse(wrapped(server()));
    const stable = direct.map((line, index) => line === again[index]);
    expect(stable.filter(Boolean).length).toBeGreaterThanOrEqual(asked.length - 1);
    expect(through.filter((_, index) => stable[index])).toEqual(direct.filter((_, index) => stable[index]));
  },
);

describe.each(officialClients.slice(0, deep ? 2 : 1))("%s", (_name, connect) => {
  test("pages a large file of the filesystem server to its end", async () => {
    const text = Array.from({ length: 3_000 }, (_, index) => `line ${index} of the file`).join("\n");
    sandbox.write("large.txt", text);
    const args = [
      "mcp",
      "wrap",
      "--format",
      "json",
      "--per-tool",
      "2000",
      "--",
      process.execPath,
      filesystem,
      sandbox.cwd,
    ];
    const client = await connect(sandbox, args);
    opened.push(client.close);
    const tools = await client.tools();
    expect(tools.slice(-2).map(({ name }) => name)).toEqual(["next_page", "recall"]);
    expect(tools.filter(({ outputSchema }) => outputSchema !== undefined)).toEqual([]);
    const first = await client.call("read_text_file", { path: "large.txt" });
    expect(JSON.parse(first.content[0]!.text)).toEqual(first.structuredContent);
    const pages = await readPages(client, first);
    expect(pages.length).toBeGreaterThan(3);
    expect(joinItems(pages, "content_lines").join("\n")).toBe(text);
    const id = /^\w{16}/.exec(pages[0]!.continuation_token!)![0];
    const again = await client.call("recall", { id, offset: 2_990 });
    expect(again.structuredContent?.data.content_lines).toEqual(text.split("\n").slice(2_990));
  });
});

test("our own server can be wrapped, also for a client without a handshake", { tags: ["deep"] }, async () => {
  for (let index = 0; index < 60; index += 1) sandbox.write(`file-${index}.txt`, "text\n");
  const [, connect] = officialClients[2]!;
  const inner = [process.execPath, mainFile, "mcp", "--format", "json", "--root", "."];
  const client = await connect(sandbox, ["mcp", "wrap", "--format", "json", "--per-tool", "600", "--", ...inner]);
  opened.push(client.close);
  expect((await client.tools()).slice(-2).map(({ name }) => name)).toEqual(["plimsoll_next_page", "plimsoll_recall"]);
  const pages = await readPages(client, await client.call("project_files", { mode: "files" }), "plimsoll_next_page");
  expect(pages.length).toBeGreaterThan(3);
  expect(new Set(joinItems(pages, "files").map((file) => (file as { path: string }).path)).size).toBe(60);
});

test("progress reaches the client", async () => {
  const client = startLines(wrapped([everything]));
  await client.initialize();
  const name = "trigger-long-running-operation";
  const params = { name, arguments: { duration: 0.3, steps: 3 }, _meta: { progressToken: "p" } };
  await client.request("tools/call", params);
  expect(client.lines.filter((line) => line.includes("notifications/progress"))).toHaveLength(3);
});

test("a cancellation reaches the server", { tags: ["deep"] }, async () => {
  const client = await startOdd();
  const params = { name: "no answer", arguments: {} };
  client.write(`${JSON.stringify({ jsonrpc: "2.0", id: 99, method: "tools/call", params })}\n`);
  client.notify("notifications/cancelled", { requestId: 99 });
  expect(await client.end()).toBe(0);
  expect(client.stderr()).toBe("cancelled 99\n");
});

test("lists of structured results are paged by item", async () => {
  const client = await startOdd(["--per-tool", "1000"]);
  const pages = await readPages(client, await client.call("rows", { count: 300 }));
  expect(pages.length).toBeGreaterThan(3);
  expect(joinItems(pages, "rows")).toEqual(
    Array.from({ length: 300 }, (_, index) => ({ index, name: `row ${index}` })),
  );
  expect(pages.every(({ kind, cut }) => kind === "rows" && cut === undefined)).toBe(true);
});

test("a wrapper that was killed between two pages goes on with them after it is started again", {
  tags: ["deep"],
}, async () => {
  const before = await startOdd(["--per-tool", "1000"]);
  const first = await before.call("text", { count: 1_000 });
  before.child.kill("SIGKILL");
  await before.exit;
  const after = await startOdd(["--per-tool", "1000"]);
  const pages = await readPages(after, first);
  expect(joinItems(pages, "lines").join("\n")).toBe("some words\n".repeat(1_000));
});

test("a server that has a tool of our name keeps it, and ours gets another", { tags: ["deep"] }, async () => {
  const client = await startOdd(["--per-tool", "1000"]);
  const { result } = await client.request("tools/list");
  const { tools } = result as unknown as { tools: { name: string }[] };
  expect(tools.slice(-3).map(({ name }) => name)).toEqual(["raw", "plimsoll_next_page", "recall"]);
  expect((await client.call("next_page", { cursor: 1 })).content[0]?.text).toBe('the server\'s own: {"cursor":1}');
  const first = await client.call("text", { count: 500 });
  expect(joinItems(await readPages(client, first, "plimsoll_next_page"), "lines")).toHaveLength(501);
});

test("rules of the configuration are for tools of the server, too", async () => {
  sandbox.write(".plimsoll/config.yaml", "session: { per_tool_call: 1000, tools: { rows: 20000 } }\n");
  const client = await startOdd();
  expect(dataOf(await client.call("text", { count: 1_000 })).truncated).toBe(true);
  expect((await client.call("rows", { count: 300 })).structuredContent).toMatchObject({ kind: "rows" });
});

test("odd lines pass as they are, in both directions", { tags: ["deep"] }, async () => {
  const client = await startOdd([], "garbage");
  const lines = ["", " ", "[1,2]", "null", '{"id":7}', '{"id":7,"result":null}', "}{", '"\\ud800"', "é".repeat(9)];
  await client.call("raw", { lines });
  expect(client.lines.slice(0, 3)).toEqual(["Welcome to the odd server!", "", "{not json}"]);
  expect(client.lines.slice(4, -1)).toEqual(lines);
  expect(await client.end()).toBe(5);
});

test("what the server writes on stderr comes out as it is", { tags: ["deep"] }, async () => {
  const client = await startOdd();
  await client.call("stderr", { text: "a word\nhalf a line" });
  expect(await client.end()).toBe(0);
  expect(client.stderr()).toBe("a word\nhalf a line");
});

test("a server that crashes is there again, and its open calls get the reason", async () => {
  const client = await startOdd();
  for (const [tool, code] of [
    ["die", 42],
    ["partial", 6],
  ] as const) {
    const { error } = await client.request("tools/call", { name: tool, arguments: { code } });
    expect(error).toEqual({
      code: -32_000,
      message: expect.stringMatching(
        new RegExp(`^The server ".*mcp-odd-server.mjs" has ended with exit code ${code}\\. It was started again`),
      ),
    });
    expect((await client.call("text", { count: 1 })).content[0]!.text).toBe("some words\n");
  }
  expect(client.lines.filter((line) => line.includes("serverInfo"))).toHaveLength(1);
  expect(await client.end()).toBe(0);
});

test("a server that crashes again and again ends the wrapper with its exit code", { tags: ["deep"] }, async () => {
  const client = await startOdd();
  const messages: unknown[] = [];
  for (let crash = 0; crash < 4; crash += 1) {
    messages.push((await client.request("tools/call", { name: "die", arguments: { code: 42 } })).error);
  }
  expect(messages.at(-1)).toMatchObject({ message: expect.stringMatching(/has ended with exit code 42\.$/) });
  expect(await client.exit).toBe(42);
});

test("signals reach the server, and its end is the wrapper's", { tags: ["deep"] }, async () => {
  const client = await startOdd();
  client.child.kill("SIGTERM");
  expect(await client.exit).toBe(33);
  expect(client.stderr()).toContain("got SIGTERM");
  const killed = startLines(plimsoll("mcp", "wrap", "--", "sh", "-c", "kill -9 $$"));
  expect(await killed.exit).toBe(137);
});

test("a signal ends the wrapper also where the server is gone and left something behind", {
  tags: ["deep"],
}, async () => {
  const client = startLines(plimsoll("mcp", "wrap", "--", "sh", "-c", "sleep 60 2>&- & echo $!; exit 3"));
  await expect.poll(() => client.lines.length, { timeout: 10_000 }).toBe(1);
  opened.push(() => process.kill(Number(client.lines[0])));
  client.child.kill("SIGTERM");
  expect(await client.exit).toBe(3);
});

test("a client that reads no more ends the wrapper and its server, also while it holds its stdin", {
  tags: ["deep"],
}, async () => {
  const client = await startOdd([], "garbage");
  client.child.stdout.destroy();
  client.request("tools/list").catch(() => {});
  expect(await client.exit).toBe(5);
});

test("empty arguments reach the server, but for its own name", async () => {
  const script = 'test "$#" = 3 && test -z "$2" && exit 9';
  expect(await startLines(plimsoll("mcp", "wrap", "--", "sh", "-c", script, "sh", "a", "", "")).exit).toBe(9);
  const { code, stderr } = await sandbox.call(["mcp", "wrap", "--", ""]);
  expect({ code, stderr }).toEqual({
    code: 2,
    stderr: expect.stringContaining("the command of the server is empty"),
  });
});

test("a server that cannot be started is wrong usage", async () => {
  const { code, stdout, stderr } = await sandbox.run(["mcp", "wrap", "--", "no-such-server-anywhere"]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  expect(stderr).toContain("the server no-such-server-anywhere cannot be started: it was not found");
});

test("a result of many megabytes becomes a page, and small ones still pass", {
  tags: ["deep"],
  timeout: 120_000,
}, async () => {
  const megabytes = deep ? 100 : 10;
  const client = await startOdd();
  const count = Math.ceil((megabytes * 1_000_000) / "some words\n".length);
  const data = dataOf(await client.call("text", { count }));
  expect(data).toMatchObject({ total: count + 1, truncated: true, offset: 0 });
  const token = data.continuation_token!.replace(/\d+$/, String(count - 10));
  expect(dataOf(await client.call("next_page", { token })).lines).toEqual([...Array(10).fill("some words"), ""]);
  expect((await client.call("text", { count: 2 })).content[0]?.text).toBe("some words\nsome words\n");
  if (process.platform === "linux") {
    const status = readFileSync(`/proc/${client.child.pid}/status`, "utf8");
    const peakMegabytes = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
    expect(peakMegabytes).toBeGreaterThan(10);
    expect(peakMegabytes).toBeLessThan(deep ? 1_000 : 250);
  }
});

describe("as text", () => {
  const startText = async (name = "lines", flags: readonly string[] = ["--per-tool", "1000"]): Promise<LineClient> => {
    const client = startLines(plimsoll("mcp", "wrap", ...flags, "--", process.execPath, oddServer));
    await client.initialize("2025-06-18", name);
    return client;
  };

  test("a list of like objects is rows below their names, lines of JSON are as they are, and pages have all of them", async () => {
    const client = await startText();
    const pages = await readTextPages(client, { name: "rows", args: { count: 300 } });
    expect(pages.length).toBeGreaterThan(1);
    expect(pages.every(({ result }) => result.structuredContent === undefined)).toBe(true);
    const rows = pages.flatMap(({ body }) => body.split("\n").slice(2));
    expect(pages[1]!.body.split("\n").slice(0, 2)).toEqual(['{"kind":"rows"}', "index,name"]);
    expect(rows).toEqual(Array.from({ length: 300 }, (_, index) => `${index},row ${index}`));

    const lines = Array.from({ length: 400 }, (_, index) => JSON.stringify({ index, text: `a "word"`, list: [index] }));
    const others = await readTextPages(client, { name: "blocks", args: { texts: [lines.join("\n")] } });
    expect(others.length).toBeGreaterThan(3);
    expect(others.map(({ body }) => body).join("\n")).toBe(lines.join("\n"));
  });

  test("Claude Code gets a short preview, and every page after it", async () => {
    const client = await startText("claude-code", []);
    const pages = await readTextPages(client, { name: "rows", args: { count: 5_000 } });
    const [preview, ...others] = pages.map(({ result }) => result.content[0]!.text);
    expect(Buffer.byteLength(preview!)).toBeLessThanOrEqual(2_048);
    expect(preview).toMatch(/^columns: index, name\nother keys: kind\n\{"index":0,"name":"row 0"\}\n/);
    expect(preview).toMatch(
      /\n\[preview of 5,000 rows, 163 kB; next: next_page token=\w{16}:offset:0.* · id \w{16}\]$/,
    );
    const rows = others.flatMap((text) => text.split("\n").filter((line) => /^\d/.test(line)));
    expect(rows).toEqual(Array.from({ length: 5_000 }, (_, index) => `${index},row ${index}`));
    // One long line of wide characters has a short preview as well.
    const { content } = await client.call("blocks", { texts: ["語".repeat(60_000)] });
    expect(Buffer.byteLength(content[0]!.text)).toBeLessThanOrEqual(2_048);
    expect(content[0]!.text).toMatch(/^語+…\n\[preview of 1 lines, 180 kB; /);
  });
});

test("calls at once are all answered", { tags: ["deep"] }, async () => {
  mkdirSync(join(sandbox.cwd, "data"));
  writeFileSync(join(sandbox.cwd, "data", "large.txt"), "some words\n".repeat(5_000));
  const client = startLines(wrapped([filesystem, sandbox.cwd], ["--per-tool", "1000"]));
  await client.initialize();
  const count = deep ? 200 : 20;
  const results = await Promise.all(
    Array.from({ length: count }, (_, index) =>
      index % 2 === 0
        ? client.call("read_text_file", { path: "data/large.txt" })
        : client.call("list_directory", { path: "data" }),
    ),
  );
  results.forEach((result, index) => {
    if (index % 2 === 0) expect(dataOf(result).truncated).toBe(true);
    else expect(result.content[0]?.text).toBe("[FILE] large.txt");
  });
});
