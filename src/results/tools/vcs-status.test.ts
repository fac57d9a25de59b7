import { chmodSync, existsSync, rmSync } from "node:fs";
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
import { createVcsStatus } from "./vcs-status.ts";

testTool("vcs_status", { create: createVcsStatus, args: {} });

const call = { signal: new AbortController().signal };

async function status(root: string, args: Record<string, unknown> = {}): Promise<ReadResult> {
  return readResult(await createVcsStatus({ root, env: process.env }).run(args, call));
}

test("each changed path is one item with its states, and the fields count them", async () => {
  const root = createRepository({
    "both.txt": "1",
    "gone.txt": "1",
    "old name.txt": "some text\nto find again\n",
    same: "",
  });
  git(root, "mv", "old name.txt", "new name.txt");
  addEntries(root, { "both.txt": "2", "added.txt": "" });
  git(root, "add", "--all");
  addEntries(root, { "both.txt": "3", "dir/new.txt": "", "größe.txt": "" });
  rmSync(join(root, "gone.txt"));
  const result = await status(root);
  expect(result.items).toEqual([
    { path: "added.txt", staged: "added" },
    { path: "both.txt", staged: "modified", unstaged: "modified" },
    { path: "gone.txt", unstaged: "deleted" },
    { path: "new name.txt", staged: "renamed", from: "old name.txt" },
    { path: "dir/new.txt", untracked: true },
    { path: "größe.txt", untracked: true },
  ]);
  expect(result).toMatchObject({
    fields: { branch: "main", clean: false, staged: 3, modified: 2, untracked: 2, conflicts: 0 },
    itemsName: "changes",
    total: 6,
  });
});

test("reports the distance from the upstream", async () => {
  const root = createRepository({ a: "1" });
  git(root, "branch", "base");
  git(root, "branch", "--set-upstream-to=base", "--quiet");
  commit(root, "One");
  commit(root, "Two");
  expect(await status(root)).toMatchObject({
    fields: { branch: "main", upstream: "base", ahead: 2, behind: 0, clean: true },
    items: [],
    total: 0,
  });
});

test("a path narrows the list, and a root below the repository's root sees only its own part", async () => {
  const root = createRepository({ "a.txt": "1", "src/b.txt": "1" });
  addEntries(root, { "a.txt": "2", "src/b.txt": "2", "src/sub/c.txt": "" });
  expect((await status(root, { path: "src" })).items).toHaveLength(2);
  expect((await status(join(root, "src"))).items).toEqual([
    { path: "b.txt", unstaged: "modified" },
    { path: "sub/c.txt", untracked: true },
  ]);
});

test("a conflict is marked, and a repository without commits has a branch", async () => {
  const root = createRepository({ "a.txt": "1\n" });
  for (const branch of ["left", "right"]) {
    git(root, "checkout", "--quiet", "-b", branch, "main");
    addEntries(root, { "a.txt": `${branch}\n` });
    commit(root, branch);
  }
  expect(() => git(root, "merge", "left")).toThrow();
  expect(await status(root)).toMatchObject({
    fields: { conflicts: 1 },
    items: [{ path: "a.txt", conflict: true }],
  });
  const empty = createTree({ a: "" });
  git(empty, "init", "--quiet", "--initial-branch=trunk");
  expect(await status(empty)).toMatchObject({ fields: { branch: "trunk", untracked: 1 }, total: 1 });
});

test("the index is not changed, even if git would have refreshed it", async () => {
  const root = createRepository({ "a.txt": "1" });
  addEntries(root, { "a.txt": "1" });
  const before = git(root, "hash-object", ".git/index");
  await status(root);
  expect(git(root, "hash-object", ".git/index")).toBe(before);
});

test("a submodule with changes makes the tree not clean", async () => {
  const root = createRepository({ "a.txt": "1" });
  const inner = createRepository({ "b.txt": "1" });
  git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "inner");
  commit(root, "Add a submodule");
  expect(await status(root)).toMatchObject({ fields: { clean: true }, items: [] });
  addEntries(root, { "inner/b.txt": "2", "inner/new.txt": "" });
  expect(await status(root)).toMatchObject({
    fields: { clean: false, modified: 1 },
    items: [{ path: "inner", unstaged: "modified", submodule: "modified files, untracked files" }],
  });
});

test("a git that hangs returns the changes printed in time, and never reports a clean tree", async () => {
  const root = createRepository({ "a.txt": "1" });
  const real = `PATH='${process.env.PATH}'`;
  const cases: [string, string[]][] = [
    ["# branch.head main\\0? a.txt\\0? b.txt\\0? c", ["a.txt", "b.txt"]],
    ["# branch.head main\\0? a", []],
  ];
  for (const [index, [said, paths]] of cases.entries()) {
    const mark = join(root, `mark ${index}`);
    const script = `#!/bin/sh\n${real}\ncase "$*" in *porcelain*) printf '${said}'; : > '${mark}'; sleep 60 ;; esac\nexec git "$@"\n`;
    addEntries(root, { "bin/git": script });
    chmodSync(join(root, "bin/git"), 0o755);
    const tool = createVcsStatus({ root, env: { PATH: `${join(root, "bin")}:${process.env.PATH}` } });
    const result = await readUntilHung(tool, {}, { mark });
    expect(result.items).toEqual(paths.map((path) => ({ path, untracked: true })));
    expect(result).toMatchObject({ total: undefined, more: true });
    expect(result.fields.clean).toBe(paths.length > 0 ? false : undefined);
    expect(result.warnings).toEqual([expect.stringContaining("the list of changes is incomplete")]);
  }
});

test("filters do not run, and files with one are distinguished from changed files", async () => {
  const root = createRepository({ "a.dat": "1\n", "b.txt": "1\n" });
  const mark = join(root, "mark");
  git(root, "config", "filter.slow.clean", `: > '${mark}'; cat`);
  addEntries(root, { ".git/info/attributes": "*.dat filter=slow\n", "b.txt": "2\n" });
  expect((await status(root)).warnings).toEqual([]);
  addEntries(root, { "a.dat": "2\n" });
  const { items, warnings } = await status(root);
  expect(items).toEqual(["a.dat", "b.txt"].map((path) => ({ path, unstaged: "modified" })));
  expect(warnings).toEqual([
    "Filters do not run (slow), so files with one may be shown as changed although they are not.",
  ]);
  expect(existsSync(mark)).toBe(false);
});
