import { join } from "node:path";
import { expect, test } from "vitest";
import { createTree } from "../temporary-tree.contract.ts";
import { containExisting, containPath } from "./contained-path.ts";

test("paths inside become relative to the root, however they were written", async () => {
  const root = createTree({ "src/a.ts": "", in: { link: "src" } });
  const real = join(root, "src/a.ts");
  for (const path of ["src/a.ts", "./src/a.ts", "src/../src//a.ts", real]) {
    expect(await containPath(root, path)).toEqual({ path: "src/a.ts", real, realPath: "src/a.ts" });
  }
  expect(await containPath(root, "")).toEqual({ path: ".", real: root, realPath: "." });
  expect(await containPath(root, "in/a.ts")).toEqual({ path: "in/a.ts", real, realPath: "src/a.ts" });
  expect(await containPath(root, "src/not yet/there")).toMatchObject({ path: "src/not yet/there" });
});

test("a root that is a link contains its target, by both names", async () => {
  const root = createTree({ "real/a.ts": "", link: { link: "real" } });
  const real = join(root, "real/a.ts");
  const wanted = { path: "a.ts", real, realPath: "a.ts" };
  expect(await containPath(join(root, "link"), join(root, "link/a.ts"))).toEqual(wanted);
  expect(await containPath(join(root, "link"), real)).toEqual(wanted);
  expect(await containPath(join(root, "link"), "..")).toMatchObject({ code: "outside_root" });
});

test.each([
  ["../b", "outside_root"],
  ["a/../../b", "outside_root"],
  ["/etc/passwd", "outside_root"],
  ["out", "outside_root"],
  ["out/passwd", "outside_root"],
  ["out/not there", "outside_root"],
  ["deep", "outside_root"],
  [".git", "refused_path"],
  [".git/config", "refused_path"],
  ["sub/.git/config", "refused_path"],
  [".Git/config", "refused_path"],
  ["git~1/config", "refused_path"],
  [".git./config", "refused_path"],
  [".git::$INDEX_ALLOCATION/config", "refused_path"],
  ["hidden way/config", "refused_path"],
  ["circle", "not_found"],
  ["file/below", "not_found"],
  ["a\0b", "invalid_argument"],
])("%j is refused", async (path, code) => {
  const root = createTree({
    ".git/config": "",
    file: "",
    out: { link: "/etc" },
    deep: { link: "deeper" },
    deeper: { link: "../outside" },
    "hidden way": { link: ".git" },
    circle: { link: "circle" },
  });
  expect(await containPath(root, path)).toMatchObject({ code });
});

test("names that only resemble git's are not git's", async () => {
  const root = createTree({});
  for (const path of [".gitignore", ".github/workflows/a.yml", "a.git/config", "git", ".git-blame-ignore-revs"]) {
    expect(await containPath(root, path)).toMatchObject({ path });
  }
});

test("reports a root that is gone", async () => {
  expect(await containPath("/no/such/root", "a")).toMatchObject({ code: "not_found" });
});

test("reports a path that must exist and does not", async () => {
  const root = createTree({ a: "" });
  expect(await containExisting(root, "a")).toMatchObject({ path: "a" });
  expect(await containExisting(root, "b")).toMatchObject({
    code: "not_found",
    message: '"b" does not exist.',
  });
});
