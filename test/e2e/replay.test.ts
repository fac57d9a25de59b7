import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadDriver } from "../../src/host/store/sqlite-driver.ts";
import { createClaudeCodeRecorder } from "../generate/claude-code-recording.ts";
import { generateRequest } from "../generate/generate-request.ts";
import { generateSession } from "../generate/generate-session.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

// The driver of the store, because some commands run in this process.
const Database = await loadDriver();

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

function transcript(seed: number, turns: number): string {
  const { messages } = generateSession({ seed, turns });
  return [{ meta: { agent: "none" } }, ...messages].map((line) => JSON.stringify(line)).join("\n");
}

async function replayJson(...args: string[]) {
  const { code, stdout, stderr } = await sandbox.call(["replay", ...args, "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as {
    results: Record<string, number | string>[];
    sessions: Record<string, number | string>[];
  };
}

test("the help is as pinned", async () => {
  const { code, stdout } = await sandbox.call(["replay", "--help"]);
  expect(code).toBe(0);
  await expect(stdout).toMatchFileSnapshot("golden/help-replay.txt");
});

describe("what is told", () => {
  test("a table with a row for each window and policy, and what it was made with", async () => {
    sandbox.write("runs/a.jsonl", transcript(1, 60));
    sandbox.write("runs/deep/b.jsonl", transcript(2, 40));
    sandbox.write("runs/notes.txt", "no session");
    const { code, stdout, stderr } = await sandbox.run(["replay", "runs", "--window", "48000,200000"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const lines = stdout.split("\n");
    expect(lines[0]?.split(/ {2,}/)).toEqual([
      " window",
      "policy",
      "cost",
      "x none",
      "breaks",
      "over",
      "invalid",
      "kept",
      "quotes",
      "names far",
      "edits",
      "re-fetch/100",
      "ms/turn",
    ]);
    expect(lines.slice(1, 7).map((line) => line.trim().split(/\s+/).slice(0, 2))).toEqual([
      ["48,000", "none"],
      ["48,000", "rfc"],
      ["48,000", "economic"],
      ["200,000", "none"],
      ["200,000", "rfc"],
      ["200,000", "economic"],
    ]);
    expect(lines.at(-2)).toBe(
      "2 sessions · 100 calls · exact:o200k · billed as anthropic's default · prefix 20,000 · reserve 16,000 · keep 10",
    );
  });

  test("with --json the specified fields, over all sessions and for each", async () => {
    sandbox.write("a.jsonl", transcript(1, 60));
    sandbox.write("b.jsonl", transcript(2, 40));
    const args = ["a.jsonl", "b.jsonl", "--window", "48000", "--reserve", "4000"];
    const { results, sessions } = await replayJson(...args);
    expect(results.map((row) => Object.keys(row).join(" "))).toEqual(
      Array.from({ length: 3 }, () =>
        [
          ...["window", "policy", "sessions", "calls", "cost", "usd", "ratioToNone", "breaks", "overWindow", "invalid"],
          ...["visibleShare", "references", "msPerTurn"],
        ].join(" "),
      ),
    );
    expect(Object.keys(sessions[0] ?? {})).toEqual([
      ...["file", "window", "policy", "calls", "cost", "usd", "breaks", "overWindow", "invalid", "visibleShare"],
      "references",
    ]);
    const far = { count: expect.any(Number), share: 1 };
    expect(results[0]?.references).toMatchObject({
      quotes: { count: expect.any(Number), share: 1, far },
      names: { count: expect.any(Number), share: 1, far },
      edits: { count: expect.any(Number), share: expect.any(Number), far: expect.any(Object) },
      refetches: 0,
      filesNamed: { count: expect.any(Number), share: 1 },
    });
    expect(sessions.map(({ file, policy }) => `${file} ${policy}`)).toEqual([
      ...["a.jsonl none", "a.jsonl rfc", "a.jsonl economic"],
      ...["b.jsonl none", "b.jsonl rfc", "b.jsonl economic"],
    ]);
    const [none, , economic] = results;
    expect(none).toMatchObject({ sessions: 2, calls: 100, ratioToNone: 1, visibleShare: 1, invalid: 0 });
    expect(none?.overWindow).toBeGreaterThan(0);
    expect(economic).toMatchObject({ overWindow: 0, invalid: 0 });
    expect(economic?.ratioToNone).toBeCloseTo(Number(economic?.cost) / Number(none?.cost), 5);
    const sum = (field: string, policy: string): number =>
      sessions.filter((row) => row.policy === policy).reduce((total, row) => total + Number(row[field]), 0);
    for (const field of ["calls", "cost", "breaks", "overWindow"]) {
      expect(sum(field, "economic")).toBeCloseTo(Number(economic?.[field]), 0);
    }
  });

  test("costs are told beside none, also where it was not asked for", async () => {
    sandbox.write("a.jsonl", transcript(1, 60));
    const { results } = await replayJson("a.jsonl", "--window", "48000", "--policy", "frugal,gentle");
    expect(results.map(({ policy }) => policy)).toEqual(["frugal", "gentle"]);
    for (const { ratioToNone } of results) expect(ratioToNone).not.toBe(1);
  });

  test("the same sessions give the same numbers", async () => {
    sandbox.write("a.jsonl", transcript(5, 80));
    const run = async () => {
      const { results, sessions } = await replayJson("a.jsonl", "--window", "48000");
      return { sessions, results: results.map(({ msPerTurn: _, ...row }) => row) };
    };
    expect(await run()).toEqual(await run());
  });

  test("reserve, keep and prices are the configuration's, and the command line overrides them", async () => {
    sandbox.write("a.jsonl", transcript(1, 60));
    const defaults = (await replayJson("a.jsonl", "--window", "48000")).results;
    sandbox.write(
      ".plimsoll/config.yaml",
      "history: { reserve: 20000, keep: 2 }\nprices: { anthropic: { input: 2, cache_read: 2 } }\n",
    );
    expect((await sandbox.call(["replay", "a.jsonl"])).stderr).toContain("prices (.plimsoll/config.yaml:2)");
    sandbox.env.PLIMSOLL_TRUST = "1";
    const configured = (await replayJson("a.jsonl", "--window", "48000")).results;
    expect(configured[0]?.cost).toBeGreaterThan(2 * Number(defaults[0]?.cost));
    expect(configured[0]?.overWindow).toBeGreaterThan(Number(defaults[0]?.overWindow));
    expect(configured[1]?.visibleShare).toBeLessThan(Number(defaults[1]?.visibleShare));
    const given = ["--reserve", "16000", "--keep", "10"];
    const overridden = (await replayJson("a.jsonl", "--window", "48000", ...given)).results;
    expect(overridden.map((row) => row.visibleShare)).toEqual(defaults.map((row) => row.visibleShare));
  });

  test("a model chooses counter, cache rules and prices", async () => {
    sandbox.write("a.jsonl", transcript(1, 30));
    const options = ["--policy", "none", "--counter", "bytes/4"];
    // Both read at a tenth of the input price.
    const anthropic = (await replayJson("a.jsonl", ...options, "--model", "claude-sonnet-5")).results[0];
    const openai = (await replayJson("a.jsonl", ...options, "--model", "gpt-5")).results[0];
    // No surcharge for writing there.
    expect(Number(openai?.cost) / Number(anthropic?.cost)).toBeLessThan(0.95);
    const unknown = await sandbox.call(["replay", "a.jsonl", ...options, "--model", "claude-next-99"]);
    expect(unknown.stderr).toBe(`plimsoll: no prices are known for "claude-next-99": billed as anthropic's default\n`);
    expect(unknown.stdout).toContain(" · billed as anthropic's default · ");
    const known = await sandbox.call(["replay", "a.jsonl", ...options, "--model", "gpt-5"]);
    expect(known.stdout).toContain(" · billed as gpt-5 · ");
  });
});

describe("sessions of any kind", () => {
  test("requests of every provider's format, with their own system text and tools as the prefix", async () => {
    for (const format of ["anthropic", "openai", "responses"] as const) {
      const { request } = generateRequest(format, { seed: 3, turns: 20 });
      sandbox.write(`${format}.json`, JSON.stringify(request));
    }
    const { code, stdout, stderr } = await sandbox.call(["replay", "."]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/3 sessions · \d+ calls · .* prefix \d[\d,]* to \d[\d,]* · /);
    const added = await sandbox.call(["replay", "openai.json", "--prefix-tokens", "100000"]);
    expect(added.stdout).toMatch(/ prefix 10\d,\d{3} · /);
  });

  test("a Claude Code session: what was left out is a note, which --quiet hides", async () => {
    const line = (type: string, content: unknown, more: object = {}) =>
      JSON.stringify({
        ...{ type, uuid: crypto.randomUUID(), sessionId: "s", timestamp: "2026-01-01T00:00:00Z", ...more },
        message: { role: type, content, ...(type === "assistant" && { id: crypto.randomUUID() }) },
      });
    const lines = [
      line("user", "Fix the bug"),
      line("assistant", [{ type: "text", text: "Done" }]),
      line("user", "a question of a sub-agent", { isSidechain: true }),
      line("user", "Thanks"),
      line("assistant", [{ type: "text", text: "Welcome" }]),
    ];
    sandbox.write("s.jsonl", lines.join("\n"));
    const { code, stdout, stderr } = await sandbox.call(["replay", "s.jsonl"]);
    expect(code).toBe(0);
    expect(stdout).toContain("1 session · 2 calls");
    expect(stderr).toMatch(/^plimsoll: s\.jsonl: left out: 1 /);
    expect((await sandbox.call(["replay", "s.jsonl", "-q"])).stderr).toBe("");
  });

  test("what providers would refuse in a recording is mended, so that none is valid", async () => {
    const quirks = ["unanswered-calls", "reused-ids", "consecutive-users", "late-results"] as const;
    const { messages } = generateSession({ seed: 4, turns: 40, quirks });
    sandbox.write("q.jsonl", messages.map((message) => JSON.stringify(message)).join("\n"));
    const { results } = await replayJson("q.jsonl", "--window", "48000");
    expect(results.map(({ invalid }) => invalid)).toEqual([0, 0, 0]);
  });

  test("items of OpenAI's responses, one a line, are what they are as a request", async () => {
    const { request } = generateRequest("responses", { seed: 3, turns: 20 });
    const { input } = request as { input: readonly object[] };
    const items = [{ role: "user", content: "Begin." }, ...input];
    sandbox.write("items.jsonl", items.map((item) => JSON.stringify(item)).join("\n"));
    sandbox.write("request.json", JSON.stringify({ input: items }));
    const { sessions } = await replayJson("items.jsonl", "request.json", "--policy", "economic");
    const [lines, whole] = sessions.map(({ file: _, ...row }) => row);
    expect(lines).toEqual(whole);
    expect(lines?.calls).toBeGreaterThan(10);
  });

  test("a session without an assistant turn is told and left out, and is a failure where nothing else is left", async () => {
    sandbox.write("a.json", JSON.stringify([{ role: "user", content: "anyone?" }]));
    sandbox.write("b.jsonl", transcript(1, 10));
    const told = "plimsoll: a.json: has no assistant turn to replay and is left out\n";
    const both = await sandbox.call(["replay", "a.json", "b.jsonl"]);
    expect(both).toMatchObject({ code: 0, stderr: told });
    expect(both.stdout).toContain("1 session · 10 calls");
    const alone = await sandbox.call(["replay", "a.json"]);
    expect(alone).toMatchObject({ code: 1, stdout: "" });
    expect(alone.stderr.startsWith(`${told}plimsoll: no session has an assistant turn`)).toBe(true);
  });
});

describe("what cannot be read", () => {
  test("is named on stderr and left out, and the exit code is 1", async () => {
    sandbox.write("runs/a.jsonl", transcript(1, 10));
    const greeting = '{"role":"user","content":"hi"}\n{"role":"assistant","content":"hello"}';
    sandbox.write("runs/b.jsonl", `${greeting}\n{"role":"us`);
    sandbox.write("runs/bad.json", '{"messages": [');
    sandbox.write("runs/other.json", '{"name": "package"}');
    sandbox.write("runs/shape.json", '[{"role":"user","content":"hi"},{"role":"assistant","content":7}]');
    sandbox.write("runs/zero.jsonl", Buffer.from([0, 1, 2]));
    sandbox.write("runs/requests.jsonl", '{"messages":[]}\n{"messages":[]}\n');
    const { code, stdout, stderr } = await sandbox.call(["replay", "runs", "missing.jsonl"]);
    expect(code).toBe(1);
    expect(stdout).toContain("2 sessions");
    const named = stderr.split("\n").map((line) => /^plimsoll: ([^:]+)/.exec(line)?.[1]);
    expect(named).toEqual(
      expect.arrayContaining([
        ...["runs/bad.json", "runs/other.json", "runs/shape.json", "runs/zero.jsonl", "missing.jsonl"],
      ]),
    );
    expect(stderr).toContain("messages[1].content");
    expect(stderr).toContain("runs/requests.jsonl: the file has several requests, one per line. Save the last request");
    expect(stderr).not.toContain("runs/a.jsonl");
    const json = await sandbox.call(["replay", "runs", "--json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.stdout).results).toHaveLength(3);
  });

  test("where nothing can be read there is no table", async () => {
    sandbox.write("empty/readme.txt", "");
    const { code, stdout, stderr } = await sandbox.call(["replay", "empty"]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toContain("no session could be read");
    const json = await sandbox.call(["replay", "empty", "--json"]);
    expect(JSON.parse(json.stdout).error).toMatchObject({ code: "unreadable_input" });
  });

  test.each([
    [["replay"], "PATH is missing"],
    [["replay", ".", "--window", "0"], '--window is "0"'],
    [["replay", ".", "--window", "64k"], '--window is "64k"'],
    [["replay", ".", "--reserve", "-1"], '--reserve is "-1"'],
    [["replay", ".", "--policy", "economical"], '--policy is "economical". Did you mean "economic"?'],
    [["replay", ".", "--counter", "bytes/4,exact:o200k"], "--counter takes one value"],
    [["replay", ".", "--html", "."], ".: is a directory, not a file"],
    [
      ["replay", ".", "--window", "16000", "--reserve", "16000"],
      "the reserve of 16,000 takes the whole window of 16,000.",
    ],
    [
      ["replay", ".", "--window", "30000", "--prefix-tokens", "15000"],
      "the reserve of 15,000 and the prefix of 15,000 take the whole window of 30,000. Lower --reserve or",
    ],
  ])("%j is refused before any work", async (args, message) => {
    const { code, stdout, stderr } = await sandbox.call(args);
    expect(stdout).toBe("");
    expect(stderr).toContain(message);
    expect(code).toBe(message.includes("directory") ? 1 : 2);
  });
});

test("the prefix that is assumed needs its room, too, and a file's own does not", async () => {
  sandbox.write("a.jsonl", transcript(1, 10));
  const window = ["--window", "36000"];
  const run = await sandbox.call(["replay", "a.jsonl", ...window]);
  expect(run).toMatchObject({ code: 2, stdout: "" });
  expect(run.stderr).toBe(
    "plimsoll: the reserve of 16,000 and the prefix of 20,000 take the whole window of 36,000. Lower --reserve or --prefix-tokens.\n",
  );
  const { request } = generateRequest("anthropic", { seed: 3, turns: 5 });
  sandbox.write("request.json", JSON.stringify(request));
  expect(await sandbox.call(["replay", "request.json", ...window])).toMatchObject({ code: 0, stderr: "" });
});

test("a window without room is left out with a note, and the others are replayed", async () => {
  sandbox.write("a.jsonl", transcript(1, 10));
  const run = await sandbox.call(["replay", "a.jsonl", "--window", "32000,64000", "--policy", "none"]);
  expect(run.stderr).toBe(
    "plimsoll: a.jsonl: the reserve of 16,000 and the prefix of 20,000 take the whole window of 32,000, so this window is left out\n",
  );
  expect(run.code).toBe(0);
  expect(run.stdout).toMatch(/^ *64,000 +none/m);
  expect(run.stdout).not.toMatch(/^ *32,000/m);
  const asked = await sandbox.call(["replay", "a.jsonl", "--window", "16000,64000", "--reserve", "16000"]);
  expect(asked.code).toBe(0);
  expect(asked.stderr).toContain("the reserve of 16,000 takes the whole window of 16,000, so this window is left out");
});

test("the reserve is at most half of each window, unless it is given", async () => {
  sandbox.write("a.jsonl", transcript(1, 10));
  const { stdout } = await sandbox.call(["replay", "a.jsonl", "--window", "24000,64000", "--prefix-tokens", "1000"]);
  expect(stdout).toContain("reserve 12,000 to 16,000");
});

test("a folder of Claude Code has sub-agents as sessions, forks once, and the recorded usage", async () => {
  const main = createClaudeCodeRecorder({ sessionId: "m" });
  main.says("Fix the limit.");
  main.answers("I look.", "a");
  main.results("a");
  main.answers("Done.");
  main.compacts("They fixed the limit.");
  main.says("Now the docs.");
  main.answers("Done.");
  const fork = main.fork("n");
  fork.says("And the tests.");
  fork.answers("Done.");
  const agent = createClaudeCodeRecorder({ sessionId: "agent", isSubAgent: true });
  agent.says("Look for limits.");
  agent.answers("None.");
  const write = (path: string, lines: readonly object[]) =>
    sandbox.write(path, lines.map((line) => JSON.stringify(line)).join("\n"));
  write("p/m.jsonl", main.lines);
  write("p/n.jsonl", fork.lines);
  write("p/m/subagents/agent-1.jsonl", agent.lines);
  sandbox.write("p/m/subagents/agent-1.meta.json", JSON.stringify({ agentType: "Explore" }));
  const { code, stdout, stderr } = await sandbox.call(["replay", "p", "--policy", "none", "--json"]);
  expect(code).toBe(0);
  expect(stderr.split("\n").filter((line) => line.includes("n.jsonl"))).toEqual([
    "plimsoll: p/n.jsonl: compactions: 1; the requests after each start with its summary",
    "plimsoll: p/n.jsonl: answers that another session has too: 3; they are counted once",
    "plimsoll: p/n.jsonl: is left out: simulated as 80 % of what was recorded; --prefix-tokens N replays it with counted tokens",
  ]);
  const { recorded } = JSON.parse(stdout);
  const counted = await sandbox.call(["replay", "p", "--policy", "none", "--prefix-tokens", "20000", "--json"]);
  expect(JSON.parse(counted.stdout).results[0]).toMatchObject({ sessions: 3, calls: 5, invalid: 0, breaks: 0 });
  const billed = [main, fork, agent].flatMap((each) => each.billed);
  const written = billed.reduce((sum, each) => sum + each.cache_creation_input_tokens, 0);
  expect(recorded).toMatchObject({ answers: 5, write5m: written, output: 100 });
  const shown = await sandbox.call(["replay", "p", "--policy", "none"]);
  expect(shown.stdout).toMatch(/^recorded: 5 answers, .* input tokens, .* read from the cache, .* written, cost /m);
});

test("the sessions of opencode's database are read, also while its log has the last writes", async () => {
  sandbox.write("data/notes.db", "not a database of opencode");
  const database = new Database(join(sandbox.cwd, "data/opencode.db"));
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("CREATE TABLE session (id TEXT, time_created INTEGER)");
  database.exec("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)");
  database.exec("CREATE TABLE part (id TEXT, message_id TEXT, data TEXT)");
  for (const session of ["ses_1", "ses_2"]) {
    database.prepare("INSERT INTO session VALUES (?, 1)").run([session]);
    for (const [index, role] of ["user", "assistant", "user", "assistant"].entries()) {
      const id = `${session}-${index}`;
      const data = JSON.stringify({ role, time: { created: index } });
      database.prepare("INSERT INTO message VALUES (?, ?, ?, ?)").run([id, session, index, data]);
      const part = JSON.stringify({ type: "text", text: `words of ${id}` });
      database.prepare("INSERT INTO part VALUES (?, ?, ?)").run([`p-${id}`, id, part]);
    }
  }
  const { sessions } = await replayJson("data", "--policy", "none");
  expect(sessions.map(({ file, calls }) => [file, calls])).toEqual([
    ["data/opencode.db#ses_1", 2],
    ["data/opencode.db#ses_2", 2],
  ]);
  database.close();
  const other = await sandbox.call(["replay", "data/notes.db"]);
  expect(other).toMatchObject({ code: 1, stdout: "" });
  expect(other.stderr).toContain("data/notes.db: the database cannot be read: ");
});

describe("the page", () => {
  test("is written whole, replaces an older one, and is told", async () => {
    sandbox.write("a.jsonl", transcript(1, 10));
    sandbox.write("out.html", "an older page");
    const { code, stdout, stderr } = await sandbox.run(["replay", "a.jsonl", "--html", "out.html"]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^plimsoll: wrote out\.html: 1 session, \d+ KB\n$/);
    expect(stdout).toContain("economic");
    const page = readFileSync(join(sandbox.cwd, "out.html"), "utf8");
    expect(page).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/);
    expect(page).not.toMatch(/https?:\/\/(?!www\.w3\.org\/2000\/svg["`])/);
    expect(readdirSync(sandbox.cwd).sort()).toEqual(["a.jsonl", "out.html"]);
  });

  test("never replaces a session, nor is anything written when nothing could be read", async () => {
    const text = transcript(1, 10);
    sandbox.write("a.jsonl", text);
    const { code, stderr } = await sandbox.call(["replay", ".", "--html", "./a.jsonl"]);
    expect(code).toBe(2);
    expect(stderr).toContain("would overwrite a session");
    expect(readFileSync(join(sandbox.cwd, "a.jsonl"), "utf8")).toBe(text);
    await sandbox.call(["replay", "missing", "--html", "new.html"]);
    expect(existsSync(join(sandbox.cwd, "new.html"))).toBe(false);
  });
});
