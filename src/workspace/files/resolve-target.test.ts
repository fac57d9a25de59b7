import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { isGitInternal, isInside, resolveTarget } from "./resolve-target.ts";

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

test("git's own folder is known in every spelling that some file system takes for it", () => {
  for (const name of [".git", ".GIT", "git~1", ".git.", ".git ", ".git::$INDEX_ALLOCATION"]) {
    expect(isGitInternal(`a/${name}/config`), name).toBe(true);
  }
  for (const name of [".gitignore", ".github", "a.git", "git", "git~", ".git-hooks"]) {
    expect(isGitInternal(`a/${name}/config`), name).toBe(false);
  }
});

test("nothing is written into git's own folder, however it is spelled", async () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "target-")));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "..x"));
  for (const path of [".git/hooks/x", ".GIT/hooks/x", "git~1/x"]) {
    await expect(resolveTarget(path, root)).rejects.toMatchObject({ code: "refused_target" });
  }
  expect(await resolveTarget("..x/a.md", root)).toBe(join(root, "..x/a.md"));
});
