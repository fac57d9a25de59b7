import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeBytes, splitRecords } from "./byte-records.ts";
import { startProcess } from "./start-process.ts";

const options = { cwd: "/", env: process.env, signal: new AbortController().signal };

/** Prints its process id, then never ends by itself. */
const endless = ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"];

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A process that has ended stays in the table until its parent asks.
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

test("a process ends when its call is cancelled, and its output ends", async () => {
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

test("a call that was cancelled before leaves no process running", async () => {
  const started = startProcess(process.execPath, endless, { ...options, signal: AbortSignal.abort() });
  for await (const _ of started.output);
  expect((await started.end).code).toBe(null);
});

test("a missing program ends without a code and with a reason", async () => {
  const started = startProcess("/no/such/program", [], options);
  for await (const _ of started.output);
  expect(await started.end).toMatchObject({ code: null, stderr: expect.stringContaining("ENOENT") });
});

test("returns the code and stderr", async () => {
  const started = startProcess(process.execPath, ["-e", "console.error('no'); process.exit(3)"], options);
  for await (const _ of started.output);
  expect(await started.end).toEqual({ code: 3, stderr: "no\n" });
});

/** A shell that prints the process id of its child and waits for it. */
const parent = ["-c", "sleep 61 & echo $!; wait"];

test.skipIf(process.platform === "win32")("what a process started ends with it, and is not waited for", async () => {
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
});

test.skipIf(process.platform === "win32")("what a process left running ends with it", async () => {
  const started = startProcess("/bin/sh", ["-c", "sleep 62 & echo $!"], options);
  const start = performance.now();
  let pid = 0;
  for await (const chunk of started.output) pid = Number(chunk);
  expect((await started.end).code).toBe(0);
  expect(performance.now() - start).toBeLessThan(25_000);
  await expect.poll(() => isRunning(pid)).toBe(false);
});

test.skipIf(process.platform === "win32")("a pipe that is held by what left the group is not waited for", async () => {
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
});

test("reads an open file as its input", async () => {
  const copy = ["-e", "process.stdin.pipe(process.stdout)"];
  const input = openSync(new URL(import.meta.url), "r");
  const started = startProcess(process.execPath, copy, { ...options, input });
  let text = "";
  for await (const chunk of started.output) text += chunk;
  closeSync(input);
  expect(text).toContain("an open file can be its input");
});

test("returns whole records, however the output was cut into chunks", async () => {
  const cut = fc.record({
    records: fc.array(
      fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", "")),
      { maxLength: 8 },
    ),
    sizes: fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }),
    ended: fc.boolean(),
  });
  const check = async ({ records, sizes, ended }: { records: string[]; sizes: number[]; ended: boolean }) => {
    const bytes = Buffer.from(records.join("\0") + (ended && records.length > 0 ? "\0" : ""));
    async function* chunks() {
      for (let at = 0, next = 0; at < bytes.length; next++) {
        const size = sizes[next % sizes.length] ?? 1;
        yield bytes.subarray(at, at + size);
        at += size;
      }
    }
    const read: string[] = [];
    for await (const batch of splitRecords(chunks(), "\0", "keep")) read.push(...batch.map(decodeBytes));
    expect(read).toEqual(ended || records.at(-1) !== "" ? records : records.slice(0, -1));
    const whole: string[] = [];
    for await (const batch of splitRecords(chunks(), "\0")) whole.push(...batch.map(decodeBytes));
    expect(whole).toEqual(ended ? records : records.slice(0, -1));
  };
  await fc.assert(fc.asyncProperty(cut, check), { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 3_000 : 200 });
});

test("shows bytes that are not UTF-8 as such and damages nothing else", () => {
  expect(decodeBytes(Buffer.from("é\xff!", "latin1").toString("latin1"))).toBe("\uFFFD\uFFFD!");
  expect(decodeBytes(Buffer.from("größe").toString("latin1"))).toBe("größe");
});

test("cuts a line of many megabytes and returns everything after it", async () => {
  const chunk = Buffer.alloc(64 * 1024, "x");
  async function* chunks() {
    yield Buffer.from("first\n");
    for (let count = 0; count < 200; count++) yield chunk;
    yield Buffer.from("x\nlast\n");
  }
  const records: string[] = [];
  for await (const batch of splitRecords(chunks(), "\n")) records.push(...batch);
  expect(records.map((record) => record[0])).toEqual(["f", "x", "l"]);
  expect(records[1]?.length).toBeGreaterThan(4_000_000);
  expect(records[1]?.length).toBeLessThan(5_000_000);
});
