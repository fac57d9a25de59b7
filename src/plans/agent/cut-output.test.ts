import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { openAttempt } from "./attempt-folder.ts";
import { adoptAgent, spawnWrapper, startAgent } from "./start-agent.ts";

const root = mkdtempSync(join(tmpdir(), "plimsoll-cut-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let attempts = 0;

const place = { cwd: root, env: process.env };
const limits = { timeoutMs: 20_000, maxOutputBytes: 1_000_000 };
const error = "Some of the agent's output could not be stored: the disk may be full.";

/** Stands for a disk with room for two blocks: started with a smaller limit than it is watched with, it is cut and not too much. */
function startCut(command: string) {
  const folder = join(root, `attempt.${attempts++}`);
  openAttempt(folder).create("prompt");
  const wrapper = spawnWrapper(command, { ...place, folder, maxOutputBytes: 1_000 });
  return { folder, wrapper, adopt: async () => (await adoptAgent(folder, limits))?.end };
}

test.each([
  ["stdout", 0, "printf %3000d 0"],
  ["stderr", 0, "printf %3000d 0 >&2"],
  ["stdout", 141, "yes"],
])("if the end of %s could not be written, the agent has failed with %i", async (_, code, command) => {
  const { wrapper, adopt } = startCut(command);
  await once(wrapper, "exit");
  expect(await adopt()).toMatchObject({ outcome: "failed", code, error });
});

test("output that was written completely is not cut", async () => {
  const { wrapper, adopt } = startCut("head -c 1024 /dev/zero; head -c 1024 /dev/zero >&2");
  await once(wrapper, "exit");
  expect(await adopt()).toMatchObject({ outcome: "completed", code: 0, answer: "\0".repeat(1024) });
});

test("a process that the agent leaves running does not hide the cut", async () => {
  const { folder, wrapper, adopt } = startCut("sleep 30 & printf %3000d 0");
  await expect.poll(() => readFileSync(join(folder, "state"), "utf8")).not.toBe("");
  try {
    expect(await adopt()).toMatchObject({ outcome: "failed", code: 0, error });
  } finally {
    process.kill(-wrapper.pid!, "SIGKILL");
  }
});

test("on a full disk an answer that is cut is a failure", async ({ skip }) => {
  const disk = join(root, "disk");
  mkdirSync(disk);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], { stdio: "pipe" });
  } catch {
    skip("a small disk cannot be mounted here");
  }
  try {
    const request = { command: "head -c 60000 /dev/zero", prompt: "do it", folder: join(disk, "attempt") };
    const end = await startAgent({ ...request, ...place, ...limits }).end;
    expect(end).toMatchObject({ outcome: "failed", code: 0, error });
    expect(end.answer.length).toBeLessThan(60_000);
  } finally {
    execFileSync("umount", [disk]);
  }
});
