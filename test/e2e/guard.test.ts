import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readEvents } from "../../src/core/store/index.ts";
import { openStore } from "../../src/host/index.ts";
import { answerLine, createTranscripts, type Transcripts } from "./claude-transcripts.ts";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
let transcripts: Transcripts;

beforeEach(() => {
  sandbox = createSandbox();
  transcripts = createTranscripts(sandbox.home);
});
afterEach(() => sandbox.remove());

const attended = { CLAUDE_CODE_SESSION_ATTENDED: "1" };
const unattended = { CLAUDE_CODE_SESSION_ATTENDED: "0", CLAUDE_CODE_ENTRYPOINT: "sdk-cli" };

function configure(text: string): void {
  mkdirSync(join(sandbox.home, ".config/plimsoll"), { recursive: true });
  writeFileSync(join(sandbox.home, ".config/plimsoll/config.yaml"), text);
}

function hookInput(session = "s1"): string {
  return JSON.stringify({
    ...{ session_id: session, transcript_path: transcripts.file(session), cwd: sandbox.cwd },
    ...{ permission_mode: "default", hook_event_name: "PreToolUse", tool_name: "Bash", tool_input: {} },
  });
}

async function askGuard(env: Record<string, string> = attended, input = hookInput()): Promise<string> {
  const { code, stdout, stderr } = await sandbox.call(["guard", "--hook"], { input, env });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

function decisionOf(stdout: string): { permissionDecision: string; permissionDecisionReason: string } {
  return JSON.parse(stdout).hookSpecificOutput;
}

test("its help is frozen", async () => {
  const { stdout } = await sandbox.call(["guard", "--help"]);
  await expect(stdout).toMatchFileSnapshot("golden/help-guard.txt");
});

test("says nothing if no limit is configured, whatever the transcripts are", async () => {
  transcripts.add("s1", '{"usage" damaged\n');
  const { code, stdout, stderr } = await sandbox.run(["guard", "--hook"], { input: hookInput(), env: unattended });
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "", stderr: "" });
  configure("# guard: off\n");
  expect(await askGuard()).toBe("");
});

test("asks from the call on at which the session reached its limit, never before, sub-agents included", async () => {
  configure("guard: { session_usd: 1.5 }\n");
  for (let index = 1; index <= 6; index++) {
    const line = answerLine({ id: `m${index}` });
    // Every line is there twice, as in real transcripts.
    if (index % 2 === 0) transcripts.addToAgent("s1", `a${index}`, line + line);
    else transcripts.add("s1", line + line);
    const stdout = await askGuard();
    if (index < 5) expect({ index, stdout }).toEqual({ index, stdout: "" });
    else expect(decisionOf(stdout).permissionDecision).toBe("ask");
  }
  const { permissionDecisionReason: reason } = decisionOf(await askGuard());
  expect(reason).toBe(
    'Plimsoll\'s spend guard: this session has spent $1.80 of $1.50 (6 answers in this session, sub-agents included, at list prices of the API; a subscription is billed differently). To continue, allow this call (the next question comes at $3.30), or run "plimsoll guard allow 1.5" for $1.50 more, or raise guard.session_usd in ~/.config/plimsoll/config.yaml.',
  );
});

test("adds up all sessions of the day, and denies if told so", async () => {
  configure("guard: { day_usd: 0.9, on_limit: deny }\n");
  const yesterday = new Date(Date.now() - 86_400_000);
  transcripts.add("s1", answerLine({ id: "a" }) + answerLine({ id: "old", time: yesterday }));
  transcripts.addToAgent("s2", "x", answerLine({ id: "b", session: "s2" }));
  transcripts.add("s2", "\n");
  expect(await askGuard()).toBe("");
  transcripts.add("s3", answerLine({ id: "c", session: "s3" }));
  const { permissionDecision, permissionDecisionReason } = decisionOf(await askGuard());
  expect(permissionDecision).toBe("deny");
  expect(permissionDecisionReason).toContain("today's sessions have spent $0.90 of $0.90");
  expect(permissionDecisionReason).toContain(
    'To continue, run "plimsoll guard allow 0.9" for $0.90 more, or raise guard.day_usd in ',
  );
});

test("stops a run that nobody watches before the tool, and says why in guard and in the events", async () => {
  configure("guard: { session_usd: 0.3 }\n");
  transcripts.add("s1", answerLine({ id: "a" }));
  const answer = JSON.parse(await askGuard(unattended));
  const reason = expect.stringContaining("spent $0.30 of $0.30");
  // The end of the run alone lets the tool run, and a refusal alone lets the agent go on.
  expect(answer).toEqual({
    continue: false,
    stopReason: reason,
    hookSpecificOutput: {
      hookEventName: "PreToolUse",
      permissionDecision: "deny",
      permissionDecisionReason: reason,
    },
  });
  const { stdout } = await sandbox.call(["guard"]);
  expect(stdout).toContain("denied Bash in session s1: Plimsoll's spend guard: this session has spent $0.30 of $0.30");
  const store = await openStore({ place: join(sandbox.home, ".local/state/plimsoll/state.db") });
  const events = await readEvents(store);
  await store.close();
  expect(events).toMatchObject([
    { kind: "guard", sessionId: "s1", numbers: { decision: "deny", tool: "Bash", session_usd: 0.3 } },
  ]);
  expect(JSON.parse(await askGuard({ CLAUDE_CODE_ENTRYPOINT: "sdk-ts" }))).toHaveProperty("continue", false);
});

/** The line that Claude Code writes when a tool has run, or when a person said no. */
function resultLine(callId: string, more: object = {}): string {
  const content = [{ type: "tool_result", tool_use_id: callId, content: "ok" }];
  return `${JSON.stringify({ type: "user", message: { role: "user", content }, ...more })}\n`;
}

function callInput(callId: string, tool = "Bash"): string {
  return JSON.stringify({ ...JSON.parse(hookInput()), tool_use_id: callId, tool_name: tool });
}

test("asks once: after a yes the next question comes when as much as the limit was spent again", async () => {
  configure("guard: { session_usd: 0.5 }\n");
  transcripts.add("s1", answerLine({ id: "a" }) + answerLine({ id: "b" }));
  const first = await askGuard(attended, callInput("c1"));
  expect(decisionOf(first).permissionDecisionReason).toContain("the next question comes at $1.10");
  // A call beside the first one is a question too, because nobody has answered yet.
  expect(decisionOf(await askGuard(attended, callInput("c2"))).permissionDecision).toBe("ask");
  transcripts.add("s1", resultLine("c2") + answerLine({ id: "c" }));
  expect(await askGuard(attended, callInput("c3"))).toBe("");
  transcripts.add("s1", answerLine({ id: "d" }));
  expect(decisionOf(await askGuard(attended, callInput("c4"))).permissionDecisionReason).toContain("$1.20 of $1.10");
  // After a no it asks again.
  transcripts.add("s1", resultLine("c4", { toolUseResult: "User rejected tool use" }) + answerLine({ id: "e" }));
  expect(decisionOf(await askGuard(attended, callInput("c5"))).permissionDecision).toBe("ask");
});

test("takes a call that a rule of the client denied for no yes", async () => {
  configure("guard: { session_usd: 0.5 }\n");
  transcripts.add("s1", answerLine({ id: "a" }) + answerLine({ id: "b" }));
  expect(decisionOf(await askGuard(attended, callInput("c1"))).permissionDecision).toBe("ask");
  // As Claude Code 2.1.327 writes it: nobody was asked.
  const denied = { toolUseResult: "Error: Permission to use Bash has been denied.", toolDenialKind: "permission-rule" };
  transcripts.add("s1", resultLine("c1", denied));
  expect(decisionOf(await askGuard(attended, callInput("c2"))).permissionDecision).toBe("ask");
});

test("a person can allow more dollars for the session that was stopped last", async () => {
  configure("guard: { session_usd: 0.5, day_usd: 0.6, on_limit: deny }\n");
  expect(await sandbox.call(["guard", "allow", "5"])).toMatchObject({ code: 2 });
  transcripts.add("s1", answerLine({ id: "a" }) + answerLine({ id: "b" }));
  expect(decisionOf(await askGuard(attended, callInput("c1", "Read"))).permissionDecision).toBe("deny");
  expect((await sandbox.call(["guard", "allow", "lots"])).code).toBe(2);
  const { stdout } = await sandbox.call(["guard", "allow", "0.25"]);
  expect(stdout).toBe("session s1 may go on: session up to $0.85, day up to $0.85\n");
  expect(await askGuard(attended, callInput("c2"))).toBe("");
  transcripts.add("s1", answerLine({ id: "c" }));
  expect(decisionOf(await askGuard(attended, callInput("c3"))).permissionDecisionReason).toContain("$0.90 of $0.85");
});

test("shows the reason beside a question whose dialog leaves it out", async () => {
  configure("guard: { session_usd: 0.3 }\n");
  transcripts.add("s1", answerLine({ id: "a" }));
  expect(JSON.parse(await askGuard(attended, callInput("c1", "Read")))).toHaveProperty("systemMessage");
  expect(JSON.parse(await askGuard(attended, callInput("c2", "Bash")))).not.toHaveProperty("systemMessage");
});

test("asks and says why if it cannot tell what was spent", async () => {
  configure("guard: { session_usd: 5 }\n");
  const reasonOf = async (input = hookInput()): Promise<string> =>
    decisionOf(await askGuard(attended, input)).permissionDecisionReason;
  expect(await reasonOf()).toContain("s1.jsonl: no such file or directory");
  expect(await reasonOf("not json")).toContain("the client did not name the transcript");
  transcripts.add("s1", answerLine({ id: "a", model: "my-own-model" }));
  expect(await reasonOf()).toContain('the price of "my-own-model" is not known. Set it under prices');
  transcripts.add("s2", `${answerLine({ id: "b", session: "s2" })}{"type":"assistant","message":{"usage":{\n`);
  expect(await reasonOf(hookInput("s2"))).toContain("1 line cannot be read");
  expect(await reasonOf(hookInput("s2"))).toContain("1 line cannot be read");
  configure("guard: { session_usd: many }\n");
  expect(await reasonOf()).toMatch(/"guard.session_usd" must be.* or repair ~\/\.config\/plimsoll\/config\.yaml\.$/);
  configure("guard: { session_usd: 5 }\n");
  sandbox.write(".plimsoll/config.yaml", "guard: [\n");
  expect(await reasonOf()).toMatch(/ or repair \.plimsoll\/config\.yaml\.$/);
});

test("a price in the user's configuration makes a model known", async () => {
  configure("guard: { session_usd: 1.5 }\nprices: { my-own-model: { input: 10, output: 1 } }\n");
  transcripts.add("s1", answerLine({ id: "a", model: "my-own-model" }));
  expect(await askGuard()).toBe("");
  transcripts.add("s1", answerLine({ id: "b", model: "my-own-model" }));
  expect(decisionOf(await askGuard()).permissionDecisionReason).toContain("spent $2.00 of $1.50");
});

test("a project's limits count only after they were trusted, and never instead of the user's before", async () => {
  configure("guard: { session_usd: 0.5 }\n");
  sandbox.write(".plimsoll/config.yaml", "guard: { session_usd: 100 }\n");
  transcripts.add("s1", answerLine({ id: "a" }) + answerLine({ id: "b" }));
  expect(decisionOf(await askGuard()).permissionDecisionReason).toContain("spent $0.60 of $0.50");
  expect((await sandbox.call(["trust", "--yes"])).code).toBe(0);
  expect(await askGuard()).toBe("");
});

test("shows a person what was spent and what the limits are", async () => {
  configure("guard: { session_usd: 5, day_usd: 20 }\n");
  transcripts.add("s1", answerLine({ id: "a" }));
  const { stdout } = await sandbox.call(["guard", "--transcript", transcripts.file()]);
  expect(stdout).toBe("session  $0.30 of $5.00\ntoday    $0.30 of $20.00\n");
  const { stdout: json } = await sandbox.call(["guard", "--json"]);
  expect(JSON.parse(json)).toMatchObject({ day: { answers: 1 }, guard: { session_usd: 5, on_limit: "ask" } });
});

test.each([["guard", "--hook"], ["statusline"]])(
  "a repository cannot stop %s with a device as its configuration",
  (...args) => {
    transcripts.add("s1", answerLine({ id: "m1" }));
    mkdirSync(join(sandbox.cwd, ".plimsoll"));
    symlinkSync("/dev/zero", join(sandbox.cwd, ".plimsoll/config.yaml"));
    const options = { input: hookInput(), cwd: sandbox.cwd, env: { ...sandbox.env, ...attended }, timeout: 10_000 };
    const { status, stdout } = spawnSync(process.execPath, [mainFile, ...args], { ...options, encoding: "utf8" });
    expect(status).toBe(0);
    if (args[0] === "guard") expect(decisionOf(stdout).permissionDecisionReason).toContain("config.yaml");
  },
);

test("a pipe among the transcripts stops neither the guard nor the status line", async () => {
  transcripts.add("s1", answerLine({ id: "m1" }));
  execFileSync("mkfifo", [transcripts.file("s2")]);
  configure("guard: { day_usd: 100 }\n");
  expect(decisionOf(await askGuard()).permissionDecisionReason).toContain(
    "s2.jsonl: is a pipe, socket or device, not a file",
  );
  const { stdout } = await sandbox.call(["statusline"], { input: hookInput() });
  expect(stdout).toContain("session $");
});
