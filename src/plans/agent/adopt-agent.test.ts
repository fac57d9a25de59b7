import { once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { openAttempt } from "./attempt-folder.ts";
import { adoptAgent, spawnWrapper, startAgent } from "./start-agent.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-adopt-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let attempts = 0;

const limits = { timeoutMs: 20_000, maxOutputBytes: 1_000_000 };
const place = { cwd: root, env: process.env, maxOutputBytes: limits.maxOutputBytes };

function newFolder(): string {
  return join(root, `attempt.${attempts++}`);
}

/** Started by somebody who does not follow it. Comes back when it has its claim. */
async function startAlone(command: string): Promise<string> {
  const folder = newFolder();
  openAttempt(folder).create("prompt");
  spawnWrapper(command, { ...place, folder });
  while (readFileSync(join(folder, "state"), "utf8") === "") await sleep(1);
  return folder;
}

async function adopt(folder: string, changes: object = {}) {
  return (await adoptAgent(folder, { ...limits, ...changes }))?.end;
}

/** An attempt whose process is no longer there, or never was. */
function leaveBehind(state: string, stdout = ""): string {
  const folder = newFolder();
  openAttempt(folder).create("prompt");
  for (const [file, text] of Object.entries({ state, stdout })) writeFileSync(join(folder, file), text);
  return folder;
}

const deadPid = 2 ** 22 + 1;

test("an agent that still runs is waited for, and its answer comes", async () => {
  const folder = await startAlone("cat; sleep 0.5; echo late; echo note >&2");
  const end = await adopt(folder);
  expect(end).toMatchObject({ outcome: "completed", code: 0, answer: "promptlate\n", stderr: "note\n" });
  expect(end?.seconds).toBeGreaterThan(0.4);
});

test("an agent that has ended gives its answer and how long it ran, however long ago that was", async () => {
  const folder = newFolder();
  await startAgent({ command: "echo early; exit 4", prompt: "", folder, ...place, ...limits }).end;
  const before = Math.floor(Date.now() / 1000) - 3_600;
  utimesSync(join(folder, "prompt"), before, before);
  utimesSync(join(folder, "state"), before, before + 7);
  expect(await adopt(folder)).toMatchObject({ outcome: "failed", code: 4, answer: "early\n", seconds: 7 });
});

test("an attempt that never started is abandoned and cannot start later", async () => {
  const folder = newFolder();
  openAttempt(folder).create("prompt");
  expect(await adopt(folder)).toBeUndefined();
  await once(spawnWrapper(`touch "${root}/ran"`, { ...place, folder }), "exit");
  expect(existsSync(join(root, "ran"))).toBe(false);
  expect(await adopt(folder)).toBeUndefined();
  expect(readdirSync(folder).toSorted()).toEqual(["prompt", "state", "stderr", "stdout"]);
});

test("without a folder there was no attempt", async () => {
  expect(await adopt(newFolder())).toBeUndefined();
});

test("an agent that ended without an exit code is lost, and its output is kept", async () => {
  const end = await adopt(leaveBehind(`${deadPid} 1\n`, "half"));
  expect(end).toMatchObject({ outcome: "lost", code: null, answer: "half" });
});

test("another process with the agent's pid is neither awaited nor ended", async () => {
  const end = await adopt(leaveBehind(`${process.pid} 1\n`), { signal: AbortSignal.abort() });
  expect(end?.outcome).toBe("lost");
});

test("a damaged pid names no process", async () => {
  for (const pid of ["0 \n", "1 1\n", "1", "-5 1\n", "12", "12\n", "\n"])
    expect((await adopt(leaveBehind(pid)))?.outcome).toBe("lost");
});

test("half a status line does not count", async () => {
  expect((await adopt(leaveBehind(`${deadPid} 1\n0`)))?.outcome).toBe("lost");
});

test("abandoning an attempt too late leaves its status unchanged", async () => {
  for (const [state, end] of [
    [`${deadPid} 1\nabandoned\n0\n`, { outcome: "completed", code: 0 }],
    [`${deadPid} \n3\nabandoned\n`, { outcome: "failed", code: 3 }],
    [`${deadPid} 1\nabandoned\n`, { outcome: "lost", code: null }],
  ] as const)
    expect(await adopt(leaveBehind(state))).toMatchObject(end);
});

test("of two wrappers that start at once only one runs the agent", async () => {
  const folder = newFolder();
  openAttempt(folder).create("prompt");
  const both = [1, 2].map(() => once(spawnWrapper("echo ran; sleep 0.1", { ...place, folder }), "exit"));
  await Promise.all(both);
  expect(readFileSync(join(folder, "stdout"), "utf8")).toBe("ran\n");
});

test("the timeout counts from the agent's start, not from its adoption", async () => {
  const folder = await startAlone("echo $$; sleep 60");
  await expect.poll(() => readFileSync(join(folder, "stdout"), "utf8")).not.toBe("");
  const before = Date.now() / 1000 - 30;
  utimesSync(join(folder, "prompt"), before, before);
  const end = await adopt(folder);
  expect(end?.outcome).toBe("timed_out");
  expect(end?.seconds).toBeGreaterThanOrEqual(30);
  await expect.poll(() => isRunning(Number(end?.answer))).toBe(false);
});

test("an interrupt ends an adopted agent", async () => {
  const folder = await startAlone("echo $$; sleep 60");
  await expect.poll(() => readFileSync(join(folder, "stdout"), "utf8")).not.toBe("");
  const end = await adopt(folder, { signal: AbortSignal.abort() });
  expect(end?.outcome).toBe("interrupted");
  await expect.poll(() => isRunning(Number(end?.answer))).toBe(false);
});

test("an adopted agent that prints too much is ended", async () => {
  const folder = await startAlone("head -c 500000 /dev/zero; sleep 60");
  const end = await adopt(folder, { maxOutputBytes: 100_000 });
  expect(end?.outcome).toBe("too_much_output");
  expect(end?.answer.length).toBe(100_000);
});

test.each(["stdout", "stderr"])("%s is cut on disk even if no process watches", async (name) => {
  const folder = newFolder();
  openAttempt(folder).create("prompt");
  const command = `head -c 50000000 /dev/zero ${name === "stderr" ? ">&2" : ""}`;
  await once(spawnWrapper(command, { ...place, folder }), "exit");
  const { size } = statSync(join(folder, name));
  expect(size).toBeGreaterThan(limits.maxOutputBytes);
  expect(size).toBeLessThanOrEqual(limits.maxOutputBytes + 512);
  expect((await adopt(folder))?.outcome).toBe("too_much_output");
});

test("files that an agent writes itself may exceed the output limit", async () => {
  const large = join(root, "large");
  const folder = await startAlone(`head -c 3000000 /dev/zero >"${large}"; echo done`);
  expect(await adopt(folder)).toMatchObject({ outcome: "completed", answer: "done\n" });
  expect(statSync(large).size).toBe(3_000_000);
});

test("an agent whose folder disappears is lost and stopped", async () => {
  const folder = await startAlone("sleep 60");
  const pid = Number.parseInt(readFileSync(join(folder, "state"), "utf8"), 10);
  // It has looked once when it comes back.
  const end = adopt(folder);
  rmSync(folder, { recursive: true });
  expect(await end).toMatchObject({ outcome: "lost", error: expect.stringContaining("cannot be read") });
  await expect.poll(() => isRunning(pid)).toBe(false);
});

function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
