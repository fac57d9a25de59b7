import { chmodSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type BudgetedTool, isFailure, type ToolArguments } from "../session/index.ts";
import { readUntilHung } from "./hanging-program.contract.ts";
import type { ToolPlace } from "./run.ts";
import { addEntries, commit, createRepository, git, type ReadResult, readResult } from "./temporary-tree.contract.ts";
import { testTool } from "./tool.contract.ts";
import { type BlamedLine, createVcsBlame } from "./vcs-blame.ts";
import { createVcsDiff } from "./vcs-diff.ts";
import { createVcsLog } from "./vcs-log.ts";
import { createVcsStatus } from "./vcs-status.ts";

testTool("vcs_blame", { create: createVcsBlame, args: { path: "src/store.ts" } });

const call = { signal: new AbortController().signal };

async function blame(root: string, args: Record<string, unknown>): Promise<ReadResult> {
  return readResult(await createVcsBlame({ root, env: process.env }).run(args, call));
}

function createHistory(): string {
  const root = createRepository({ "src/a.txt": "1\n2\n3\n4\n" });
  addEntries(root, { "src/a.txt": "1\n2\ndrei\n4\n" });
  git(root, "commit", "--quiet", "-am", "Change", "--author=Grace <g@example.org>", "--date=2026-11-05T08:00:00Z");
  return root;
}

/** The environment of a call in which this script replaces git. */
function withGit(root: string, script: string): Record<string, string> {
  addEntries(root, { "bin/git": script });
  chmodSync(join(root, "bin/git"), 0o755);
  return { PATH: `${join(root, "bin")}:${process.env.PATH}` };
}

test("each line has its commit, author and day, and the fields sum up", async () => {
  const root = createHistory();
  const hash = git(root, "rev-parse", "HEAD").slice(0, 8);
  const first = git(root, "rev-parse", "HEAD~1").slice(0, 8);
  const result = await blame(root, { path: "src/a.txt" });
  expect(result.items).toEqual([
    { line: 1, hash: first, author: "Ada", date: "2026-11-02", text: "1" },
    { line: 2, hash: first, author: "Ada", date: "2026-11-02", text: "2" },
    { line: 3, hash, author: "Grace", date: "2026-11-05", text: "drei" },
    { line: 4, hash: first, author: "Ada", date: "2026-11-02", text: "4" },
  ]);
  expect(result).toMatchObject({
    fields: { path: "src/a.txt", authors: 2, newest: "2026-11-05" },
    total: 4,
    more: false,
  });
});

test("a range can have one end, and is empty past the end", async () => {
  const root = createHistory();
  const linesOf = async (args: Record<string, unknown>) =>
    ((await blame(root, { path: "src/a.txt", ...args })).items as BlamedLine[]).map(({ line }) => line);
  expect(await linesOf({ start_line: 3 })).toEqual([3, 4]);
  expect(await linesOf({ end_line: 2 })).toEqual([1, 2]);
  expect(await linesOf({ start_line: 2, end_line: 99 })).toEqual([2, 3, 4]);
  expect(await linesOf({ start_line: 2, offset: 1 })).toEqual([3, 4]);
  expect(await blame(root, { path: "src/a.txt", start_line: 9 })).toMatchObject({
    items: [],
    total: 0,
    warnings: ["The file has only 4 lines."],
  });
});

test("uncommitted lines say so, and a root below the repository's root works too", async () => {
  const root = createHistory();
  addEntries(root, { "src/a.txt": "neu\n2\ndrei\n4\n" });
  const result = await readResult(
    await createVcsBlame({ root: join(root, "src"), env: process.env }).run({ path: "a.txt" }, call),
  );
  expect(result.items[0]).toMatchObject({
    line: 1,
    hash: "00000000",
    author: "Not Committed Yet",
    text: "neu",
  });
});

test("the version of uncommitted lines changes with them, not with the clock", async () => {
  const root = createHistory();
  addEntries(root, { "src/a.txt": "neu\n2\ndrei\n4\n", clock: "1" });
  const real = `PATH='${process.env.PATH}' git "$@"`;
  const env = withGit(root, `#!/bin/sh\n${real} | sed "s/-time .*/-time $(cat clock)/"\n`);
  const tool = createVcsBlame({ root, env });
  const blameNow = async () => readResult(await tool.run({ path: "src/a.txt" }, call));
  const versionNow = async () => (await blameNow()).version;
  const { version, fields } = await blameNow();
  addEntries(root, { clock: "1000000000" });
  expect(await versionNow()).toBe(version);
  expect((await blameNow()).fields.newest).not.toBe(fields.newest);
  addEntries(root, { "src/a.txt": "neu\n2\ndrei\nvier\n" });
  expect(await versionNow()).not.toBe(version);
});

test("a path that git cannot blame is a failure that says why", async () => {
  const root = createHistory();
  addEntries(root, { "new.txt": "1\n", "two\nlines.txt": "1\n" });
  const tool = createVcsBlame({ root, env: process.env });
  const cases: [Record<string, unknown>, string, string][] = [
    [{ path: "new.txt" }, "git_failed", '"new.txt" is not in any commit yet.'],
    [{ path: "two\nlines.txt" }, "git_failed", '"two\\nlines.txt" is not in any commit yet.'],
    [{ path: "src" }, "unreadable", '"src" is not a file.'],
    [{ path: "missing" }, "not_found", '"missing" does not exist.'],
    [{ path: "src/a.txt", start_line: 3, end_line: 1 }, "invalid_argument", "end_line 1 is before start_line 3."],
  ];
  for (const [args, code, message] of cases) expect(await tool.run(args, call)).toMatchObject({ code, message });
});

test("an author's time outside of the calendar is not an error", async () => {
  const root = createHistory();
  addEntries(root, { "src/a.txt": "x\n" });
  git(root, "commit", "--quiet", "-am", "Odd", "--date=@99999999999999 +0000");
  expect((await blame(root, { path: "src/a.txt" })).items).toHaveLength(1);
});

test("a binary file is reported, and other encodings are read like in read_file", async () => {
  const root = createRepository({
    bin: Buffer.from([0x7f, 0x45, 0, 1, 2, 10, 3]),
    latin1: Buffer.from("größe\r\nzwei\n", "latin1"),
    le: Buffer.from("\uFEFFgröße\r\nzwei", "utf16le"),
    be: Buffer.from("\uFEFFgröße\nzwei", "utf16le").swap16(),
    utf8: "größe\nzwei\n",
  });
  expect(await blame(root, { path: "bin" })).toMatchObject({
    fields: { path: "bin", size: 7, binary: true },
    items: [],
    total: 0,
    warnings: ["This is a binary file of 7B, without lines. Use vcs_log to see who changed it."],
  });
  for (const path of ["latin1", "le", "be", "utf8"]) {
    const { items } = await blame(root, { path });
    expect(
      (items as BlamedLine[]).map(({ text }) => text),
      path,
    ).toEqual(["größe", "zwei"]);
  }
});

test("a line is never cut inside a character", async () => {
  const root = createRepository({ a: `${"x".repeat(499)}😀x\n` });
  expect((await blame(root, { path: "a" })).items).toMatchObject([{ text: `${"x".repeat(499)}…` }]);
});

test("a link inside the root is followed", async () => {
  const root = createHistory();
  addEntries(root, { "a link": { link: "src/a.txt" }, "a folder": { link: "src" } });
  for (const path of ["a link", "a folder/a.txt"]) {
    const result = await blame(root, { path });
    expect(result.fields).toMatchObject({ path, link_to: "src/a.txt" });
    expect((result.items as BlamedLine[]).map(({ text }) => text)).toEqual(["1", "2", "drei", "4"]);
  }
});

test("a git that hangs returns the lines printed in time, and says that there are more", async () => {
  const root = createHistory();
  const script = `#!/bin/sh\nPATH='${process.env.PATH}'\ncase "$*" in *blame*) git "$@" | head -n 15; : > "$MARK"; sleep 60 ;; esac\nexec git "$@"\n`;
  const mark = join(root, "mark");
  const tool = createVcsBlame({ root, env: { ...withGit(root, script), MARK: mark } });
  const result = await readUntilHung(tool, { path: "src/a.txt" }, { mark });
  expect(result.items.length).toBeGreaterThan(0);
  expect(result).toMatchObject({ total: undefined, more: true });
  expect(result.warnings).toEqual([expect.stringContaining("the list of lines is incomplete")]);
});

/** `lib` is a submodule. Its address is missing, which nothing reads. */
function createNested(): string {
  const root = createRepository({ "src/a.txt": "1\n" });
  addEntries(root, { "lib/src/b.txt": "1\n" });
  git(join(root, "lib"), "init", "--quiet");
  commit(join(root, "lib"), "Inside");
  commit(root, "Outside");
  return root;
}

async function told(create: (place: ToolPlace) => BudgetedTool, root: string, args: ToolArguments): Promise<unknown> {
  const result = await create({ root, env: process.env }).run(args, call);
  return isFailure(result) ? result.message : (await readResult(result)).warnings;
}

const note = '"lib/src/b.txt" is in the submodule "lib", which has its own history.';

test("each tool says that a path in a submodule has its history elsewhere", async () => {
  const root = createNested();
  const path = "lib/src/b.txt";
  expect(await told(createVcsBlame, root, { path })).toBe(note);
  for (const create of [createVcsLog, createVcsDiff, createVcsStatus]) {
    expect(await told(create, root, { path })).toEqual([note]);
    expect(await told(create, root, { path: "lib" })).toEqual([]);
    expect(await told(create, root, { path: "src/none.txt" })).toEqual([]);
  }
});

test("a modified submodule of vcs_status is in vcs_diff too, with a note on what is not shown", async () => {
  const root = createNested();
  addEntries(root, { "lib/src/b.txt": "2\n" });
  const place = { root, env: process.env };
  const status = await readResult(await createVcsStatus(place).run({}, call));
  expect(status.items).toEqual([{ path: "lib", unstaged: "modified", submodule: "modified files" }]);
  const diff = await readResult(await createVcsDiff(place).run({}, call));
  expect(diff.items).toMatchObject([{ path: "lib", text: expect.stringMatching(/-dirty$/) }]);
  expect(diff.warnings).toEqual(["Changes inside of a submodule are not shown: lib."]);
});
