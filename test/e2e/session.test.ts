import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createSandbox, mainFile, type Run, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

test.each(["", "list", "show"])("the help of session %s is as pinned", async (name) => {
  const help = await sandbox.call(["session", ...(name === "" ? [] : [name]), "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot(`golden/help-session${name === "" ? "" : `-${name}`}.txt`);
});

type Called = readonly [tool: string, args: object];

interface Server {
  /** Waits for the answer. */
  call(called: Called): Promise<void>;
  end(): Promise<void>;
}

/** The real server, and as much of a client as a call takes. */
async function startServer(args: readonly string[] = []): Promise<Server> {
  const server = spawn(process.execPath, [mainFile, "mcp", "--format", "json", "--counter", "bytes/4", ...args], {
    cwd: sandbox.cwd,
    env: sandbox.env,
    stdio: ["pipe", "pipe", "ignore"],
  });
  let answers = "";
  server.stdout.setEncoding("utf8").on("data", (text: string) => {
    answers += text;
  });
  let asked = 0;
  const ask = async (method: string, params: object): Promise<void> => {
    server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: ++asked, method, params })}\n`);
    while (answers.split("\n").length <= asked) await once(server.stdout, "data");
  };
  const clientInfo = { name: "test", version: "1" };
  await ask("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  return {
    call: ([name, given]) => ask("tools/call", { name, arguments: given }),
    async end() {
      server.stdin.end();
      expect((await once(server, "exit"))[0]).toBe(0);
    },
  };
}

/** Serves the project until the calls are answered, one after the other. */
async function serve(calls: readonly Called[], args: readonly string[] = []): Promise<void> {
  const server = await startServer(args);
  for (const called of calls) await server.call(called);
  await server.end();
}

async function json(args: readonly string[]): Promise<{ code: Run["code"]; value: unknown }> {
  const { code, stdout } = await sandbox.call(["session", ...args, "--json"]);
  return { code, value: JSON.parse(stdout) };
}

const readBig: Called = ["read_file", { path: "big.txt", budget: 2_000 }];

function writeBig(): void {
  sandbox.write("big.txt", Array.from({ length: 5_000 }, (_, index) => `this is line ${index} of a file\n`).join(""));
}

describe("without a session", () => {
  const told = `there is no session in ~/.local/state/plimsoll/state.db yet. A session starts with the first tool call of "plimsoll mcp".`;

  test("the list is empty and no failure, and nothing is created", async () => {
    expect(await sandbox.call(["session", "list"])).toEqual({
      code: 0,
      stdout: "",
      stderr: `plimsoll: ${told}\n`,
    });
    expect(await json(["list"])).toEqual({ code: 0, value: [] });
    expect(existsSync(join(sandbox.home, ".local"))).toBe(false);
  });

  test("there is none to show", async () => {
    expect(await sandbox.call(["session", "show"])).toEqual({
      code: 1,
      stdout: "",
      stderr: `plimsoll: ${told}\n`,
    });
    expect(await json(["show", "mcp-x"])).toEqual({
      code: 1,
      value: { error: expect.objectContaining({ code: "unreadable_input" }) },
    });
    expect(existsSync(join(sandbox.home, ".local"))).toBe(false);
  });

  test("a file that is no store is told and stays as it is", async () => {
    sandbox.write("notes.txt", "mine\n".repeat(1_000));
    const { code, stderr } = await sandbox.call(["session", "list", "--store", "notes.txt"]);
    expect(code).toBe(1);
    expect(stderr).toContain("notes.txt");
    expect(readFileSync(join(sandbox.cwd, "notes.txt"), "utf8")).toBe("mine\n".repeat(1_000));
  });
});

test("a session without a call is not listed, and can be shown by its id", { tags: ["deep"] }, async () => {
  expect((await sandbox.call(["mcp", "wrap", "--", "no-such-server-anywhere"])).code).toBe(2);
  await serve([], ["--session", "unused"]);
  expect(await json(["list"])).toEqual({ code: 0, value: [] });
  expect((await json(["show"])).code).toBe(1);
  await serve([["budget_status", {}]], ["--session", "asked"]);
  expect(await json(["list"])).toEqual({ code: 0, value: [] });
  expect((await json(["show", "asked"])).value).toMatchObject({ id: "asked", calls: 0, workLog: [] });
});

test("a session of the server is listed, and shown with its ledger, work log and largest results", async () => {
  writeBig();
  sandbox.write("a.txt", "alpha\n");
  const calls: Called[] = [readBig, ["read_file", { path: "a.txt" }], ["read_file", { path: "none.txt" }]];
  await serve(calls, ["--total", "100000"]);

  const { value: list } = await json(["list"]);
  const id = expect.stringMatching(/^mcp-project-[0-9a-f]{10}$/);
  const started = expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/);
  expect(list).toEqual([
    { id, started, lastUsed: started, calls: 3, remaining: expect.any(Number), available: expect.any(Number) },
  ]);
  const [line] = list as { id: string; remaining: number }[];

  const { code, value } = await json(["show"]);
  expect(code).toBe(0);
  const report = value as Report;
  const used = report.ledger.tool_results!.used;
  const system = report.ledger.system!.used;
  expect(system).toBeGreaterThan(800);
  expect(system).toBeLessThan(4_000);
  expect(report).toMatchObject({
    id: line!.id,
    ledger: {
      system: { limit: 8_000 },
      history: { used: 0, limit: 12_000 },
      tool_results: { limit: 40_000 },
      user: { used: 0, limit: 10_000 },
      response: { used: 30_000, limit: 30_000 },
    },
    remaining: 100_000 - used - system,
    available: 70_000 - used - system,
    evicted: { count: 0, entries: [] },
  });
  expect(line!.remaining).toBe(report.remaining);
  expect(report.workLog).toHaveLength(3);
  const byPath = (path: string) => report.workLog.find(({ args }) => args.includes(path))!;
  expect(byPath("big.txt").result).toMatch(/^Read big\.txt \(5000 lines, /);
  expect(byPath("none.txt").result).toMatch(/^Failed \(/);
  // The page was asked for with a budget: the largest is at most that, and its id is the one of the work log.
  expect(report.largest[0]).toMatchObject({ id: byPath("big.txt").id, tool: "read_file" });
  expect(report.largest[0]!.tokens).toBeGreaterThan(1_500);
  expect(report.largest[0]!.tokens).toBeLessThanOrEqual(2_000);
  expect(report.largest.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(used);
  expect(await json(["show", line!.id])).toEqual({ code: 0, value: report });

  const text = await sandbox.run(["session", "show", line!.id]);
  expect(text).toMatchObject({ code: 0, stderr: "" });
  expect(text.stdout).toMatch(
    /^system {8}█+░+ +[\d,]+ of {2}8,000\nhistory .*\ntool results {2}█+░+ +[\d,]+ of 40,000\n/m,
  );
  expect(text.stdout).toContain(byPath("big.txt").result);
  expect((await sandbox.run(["session", "list"])).stdout).toMatch(
    /^session +started +last used +calls +left\nmcp-project-\S+ {2}\S+Z {2}\S+Z +3 +[\d,]+\n$/,
  );
});

test("a session without a total shows what was delivered, and no limit", async () => {
  sandbox.write("a.txt", "alpha\n");
  await serve([["read_file", { path: "a.txt" }]]);
  const without = { remaining: "unlimited", available: "unlimited" };
  expect((await json(["list"])).value).toEqual([expect.objectContaining({ calls: 1, ...without })]);
  expect((await json(["show"])).value).toMatchObject({ total: "unlimited", ...without });
  const { stdout } = await sandbox.call(["session", "show"]);
  expect(stdout).toMatch(/\ntool results +\d+ of unlimited\n/);
  expect(stdout).toMatch(/\nno total; \d+ delivered by tools\n/);
  expect((await sandbox.call(["session", "list"])).stdout).toMatch(/ {2}1 +unlimited\n$/);
});

interface Report {
  readonly ledger: Readonly<Record<string, { readonly used: number; readonly limit: number }>>;
  readonly remaining: number;
  readonly workLog: readonly { readonly id: string; readonly args: string; readonly result: string }[];
  readonly evicted: { readonly count: number; readonly entries: readonly { readonly args: string }[] };
  readonly largest: readonly { readonly id: string; readonly tokens: number }[];
}

test("what the work log has no room for is told as evicted", { tags: ["deep"] }, async () => {
  writeBig();
  sandbox.write(
    ".plimsoll/config.yaml",
    "session: { history_max: 200, total: 1000000, tiers: { tool_results: 40000 } }\n",
  );
  const read = (offset: number): Called => ["read_file", { path: "big.txt", offset }];
  await serve(Array.from({ length: 12 }, (_, offset) => read(offset)));
  const report = (await json(["show"])).value as Report;
  // Five pages of 8,000 tokens are current, and of the seven before them the log keeps what 200 tokens hold.
  expect(report.ledger.tool_results!.used).toBeGreaterThan(32_000);
  expect(report.ledger.history!.used).toBeGreaterThan(0);
  expect(report.ledger.history!.used).toBeLessThanOrEqual(200);
  expect(report.evicted.count).toBeGreaterThanOrEqual(3);
  const told = [...report.evicted.entries, ...report.workLog].map(({ args }) => args);
  expect(told).toEqual(Array.from({ length: 12 }, (_, offset) => JSON.stringify(read(offset)[1])));
  const { stdout } = await sandbox.call(["session", "show"]);
  expect(stdout).toMatch(/\nevicted: (the newest 5 of )?\d+; recall gets them\n {2}\w{16} /);
});

describe("of several sessions", () => {
  beforeEach(async () => {
    sandbox.write("a.txt", "alpha\n");
    for (const id of ["first-run", "second-run"]) {
      await serve([["read_file", { path: "a.txt" }]], ["--store", "state.db", "--session", id]);
    }
    sandbox.write("../home/.config/plimsoll/config.yaml", `store: ${join(sandbox.cwd, "state.db")}\n`);
  });

  test("the latest used is shown unless one is named, from the store of the configuration", {
    tags: ["deep"],
  }, async () => {
    const idsOf = (list: unknown): string[] => (list as { id: string }[]).map(({ id }) => id);
    expect(idsOf((await json(["list"])).value)).toEqual(["second-run", "first-run"]);
    expect((await json(["show"])).value).toMatchObject({ id: "second-run" });
    expect((await json(["show", "first-run"])).value).toMatchObject({ id: "first-run" });
    await serve([["read_file", { path: "a.txt" }]], ["--session", "first-run"]);
    const list = (await json(["list"])).value;
    expect(idsOf(list)).toEqual(["first-run", "second-run"]);
    expect((await json(["show"])).value).toMatchObject({ id: "first-run", calls: 2 });
    sandbox.write("src/deep.txt", "x\n");
    const below = await sandbox.call(["session", "list", "--json"], { cwd: join(sandbox.cwd, "src") });
    expect(JSON.parse(below.stdout)).toEqual(list);
  });

  test("one that is not there is wrong usage, with the id that was meant", { tags: ["deep"] }, async () => {
    const { code, stdout, stderr } = await sandbox.call(["session", "show", "frist-run"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe('plimsoll: there is no session "frist-run". Did you mean "first-run"?\n');
    expect((await sandbox.call(["session", "show", "wibble"])).stderr).toBe(
      'plimsoll: there is no session "wibble". See "plimsoll session list".\n',
    );
  });
});

test("a session can be looked at while it is running, and goes on", { tags: ["deep"] }, async () => {
  sandbox.write("a.txt", "alpha\n");
  const server = await startServer();
  await server.call(["read_file", { path: "a.txt" }]);
  expect((await json(["list"])).value).toMatchObject([{ calls: 1 }]);
  await server.call(["read_file", { path: "a.txt" }]);
  expect((await json(["show"])).value).toMatchObject({
    calls: 2,
    workLog: [{ tool: "read_file" }, { tool: "read_file" }],
  });
  await server.end();
});
