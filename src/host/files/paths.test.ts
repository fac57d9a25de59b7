import { expect, test } from "vitest";
import { isGitInternal, isInside } from "./paths.ts";

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
