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
  const client = connectLines(plimsoll("mcp", "--format", "json", ...args), sandbox);
  opened.push(client);
  await client.initialize();
  return client;
}

const dataOf = ({ structuredContent }: ToolResult): PageData => structuredContent!.data;
const linesOf = (result: ToolResult) => dataOf(result).lines as string[];
const read = (client: LineClient, name: string) =>
  client.call("read_file", { path: `${name}.txt`, start_line: 1, budget: 600 });

test("tokens never mix, whoever asks first, and hold after a kill", { tags: ["deep"] }, async () => {
  const clients = { a: await start(), b: await start() };
  const pages = { a: await read(clients.a, "a"), b: await read(clients.b, "b") };
  const tokens = { a: dataOf(pages.a).continuation_token!, b: dataOf(pages.b).continuation_token! };
  expect(tokens.a).not.toBe(tokens.b);
  const next = async (client: LineClient, name: "a" | "b") =>
    linesOf(await client.call("next_page", { token: tokens[name] }));
  const expected = { a: await next(clients.a, "a"), b: await next(clients.b, "b") };
  expect(expected.a[0]).toBe(`a ${linesOf(pages.a).length}`);
  expect(expected.b[0]).toBe(`b ${linesOf(pages.b).length}`);
  // A page also has a new random token, which may take more tokens than the last one and leave room for one line less.
  const expectSame = (lines: readonly string[], name: "a" | "b"): void => {
    const shared = Math.min(lines.length, expected[name].length);
    expect(lines.slice(0, shared)).toEqual(expected[name].slice(0, shared));
    expect(Math.abs(lines.length - expected[name].length)).toBeLessThanOrEqual(1);
  };
  expectSame(await next(clients.a, "b"), "b");
  clients.a.child.kill("SIGKILL");
  await clients.a.exit;
  const again = await start();
  for (const name of ["a", "b"] as const) expectSame(await next(again, name), name);
  const { structuredContent } = await again.call("next_page", { token: "offset:5000" });
  expect(structuredContent).toMatchObject({ status: "error", error: { code: "invalid_token" } });
});

test("each has its own account, and no call is lost", { tags: ["deep"] }, async () => {
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

const statusOf = async (client: LineClient) => dataOf(await client.call("budget_status", {}));

test("servers with one --session have one account, also after a restart", async () => {
  const [first, second] = [await start("--session", "x"), await start("--session", "x")];
  await Promise.all([first, second, first, second, second].map((client) => read(client, "a")));
  const [one, two] = [await statusOf(first), await statusOf(second)];
  expect(one).toMatchObject({ session: "x", calls: 5, total_steps: 5 });
  expect(two).toEqual(one);
  await Promise.all([first.end(), second.end()]);
  const third = await start("--session", "x");
  expect(await statusOf(third)).toEqual(one);
  await third.call("budget_status", { reset: true });
  expect(await statusOf(third)).toMatchObject({ delivered: 0, lifetime: one.delivered });
});

test("servers of one conversation have one account if the client names it", async () => {
  const env = { ...sandbox.env, CLAUDE_CODE_SESSION_ID: "c0ffee" };
  const begin = async (args: readonly string[]) => {
    const client = connectLines(plimsoll("mcp", "--format", "json", ...args), { cwd: sandbox.cwd, env });
    opened.push(client);
    await client.initialize();
    return client;
  };
  const [first, second] = [await begin([]), await begin(["--root", sandbox.home])];
  const page = await read(first, "a");
  await second.call("project_files", {});
  expect(await statusOf(second)).toMatchObject({ session: "claude-code-c0ffee", calls: 2 });
  expect(await statusOf(first)).toMatchObject({ session: "claude-code-c0ffee", calls: 2 });
  // Their results stay apart, although the ids are the same.
  expect(linesOf(await first.call("recall", { id: "r1" }))).toEqual(linesOf(page));
  expect(dataOf(await second.call("recall", { id: "r1" })).lines).toBeUndefined();
});

test("calls that name their conversation have its account, and a new one starts at zero", async () => {
  const client = await start();
  const ask = async (windowId: string, name: string, args: object) => {
    const { result } = await client.request("tools/call", { name, arguments: args, _meta: { windowId } });
    return dataOf(result);
  };
  for (const window of ["t:0", "t:0", "t:1"]) await ask(window, "read_file", { path: "a.txt", budget: 600 });
  expect(await ask("t:0", "budget_status", {})).toMatchObject({ session: "codex-t:0", calls: 2 });
  expect(await ask("t:1", "budget_status", {})).toMatchObject({ session: "codex-t:1", calls: 1 });
});

test("a process of a conversation without a lasting name starts at zero once the others have ended", {
  tags: ["deep"],
}, async () => {
  const begin = async () => {
    const env = { ...sandbox.env, OPENCODE_PID: "77" };
    const client = connectLines(plimsoll("mcp", "--format", "json"), { cwd: sandbox.cwd, env });
    opened.push(client);
    await client.initialize();
    return client;
  };
  const [first, second] = [await begin(), await begin()];
  const { returned } = dataOf(await read(first, "a"));
  expect(returned).toBeGreaterThan(0);
  expect(await statusOf(second)).toMatchObject({ session: "opencode-77", calls: 1 });
  await Promise.all([first.end(), second.end()]);
  const { delivered, lifetime } = await statusOf(await begin());
  expect([delivered, Number(lifetime) > 0]).toEqual([0, true]);
});

const rounds = 12;
const deep = { tags: ["deep"], timeout: 300_000 };

test("no amount is lost or counted twice, although processes are killed in the middle", deep, async () => {
  const file = join(sandbox.cwd, "s.db");
  const args = ["--session", "x", "--store", file, "--total", "100000000"];
  let [asked, answered] = [0, 0];
  for (let round = 0; round < rounds; round += 1) {
    const both = [await start(...args), await start(...args)];
    const calls = Array.from({ length: 24 }, (_, index) => read(both[index % 2]!, "ab"[index % 2]!));
    await Promise.all(calls.slice(0, 4 + round));
    both[round % 2]!.child.kill("SIGKILL");
    const settled = await Promise.allSettled(calls);
    both[(round + 1) % 2]!.child.kill("SIGKILL");
    await Promise.all(both.map(({ exit }) => exit));
    asked += calls.length;
    answered += settled.filter(({ status }) => status === "fulfilled").length;
  }
  const { stdout } = await sandbox.call(["session", "show", "x", "--json", "--store", file]);
  const { calls, delivered, largest } = JSON.parse(stdout) as Counted;
  expect(calls).toBeGreaterThanOrEqual(answered);
  expect(calls).toBeLessThanOrEqual(asked);
  // All pages are equally large, up to the digits of an id and of a token.
  const most = largest[0]!.tokens;
  expect(delivered).toBeLessThanOrEqual(calls * most);
  expect(delivered).toBeGreaterThan(calls * (most - 25));
});

interface Counted {
  readonly calls: number;
  readonly delivered: number;
  readonly largest: readonly { readonly tokens: number }[];
}

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
