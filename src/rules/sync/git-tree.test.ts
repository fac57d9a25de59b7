import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { isAlive } from "../../host/index.ts";
import { fetchGitTree } from "./company.ts";

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

/** The process id that a script wrote, as soon as it did. */
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

/** Starts a fetch with a git that started a child and waits for it. */
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

  test("when the run is interrupted, and leaves no exit handler", async () => {
    const before = process.listeners("exit");
    const added = () => process.listeners("exit").filter((each) => !before.includes(each));
    const { fetched, pid } = await startEndlessFetch();
    for (const listener of added()) listener.call(process, 130);
    await fetched;
    expect(await hasEnded(pid)).toBe(true);
    expect(added()).toEqual([]);
  });
});

test("reports missing git", async () => {
  const env = { PATH: root };
  const fetched = fetchGitTree({ url: "x", revision: "main", directory: join(root, "tree"), env });
  expect(await fetched).toEqual({ reason: "git is not installed, or not on PATH" });
});

const known = (address: string) => ({
  lookupHost: async () => [{ address, family: address.includes(":") ? 6 : 4 }],
});

/** The arguments of git for a fetch, recorded by a program in its place. */
async function settingsFor(url: string, options: object): Promise<string[]> {
  const file = join(root, "args");
  const script = `#!/bin/sh\ncase "$*" in *fetch*) printf '%s\\n' "$@" > '${file}'; exit 1;; esac\n`;
  writeFileSync(join(root, "git"), script, { mode: 0o755 });
  const env = { PATH: `${root}:/usr/bin:/bin` };
  await fetchGitTree({ url, revision: "main", directory: join(root, "tree"), env, ...options });
  return readIfThere(file)
    .split("\n")
    .filter((line) => /^http\./.test(line));
}

describe("the server of a repository", () => {
  test.each([
    "https://git.example/x",
    "http://me@git.example:8080/x",
    "ssh://git@git.example/x",
    "git://git.example/x",
    "git@git.example:x",
    "git.example:x/y.git",
  ])("refuses %s if its name leads to an address that is not public", async (url) => {
    const tree = { url, revision: "main", directory: join(root, "tree"), env: { PATH: root } };
    expect(await fetchGitTree({ ...tree, ...known("10.0.0.1") })).toEqual({
      reason: "git.example leads to 10.0.0.1, which is not a public address. Use --allow-private to fetch from it",
    });
  });

  test.each(["http://127.0.0.1/x", "ssh://[::1]/x", "git@127.0.0.1:x", "git@[::1]:x"])("%s is refused", async (url) => {
    const tree = { url, revision: "main", directory: join(root, "tree"), env: { PATH: root } };
    expect(await fetchGitTree(tree)).toEqual({ reason: expect.stringContaining("not a public address") });
  });

  test("git connects to the address that was checked, and follows no redirect", async () => {
    expect(await settingsFor("https://git.example/x", known("1.1.1.1"))).toEqual([
      "http.followRedirects=false",
      "http.curloptResolve=git.example:443:1.1.1.1",
    ]);
    expect(await settingsFor("http://git.example:8080/x", known("2606:4700:4700::1111"))).toContain(
      "http.curloptResolve=git.example:8080:[2606:4700:4700::1111]",
    );
    expect(await settingsFor("ssh://git.example/x", known("1.1.1.1"))).toEqual(["http.followRedirects=false"]);
  });

  test("with permission, and for a name that only ssh knows, git chooses the address", async () => {
    expect(await settingsFor("https://git.example/x", { allowPrivate: true })).toEqual([]);
    const unknown = { lookupHost: () => Promise.reject(new Error("ENOTFOUND")) };
    expect(await settingsFor("git@alias:x", unknown)).toEqual(["http.followRedirects=false"]);
  });
});
