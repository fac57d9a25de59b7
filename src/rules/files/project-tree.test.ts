import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeRepository } from "../../../test/make-repository.ts";
import { readProjectTree } from "./project-tree.ts";

let base: string;
let root: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-tree-")));
  root = join(base, "project");
  mkdirSync(root);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const env = () => ({ PATH: process.env.PATH, HOME: base });
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], {
    cwd: root,
    env: env(),
    encoding: "utf8",
  });
function put(path: string, text = "x\n"): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}
const shown = (paths: readonly string[]) => paths.map((path) => relative(root, path)).sort();

const kinds: Record<string, () => void> = {
  "version 2": () => git("init", "-q"),
  "version 4": () => {
    git("init", "-q");
    git("config", "index.version", "4");
  },
  "SHA-256": () => git("init", "-q", "--object-format=sha256"),
  "a split index": () => {
    git("init", "-q");
    git("config", "core.splitIndex", "true");
  },
};

test.each(Object.entries(kinds))("finds the files that git lists: %s", async (_, init) => {
  init();
  for (const name of ["a", "b.md", "deep/er/c.md", "deep/er/cd.md", "größe/文.md", `${"long".repeat(60)}.md`])
    put(name, name);
  for (let number = 0; number < 300; number++) put(`many/${number % 7}/file-${number}.ts`);
  put(".gitignore", "dist\n");
  put("dist/out.js");
  symlinkSync("a", join(root, "link"));
  git("add", "-A");
  // A file that is only intended has an extended flag, which makes an index of version 3.
  put("later.md");
  git("add", "-N", "later.md");
  const tree = await readProjectTree(root, env());
  const listed = git("ls-files", "-z").split("\0").filter(Boolean);
  const isLink = (name: string) => name === "link" && !_.startsWith("a split");
  expect(shown(tree.files.map(({ path }) => path))).toEqual(listed.filter((name) => !isLink(name)).sort());
  expect(shown(tree.folders)).toEqual(
    [...new Set(["", "deep", ...listed.map(dirname).map((name) => (name === "." ? "" : name)), "many"])].sort(),
  );
});

test("uses a worktree's own index, and only the files below a project's root", async () => {
  git("init", "-q");
  put("a.md");
  git("add", "-A");
  git("commit", "-qm", "x");
  git("worktree", "add", "-q", join(base, "other"), "-b", "other");
  root = join(base, "other");
  put("sub/b.md");
  put("subway.md");
  git("add", "-A");
  expect(shown((await readProjectTree(root, env())).files.map(({ path }) => path))).toEqual([
    "a.md",
    "sub/b.md",
    "subway.md",
  ]);
  const below = await readProjectTree(join(root, "sub"), env());
  expect(shown(below.files.map(({ path }) => path))).toEqual(["sub/b.md"]);
  expect(shown(below.folders)).toEqual(["sub"]);
});

test("finds folders that git does not track, without packages, other repositories and clearly ignored ones", async () => {
  expect(await readProjectTree(root, env())).toMatchObject({ folders: [root], otherFolders: [], files: [] });
  git("init", "-q");
  const paths = ["a/b/x", "node_modules/p/x", "inner/x", "dist/d/x", "a/dist/x"];
  for (const path of [...paths, "out/x", "a/out/x", "kept/x", "odd-1/x"]) put(path);
  makeRepository(join(root, "inner"));
  put(".gitignore", "dist/\n/out\nkept\n!kept/\nodd-*\n# a\n\n!\n/\n");
  symlinkSync("a", join(root, "link"));
  const everything = ["a", "a/b", "a/out", "kept", "odd-1"];
  const before = await readProjectTree(root, env());
  expect(before.folders).toEqual([root]);
  expect(shown(before.otherFolders)).toEqual(everything);
  git("add", "a/b");
  const after = await readProjectTree(root, env());
  expect(shown(after.folders)).toEqual(["", "a", "a/b"]);
  expect(shown(after.otherFolders)).toEqual(["a/out", "kept", "odd-1"]);
  const ignored = await Promise.all(everything.map((path) => after.isIgnored(join(root, path))));
  expect(everything.filter((_, index) => ignored[index])).toEqual(["odd-1"]);
});

test.each([
  ["nothing", ""],
  ["another file", "not an index at all"],
  ["an index that was cut", "DIRC\0\0\0\u0002\0\0\0\u0009"],
])("an index with %s does not stop the run", async (_, bytes) => {
  git("init", "-q");
  put("a/b/x");
  writeFileSync(join(root, ".git/index"), bytes, "latin1");
  expect(shown((await readProjectTree(root, env())).otherFolders)).toEqual(["a", "a/b"]);
});

test.each([3, 500])("finds tracked text files that contain a word, among %i and more files", async (count) => {
  git("init", "-q");
  for (let number = 0; number < count; number++) put(`many/file-${number}.ts`);
  put("sub/b.md", "one\nplimsoll:start: here\n");
  put("binary", "plimsoll:start:\0");
  put("größe.md", "plimsoll:owns sha");
  git("add", "-A");
  put("untracked.md", "plimsoll:start:");
  put("many/file-1.ts", "changed: plimsoll:start:");
  rmSync(join(root, "many/file-2.ts"));
  const tree = await readProjectTree(root, env());
  const words = ["plimsoll:start:", "plimsoll:owns "];
  const expected = ["größe.md", "many/file-1.ts", "sub/b.md"];
  expect(shown(await tree.filesHolding(words))).toEqual(expected);
  const withoutGit = await readProjectTree(root, { ...env(), PATH: "" });
  expect(shown(await withoutGit.filesHolding(words))).toEqual(expected);
  expect(await tree.filesHolding(["in no file"])).toEqual([]);
});
