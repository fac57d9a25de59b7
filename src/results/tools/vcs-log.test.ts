import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readUntilHung } from "./hanging-program.contract.ts";
import {
  addEntries,
  commit,
  createRepository,
  createTree,
  git,
  type ReadResult,
  readResult,
} from "./temporary-tree.contract.ts";
import { testTool } from "./tool.contract.ts";
import { type Commit, createVcsLog } from "./vcs-log.ts";

testTool("vcs_log", { create: createVcsLog, args: {} });

const call = { signal: new AbortController().signal };

async function log(root: string, args: Record<string, unknown> = {}): Promise<ReadResult> {
  return readResult(await createVcsLog({ root, env: process.env }).run(args, call));
}

function messagesOf({ items }: ReadResult): string[] {
  return (items as Commit[]).map(({ message }) => message);
}

function createHistory(): string {
  const root = createRepository({ "a.txt": "1", "src/b.txt": "1" });
  addEntries(root, { "src/b.txt": "2" });
  commit(root, "Change b\n\nWith a body\nof two lines.");
  addEntries(root, { "a.txt": "2" });
  git(root, "add", "--all");
  git(root, "commit", "--quiet", "-m", "Change a", "--author=Grace <grace@example.org>", "--date=2026-11-05T08:00:00Z");
  return root;
}

test("commits come newest first, in full with their whole message", async () => {
  const root = createHistory();
  expect(messagesOf(await log(root))).toEqual(["Change a", "Change b", "Add everything"]);
  const result = await log(root, { mode: "full" });
  expect(messagesOf(result)).toEqual(["Change a", "Change b\n\nWith a body\nof two lines.", "Add everything"]);
  expect(result.items[0]).toEqual({
    hash: git(root, "rev-parse", "--short", "HEAD").trim(),
    author: "Grace",
    date: "2026-11-05T08:00:00+00:00",
    message: "Change a",
  });
  expect(result).toMatchObject({ total: 3, more: false, version: git(root, "rev-parse", "HEAD").trim() });
});

test("path, author, time and revision narrow the list, and the maximum ends it", async () => {
  const root = createHistory();
  expect(messagesOf(await log(root, { path: "src" }))).toHaveLength(2);
  expect(messagesOf(await log(root, { author: "GRACE" }))).toEqual(["Change a"]);
  expect(messagesOf(await log(root, { author: "G.*e" }))).toEqual([]);
  expect(messagesOf(await log(root, { revision: "HEAD~1", path: "a.txt" }))).toEqual(["Add everything"]);
  expect(messagesOf(await log(root, { since: "2030-01-01" }))).toEqual([]);
  const first = await log(root, { max_commits: 2 });
  expect(first).toMatchObject({ total: 3, more: true });
  // Counting the commits of a path would read the whole history.
  expect(await log(root, { path: "a.txt", max_commits: 1 })).toMatchObject({ total: undefined, more: true });
  expect(await log(root, { path: "a.txt", max_commits: 2 })).toMatchObject({ total: 2, more: false });
  expect(messagesOf(await log(root, { max_commits: 2, offset: 2 }))).toEqual(["Add everything"]);
});

test("a file that is gone still has its commits", async () => {
  const root = createHistory();
  git(root, "rm", "--quiet", "a.txt");
  commit(root, "Remove a");
  expect(messagesOf(await log(root, { path: "a.txt" }))).toEqual(["Remove a", "Change a", "Add everything"]);
});

test("a root below the repository's sees only what changed there", async () => {
  const root = createHistory();
  expect(messagesOf(await log(join(root, "src")))).toHaveLength(2);
});

test("refuses a revision that looks like an option or does not exist", async () => {
  const root = createHistory();
  const tool = createVcsLog({ root, env: process.env });
  for (const revision of ["--all", "--output=x", "-p", "HEAD..HEAD~1", "nothing", "HEAD^{tree}", "\n"]) {
    expect(await tool.run({ revision }, call), revision).toMatchObject({ code: "unknown_revision" });
  }
});

test("a repository without commits has an empty list, and a folder without repository is reported", async () => {
  const root = createTree({ a: "" });
  expect(await createVcsLog({ root, env: process.env }).run({}, call)).toMatchObject({
    code: "not_a_repository",
  });
  git(root, "init", "--quiet");
  expect(await log(root)).toMatchObject({ items: [], total: 0, more: false });
  expect(await createVcsLog({ root, env: {} }).run({}, call)).toMatchObject({ code: "git_failed" });
});

test("a repository with unreadable commits is distinguished from one without commits", async () => {
  const root = createHistory();
  const tool = createVcsLog({ root, env: process.env });
  const damaged = {
    code: "git_failed",
    message: "HEAD names a commit that cannot be read: the repository is damaged.",
  };
  rmSync(join(root, ".git/objects"), { recursive: true });
  mkdirSync(join(root, ".git/objects"));
  expect(await tool.run({}, call)).toMatchObject(damaged);
  addEntries(root, { ".git/refs/heads/main": "" });
  expect(await tool.run({}, call)).toMatchObject(damaged);
});

test("says that a shallow clone lacks older commits", async () => {
  const root = createHistory();
  expect((await log(root)).warnings).toEqual([]);
  addEntries(root, { ".git/shallow": git(root, "rev-parse", "HEAD") });
  const warnings = ["The clone is shallow and does not have older commits."];
  expect(await log(root)).toMatchObject({ total: 1, warnings });
});

test("ignores a variable that points git at another repository", async () => {
  const [root, other] = [createHistory(), createRepository({ x: "" })];
  const env = { ...process.env, GIT_DIR: join(other, ".git"), GIT_WORK_TREE: other };
  const result = await readResult(await createVcsLog({ root, env }).run({}, call));
  expect(messagesOf(result)).toHaveLength(3);
});

test("a message of any length is cut with a note", async () => {
  const root = createRepository({ a: "" });
  commit(root, "x".repeat(3_000));
  expect(messagesOf(await log(root, { max_commits: 1 }))).toEqual([`${"x".repeat(2_000)}… [1000 more characters]`]);
  commit(root, `${"x".repeat(1_999)}😀${"x".repeat(9)}`);
  expect(messagesOf(await log(root, { max_commits: 1 }))).toEqual([`${"x".repeat(1_999)}… [11 more characters]`]);
});

test("a date is reported as it was understood, and other text is refused", { tags: ["deep"] }, async () => {
  const root = createHistory();
  const named = await log(root, { since: "2026-11-04 00:00 +0000", until: "2026-11-06T12:00:00Z" });
  expect(messagesOf(named)).toEqual([]);
  expect(named.fields).toMatchObject({ since: "2026-11-04T00:00:00Z", until: "2026-11-06T12:00:00Z" });
  expect(messagesOf(await log(root, { since: "2026-11-01" }))).toHaveLength(3);
  const dates = ["2 weeks ago", "yesterday", "last monday", "@1700000000", "Mon, 3 Jul 2006 17:18:43 +0200"];
  for (const since of [...dates, "3 days ago at noon", "July 4 2020", "10.11.2020"]) {
    expect((await log(root, { since })).fields, since).toHaveProperty("since");
  }
  const tool = createVcsLog({ root, env: process.env });
  for (const since of ["garbage", "tomorrow", "next week", "2100-01-01", "2026-13-01", "", "v1.0", "HEAD~3"]) {
    expect(await tool.run({ since }, call), since).toMatchObject({
      code: "invalid_argument",
      message: `since is not a date: ${JSON.stringify(since)}.`,
    });
  }
});

test("a git that hangs returns the commits printed in time, and says that there may be more", async () => {
  const root = createHistory();
  const script = `#!/bin/sh\nPATH='${process.env.PATH}'\ncase "$*" in *format=*) git "$@" | head -c 150; : > "$MARK"; sleep 60 ;; esac\nexec git "$@"\n`;
  addEntries(root, { "bin/git": script });
  chmodSync(join(root, "bin/git"), 0o755);
  const mark = join(root, "mark");
  const tool = createVcsLog({ root, env: { PATH: `${join(root, "bin")}:${process.env.PATH}`, MARK: mark } });
  const result = await readUntilHung(tool, { mode: "full" }, { mark });
  expect(messagesOf(result)).toHaveLength(2);
  expect(result).toMatchObject({ more: true });
});
