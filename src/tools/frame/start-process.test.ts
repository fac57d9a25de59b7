import { setTimeout as pause } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeBytes, splitRecords, startProcess } from "./start-process.ts";

const options = { cwd: "/", env: process.env, signal: new AbortController().signal };

/** Says its number, then never ends by itself. */
const endless = ["-e", "console.log(process.pid); setInterval(() => {}, 1000)"];

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function isGone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 100 && isRunning(pid); tries++) await pause(20);
  return !isRunning(pid);
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
  expect(await isGone(pid)).toBe(true);
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
  expect(await isGone(pid)).toBe(true);
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

test("records come whole however the output was cut into chunks", async () => {
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

test("bytes that are not UTF-8 are shown as such and damage nothing else", () => {
  expect(decodeBytes(Buffer.from("é\xff!", "latin1").toString("latin1"))).toBe("\uFFFD\uFFFD!");
  expect(decodeBytes(Buffer.from("größe").toString("latin1"))).toBe("größe");
});
