/** The process of a plugin with inputs as the client's hooks send them, and the commands around it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claudeFolder } from "../../src/clients/plugins/claude-code.ts";
import { makeRepository } from "../make-repository.ts";
import { answerLine, createTranscripts } from "./claude-transcripts.ts";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
const children: ChildProcess[] = [];
beforeEach(() => {
  sandbox = createSandbox();
});
afterEach(async () => {
  // The process writes to its store after its answer.
  const ended = children.splice(0).map(async (child) => {
    const closed = child.exitCode === null && child.signalCode === null ? once(child, "close") : undefined;
    child.kill("SIGKILL");
    await closed;
  });
  await Promise.all(ended);
  sandbox.remove();
});

const text = Array.from({ length: 200 }, (_, index) => `line ${index}: ${"word ".repeat(6)}`).join("\n");

/** Starts the process and returns a function that calls its tools. */
function serve(args: readonly string[] = []) {
  const child = spawn(process.execPath, [mainFile, "plugin", "serve", "claude-code", ...args], {
    ...{ cwd: sandbox.cwd, env: sandbox.env, stdio: ["pipe", "pipe", "inherit"] as const },
  });
  children.push(child);
  const waiting = new Map<number, (answer: { result: Record<string, unknown> }) => void>();
  createInterface({ input: child.stdout! }).on("line", (line) => {
    const answer = JSON.parse(line);
    waiting.get(answer.id)?.(answer);
  });
  let last = 0;
  const request = (method: string, params: object = {}) =>
    new Promise<{ result: Record<string, unknown> }>((resolve) => {
      waiting.set(++last, resolve);
      child.stdin!.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params })}\n`);
    });
  const call = async (name: string, input: object): Promise<string> => {
    const { result } = await request("tools/call", { name, arguments: input });
    return (result.content as { text: string }[])[0]!.text;
  };
  const bash = async (stdout: string, callId: string) => {
    // Results that come sooner after each other belong to parallel calls.
    await new Promise((resolve) => setTimeout(resolve, 30));
    const input = { session_id: "s-1", agent_id: "", tool_name: "Bash", tool_use_id: callId };
    const tool = { tool_input: JSON.stringify({ command: callId }), tool_response: JSON.stringify({ stdout }) };
    const answer = JSON.parse(await call("after_tool", { ...input, ...tool }));
    return answer.hookSpecificOutput?.updatedToolOutput.stdout as string | undefined;
  };
  return { child, request, call, bash };
}

/** Sends a result until it comes back shortened. On a busy computer the process gives up after 50 ms. */
async function shortened({ bash }: Pick<ReturnType<typeof serve>, "bash">, output: string): Promise<string> {
  for (let attempt = 0; attempt < 50; attempt++) {
    const short = await bash(output, `attempt ${attempt}`);
    if (short !== undefined) return short;
  }
  return "";
}

test("a note never means a result that the process has not judged, however late its hooks are", async () => {
  const { call, bash } = serve();
  const lines = text.split("\n");
  const about = { session_id: "s-1", agent_id: "", transcript_path: "" };
  const judge = async (command: string, shown: readonly string[], tool_use_id: string) => {
    const input = { tool_name: "Bash", tool_input: JSON.stringify({ command }), tool_use_id, ends: "after_batch" };
    const tool_response = JSON.stringify({ stdout: shown.join("\n") });
    const answer = JSON.parse(await call("after_tool", { ...about, ...input, tool_response }));
    return answer.hookSpecificOutput?.updatedToolOutput.stdout as string | undefined;
  };
  const endTurn = (command: string, tool_use_id: string, tool_response: string) => {
    const ended = [{ tool_name: "Bash", tool_input: { command }, tool_use_id, tool_response }];
    return call("after_batch", { ...about, tool_calls: JSON.stringify(ended) });
  };
  for (let round = 0; round < 8; round++) {
    const shown = await judge("cat a", lines, `${round}-a`);
    await endTurn("cat a", `${round}-a`, shown ?? text);
    // The hook for this result was given up before it reached the process.
    const newer = lines.with(15, `line 15 of round ${round}`);
    const ended = endTurn("cat a", `${round}-unseen`, newer.join("\n"));
    const next = judge(`cat b${round}`, lines, `${round}-b`);
    await ended;
    const note = (await next) ?? text;
    if (note.includes("Bash cat a above")) expect(note).toContain(lines[15]);
    await endTurn(`cat b${round}`, `${round}-b`, note);
  }
  // After hooks of an earlier version, too.
  expect(await bash("short", "last")).toBeUndefined();
});

test("two processes of one session share what the context holds, and recall and status know it", async () => {
  const [one, two] = [serve(), serve()];
  await one.request("initialize", { protocolVersion: "2025-06-18" });
  const { result } = await one.request("tools/list");
  expect((result.tools as { name: string }[]).map(({ name }) => name)).toEqual(["recall"]);
  expect(await one.bash(text, "first")).toBeUndefined();
  const short = await shortened(two, text);
  const [, id = ""] = /plimsoll recall ([a-z2-7]{16})/.exec(short ?? "") ?? [];
  expect(id).not.toBe("");
  expect(await two.call("recall", { id, lines: "3-3" })).toBe(text.split("\n")[2]);
  expect((await sandbox.call(["recall", id])).stdout).toBe(`${text}\n`);
  // The numbers are written after the answer.
  await two.request("ping");
  await expect
    .poll(async () => JSON.parse((await sandbox.call(["plugin", "status", "claude-code", "--json"])).stdout).sessions, {
      timeout: 5_000,
    })
    .toMatchObject([{ sessionId: "s-1", duplicates: 1, recalls: 1 }]);
  const input = JSON.stringify({ session_id: "s-1" });
  await expect
    .poll(async () => JSON.parse((await sandbox.call(["statusline", "--json"], { input })).stdout).savedTokens ?? 0)
    .toBeGreaterThan(500);
});

test("a process that is ended right after its answer has written what it knows", async () => {
  const first = serve();
  expect(await first.bash(text, "first")).toBeUndefined();
  first.child.kill("SIGTERM");
  expect((await once(first.child, "exit"))[0]).toBe(0);
  const { stdout } = await sandbox.call(["plugin", "status", "claude-code", "--json"]);
  expect(JSON.parse(stdout).sessions).toMatchObject([{ sessionId: "s-1", results: 1 }]);
  expect(await shortened(serve(), text)).toContain("Same text as the result of Bash first above");
});

test("a store that is no database leaves every result as it is", async () => {
  const file = join(sandbox.home, "broken.db");
  writeFileSync(file, "this is no database ".repeat(500));
  const { bash } = serve(["--store", file]);
  for (const id of ["1", "2", "3"]) expect(await bash(text, id)).toBeUndefined();
});

test("settings of install reach the process", async () => {
  const { bash } = serve(["--no-deltas", "--max-result-tokens", "600"]);
  const call = { bash };
  expect(await shortened(call, text)).toContain("similar lines");
  // A repeated text is no reason to shorten it.
  expect(await shortened(call, text)).toContain("similar lines");
});

test("install shows a diff, writes, reports, and uninstall restores", async () => {
  const dry = await sandbox.call(["plugin", "install", "claude-code", "--dry-run", "--max-result-tokens", "9000"]);
  expect(dry.stdout).toContain("+++ ~/.claude/skills/plimsoll/.mcp.json");
  expect(dry.stdout).toContain('+        "9000"');
  expect(dry.stderr).toBe("");
  const installed = await sandbox.call(["plugin", "install", "claude-code", "--json"]);
  expect(JSON.parse(installed.stdout)).toMatchObject({ client: "claude-code", scope: "user", dry_run: false });
  const status = await sandbox.call(["plugin", "status", "claude-code"]);
  expect(status.stdout).toBe("claude-code: user: installed; project: not installed\nno session has used it yet\n");
  const removed = await sandbox.call(["plugin", "uninstall", "claude-code"]);
  expect(removed).toMatchObject({ code: 0, stdout: expect.stringContaining("claude-code: uninstalled") });
  expect((await sandbox.call(["plugin", "uninstall", "claude-code"])).stdout).toBe("claude-code: nothing to change\n");
});

test("status and status line say that Claude Code gave up the process, and install mends it", async () => {
  expect((await sandbox.call(["plugin", "install", "claude-code"])).code).toBe(0);
  const cache = join(sandbox.home, ".claude/mcp-needs-auth-cache.json");
  const since = Date.now() - 60_000;
  // As Claude Code 2.1.327 writes it after a failed start.
  const ours = { "plugin:plimsoll:plimsoll": { timestamp: since, id: "de3fd5b3dc27f2a9" } };
  const others = { "plugin:other:other": { timestamp: since, id: "x" } };
  writeFileSync(cache, JSON.stringify({ ...ours, ...others }));
  const { stdout } = await sandbox.call(["plugin", "status", "claude-code"]);
  expect(stdout).toMatch(
    /\ninactive since \d{4}-\d\d-\d\d \d\d:\d\d, until .* run "plimsoll plugin install claude-code"/,
  );
  const time = new Date(since).toTimeString().slice(0, 5);
  const line = async () => (await sandbox.call(["statusline"], { input: "{}", env: { NO_COLOR: "1" } })).stdout;
  expect(await line()).toContain(`plugin inactive since ${time}`);
  const { stderr } = await sandbox.call(["plugin", "install", "claude-code"]);
  expect(stderr).toContain("starts it again in its next session");
  expect(readFileSync(cache, "utf8")).toBe(JSON.stringify(others));
  expect(await line()).not.toContain("inactive");
  writeFileSync(cache, JSON.stringify({ "plugin:plimsoll:plimsoll": { timestamp: Date.now() - 16 * 60_000 } }));
  expect(await line()).not.toContain("inactive");
});

test.each([
  ["opencode", ".config/opencode/plugins/plimsoll.js", "{}"],
  ["pi", ".pi/agent/extensions/plimsoll.js", "undefined"],
])(
  "%s starts without a plimsoll that never loads",
  { tags: ["deep"], timeout: 30_000 },
  async (client, file, hooks) => {
    expect((await sandbox.call(["plugin", "install", client])).code).toBe(0);
    sandbox.write("stuck/plimsoll", "");
    sandbox.write("stuck/bundle/plugin-hooks.js", "await new Promise((resolve) => setTimeout(resolve, 60_000));\n");
    const plugin = pathToFileURL(join(sandbox.home, file)).href;
    const start = `import(${JSON.stringify(plugin)}).then(async ({ Plimsoll, default: extension }) => {
    console.log(JSON.stringify(await (Plimsoll ?? extension)({ on() {} })));
    process.exit();
  })`;
    const env = { ...sandbox.env, PATH: join(sandbox.cwd, "stuck") };
    const started = performance.now();
    const child = spawn(process.execPath, ["-e", start], { env, stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    const [printed] = await once(child.stdout, "data");
    expect(String(printed)).toBe(`${hooks}\n`);
    expect(performance.now() - started).toBeGreaterThan(2_000);
  },
);

test("install names the file of somebody else that is in its place", async () => {
  sandbox.write("../home/.claude/skills/plimsoll/note.txt", "mine");
  const refused = await sandbox.call(["plugin", "install", "claude-code"]);
  expect(refused).toMatchObject({ code: 1, stdout: "~/.claude/skills/plimsoll/note.txt: failed\n" });
});

test("status names the settings of an install, and says if somebody changed it", async () => {
  await sandbox.call(["plugin", "install", "claude-code", "--max-result-tokens", "9000", "--guard"]);
  const status = async () => (await sandbox.call(["plugin", "status", "claude-code"])).stdout.split("\n")[0];
  expect(await status()).toBe(
    "claude-code: user: installed with --max-result-tokens 9000 --guard; project: not installed",
  );
  const { stdout } = await sandbox.call(["plugin", "status", "claude-code", "--json"]);
  expect(JSON.parse(stdout)).toMatchObject({
    installed: { user: "installed", project: "absent" },
    settings: { user: { maxResultTokens: 9_000, deltas: true, guard: true }, project: null },
  });
  writeFileSync(join(sandbox.home, ".claude/skills/plimsoll/.mcp.json"), "{}");
  expect(await status()).toBe("claude-code: user: installed by another version, or changed; project: not installed");
});

test("the project's folder can have the plugin", async () => {
  makeRepository(sandbox.cwd);
  const { stdout } = await sandbox.call(["plugin", "install", "claude-code", "--scope", "project"]);
  expect(stdout).toContain(".claude/skills/plimsoll/hooks/hooks.json: written");
});

test("codex and unknown clients get a reason and what to do", async () => {
  const codex = await sandbox.call(["plugin", "install", "codex"]);
  expect(codex).toMatchObject({ code: 2, stderr: expect.stringContaining("plimsoll mcp install --tool codex-cli") });
  const typo = await sandbox.call(["plugin", "install", "claude-cod"]);
  expect(typo.stderr).toContain('Did you mean "claude-code"?');
});

test("the folder in the repository and the marketplace file are what install writes", () => {
  const root = new URL("../../", import.meta.url);
  for (const [name, expected] of Object.entries(claudeFolder({ deltas: true }))) {
    expect(readFileSync(new URL(`plugins/claude-code/${name}`, root), "utf8"), name).toBe(expected);
  }
  const market = JSON.parse(readFileSync(new URL(".claude-plugin/marketplace.json", root), "utf8"));
  expect(market.plugins).toMatchObject([{ name: "plimsoll", source: "./plugins/claude-code" }]);
  expect(dirname(market.plugins[0].source)).toBe("./plugins");
});

test("the help of every action is as pinned, and has examples", async () => {
  for (const words of [
    "plugin",
    "plugin install",
    "plugin uninstall",
    "plugin status",
    "plugin check",
    "plugin serve",
  ]) {
    const { stdout } = await sandbox.call(["help", ...words.split(" ")]);
    expect(stdout).toContain("Examples:");
    await expect(stdout).toMatchFileSnapshot(`golden/help-${words.replaceAll(" ", "-")}.txt`);
  }
});

test("the first prompt after the cache went cold says its price and the choices, and no other prompt does", async () => {
  const transcripts = createTranscripts(sandbox.home);
  const usage = { input_tokens: 0, cache_read_input_tokens: 300_000, cache_creation_input_tokens: 100_000 };
  const answer = (id: string, secondsAgo: number, more: object = usage) =>
    answerLine({ id, session: id, time: new Date(Date.now() - secondsAgo * 1000), usage: more });
  transcripts.add("cold", answer("cold", 430));
  transcripts.add("warm", answer("warm", 100));
  transcripts.add("short", answer("short", 430, { input_tokens: 10, cache_creation_input_tokens: 5_000 }));
  const prompt = async (session: string) => {
    const event = { hook_event_name: "UserPromptSubmit", session_id: session, prompt: "go" };
    const input = JSON.stringify({ ...event, transcript_path: transcripts.file(session) });
    return (await sandbox.call(["plugin", "hook", "claude-code"], { input })).stdout;
  };
  const { systemMessage, ...rest } = JSON.parse(await prompt("cold"));
  expect(systemMessage).toMatch(
    /went cold 2:1\d ago\. This prompt costs about \$1\.50 .*400,000 tokens.*\/compact.*\/clear/,
  );
  expect(rest).toEqual({});
  for (const session of ["warm", "short", "none"]) expect(await prompt(session)).toBe("");
});
