/** Servers of one directory at the same time: a window each, of one editor or of two. */
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { connectLines, type LineClient, type PageData, plimsoll, type ToolResult } from "./mcp-clients.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
const opened: LineClient[] = [];
beforeEach(() => {
  sandbox = createSandbox();
  for (const name of ["a", "b"])
    sandbox.write(`${name}.txt`, Array.from({ length: 900 }, (_, line) => `${name} ${line}\n`).join(""));
});
afterEach(() => {
  for (const client of opened.splice(0)) client.child.kill("SIGKILL");
  sandbox.remove();
});

async function start(...args: string[]): Promise<LineClient> {
  const client = connectLines(plimsoll("mcp", ...args), sandbox);
  opened.push(client);
  await client.initialize();
  return client;
}

const dataOf = ({ structuredContent }: ToolResult): PageData => structuredContent!.data;
const linesOf = (result: ToolResult) => dataOf(result).lines as string[];
const read = (client: LineClient, name: string) =>
  client.call("read_file", { path: `${name}.txt`, start_line: 1, budget: 600 });

test("tokens never mix, whoever asks first, and hold after a kill", async () => {
  const clients = { a: await start(), b: await start() };
  const pages = { a: await read(clients.a, "a"), b: await read(clients.b, "b") };
  const tokens = { a: dataOf(pages.a).continuation_token!, b: dataOf(pages.b).continuation_token! };
  expect(tokens.a).not.toBe(tokens.b);
  const next = async (client: LineClient, name: "a" | "b") =>
    linesOf(await client.call("next_page", { token: tokens[name] }));
  const expected = { a: await next(clients.a, "a"), b: await next(clients.b, "b") };
  expect(expected.a[0]).toBe(`a ${linesOf(pages.a).length}`);
  expect(expected.b[0]).toBe(`b ${linesOf(pages.b).length}`);
  expect(await next(clients.a, "b")).toEqual(expected.b);
  clients.a.child.kill("SIGKILL");
  await clients.a.exit;
  const again = await start();
  for (const name of ["a", "b"] as const) expect(await next(again, name)).toEqual(expected[name]);
  const { structuredContent } = await again.call("next_page", { token: "offset:5000" });
  expect(structuredContent).toMatchObject({ status: "error", error: { code: "invalid_token" } });
});

test("each has its own account, and no call is lost", async () => {
  const [first, second] = [await start(), await start()];
  await Promise.all([first, second, first, second, second].map((client) => read(client, "a")));
  const status = await Promise.all([first, second].map((client) => client.call("budget_status", {})));
  expect(status.map((each) => dataOf(each).calls)).toEqual([2, 3]);
  await Promise.all([first.end(), second.end()]);
  const { stdout } = await sandbox.call(["session", "list", "--json"]);
  const sessions = JSON.parse(stdout) as { id: string; calls: number }[];
  expect(sessions.map(({ calls }) => calls).sort()).toEqual([2, 3]);
  const [base] = sessions.map(({ id }) => id).sort();
  expect(sessions.map(({ id }) => id).sort()).toEqual([base, `${base}.2`]);
  const busier = sessions.find(({ calls }) => calls === 3)!.id;
  const report = await sandbox.call(["session", "show", busier, "--view", "minimal", "--json"]);
  expect(JSON.parse(report.stdout)).toEqual({ steps: 3, last_result: expect.stringContaining("Read a.txt") });
});

test("with hints in the schemas the list tells the budget, and says when it changed", async () => {
  const client = await start("--hints", "schema", "--store", join(sandbox.cwd, "s.db"));
  const description = async (): Promise<string> => {
    const { result } = await client.request("tools/list");
    const { tools } = result as unknown as { tools: { name: string; description: string }[] };
    return tools.find(({ name }) => name === "read_file")!.description;
  };
  const before = await description();
  expect(before).toMatch(/Current budget allows ~\d+ KB\./);
  const page = await read(client, "a");
  expect(dataOf(page).budget_note).not.toContain("Current budget allows");
  expect(await description()).not.toBe(before);
  expect(client.lines.some((line) => line.includes("notifications/tools/list_changed"))).toBe(true);
});
