import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSandbox, mainFile, type Sandbox } from "./run-plimsoll.ts";

let sandbox: Sandbox;
let env: { PATH: string };

beforeEach(() => {
  sandbox = createSandbox();
  mkdirSync(join(sandbox.home, "bin"));
  env = { PATH: `${join(sandbox.home, "bin")}:/usr/bin:/bin` };
  sandbox.write("package.json", '{ "name": "shop", "version": "1.0.0" }');
  sandbox.write("src/cart.ts", "export const cart = [];\n");
  sandbox.write("AGENTS.md", "Prices are whole cents.\n");
});
afterEach(() => sandbox.remove());

/** A program on the sandbox's PATH. */
function addProgram(name: string, script: string): void {
  const file = join(sandbox.home, "bin", name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, [mainFile, "run", ...args], {
    cwd: sandbox.cwd,
    env: { ...sandbox.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

function run(args: readonly string[], input?: string) {
  return sandbox.run(["run", ...args], input === undefined ? { env } : { env, input });
}

/** As `run`, for what starts no agent: it needs no process of its own. */
function call(args: readonly string[], input?: string) {
  return sandbox.call(["run", ...args], input === undefined ? { env } : { env, input });
}

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** Prints the last event of Claude Code. */
const claudeProgram = (changes: object, act = "") =>
  `cat >prompt\n${act}\ncat <<'END'\n${JSON.stringify({ type: "result", result: "Done.", total_cost_usd: 0.25, usage: { input_tokens: 1000, output_tokens: 20 }, permission_denials: [], ...changes })}\nEND`;

test("escapes in what an agent tells people are shown as text", async () => {
  addProgram("claude", claudeProgram({}, "printf '\\033]52;c;aGk=\\007 \\342\\200\\256é\\n' >&2"));
  const { code, stderr } = await run(["Add a coupon", "--agent", "claude"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "\\x1b]52;c;aGk=\\x07 \\u202eé\n" });
});

test("the answer, the cost and the usage come out of the JSON that claude prints", async () => {
  addProgram("claude", claudeProgram({}));
  const args = ["Add a coupon", "--agent", "claude"];
  expect(await run(args)).toMatchObject({ code: 0, stdout: "Done.\n", stderr: "" });
  const json = JSON.parse((await run([...args, "--json"])).stdout);
  expect(json).toMatchObject({ answer: "Done.", costUsd: 0.25, denials: [] });
  expect(json.usage).toEqual({ inputTokens: 1_000, cachedTokens: 0, outputTokens: 20 });
});

test("a run in which tools were denied fails, with what to do", async () => {
  const denials = [{ tool_name: "Bash", tool_input: { command: "npm test" } }];
  addProgram("claude", claudeProgram({ permission_denials: denials }));
  const { code, stdout, stderr } = await run(["Add a coupon", "--agent", "claude"]);
  expect([code, stdout]).toEqual([1, "Done.\n"]);
  expect(stderr).toMatch(/^plimsoll: The agent was not allowed to use: Bash npm test\. Allow more with --allow/);
  const { error } = JSON.parse((await run(["Add a coupon", "--agent", "claude", "--json"])).stdout);
  expect(error).toMatchObject({ code: "denied", hint: expect.stringContaining("--allow all") });
});

test("a run that changes nothing in its scope fails, and one that does completes", async () => {
  const args = (command: string) => ["Fix it", "--agent-command", command, "--scope", "src/**"];
  const idle = await run(args("echo All done."));
  expect([idle.code, idle.stdout]).toEqual([1, "All done.\n"]);
  expect(idle.stderr).toContain("The agent changed no file in its scope, src/**.");
  expect(JSON.parse((await run([...args("true"), "--json"])).stdout).error.code).toBe("unchanged");
  expect(await run(args("echo >other"))).toMatchObject({ code: 1 });
  expect(await run(args("echo new >src/cart.ts"))).toMatchObject({ code: 0, stderr: "" });
  const braces = ["Fix it", "--agent-command", "echo newer >src/cart.ts", "--scope", "{docs,src}/**"];
  expect(await run(braces)).toMatchObject({ code: 0, stderr: "" });
});

test("an agent's own command gets the model and a file with the prompt", async () => {
  const command = 'echo {model} "$PLIMSOLL_MODEL"; cat {prompt_file}';
  const args = ["Say it", "--agent-command", command, "--no-project-context"];
  expect(await run([...args, "--model", "a b"])).toMatchObject({ code: 0, stdout: "a b a b\nSay it" });
  expect((await call(args)).stderr).toContain("contains {model}, but no model is chosen");
});

test("a configuration names the agent, its model, what it may do and more words, which options override", async () => {
  const line = async (...flags: string[]) =>
    JSON.parse((await call(["x", "--dry-run", "--json", ...flags])).stdout).command;
  mkdirSync(join(sandbox.home, ".config/plimsoll"), { recursive: true });
  const config = "run:\n  agent: claude\n  model: opus\n  allow: read\n  args: [--allowedTools, 'Bash(npm test:*)']\n";
  writeFileSync(join(sandbox.home, ".config/plimsoll/config.yaml"), config);
  const reading = "--permission-mode=default '--disallowedTools=Edit(**),Write(**),NotebookEdit(**)'";
  const words = "--allowedTools 'Bash(npm test:*)'";
  expect(await line()).toBe(`claude -p --verbose --output-format=stream-json ${reading} --model=opus ${words}`);
  expect(await line("--allow", "edit", "--model", "sonnet")).toBe(
    `claude -p --verbose --output-format=stream-json --permission-mode=acceptEdits --model=sonnet ${words}`,
  );
  // What is meant for one agent is not for another.
  expect(await line("--agent", "pi")).toBe("pi -p --mode json --tools read,grep,find,ls");
  expect(await line("--agent-command", "mine")).toBe("mine");
});

test("a project's own choice of agent has no effect until it is trusted", async () => {
  addProgram("claude", claudeProgram({}));
  sandbox.write(".plimsoll/config.yaml", "run:\n  allow: all\n  args: [--dangerously-skip-permissions]\n");
  const args = ["x", "--agent", "claude"];
  const refused = await call(args);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain(".plimsoll/config.yaml:1: the project sets run to");
  expect(existsSync(join(sandbox.cwd, "prompt"))).toBe(false);
  expect(await call([...args, "--dry-run"])).toMatchObject({ code: 1 });
  expect(await run([...args, "--trust"])).toMatchObject({ code: 0, stdout: "Done.\n" });
});

test("gemini gets no trust for a folder with settings of its own", async () => {
  const line = async () => JSON.parse((await call(["x", "--agent", "gemini", "--dry-run", "--json"])).stdout).command;
  expect(await line()).toBe("gemini --approval-mode=auto_edit --skip-trust --output-format=stream-json");
  sandbox.write(".gemini/settings.json", "{}");
  expect(await line()).toBe("gemini --approval-mode=auto_edit --output-format=stream-json");
});

test("the snapshot leaves out what the agent loads by itself, and says so", async () => {
  sandbox.write("CLAUDE.md", "Use tabs.\n");
  const prompt = async (...flags: string[]) => (await call(["x", "--dry-run", ...flags])).stdout;
  const own = await prompt("--agent", "claude");
  expect(own).toContain("### CLAUDE.md\n\nNot repeated here: you load this by yourself.");
  expect(own).not.toContain("Use tabs.");
  expect(own).toContain("Prices are whole cents.");
  const codex = await prompt("--agent", "codex");
  expect(codex).toContain("Use tabs.");
  expect(codex).not.toContain("Prices are whole cents.");
  for (const all of [await prompt("--agent", "claude", "--with-conventions"), await prompt("--agent-command", "mine")])
    for (const text of ["Use tabs.", "Prices are whole cents."]) expect(all).toContain(text);
  sandbox.write("AGENTS.md", "Use tabs.\n");
  expect(await prompt("--agent", "claude")).not.toContain("Use tabs.");
});

test("tokens are counted as the agent's models do, unless a counter or model is chosen", async () => {
  const counter = async (...flags: string[]) =>
    JSON.parse((await call(["x", "--dry-run", "--json", ...flags])).stdout).prompt.context.counter;
  expect(await counter("--agent", "claude")).toBe("estimate:claude-5");
  expect(await counter("--agent", "codex")).toBe("estimate:o200k");
  expect(await counter("--agent", "claude", "--model", "opus")).toBe("estimate:claude-5");
  expect(await counter("--agent", "claude", "--model", "claude-sonnet-4-5")).toBe("estimate:claude-3");
  expect(await counter("--agent", "claude", "--counter", "bytes/4")).toBe("bytes/4");
  expect(await counter("--agent", "pi")).toBe("bytes/4");
});

test("an agent gets the project's snapshot and the task on its stdin, and its answer comes through", async () => {
  addProgram("pi", 'echo "args: $*"; cat');
  sandbox.write("CONTRIBUTING.md", "Reviews take a day.\n");
  const { code, stdout, stderr } = await run(["Add a coupon", "--agent", "pi"]);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/^args: -p --mode json --tools read,grep,find,ls,edit,write\n/);
  expect(stdout).toContain("shop");
  expect(stdout).toContain("cart.ts");
  expect(stdout).toContain("Reviews take a day.");
  expect(stdout).toMatch(/\n\n---\n\nAdd a coupon\n$/);
});

test("a model is named to the agent", async () => {
  addProgram("codex", 'echo "args: $*"');
  const { code, stdout } = await run(["x", "--agent", "codex", "--model", "gpt-5"]);
  expect([code, stdout]).toEqual([0, "args: exec --json -c sandbox_mode=workspace-write --model=gpt-5 -\n"]);
});

test("fabric and prior work come between the project and the task, in this order", async () => {
  sandbox.write("fabric.md", "## Claims\n\n- src/cart.ts: phase-1\n");
  sandbox.write("prior.md", "The cart was renamed.\n");
  const files = ["--fabric", "fabric.md", "--prior", "prior.md"];
  const { stdout } = await run(["Go on", "--agent-command", "cat", ...files]);
  const places = ["cart.ts", "## Claims", "The cart was renamed.", "Go on"].map((part) => stdout.indexOf(part));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect(Math.min(...places)).toBeGreaterThanOrEqual(0);
  expect(stdout.split("\n\n---\n\n")).toHaveLength(4);
});

test("without context the prompt is the task alone", async () => {
  for (const flag of ["--no-project-context", "--max-context-tokens=0"]) {
    const { code, stdout } = await run(["Just this", "--agent-command", "cat", flag]);
    expect([code, stdout]).toEqual([0, "Just this"]);
  }
});

test("a task can come from standard input", async () => {
  const args = ["-", "--agent-command", "cat", "--no-project-context"];
  expect(await run(args, "größer\nand longer\n")).toMatchObject({ code: 0, stdout: "größer\nand longer\n" });
  for (const empty of ["", " \n"]) {
    const refused = await call(args, empty);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("TASK is empty");
  }
  const shared = await call(["-", "--fabric", "-", "--dry-run"], "only once");
  expect(shared).toMatchObject({ code: 2, stdout: "" });
  expect(shared.stderr).toContain(
    'standard input ("-") is named for more than one input of TASK, --fabric and --prior',
  );
});

test("with --json the answer and the account of the prompt are one value", async () => {
  const agent = ["--agent-command", "echo note >&2; tail -n 1"];
  const { code, stdout, stderr } = await run(["Answer", "--json", "--counter", "bytes/3.5", ...agent]);
  expect([code, stderr]).toEqual([0, "note\n"]);
  const value = JSON.parse(stdout);
  expect(Object.keys(value)).toEqual(["answer", "exitCode", "seconds", "denials", "prompt"]);
  expect(value).toMatchObject({ answer: "Answer", exitCode: 0 });
  const { tokens, context, ...more } = value.prompt;
  expect(more).toEqual({});
  expect(Object.keys(context)).toEqual(["tokens", "maxTokens", "counter", "layers", "omitted", "overflow"]);
  expect(context).toMatchObject({ maxTokens: 10_000, counter: "bytes/3.5", omitted: 0, overflow: 0 });
  expect(context.layers).toEqual([{ name: "project", tokens: context.tokens, truncated: false, omitted: 0 }]);
  expect(context.tokens).toBeGreaterThan(10);
  expect(tokens).toBeGreaterThan(context.tokens);
});

test("an agent that fails makes the exit code 1, and what it said is kept", async () => {
  const failing = ["x", "--agent-command", "echo half; echo why >&2; exit 7"];
  const { code, stdout, stderr } = await run(failing);
  expect([code, stdout]).toEqual([1, "half\n"]);
  expect(stderr).toBe("why\nplimsoll: The agent ended with exit code 7.\n");
  const json = JSON.parse((await run([...failing, "--json"])).stdout);
  expect(json).toMatchObject({ answer: "half\n", exitCode: 7, error: { code: "failed" } });
});

test("a hanging agent is ended after its time, with all that it started", { tags: ["deep"] }, async () => {
  const { code, stdout, stderr } = await run([
    "x",
    "--agent-command",
    "sleep 60 & echo $!; sleep 60",
    "--timeout",
    "1",
  ]);
  expect(code).toBe(1);
  expect(stderr).toBe("plimsoll: The agent was stopped after 1 s, its time limit.\n");
  await expect.poll(() => isRunning(Number(stdout))).toBe(false);
});

test("an agent that prints 100 MB is ended, and 10 MB of it come through", async () => {
  const { code, stdout, stderr } = await run(["x", "--agent-command", "yes | head -c 100000000"]);
  expect([code, stdout.length]).toEqual([1, 10_000_000]);
  expect(stderr).toBe("plimsoll: The agent was stopped because it printed more than 10,000,000 bytes.\n");
});

test("a dry run prints the prompt and what is in it, and runs nothing", async () => {
  const args = ["Do it", "--dry-run", "--agent-command", "touch ran"];
  const { code, stdout, stderr } = await call(args);
  expect(code).toBe(0);
  expect(stdout).toMatch(/cart\.ts[\s\S]*\n\n---\n\nDo it$/);
  expect(stderr).toMatch(
    /^plimsoll: context: \d+ of 10,000 tokens \(bytes\/4\)\nplimsoll: project: \d+ tokens\nplimsoll: works in .*, command: touch ran, permissions: as the command says\n$/,
  );
  const { prompt, ...run } = JSON.parse((await call([...args, "--json"])).stdout);
  const permissions = "as the command says";
  expect(run).toEqual({ workingDirectory: ".", command: "touch ran", permissions });
  expect(prompt.text).toBe(stdout);
  expect(prompt.tokens).toBe(Math.ceil(Buffer.byteLength(stdout) / 4));
  expect(prompt.context.layers).toHaveLength(1);
  expect(existsSync(join(sandbox.cwd, "ran"))).toBe(false);
});

test("the budget is the flag's, else the configuration's, and the context is within it", async () => {
  sandbox.write("AGENTS.md", "A rule of this project, told at length.\n".repeat(500));
  sandbox.write(".plimsoll/config.yaml", "context:\n  max_tokens: 300\n");
  const account = async (...flags: string[]) =>
    JSON.parse((await call(["x", "--dry-run", "--json", ...flags])).stdout).prompt.context;
  const configured = await account();
  expect(configured.maxTokens).toBe(300);
  expect(configured.tokens).toBeLessThanOrEqual(300);
  expect(configured.tokens).toBeGreaterThan(200);
  expect(await account("--max-context-tokens", "900")).toMatchObject({ maxTokens: 900 });
});

test.each([
  [["--max-context-tokens", "-1"], '--max-context-tokens is "-1"'],
  [["--max-context-tokens=-1"], '--max-context-tokens is "-1"'],
  [["--max-context-tokens", "1.5"], '--max-context-tokens is "1.5"'],
  [["--max-context-tokens", "ten"], '--max-context-tokens is "ten"'],
  [["--timeout", "0"], '--timeout is "0"'],
  [["--agent", "claude"], "both given"],
  [["--allow", "read"], "only known agents can be limited"],
])("wrong usage is told, and nothing runs: %j", async (flags, message) => {
  const { code, stdout, stderr } = await call(["x", "--agent-command", "touch ran", ...flags]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain(message);
  expect(existsSync(join(sandbox.cwd, "ran"))).toBe(false);
});

test("without an agent those on PATH are named, and nothing runs", async () => {
  expect(await call(["x"])).toMatchObject({ code: 2, stdout: "" });
  expect((await call(["x"])).stderr).toContain("None of claude, codex, opencode, gemini, pi is on PATH");
  for (const name of ["pi", "claude"]) addProgram(name, `touch "${sandbox.cwd}/ran"`);
  const { code, stdout, stderr } = await call(["x"]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain("Found on PATH: claude, pi.");
  expect(existsSync(join(sandbox.cwd, "ran"))).toBe(false);
});

test("an unknown agent and one that is not installed are told before anything runs", async () => {
  const unknown = await call(["x", "--agent", "cloude"]);
  expect(unknown.code).toBe(2);
  expect(unknown.stderr).toContain('Did you mean "claude"? Choose from claude, codex, opencode, gemini, pi.');
  for (const args of [
    ["--agent", "gemini"],
    ["--agent-command", "./agent.sh --fast"],
  ]) {
    const missing = await call(["x", ...args]);
    expect([missing.code, missing.stdout]).toEqual([2, ""]);
    expect(missing.stderr).toMatch(/cannot be run: there is no such (program|file)/);
  }
});

test("a layer that cannot be read is told by its name", async () => {
  const { code, stderr } = await call(["x", "--agent-command", "touch ran", "--prior", "missing.md"]);
  expect(code).toBe(1);
  expect(stderr).toContain("missing.md: no such file or directory");
  expect(existsSync(join(sandbox.cwd, "ran"))).toBe(false);
});

test("what the agent says comes while it still runs", async () => {
  const child = start(["x", "--agent-command", "echo early; echo warning >&2; sleep 60"]);
  const [first] = await Promise.all([nextText(child.stdout), nextText(child.stderr)]);
  expect(first).toBe("early\n");
  child.kill("SIGTERM");
  expect(await exitOf(child)).toBe(130);
});

test("an interrupt ends the agent and all that it started, and the exit code is 130", async () => {
  const child = start(["x", "--agent-command", "sleep 60 & echo $!; sleep 60"]);
  const pid = Number(await nextText(child.stdout));
  expect(isRunning(pid)).toBe(true);
  const said = nextText(child.stderr);
  child.kill("SIGINT");
  expect(await exitOf(child)).toBe(130);
  expect(await said).toBe("plimsoll: interrupted: plimsoll stopped the agent\n");
  await expect.poll(() => isRunning(pid)).toBe(false);
});

test("an interrupted agent's answer so far is the one JSON value, with the error", { tags: ["deep"] }, async () => {
  const child = start(["x", "--json", "--agent-command", "echo half; echo ready >&2; sleep 60"]);
  let stdout = "";
  child.stdout?.on("data", (chunk: Buffer) => {
    stdout += chunk;
  });
  await nextText(child.stderr);
  child.kill("SIGTERM");
  expect(await exitOf(child)).toBe(130);
  expect(JSON.parse(stdout)).toMatchObject({
    answer: "half\n",
    prompt: { context: { maxTokens: 10_000 } },
    error: { code: "interrupted", message: "interrupted: plimsoll stopped the agent", hint: null },
  });
});

test("what of the context was cut is told before the agent speaks", async () => {
  sandbox.write("prior.md", "What was done, at length.\n".repeat(200));
  sandbox.write("fabric.md", `## Discoveries\n${"- the port is taken\n".repeat(200)}`);
  const args = ["x", "--agent-command", "echo hi >&2", "--max-context-tokens", "200", "--no-project-context"];
  const { code, stderr } = await run([...args, "--prior", "prior.md", "--fabric", "fabric.md"]);
  expect(code).toBe(0);
  expect(stderr).toMatch(/^plimsoll: context: \d+ of 200 tokens/);
  expect(stderr).toMatch(/plimsoll: prior work: \d+ tokens, truncated, \d+ lines omitted\n/);
  expect(stderr).toMatch(/plimsoll: \d+ tokens of discoveries did not fit\nhi\n$/);
});

test("a task of several words that nobody quoted is told so", async () => {
  const { code, stderr } = await call(["fix", "the", "bug", "--agent-command", "touch ran"]);
  expect([code, stderr]).toEqual([
    2,
    'plimsoll: unexpected argument "the". Put quotes around TASK if it has several words.\n',
  ]);
  expect(existsSync(join(sandbox.cwd, "ran"))).toBe(false);
});

test("a reader that leaves ends the agent without a failure", { tags: ["deep"] }, async () => {
  const child = start(["x", "--agent-command", "echo $$; while :; do echo more; sleep 0.05; done"]);
  const pid = Number.parseInt(await nextText(child.stdout), 10);
  child.stdout?.destroy();
  expect(await exitOf(child)).toBe(0);
  await expect.poll(() => isRunning(pid)).toBe(false);
});

test("a process that the agent leaves behind does not keep the command", { tags: ["deep"] }, async () => {
  const started = performance.now();
  const { code, stdout } = await run(["x", "--agent-command", "sleep 20 & echo $!"]);
  expect(code).toBe(0);
  expect(performance.now() - started).toBeLessThan(10_000);
  process.kill(Number(stdout), "SIGKILL");
});

function nextText(stream: NodeJS.ReadableStream | null): Promise<string> {
  return new Promise((resolve) => stream?.once("data", (chunk: Buffer) => resolve(String(chunk))));
}

function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve) => child.once("exit", resolve));
}
