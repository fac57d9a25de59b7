/** Calls that a client makes side by side, through the official client over real stdio. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  connectLines,
  joinItems,
  type LineClient,
  officialClients,
  type PageData,
  plimsoll,
  type TestClient,
  type ToolResult,
} from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const filesystem = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", import.meta.url),
);
const [, connect] = officialClients[1]!;

const linesOf = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `line ${index} `.padEnd(90, "words "));
const dataOf = ({ content }: ToolResult): PageData => (JSON.parse(content[0]!.text) as { data: PageData }).data;

let sandbox: Sandbox;
const opened: LineClient[] = [];
beforeAll(() => {
  sandbox = createSandbox();
  for (let file = 0; file < 10; file += 1) {
    sandbox.write(`small-${file}.txt`, `${linesOf(60).join("\n")}\n`);
    sandbox.write(`large-${file}.txt`, `${linesOf(2_000).join("\n")}\n`);
  }
});
afterAll(() => {
  for (const client of opened) client.child.kill("SIGKILL");
  sandbox.remove();
});

const names = (kind: string): string[] => Array.from({ length: 10 }, (_, file) => `${kind}-${file}.txt`);

/** Ten calls in one write, so that all have begun before the first is answered, however busy the machine is. */
async function callAtOnce(args: readonly string[], callOf: (file: number) => object) {
  const client = connectLines(plimsoll(...args), sandbox);
  opened.push(client);
  await client.initialize();
  const ids = Array.from({ length: 10 }, (_, file) => 100 + file);
  const messages = ids.map((id, file) => ({
    jsonrpc: "2.0",
    id,
    method: "tools/call",
    params: callOf(file),
  }));
  client.write(messages.map((message) => `${JSON.stringify(message)}\n`).join(""));
  const answers = () => client.lines.map((line) => JSON.parse(line) as Answer).filter(({ id }) => ids.includes(id));
  await expect.poll(() => answers().length, { timeout: 20_000 }).toBe(10);
  return { client, results: ids.map((id) => answers().find((answer) => answer.id === id)!.result) };
}

interface Answer {
  readonly id: number;
  readonly result: ToolResult;
}

describe("mcp", () => {
  let client: TestClient;
  const read = (paths: readonly string[]) => Promise.all(paths.map((path) => client.call("read_file", { path })));
  beforeAll(async () => {
    client = await connect(sandbox, ["mcp", "--format", "json"]);
  });
  afterAll(() => client.close());

  test("ten results of 60 lines come back whole", async () => {
    const results = await read(names("small"));
    expect(results.map((result) => dataOf(result).returned)).toEqual(Array(10).fill(60));
  });

  test("a large result beside small ones is as large as alone", async () => {
    const [alone] = await read(["large-0.txt"]);
    const [large, ...rest] = await read(["large-0.txt", ...names("small").slice(1)]);
    // A page also has a random token, which may take the room of one line more.
    expect(Math.abs(dataOf(large!).returned - dataOf(alone!).returned)).toBeLessThanOrEqual(1);
    expect(rest.map((result) => dataOf(result).returned)).toEqual(Array(9).fill(60));
  });

  test("ten large results have a fair share each, and fit the tier together", { tags: ["deep"] }, async () => {
    const { client: lines, results } = await callAtOnce(["mcp", "--format", "json", "--total", "100000"], (file) => ({
      name: "read_file",
      arguments: { path: `large-${file}.txt` },
    }));
    const returned = results.map((result) => dataOf(result).returned);
    expect(Math.max(...returned) - Math.min(...returned)).toBeLessThan(15);
    expect(Math.min(...returned)).toBeGreaterThan(80);
    const status = dataOf(await lines.call("budget_status", {})) as unknown as {
      used: Record<string, number>;
    };
    expect(status.used.tool_results).toBeLessThanOrEqual(40_000);
    expect(status.used.tool_results).toBeGreaterThan(36_000);
  });
});

describe("wrap", () => {
  let client: TestClient;
  const read = (paths: readonly string[]) =>
    Promise.all(paths.map((path) => client.call("read_text_file", { path: join(sandbox.cwd, path) })));
  const wrapped = (...flags: string[]): string[] => [
    ...["mcp", "wrap", "--format", "json", ...flags],
    ...["--", process.execPath, filesystem, sandbox.cwd],
  ];
  const isPage = ({ content }: ToolResult): boolean => content[0]!.text.startsWith('{"status"');
  beforeAll(async () => {
    client = await connect(sandbox, wrapped());
  });
  afterAll(() => client.close());

  test("ten results of 60 lines pass as they came", async () => {
    const results = await read(names("small"));
    for (const { content } of results) expect(content[0]!.text).toBe(`${linesOf(60).join("\n")}\n`);
  });

  test("ten large results have a fair share each, and fit the tier together", async () => {
    const { client: lines, results } = await callAtOnce(wrapped("--total", "100000"), (file) => ({
      name: "read_text_file",
      arguments: { path: join(sandbox.cwd, `large-${file}.txt`) },
    }));
    expect(results.every(isPage)).toBe(true);
    const returned = results.map((result) => dataOf(result).returned);
    expect(Math.max(...returned) - Math.min(...returned)).toBeLessThan(15);
    expect(Math.min(...returned)).toBeGreaterThan(80);
    // Alone each would have twice as many: then they would be twice the tier together.
    expect(Math.max(...returned)).toBeLessThan(160);
    const pages = [results[9]!];
    for (let token = dataOf(pages[0]!).continuation_token; token !== undefined; ) {
      pages.push(await lines.call("next_page", { token }));
      token = dataOf(pages.at(-1)!).continuation_token;
    }
    expect(joinItems(pages.map(dataOf), "content_lines")).toEqual([...linesOf(2_000), ""]);
  });

  test("a large result beside small ones is as large as alone", async () => {
    const [alone] = await read(["large-0.txt"]);
    const [large, ...rest] = await read(["large-0.txt", ...names("small").slice(1)]);
    // A page also has a random token, which may take the room of one line more.
    expect(Math.abs(dataOf(large!).returned - dataOf(alone!).returned)).toBeLessThanOrEqual(1);
    expect(rest.some(isPage)).toBe(false);
  });
});
