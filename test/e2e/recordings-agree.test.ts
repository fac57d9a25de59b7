/** `bill`, `guard`, the status line and `replay` read the same recordings. Wherever a client keeps them, all four report
 *  the same sums. */
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Database from "libsql";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { generateBilledSession } from "../generate/billed-sessions.ts";
import { answerLine, createTranscripts } from "./claude-transcripts.ts";
import { createSandbox, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(() => sandbox.remove());

type Env = Record<string, string>;

async function jsonOf(args: readonly string[], { env = {}, input = "" }: { env?: Env; input?: string } = {}) {
  const { code, stdout, stderr } = await sandbox.call([...args, "--json"], { env, input });
  // replay notes what it leaves out.
  expect({ args, code, stderr: args[0] === "replay" ? "" : stderr }).toEqual({ args, code: 0, stderr: "" });
  return JSON.parse(stdout);
}

describe("Claude Code", () => {
  /** Two sessions with a prompt. The second one is a fork, and the first one has sub-agents. They cost $1.50. */
  function recordSessions(place: string, name: string): string {
    const { file, add, addToAgent } = createTranscripts(sandbox.home, place);
    const prompt = (session: string): string => {
      const message = { role: "user", content: "Look." };
      return `${JSON.stringify({ type: "user", uuid: `${name}-${session}`, sessionId: session, message })}\n`;
    };
    const first = prompt("s1") + answerLine({ id: `${name}-a` }) + answerLine({ id: `${name}-b` });
    add("s1", first);
    addToAgent("s1", "x", answerLine({ id: `${name}-c` }) + answerLine({ id: `${name}-d` }));
    add("s2", first.replaceAll('"s1"', '"s2"') + answerLine({ id: `${name}-e`, session: "s2" }));
    return file("s1");
  }

  async function sumsOf(env: Env, { transcript, places }: { transcript: string; places: readonly string[] }) {
    const input = JSON.stringify({ session_id: "s1", transcript_path: transcript, cwd: sandbox.cwd });
    const bill = await jsonOf(["bill", "--since", "0d"], { env });
    const guard = await jsonOf(["guard", "--transcript", transcript], { env });
    const guardAlone = await jsonOf(["guard"], { env });
    const status = await jsonOf(["statusline"], { env, input });
    const paths = places.map((place) => join(sandbox.home, place, "projects"));
    const replay = await jsonOf(["replay", ...paths, "--policy", "none"], { env });
    return {
      usd: [bill.total.usd, guard.day.usd, guardAlone.day.usd, status.today.usd, replay.recorded.usd],
      answers: [bill.total.calls, guard.day.answers, guardAlone.day.answers, replay.recorded.answers],
      session: [guard.session.usd, status.session.usd],
    };
  }

  const twice = (usd: number): readonly unknown[] => [usd, usd].map((each) => expect.closeTo(each, 6));

  test.each([
    { name: "~/.claude", places: [".claude"], env: () => ({}) },
    { name: "~/.config/claude", places: [".config/claude"], env: () => ({}) },
    { name: "both of them", places: [".claude", ".config/claude"], env: () => ({}) },
    { name: "CLAUDE_CONFIG_DIR", places: ["own"], env: (home: string) => ({ CLAUDE_CONFIG_DIR: join(home, "own") }) },
    {
      name: "two folders of CLAUDE_CONFIG_DIR",
      places: ["own", "other"],
      env: (home: string) => ({ CLAUDE_CONFIG_DIR: `${join(home, "own")},${join(home, "other")}` }),
    },
  ])("in $name", async ({ places, env }) => {
    const [transcript = ""] = places.map((place, index) => recordSessions(place, `p${index}`));
    const sums = await sumsOf(env(sandbox.home), { transcript, places });
    const usd = 1.5 * places.length;
    expect(sums.usd).toEqual(sums.usd.map(() => expect.closeTo(usd, 6)));
    expect(sums.answers).toEqual(sums.answers.map(() => 5 * places.length));
    expect(sums.session).toEqual(twice(1.2));
  });

  test("in a folder of a project that is a link to another disk", async () => {
    const transcript = recordSessions(".claude", "p");
    const folder = dirname(transcript);
    renameSync(folder, join(sandbox.home, "elsewhere"));
    symlinkSync(join(sandbox.home, "elsewhere"), folder);
    const [bill, guard] = [await jsonOf(["bill", "--since", "0d"]), await jsonOf(["guard"])];
    expect([bill.total.usd, guard.day.usd]).toEqual(twice(1.5));
  });

  test("with a server that gives every answer the same id", async () => {
    const { file, add } = createTranscripts(sandbox.home);
    for (const request of ["one", "two"]) add("s1", answerLine({ id: "msg", request }));
    const bill = await jsonOf(["bill", "--since", "0d"]);
    const guard = await jsonOf(["guard"]);
    const replay = await jsonOf(["replay", file(), "--policy", "none"]);
    expect([bill.total.usd, guard.day.usd, replay.recorded.usd]).toEqual([...twice(0.6), expect.closeTo(0.6, 6)]);
  });

  test("after each command has continued what the others read", async () => {
    const { file, add } = createTranscripts(sandbox.home);
    const input = JSON.stringify({ transcript_path: file(), cwd: sandbox.cwd });
    for (let round = 1; round <= 4; round++) {
      add("s1", answerLine({ id: `m${round}` }));
      const usd = [
        async () => (await jsonOf(["statusline"], { input })).session.usd,
        async () => (await jsonOf(["bill"])).total.usd,
        async () => (await jsonOf(["guard", "--transcript", file()])).session.usd,
      ];
      // Each of them is the first to see a new line.
      for (let turn = 0; turn < usd.length; turn++) {
        expect(await usd[(round + turn) % usd.length]?.()).toBeCloseTo(0.3 * round, 6);
      }
    }
  });
});

describe("other clients: bill and replay", () => {
  const at = (second: number): string => new Date(Date.UTC(2026, 10, 1, 9, 0, second)).toISOString();
  const jsonLines = (lines: readonly object[]): string => lines.map((line) => `${JSON.stringify(line)}\n`).join("");

  function record(path: string, text: string): string {
    const file = join(sandbox.home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  const geminiChat = jsonLines([
    { sessionId: "one", projectHash: "abc", kind: "main" },
    { id: "p", timestamp: at(1), type: "user", content: "Look." },
    {
      ...{ id: "a", timestamp: at(2), type: "gemini", content: "Done.", model: "gemini-2.5-pro" },
      tokens: { input: 2000, cached: 500, output: 20, thoughts: 5, tool: 0, total: 2025 },
    },
  ]);

  const piSession = jsonLines([
    { type: "session", version: 3, id: "pi-1", cwd: "/repo", timestamp: at(0) },
    { type: "message", id: "u", parentId: null, timestamp: at(1), message: { role: "user", content: "Look." } },
    {
      ...{ type: "message", id: "a", parentId: "u", timestamp: at(2) },
      message: {
        ...{ role: "assistant", content: [{ type: "text", text: "Done." }], model: "claude-sonnet-4-5" },
        usage: { input: 900, output: 40, cacheRead: 100, cacheWrite: 50 },
      },
    },
  ]);

  function writeDatabase(path: string): void {
    const database = new Database(record(path, ""));
    database.exec("CREATE TABLE session (id TEXT, directory TEXT, parent_id TEXT, time_created INTEGER)");
    database.exec("CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT)");
    database.exec("CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, data TEXT)");
    database.prepare("INSERT INTO session VALUES ('s', '/repo', NULL, 1)").run();
    const addMessage = (id: string, created: number, data: object, text: string): void => {
      database.prepare("INSERT INTO message VALUES (?, 's', ?, ?)").run(id, created, JSON.stringify(data));
      const part = JSON.stringify({ type: "text", text });
      database.prepare("INSERT INTO part VALUES (?, ?, 's', ?)").run(`part-${id}`, id, part);
    };
    addMessage("u", 1, { role: "user", time: { created: 1 } }, "Look.");
    const tokens = { input: 700, output: 30, reasoning: 0, cache: { read: 200, write: 60 } };
    const answer = { role: "assistant", modelID: "claude-sonnet-4-5", tokens, time: { created: 2, completed: 3 } };
    addMessage("a", 2, answer, "Done.");
    database.close();
  }

  const codex = generateBilledSession({ seed: 12, agent: "codex", calls: 12 }).text;

  interface ClientCase {
    readonly name: string;
    readonly at: string;
    /** Variables that name folders of the home directory. */
    readonly env?: Env;
    write(): void;
  }

  test.each<ClientCase>([
    { name: "Codex", at: ".codex/sessions", write: () => record(".codex/sessions/2026/11/01/rollout-a.jsonl", codex) },
    {
      ...{ name: "Codex, archived", at: ".codex/archived_sessions" },
      write: () => record(".codex/archived_sessions/rollout-a.jsonl", codex),
    },
    {
      ...{ name: "Codex, CODEX_HOME", at: "own/sessions", env: { CODEX_HOME: "own" } },
      write: () => record("own/sessions/rollout-a.jsonl", codex),
    },
    {
      ...{ name: "gemini-cli", at: ".gemini/tmp" },
      write: () => record(".gemini/tmp/shop/chats/session-one.jsonl", geminiChat),
    },
    {
      ...{ name: "opencode", at: ".local/share/opencode" },
      write: () => writeDatabase(".local/share/opencode/opencode.db"),
    },
    {
      ...{ name: "opencode, XDG_DATA_HOME", at: "data/opencode", env: { XDG_DATA_HOME: "data" } },
      write: () => writeDatabase("data/opencode/opencode.db"),
    },
    { name: "pi", at: ".pi/agent/sessions", write: () => record(".pi/agent/sessions/p/a.jsonl", piSession) },
    {
      ...{ name: "pi, PI_CODING_AGENT_DIR", at: "pi/sessions", env: { PI_CODING_AGENT_DIR: "pi" } },
      write: () => record("pi/sessions/p/a.jsonl", piSession),
    },
  ])("$name", async ({ at: place, env = {}, write }) => {
    write();
    const own = Object.fromEntries(Object.entries(env).map(([name, path]) => [name, join(sandbox.home, path)]));
    const { total } = await jsonOf(["bill"], { env: own });
    const { recorded } = await jsonOf(["replay", join(sandbox.home, place), "--policy", "none"], { env: own });
    const tokens = ({ read, write5m, write1h, uncached, output }: Record<string, number>): object => {
      return { read, write5m, write1h, uncached, output };
    };
    expect(total.usd).toBeGreaterThan(0);
    expect(total.usd).toBeCloseTo(recorded.usd, 6);
    expect({ ...tokens(total), calls: total.calls }).toEqual({ ...tokens(recorded), calls: recorded.answers });
  });
});
