import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { startProcess } from "./start-process.ts";

const options = { cwd: "/", env: process.env, signal: new AbortController().signal };

/** Says its number, then never ends by itself. */
const endless = ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"];

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // Ended, and kept in the table until somebody asks how.
    return !(existsSync("/proc/self/stat") && /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8")));
  } catch {
    return false;
  }
}

test("a process ends when its reader leaves", async () => {
  const started = startProcess(process.execPath, endless, options);
  let pid = 0;
  for await (const chunk of started.output) {
    pid = Number(chunk);
    expect(isRunning(pid)).toBe(true);
    break;
  }
  expect((await started.end).code).toBe(null);
  await expect.poll(() => isRunning(pid)).toBe(false);
});

test("a process ends when its call is cancelled, and its output just ends", async () => {
  const controller = new AbortController();
  const started = startProcess(process.execPath, endless, { ...options, signal: controller.signal });
  let pid = 0;
  for await (const chunk of started.output) {
    pid = Number(chunk);
    controller.abort();
  }
  expect((await started.end).code).toBe(null);
  await expect.poll(() => isRunning(pid)).toBe(false);
});

test("a call that was cancelled before starts nothing that lives on", async () => {
  const started = startProcess(process.execPath, endless, { ...options, signal: AbortSignal.abort() });
  for await (const _ of started.output);
  expect((await started.end).code).toBe(null);
});

test("a program that is not there ends without a code and says why", async () => {
  const started = startProcess("/no/such/program", [], options);
  for await (const _ of started.output);
  expect(await started.end).toMatchObject({ code: null, stderr: expect.stringContaining("ENOENT") });
});

test("the code and what was said on stderr come back", async () => {
  const started = startProcess(process.execPath, ["-e", "console.error('no'); process.exit(3)"], options);
  for await (const _ of started.output);
  expect(await started.end).toEqual({ code: 3, stderr: "no\n" });
});

/** A shell that says the number of what it started, and waits for it. */
const parent = ["-c", "sleep 61 & echo $!; wait"];

test.skipIf(process.platform === "win32")(
  "what a process started ends with it, and is not waited for",
  async () => {
    const controller = new AbortController();
    const started = startProcess("/bin/sh", parent, { ...options, signal: controller.signal });
    const start = performance.now();
    let pid = 0;
    for await (const chunk of started.output) {
      pid = Number(chunk);
      expect(isRunning(pid)).toBe(true);
      controller.abort();
    }
    expect((await started.end).code).toBe(null);
    expect(performance.now() - start).toBeLessThan(25_000);
    await expect.poll(() => isRunning(pid)).toBe(false);
  },
);

test.skipIf(process.platform === "win32")("what a process left running ends with it", async () => {
  const started = startProcess("/bin/sh", ["-c", "sleep 62 & echo $!"], options);
  const start = performance.now();
  let pid = 0;
  for await (const chunk of started.output) pid = Number(chunk);
  expect((await started.end).code).toBe(0);
  expect(performance.now() - start).toBeLessThan(25_000);
  await expect.poll(() => isRunning(pid)).toBe(false);
});

test.skipIf(process.platform === "win32")(
  "a pipe that is held by what left the group is not waited for",
  async () => {
    const script = `const child = require("child_process").spawn("sleep", ["63"], { detached: true, stdio: "inherit" });
    child.unref(); console.log(child.pid); setInterval(() => {}, 1000)`;
    const controller = new AbortController();
    const started = startProcess(process.execPath, ["-e", script], { ...options, signal: controller.signal });
    const start = performance.now();
    let pid = 0;
    for await (const chunk of started.output) {
      pid = Number(chunk);
      controller.abort();
    }
    expect((await started.end).code).toBe(null);
    expect(performance.now() - start).toBeLessThan(25_000);
    process.kill(pid, "SIGKILL");
  },
);

test("an open file can be its input", async () => {
  const copy = ["-e", "process.stdin.pipe(process.stdout)"];
  const input = openSync(new URL(import.meta.url), "r");
  const started = startProcess(process.execPath, copy, { ...options, input });
  let text = "";
  for await (const chunk of started.output) text += chunk;
  closeSync(input);
  expect(text).toContain("an open file can be its input");
});
