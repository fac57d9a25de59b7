import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connectLines, type LineClient, plimsoll, type ToolResult } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

const oddServer = fileURLToPath(new URL("mcp-odd-server.mjs", import.meta.url));
/** About 1,300 tokens. */
const source = Array.from({ length: 80 }, (_, n) => `export const value${n} = compute(${n * 7}, "name ${n}");`).join(
  "\n",
);

let sandbox: Sandbox;
const opened: LineClient[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => {
  for (const { child } of opened.splice(0)) child.kill("SIGKILL");
  sandbox.remove();
});

async function start(flags: readonly string[]): Promise<(name: string, args: object) => Promise<string>> {
  const client = connectLines(plimsoll("mcp", "wrap", ...flags, "--", process.execPath, oddServer), sandbox);
  opened.push(client);
  await client.initialize();
  return async (name, args) => {
    const { result } = (await client.request("tools/call", { name, arguments: args })) as { result: ToolResult };
    return result.content[0]?.text ?? "";
  };
}

test("a result that repeats an earlier one is a note, and recall returns the whole text or lines of it", async () => {
  const call = await start(["--intake"]);
  expect(await call("blocks", { texts: [source] })).toBe(source);
  const note = await call("blocks", { texts: [source], again: true });
  expect(note).toMatch(
    /^\[[a-z2-7]{4}: Same text as the result of blocks.* above \(80 lines, .*\)\. To print it again: recall with id [a-z2-7]{16}\]$/,
  );
  const id = /id ([a-z2-7]{16})/.exec(note)?.[1] ?? "";
  expect(await call("recall", { id })).toContain(source);
  expect(await call("recall", { id, lines: "3-4" })).toContain("3:export const value2 ");
  expect(await call("recall", { id, pattern: "value7\\d" })).toContain("71:export const value70 ");
  const delta = await call("blocks", { texts: [`${source}\n// one more`] });
  expect(delta).toContain("// one more");
  expect(delta).not.toContain("value40");
});

test("without the option, results pass as they are", async () => {
  const call = await start([]);
  for (let round = 0; round < 2; round++) expect(await call("blocks", { texts: [source] })).toBe(source);
});

test("a result does not refer to one of which the client has only a page", async () => {
  const call = await start(["--intake", "--per-tool", "1000"]);
  const long = Array.from({ length: 400 }, (_, n) => `line ${n} of a long text ${n * 31}`).join("\n");
  expect(await call("blocks", { texts: [long] })).toContain("next:");
  const part = long.split("\n").slice(300, 330).join("\n");
  expect(await call("blocks", { texts: [part] })).toBe(part);
});

test("results of parallel calls do not refer to each other", async () => {
  const call = await start(["--intake"]);
  const both = await Promise.all([1, 2].map((number) => call("blocks", { texts: [source], number })));
  expect(both).toEqual([source, source]);
  expect(await call("blocks", { texts: [source], number: 3 })).toMatch(/^\[[a-z2-7]{4}: Same text/);
});

test("structured content that is the same text is shortened with it, once", async () => {
  sandbox.write("source.ts", source);
  const server = fileURLToPath(
    new URL("../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", import.meta.url),
  );
  const command = plimsoll("mcp", "wrap", "--intake", "--", process.execPath, server, sandbox.cwd);
  const client = connectLines(command, sandbox);
  opened.push(client);
  await client.initialize();
  const read = () => client.call("read_text_file", { path: join(sandbox.cwd, "source.ts") });
  const first = await read();
  expect(first).toMatchObject({ content: [{ text: source }], structuredContent: { content: source } });
  const second = await read();
  expect(second.content[0]!.text).toMatch(/^\[[a-z2-7]{4}: Same text as the result of read_text_file/);
  expect(second.structuredContent).toBeUndefined();
});
