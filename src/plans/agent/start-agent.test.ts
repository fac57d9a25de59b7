import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { type AgentRequest, startAgent } from "./start-agent.ts";
import type { AgentEnd } from "./watch-agent.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-agent-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let attempts = 0;

interface Finished extends AgentEnd {
  folder: string;
}

async function run(command: string, changes: Partial<AgentRequest> = {}): Promise<Finished> {
  const folder = join(root, "runs", `attempt.${attempts++}`);
  const limits = { timeoutMs: 20_000, maxOutputBytes: 1_000_000 };
  const request = { command, prompt: "do it", folder, cwd: root, env: process.env, ...limits, ...changes };
  return { ...(await startAgent(request).end), folder: request.folder };
}

/** Its time is over after `timeoutMs`, but not before it has said so many lines: a machine under load must not end it earlier. */
async function runUntil(command: string, lines: number, timeoutMs: number): Promise<Finished> {
  const folder = join(root, "runs", `attempt.${attempts++}`);
  let heard = "";
  const request: AgentRequest = {
    ...{ command, prompt: "do it", folder, cwd: root, env: process.env, maxOutputBytes: 1_000_000 },
    get timeoutMs() {
      return heard.split("\n").length > lines ? timeoutMs : 20_000;
    },
    onOutput(_, chunk) {
      heard += chunk;
    },
  };
  return { ...(await startAgent(request).end), folder };
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

async function isGone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 100 && isRunning(pid); tries++) await sleep(20);
  return !isRunning(pid);
}

/** A program for /bin/sh that Node runs. */
function node(code: string): string {
  return `"${process.execPath}" -e '${code}'`;
}

test("a command can name the file with the prompt", async () => {
  const folder = join(root, "a b's", "attempt");
  const end = await run("cat {prompt_file} | tr a-z A-Z", { folder });
  expect(end).toMatchObject({ outcome: "completed", answer: "DO IT" });
});

test("an agent gets the prompt on stdin, and its stdout is the answer", async () => {
  const end = await run("cat; echo done; echo careful >&2");
  expect(end).toMatchObject({ outcome: "completed", code: 0, answer: "do itdone\n", stderr: "careful\n" });
  expect(end.error).toBeUndefined();
  expect(end.seconds).toBeLessThan(10);
});

test("a prompt comes through byte for byte, NUL and every script included", async () => {
  const prompt = `a\0b\r\n\u{1F600} größe \u4e16\u754c ${"x".repeat(100_000)}`;
  const end = await run("cat", { prompt });
  expect(end.answer).toBe(prompt);
});

test("bytes that are not UTF-8 are shown as U+FFFD", async () => {
  const end = await run("printf 'a\\377b'; printf '\\303' >&2");
  expect([end.answer, end.stderr]).toEqual(["a\uFFFDb", "\uFFFD"]);
});

test("an exit code other than 0 is a failure that names it, and the answer so far is kept", async () => {
  const end = await run("echo half; exit 3");
  expect(end).toMatchObject({ outcome: "failed", code: 3, answer: "half\n" });
  expect(end.error).toBe("The agent ended with exit code 3.");
});

test("an agent that was killed by a signal is a failure that names the signal", async () => {
  const end = await run("echo half; kill -9 $$");
  expect(end).toMatchObject({ outcome: "failed", code: 137, answer: "half\n", stderr: "" });
  expect(end.error).toBe("The agent ended with exit code 137 (SIGKILL).");
});

test("a program that is not there fails with the shell's own words", async () => {
  const end = await run("no-such-agent-here");
  expect(end).toMatchObject({ outcome: "failed", code: 127 });
  expect(end.stderr).toContain("no-such-agent-here");
});

test("a directory that is not there is a failure and no exception", async () => {
  const end = await run("cat", { cwd: join(root, "missing") });
  expect(end).toMatchObject({ outcome: "failed", code: null, answer: "" });
  expect(end.error).toContain("could not be started");
});

test("a folder that was used starts nothing", async () => {
  const { folder } = await run("echo once");
  const again = await run("echo twice", { folder });
  expect(again).toMatchObject({ outcome: "failed", code: null, answer: "" });
  expect(readFileSync(join(folder, "stdout"), "utf8")).toBe("once\n");
});

test("a hanging agent is ended at its timeout, together with all that it started", async () => {
  const end = await runUntil("sleep 60 & echo $!; sh -c 'echo $$; sleep 61; true'", 2, 300);
  expect(end).toMatchObject({ outcome: "timed_out", code: null });
  expect(end.error).toBe("The agent was stopped after 0.3 s, its time limit.");
  expect(end.seconds).toBeGreaterThanOrEqual(0.3);
  const pids = end.answer.trim().split("\n").map(Number);
  expect(pids).toHaveLength(2);
  for (const pid of pids) expect(await isGone(pid)).toBe(true);
});

test("output after SIGTERM is kept", async () => {
  const end = await runUntil("trap 'echo bye; echo why >&2; exit 0' TERM; sleep 60 & echo hi; wait", 1, 50);
  expect(end).toMatchObject({ outcome: "timed_out", code: null, answer: "hi\nbye\n", stderr: "why\n" });
});

test("an agent that ignores SIGTERM is killed", { tags: ["deep"] }, async () => {
  const end = await runUntil('trap "" TERM; echo $$; while :; do sleep 0.1; done', 1, 50);
  expect(end.outcome).toBe("timed_out");
  expect(await isGone(Number(end.answer))).toBe(true);
});

test("an interrupt ends the agent, and one that came before starts nothing", async () => {
  const controller = new AbortController();
  const onOutput = () => controller.abort();
  const end = await run("echo $$; sleep 60", { signal: controller.signal, onOutput });
  expect(end).toMatchObject({ outcome: "interrupted", code: null });
  expect(await isGone(Number(end.answer))).toBe(true);
  const never = await run("echo ran", { signal: AbortSignal.abort() });
  expect(never).toMatchObject({ outcome: "interrupted", answer: "" });
  expect(() => statSync(never.folder)).toThrow();
});

/** More than one block of a pipe may be on its way when it is enough. */
const blockBytes = 512 * 1024;

test.each(["stdout", "stderr"] as const)(
  "100 MB on %s are cut on disk, and so in memory, which is filled from there",
  async (name) => {
    const maxOutputBytes = 5_000_000;
    const to = name === "stdout" ? "" : ">&2";
    const end = await run(`yes 0123456789 | head -c 100000000 ${to}`, { maxOutputBytes });
    expect(end).toMatchObject({ outcome: "too_much_output", code: null });
    expect(end.error).toBe("The agent was stopped because it printed more than 5,000,000 bytes.");
    const size = statSync(join(end.folder, name)).size;
    expect(size).toBeGreaterThan(maxOutputBytes);
    expect(size).toBeLessThanOrEqual(maxOutputBytes + blockBytes);
    expect(end.answer.length).toBe(name === "stdout" ? maxOutputBytes : 0);
    expect(end.stderr.length).toBe(name === "stderr" ? 20_000 : 0);
  },
);

test("an agent that continues after its output was cut is stopped anyway", async () => {
  const stubborn = 'trap "" PIPE; while :; do head -c 100000 /dev/zero; done 2>/dev/null';
  const end = await run(stubborn, { maxOutputBytes: 300_000 });
  expect(end.outcome).toBe("too_much_output");
  expect(statSync(join(end.folder, "stdout")).size).toBeLessThanOrEqual(300_000 + blockBytes);
});

test("as much as is allowed is not too much", async () => {
  const end = await run("head -c 300000 /dev/zero", { maxOutputBytes: 300_000 });
  expect(end).toMatchObject({ outcome: "completed", code: 0 });
  expect(end.answer.length).toBe(300_000);
  const more = await run("head -c 300001 /dev/zero", { maxOutputBytes: 300_000 });
  expect(more.outcome).toBe("too_much_output");
});

test("of a long stderr the end is kept, by whole characters", async () => {
  const end = await run(node('process.stderr.write("é".repeat(50_000) + "why")'));
  expect(end.stderr).toBe(`${"é".repeat(19_997)}why`);
});

test("an agent that never reads a large prompt ends like any other", async () => {
  const end = await run("echo bored", { prompt: "x".repeat(5_000_000) });
  expect(end).toMatchObject({ outcome: "completed", answer: "bored\n" });
});

test("a process that the agent leaves running does not delay its end, and stays alive", async () => {
  const end = await run("sleep 30 & echo $!");
  expect(end).toMatchObject({ outcome: "completed", code: 0 });
  expect(end.seconds).toBeLessThan(5);
  const pid = Number(end.answer);
  expect(isRunning(pid)).toBe(true);
  process.kill(pid, "SIGKILL");
});

test("a left process that keeps printing does not delay it either", { tags: ["deep"] }, async () => {
  const end = await run("(while :; do echo more; sleep 0.1; done) & echo $!");
  expect(end).toMatchObject({ outcome: "completed", code: 0 });
  expect(end.seconds).toBeLessThan(3);
  process.kill(Number(/^\d+$/m.exec(end.answer)?.[0]), "SIGKILL");
});

test("an agent that was killed with its wrapper is lost", async () => {
  const end = await run("echo half; sleep 0.1; kill -9 -$(ps -o pgid= -p $$ | tr -d ' ')");
  expect(end).toMatchObject({ outcome: "lost", code: null, answer: "half\n" });
  expect(end.error).toContain("Another process stopped the agent");
});

test("output is handed on while the agent runs, each stream in its order", async () => {
  const heard: { name: string; text: string }[] = [];
  // The agent waits for who hears it.
  const onOutput = (name: string, chunk: Buffer) => {
    heard.push({ name, text: String(chunk) });
    writeFileSync(join(root, "heard"), "");
  };
  const wait = "while [ ! -e heard ]; do sleep 0.02; done";
  const end = await run(`echo first; ${wait}; echo note >&2; echo second`, { onOutput });
  expect(end.outcome).toBe("completed");
  expect(heard[0]).toEqual({ name: "stdout", text: "first\n" });
  const all = (name: string) => heard.filter((each) => each.name === name).map(({ text }) => text);
  expect(all("stdout").join("")).toBe(end.answer);
  expect(all("stderr").join("")).toBe("note\n");
});

test("the agent gets the environment unchanged, and only the user can read its files", async () => {
  const env = { PATH: process.env.PATH, PLIMSOLL_PHASE: "a b", folder: "kept", command: "kept" };
  const end = await run('echo "$PLIMSOLL_PHASE $folder $command"; umask', { env });
  expect(end.answer).toBe(`a b kept kept\n${process.umask().toString(8).padStart(4, "0")}\n`);
  expect(statSync(end.folder).mode & 0o777).toBe(0o700);
  for (const file of ["prompt", "stdout", "stderr", "state"])
    expect(statSync(join(end.folder, file)).mode & 0o777).toBe(0o600);
});

/** As many processes as are around an agent. */
const sameProcesses = "{ { (exec /bin/sh -c true); } | exec cat >/dev/null; } | exec cat >/dev/null";

test("starting an agent costs hardly more than the processes around it", { tags: ["perf"] }, async () => {
  const plain = () =>
    new Promise((settle) => spawn("/bin/sh", ["-c", sameProcesses], { stdio: "ignore" }).on("close", settle));
  const times = { plain: [] as number[], agent: [] as number[] };
  for (let round = 0; round < 20; round++) {
    const start = performance.now();
    await plain();
    const between = performance.now();
    await run("true");
    times.plain.push(between - start);
    times.agent.push(performance.now() - between);
  }
  const least = (values: number[]) => Math.min(...values);
  // Room for a look at its folder or two, which come every 25 ms, and for all that is slow because the machine is.
  expect(least(times.agent)).toBeLessThan(3 * least(times.plain) + 50);
});

test.skipIf(process.platform !== "linux")("a folder that cannot be made is a failure, not a wait", async () => {
  const end = await run("true", { folder: "/proc/self/runs/attempt" });
  expect(end).toMatchObject({ outcome: "failed", error: expect.stringContaining("ENOENT") });
});
