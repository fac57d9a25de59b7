import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { isAlive } from "../processes/process-identity.ts";
import { fetchGitTree } from "./git-tree.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-tree-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(root, { recursive: true, force: true });
});

function fetchTree(): ReturnType<typeof fetchGitTree> {
  const env = { PATH: `${root}:/usr/bin:/bin` };
  return fetchGitTree({ url: "https://a.example/x", revision: "main", directory: join(root, "tree"), env });
}

/** The number of a process that a script wrote down, as soon as it did. */
async function writtenPid(file: string): Promise<number> {
  for (;;) {
    const text = readIfThere(file);
    if (text.endsWith("\n")) return Number(text);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** Starts a fetch by a git that started something itself and waits for it. */
async function startEndlessFetch() {
  const file = join(root, "pid");
  const script = `#!/bin/sh\ncase "$*" in *fetch*) sleep 63 & echo $! > '${file}'; wait;; esac\n`;
  writeFileSync(join(root, "git"), script, { mode: 0o755 });
  const fetched = fetchTree();
  const pid = await writtenPid(file);
  expect(isAlive({ pid })).toBe(true);
  return { fetched, pid };
}

async function hasEnded(pid: number): Promise<true> {
  while (isAlive({ pid })) await new Promise((resolve) => setImmediate(resolve));
  return true;
}

describe.skipIf(process.platform === "win32")("what git started ends with it", () => {
  test("when the fetch takes too long", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { fetched, pid } = await startEndlessFetch();
    vi.advanceTimersByTime(300_000);
    expect(await fetched).toEqual({ reason: "git took longer than 300 s" });
    expect(await hasEnded(pid)).toBe(true);
  });

  test("when we are interrupted, and leave nothing to be called later", async () => {
    const before = process.listeners("exit");
    const added = () => process.listeners("exit").filter((each) => !before.includes(each));
    const { fetched, pid } = await startEndlessFetch();
    for (const listener of added()) listener.call(process, 130);
    await fetched;
    expect(await hasEnded(pid)).toBe(true);
    expect(added()).toEqual([]);
  });
});

test("without git the reason says so", async () => {
  const env = { PATH: root };
  const fetched = fetchGitTree({ url: "x", revision: "main", directory: join(root, "tree"), env });
  expect(await fetched).toEqual({ reason: "git is not installed, or not on PATH" });
});
