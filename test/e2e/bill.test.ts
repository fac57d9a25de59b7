import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadDriver } from "../../src/host/store/sqlite-driver.ts";
import { generateBilledSession } from "../generate/billed-sessions.ts";
import { createClaudeCodeRecorder } from "../generate/claude-code-recording.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

// The driver of the store, because some commands run in this process.
const Database = await loadDriver();

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

const claude = generateBilledSession({ seed: 11, agent: "claude-code", calls: 40 });
const codex = generateBilledSession({ seed: 12, agent: "codex", calls: 30 });

function record(path: string, text: string): string {
  const file = join(sandbox.home, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

function recordBoth(): string {
  record(`.codex/sessions/2026/10/01/rollout-${codex.session}.jsonl`, codex.text);
  return record(`.claude/projects/one/${claude.session}.jsonl`, claude.text);
}

async function billJson(...args: string[]) {
  const { code, stdout, stderr } = await sandbox.call(["bill", ...args, "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

test("the help is as pinned", async () => {
  const { code, stdout } = await sandbox.call(["bill", "--help"]);
  expect(code).toBe(0);
  await expect(stdout).toMatchFileSnapshot("golden/help-bill.txt");
});

test("a HOME without recordings gets a message that says where it looked", async () => {
  const { code, stdout, stderr } = await sandbox.run(["bill"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("no agent has recorded sessions here yet");
  expect(stderr).toContain("~/.claude/projects");
});

test("a wrong path gets a reason in words, as a person wrote the path", async () => {
  const { code, stdout, stderr } = await sandbox.run(["bill", "missing.jsonl"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("plimsoll: missing.jsonl: no such file or directory\n");
});

describe("sums", () => {
  test("of the usual places equal what was billed, and each grouping has the same total", async () => {
    recordBoth();
    const expected = {
      calls: 70,
      read: claude.totals.read + codex.totals.read,
      output: claude.totals.output + codex.totals.output,
      uncached: claude.totals.uncached + codex.totals.uncached,
    };
    for (const by of ["day", "week", "month", "project", "session", "model", "agent", "tool"]) {
      const { rows, total } = await billJson("--by", by);
      expect(total, by).toMatchObject(expected);
      const sum = (name: string) =>
        rows.reduce((all: number, row: Record<string, number>) => all + (row[name] ?? 0), 0);
      expect({ calls: sum("calls"), read: sum("read"), output: sum("output") }, by).toMatchObject({
        ...{ calls: 70, read: expected.read, output: expected.output },
      });
      expect(sum("usd")).toBeCloseTo(total.usd, 4);
    }
  });

  test("count a fork once, and skip and count damaged lines", async () => {
    const recorder = createClaudeCodeRecorder({ sessionId: "first" });
    recorder.says("Look.");
    recorder.answers("Looking.", "call-1");
    recorder.results("call-1");
    recorder.answers("Done.");
    const fork = recorder.fork("second");
    fork.says("More.");
    fork.answers("More.");
    const lines = (each: typeof recorder) => each.lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    record(".claude/projects/p/first.jsonl", `${lines(recorder)}{"type":"assistant","mess\n\u0000\n`);
    record(".claude/projects/p/second.jsonl", lines(fork));
    const { total, recordings } = await billJson();
    expect(total.calls).toBe(3);
    expect(recordings).toMatchObject({ files: 2, damagedLines: 2 });
  });

  /** A session with a line that is too long, zeros from a crash, and a last line that was cut off. */
  function recordLongLine(megabytes: number): void {
    const [first = "", ...rest] = claude.text.trimEnd().split("\n");
    const file = record(".claude/projects/p/long.jsonl", `${first}\n{"type":"user","message":{"content":"`);
    for (let written = 0; written < megabytes; written++) appendFileSync(file, "x".repeat(1_000_000));
    appendFileSync(file, `"}}\n${"\0".repeat(5000)}\n${rest.join("\n")}\n{"type":"assistant","mess`);
  }

  test("skip and count a line that is too long, and continue after it", async () => {
    recordLongLine(34);
    const { total, recordings } = await billJson();
    expect({ calls: total.calls, read: total.read }).toEqual({ calls: 40, read: claude.totals.read });
    expect(recordings.damagedLines).toBe(2);
    // A last line that is too long is not read again on each run.
    const file = join(sandbox.home, ".claude/projects/p/long.jsonl");
    appendFileSync(file, "y".repeat(34_000_000));
    expect((await billJson()).recordings.damagedLines).toBe(3);
    expect((await billJson()).recordings).toMatchObject({ damagedLines: 3, bytesRead: 0 });
  });

  test("a line of 600 MB takes less than 400 MB of memory", { tags: ["deep"] }, async () => {
    recordLongLine(600);
    // Not `maxRSS`, which begins with what the process that started this one had.
    const own = "/VmHWM:\\s+(\\d+)/.exec(fs.readFileSync('/proc/self/status','utf8'))[1]";
    const peak = process.platform === "linux" ? own : "process.resourceUsage().maxRSS";
    const hook = `import fs from 'node:fs';process.on('exit',()=>process._rawDebug('peak '+${peak}))`;
    const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };
    const { code, stdout, stderr } = await sandbox.run(["bill", "--json"], { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout).recordings.damagedLines).toBe(2);
    expect(Number(/peak (\d+)/.exec(stderr)?.[1]) / 1024).toBeLessThan(400);
  });

  test("leave out other days and projects", async () => {
    recordBoth();
    const { rows } = await billJson("--by", "day");
    const [{ key: first }, last] = [rows[0], rows.at(-1)];
    const early = await billJson("--until", first);
    const late = await billJson("--since", last.key, "--project", "codex");
    expect(early.rows.map(({ key }: { key: string }) => key)).toEqual([first]);
    expect(late.total.calls).toBeLessThan(70);
    expect((await billJson("--project", "CODEX")).total.calls).toBe(30);
    const wrong = await sandbox.call(["bill", "--since", "yesterday"]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain("2026-11-01");
  });

  test("list a model without a price of its own, and leave it out of the dollars", async () => {
    record(".claude/projects/p/a.jsonl", claude.text.replaceAll("claude-opus-5", "claude-novel-9"));
    const { total, unpriced } = await billJson();
    expect(unpriced).toMatchObject([{ model: "claude-novel-9", usd: 0 }]);
    expect(unpriced[0].calls).toBeGreaterThan(0);
    expect(total.unpriced).toBe(unpriced[0].calls);
    const text = await sandbox.call(["bill"]);
    expect(text.stdout).toContain("no price of its own: claude-novel-9");
  });

  test("as CSV quote what has a comma, and start no formula", async () => {
    record(".claude/projects/p/a.jsonl", claude.text.replaceAll(/"cwd":"[^"]*"/g, '"cwd":"=A1,\\"b"'));
    const { stdout } = await sandbox.call(["bill", "--by", "project", "--csv"]);
    expect(stdout.split("\n")[0]).toBe("project,calls,input_fresh,write_5m,write_1h,read,output,usd");
    expect(stdout.split("\n")[1]).toMatch(/^"'=A1,""b",40,/);
  });
});

test("a session of gemini-cli belongs to the project that its folder names", async () => {
  const tokens = { input: 2000, cached: 0, output: 20, thoughts: 0, tool: 0, total: 2020 };
  const about = { id: "a", timestamp: "2026-11-01T09:00:00.000Z", type: "gemini", content: "Done." };
  const lines = [
    { sessionId: "one", projectHash: "abc", kind: "main" },
    { ...about, tokens, model: "gemini-2.5-pro" },
  ];
  record(".gemini/tmp/shop/chats/session-one.jsonl", lines.map((line) => JSON.stringify(line)).join("\n"));
  const project = async () => (await billJson("--by", "project", "--no-index")).rows[0].key;
  expect(await project()).toBe(join(sandbox.home, ".gemini/tmp/shop"));
  record(".gemini/tmp/shop/.project_root", "/repo/shop\n");
  expect(await project()).toBe("/repo/shop");
});

test("what a link beside a recording leads to is not shown, and a pipe there is not waited for", async () => {
  const about = { id: "a", timestamp: "2026-11-01T09:00:00.000Z", type: "gemini", content: "Done." };
  const line = { ...about, tokens: { input: 2000, output: 20, total: 2020 }, model: "gemini-2.5-pro" };
  const folder = join(sandbox.cwd, "runs/shop");
  sandbox.write("runs/shop/chats/session-one.jsonl", `${JSON.stringify({ sessionId: "one", projectHash: "a" })}\n`);
  appendFileSync(join(folder, "chats/session-one.jsonl"), JSON.stringify(line));
  sandbox.write("../home/.ssh/id", "planted secret\n");
  const bill = async (...paths: string[]) =>
    (await sandbox.call(["bill", ...paths, "--by", "project", "--no-index", "--html", "bill.html", "--json"])).stdout;
  const link = join(folder, ".project_root");
  symlinkSync("../../../home/.ssh/id", link);
  for (const path of ["runs", "runs/shop/chats", "runs/shop/chats/session-one.jsonl"]) {
    expect(JSON.parse(await bill(path)).rows[0].key).toBe(folder);
    expect(readFileSync(join(sandbox.cwd, "bill.html"), "utf8")).not.toContain("planted secret");
  }
  rmSync(link);
  execFileSync("mkfifo", [link]);
  expect(JSON.parse(await bill("runs")).rows[0].key).toBe(folder);
  rmSync(link);
  sandbox.write("runs/shop/.project_root", "-----BEGIN\nkey\n");
  expect(JSON.parse(await bill("runs")).rows[0].key).toBe(folder);
});

test("a hostile name stays in its cell of the CSV, and controls no terminal", async () => {
  const hostile = JSON.stringify("/repo/\u001b[2Jx\n=cmd\u202e").slice(1, -1);
  record(".claude/projects/p/a.jsonl", claude.text.replaceAll(/"cwd":"[^"]*"/g, `"cwd":"${hostile}"`));
  const { stdout } = await sandbox.call(["bill", "--by", "project", "--csv"]);
  const [, row, ...rest] = stdout.split("\n");
  expect(rest).toEqual([""]);
  expect(row).toMatch(/^\/repo\/\\x1b\[2Jx\\n=cmd\\u202e,40,/);
});

describe("the index", () => {
  const state = () => join(sandbox.home, ".local/state/plimsoll/recordings");

  test("lets the next run read only what is new, and may be deleted or damaged", async () => {
    const file = recordBoth();
    const first = await billJson();
    expect(first.recordings.bytesRead).toBeGreaterThan(100_000);
    const second = await billJson();
    expect(second).toEqual({ ...first, recordings: { ...first.recordings, bytesRead: 0 } });
    const more = generateBilledSession({ seed: 11, agent: "claude-code", calls: 41 }).text.slice(claude.text.length);
    appendFileSync(file, more);
    const third = await billJson();
    expect(third.total.calls).toBe(71);
    expect(third.recordings.bytesRead).toBeLessThan(more.length + 100);
    const [name = ""] = readdirSync(state());
    writeFileSync(join(state(), name), '{"path":\nnonsense');
    expect((await billJson()).total).toEqual(third.total);
    rmSync(state(), { recursive: true });
    expect({ ...(await billJson()), recordings: {} }).toEqual({ ...third, recordings: {} });
  });

  test("is not written with --no-index", async () => {
    recordBoth();
    await billJson("--no-index");
    expect(existsSync(state())).toBe(false);
  });

  test("a file that was replaced is read again", async () => {
    const file = recordBoth();
    await billJson();
    writeFileSync(file, generateBilledSession({ seed: 99, agent: "claude-code", calls: 60 }).text);
    expect((await billJson()).total.calls).toBe(90);
  });
});

test("the table names causes, and hostile names stay on their line", async () => {
  const hostile = JSON.stringify("/repo/\u001b[2Jx\nforged").slice(1, -1);
  record(".claude/projects/p/a.jsonl", claude.text.replaceAll(/"cwd":"[^"]*"/g, `"cwd":"${hostile}"`));
  const { code, stdout } = await sandbox.run(["bill", "--by", "project"]);
  expect(code).toBe(0);
  expect(stdout).toContain("Cache losses:");
  for (const { cause } of claude.planted) expect(stdout).toContain(cause);
  expect(stdout).not.toContain("\u001b[2J");
  expect(stdout).not.toMatch(/^forged/m);
});

test("the sessions of opencode's database are simulated, each with its own messages", async () => {
  const path = record(".local/share/opencode/opencode.db", "");
  const database = new Database(path);
  database.exec("CREATE TABLE session (id TEXT, directory TEXT, parent_id TEXT, time_created INTEGER)");
  database.exec("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)");
  database.exec("CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)");
  const insert = (table: string, ...values: (string | number | null)[]) =>
    database.prepare(`INSERT INTO ${table} VALUES (${values.map(() => "?").join(", ")})`).run(values);
  for (const [index, session] of ["ses_1", "ses_'2"].entries()) {
    insert("session", session, "/repo", null, index);
    let total = 6000;
    for (let call = 0; call < 8; call++) {
      const created = 1_790_000_000_000 + 1000 * (100 * index + call);
      const output = `${session} line ${call}\n`.repeat(600 * (index + 1));
      const [read, write] = [call === 0 ? 0 : total, call === 0 ? total : Math.ceil(output.length / 4)];
      total = read + write;
      const tokens = { input: 0, output: 20, reasoning: 0, cache: { read, write } };
      const info = {
        role: "assistant",
        modelID: "claude-sonnet-4-5",
        tokens,
        time: { created, completed: created + 9 },
      };
      const state = { status: "completed", input: { filePath: "a.ts" }, output };
      const part = { type: "tool", tool: "read", callID: `${session}-${call}`, state };
      if (call === 0) {
        insert("message", `${session}-u`, session, created - 1, JSON.stringify({ role: "user", time: { created } }));
        insert("part", `${session}-u`, `${session}-u`, JSON.stringify({ type: "text", text: "Read it." }));
      }
      insert("message", `${session}-${call}`, session, created, JSON.stringify(info));
      insert("part", `${session}-${call}`, `${session}-${call}`, JSON.stringify(part));
    }
  }
  database.close();
  const { whatIf, total } = await billJson("--what-if");
  expect(whatIf).toMatchObject({ sessions: 2, leftOut: [] });
  expect(Math.abs(whatIf.fit - 1)).toBeLessThan(0.05);
  const { stdout } = await sandbox.call(["replay", path, "--quiet", "--json"]);
  expect(JSON.parse(stdout).results[0].usd).toBeCloseTo(whatIf.usd, 4);
  expect(JSON.parse(stdout).recorded.usd).toBeCloseTo(total.usd, 4);
});

const simulated = [
  ["claude-code", 6],
  ["codex", 73],
  ["claude-code", 71],
] as const;

test.each(process.env.PLIMSOLL_DEEP === "1" ? simulated : simulated.slice(0, 1))(
  "what-if and replay give the same dollars for a session of %s with gaps and several models (%i)",
  async (agent, seed) => {
    const causes = ["expired", "model", "compaction", "rewound", "unexplained"] as const;
    const { text } = generateBilledSession({ seed, agent, calls: 60, causes });
    const file = record("session.jsonl", text);
    const { whatIf, total } = await billJson(file, "--what-if", "--no-index");
    expect(whatIf.leftOut).toEqual([]);
    const replayed = async (...flags: string[]) => {
      const { stdout } = await sandbox.call(["replay", file, "--intake", "delta", "--quiet", "--json", ...flags]);
      const { results, recorded } = JSON.parse(stdout);
      if (!flags.includes("--model")) expect(recorded.usd).toBeCloseTo(total.usd, 4);
      return results as { window: number; policy: string; usd: number; ratioToNone: number }[];
    };
    const usdOf = (name: string) => whatIf.variants.find((each: { name: string }) => each.name === name).usd;
    const rows = await replayed("--window", "128000,200000,300000", "--policy", "none,economic");
    for (const { usd } of rows.filter(({ policy }) => policy === "none")) expect(usd).toBeCloseTo(usdOf("as sent"), 4);
    for (const window of [128, 200, 300]) {
      const row = rows.find((each) => each.window === window * 1000 && each.policy === "economic");
      expect(row?.usd).toBeCloseTo(usdOf(`economic, ${window}k`), 4);
      expect(row?.ratioToNone).toBeCloseTo(usdOf(`economic, ${window}k`) / whatIf.usd, 4);
    }
    const delta = (window: number, policy: string) =>
      rows.find((each) => each.window === window && each.policy === policy)?.usd;
    expect(delta(200_000, "none+delta")).toBeCloseTo(usdOf("intake deltas"), 4);
    expect(delta(200_000, "economic+delta")).toBeCloseTo(usdOf("economic 200k, deltas"), 4);
    for (const [ttl, name] of [
      ["1h", "1-hour cache"],
      ["5m", "5-minute cache"],
    ] as const) {
      const [row] = await replayed("--policy", "none", "--ttl", ttl);
      expect(row?.usd).toBeCloseTo(usdOf(name), 4);
    }
    // Another model has other prices and other counts.
    const [other] = await replayed("--model", "claude-haiku-4-5");
    expect(other?.usd).not.toBeCloseTo(usdOf("as sent"), 2);
  },
);
