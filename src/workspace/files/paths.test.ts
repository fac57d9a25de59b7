import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { isGitInternal, isInside, projectRoot } from "./paths.ts";

test.each([
  ["/a/b", "/a", true],
  ["/a", "/a", true],
  ["/a/..x/b", "/a", true],
  ["/a/...", "/a", true],
  ["/a/b/../c", "/a", true],
  ["/a/../b", "/a", false],
  ["/ab", "/a", false],
  ["/", "/a", false],
])("%s in %s: %s", (path, directory, expected) => {
  expect(isInside(path, directory)).toBe(expected);
});

test("recognises git's own folder in every spelling that some file system accepts", () => {
  for (const name of [".git", ".GIT", "git~1", ".git.", ".git ", ".git::$INDEX_ALLOCATION"]) {
    expect(isGitInternal(`a/${name}/config`), name).toBe(true);
  }
  for (const name of [".gitignore", ".github", "a.git", "git", "git~", ".git-hooks"]) {
    expect(isGitInternal(`a/${name}/config`), name).toBe(false);
  }
});

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-root-"));
});
afterEach(() => rmSync(root, { recursive: true }));

function make(path: string): string {
  mkdirSync(join(root, path), { recursive: true });
  return join(root, path);
}

test("the nearest folder with .plimsoll or .git is the root", () => {
  make("home/team/.git");
  make("home/team/part/.plimsoll");
  expect(projectRoot(make("home/team/other/src"), join(root, "home"))).toBe(join(root, "home/team"));
  expect(projectRoot(make("home/team/part/src"), join(root, "home"))).toBe(join(root, "home/team/part"));
});

test("without either the folder itself is the root, and nothing above HOME is checked", () => {
  make(".git");
  const cwd = make("home/team");
  expect(projectRoot(cwd, join(root, "home"))).toBe(cwd);
  expect(projectRoot(cwd, `${join(root, "home")}/`)).toBe(cwd);
  expect(projectRoot(`${cwd}/`, join(root, "elsewhere"))).toBe(root);
});
