import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import fc from "fast-check";
import { afterEach, expect, test } from "vitest";
import { openIgnoreRules } from "./ignore-rules.ts";
import { listFiles } from "./list-files.ts";

const scratch: string[] = [];
afterEach(() => {
  for (const directory of scratch.splice(0)) rmSync(directory, { recursive: true });
});

function tree(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "plimsoll-list-"));
  scratch.push(root);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

async function names(root: string, below = "."): Promise<string[]> {
  return (await listFiles(join(root, below))).files.map((path) => relative(root, path)).sort();
}

test("files come in a fixed order, directories after the files beside them", async () => {
  const root = tree({ "b/z": "", "b/a": "", a: "", c: "" });
  const { files } = await listFiles(root);
  expect(files.map((path) => relative(root, path))).toEqual(["a", "c", "b/a", "b/z"]);
});

test("ignored files are left out at every level, also without a repository", async () => {
  const root = tree({
    ".gitignore": "*.log\nbuild/\n",
    "a.log": "",
    a: "",
    "build/x": "",
    "d/.gitignore": "y",
    "d/y": "",
    "d/z": "",
  });
  expect(await names(root)).toEqual([".gitignore", "a", "d/.gitignore", "d/z"]);
});

test("rules of the repository above hold in a subdirectory", async () => {
  const root = tree({
    ".git/info/exclude": "secret\n",
    ".gitignore": "/d/x\n",
    "d/x": "",
    "d/secret": "",
    "d/y": "",
  });
  expect(await names(root, "d")).toEqual(["d/y"]);
});

test("an ignored directory that is named on purpose is listed", async () => {
  const root = tree({
    ".git/HEAD": "",
    ".gitignore": "vendor/\n",
    "vendor/lib/a": "",
    "vendor/.gitignore": "b",
    "vendor/b": "",
  });
  expect(await names(root, "vendor")).toEqual(["vendor/.gitignore", "vendor/lib/a"]);
  expect(await names(root, "vendor/lib")).toEqual(["vendor/lib/a"]);
});

test("inside of what a repository around it leaves out, the rules from the top down hold", async () => {
  const root = tree({
    ".git/HEAD": "",
    ".gitignore": "*\n",
    "top/.gitignore": "y\n",
    "top/d/x": "",
    "top/d/y": "",
  });
  const rules = await openIgnoreRules(join(root, "top/d"), join(root, "top"));
  expect(["x", "y"].map((name) => rules.ignores(join(root, "top/d", name), "file"))).toEqual([false, true]);
});

test("the excludes of a worktree are those of its repository", async () => {
  const root = tree({
    "main/.git/info/exclude": "hidden\n",
    "main/.git/worktrees/w/commondir": "../..\n",
    "w/.git": "gitdir: ../main/.git/worktrees/w\n",
    "w/hidden": "",
    "w/shown": "",
  });
  expect(await names(root, "w")).toEqual(["w/shown"]);
});

test("rules in a pipe or a device are not waited for, and rules behind a link are not followed, as in git", async () => {
  const root = tree({ "pipe/a": "", "link/a": "", "zero/a": "", rules: "a\n" });
  execFileSync("mkfifo", [join(root, "pipe/.gitignore")]);
  symlinkSync("../rules", join(root, "link/.gitignore"));
  symlinkSync("/dev/zero", join(root, "zero/.gitignore"));
  expect(await names(root)).toEqual(["link/a", "pipe/a", "rules", "zero/a"]);
});

test("the excludes of a repository may be a link, as in git", async () => {
  const root = tree({ ".git/HEAD": "", rules: "a\n", a: "", b: "" });
  mkdirSync(join(root, ".git/info"));
  symlinkSync("../../rules", join(root, ".git/info/exclude"));
  expect(await names(root)).toEqual(["b", "rules"]);
});

test.each([
  ["a pattern longer than any path", "a".repeat(1_000_000)],
  ["sets within sets without end", "[a-".repeat(300_000)],
  ["a pattern that takes for ever on a long name", `${"*a".repeat(40)}b`],
  ["a pattern that takes for ever on a deep path", `${"**/a/".repeat(40)}b`],
  ["a set that is none", "[z-a]\n[[:x:]]\n[\\\n\\"],
])("%s costs only itself", async (_, pattern) => {
  const deep = `${"a/".repeat(100)}c`;
  const long = "a".repeat(250);
  const gitignore = `one\n${pattern}\ntwo\n`;
  const root = tree({ ".gitignore": gitignore, one: "", two: "", kept: "", [long]: "", [deep]: "" });
  const before = process.cpuUsage();
  expect(await names(root)).toEqual([".gitignore", deep, long, "kept"]);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
});

test("a line of an exclamation mark alone in a deeper file brings nothing back", async () => {
  for (const line of ["!", "! ", "!/", "/", "  "]) {
    const root = tree({ ".gitignore": "out\n", "d/.gitignore": `${line}\n`, "d/out/a": "", "d/a": "" });
    expect(await names(root), line).toEqual([".gitignore", "d/.gitignore", "d/a"]);
  }
});

test("a name with a line break in it is left out like any other", async () => {
  const hidden = Object.fromEntries(["\n", "\r", "\u2028"].map((each) => [`d/x/a${each}b/c`, ""]));
  const root = tree({
    ".gitignore": "d/**/c\n",
    "d/.gitignore": "e/**\n",
    "d/e/a\nb": "",
    "d/y\nz": "",
    ...hidden,
  });
  expect(await names(root)).toEqual([".gitignore", "d/.gitignore", "d/y\nz"]);
});

test("a link is reported and never followed, so a loop ends", async () => {
  const root = tree({ "d/a": "" });
  symlinkSync("..", join(root, "d", "up"));
  symlinkSync("a", join(root, "d", "again"));
  const list = await listFiles(root);
  expect(list.files).toEqual([join(root, "d/a")]);
  expect(list.skipped).toEqual([
    { path: join(root, "d/again"), kind: "special", reason: "symbolic link" },
    { path: join(root, "d/up"), kind: "special", reason: "symbolic link" },
  ]);
});

test("a directory that is not there is a failed entry, not a throw", async () => {
  const { files, skipped } = await listFiles("/nonexistent-directory");
  expect(files).toEqual([]);
  expect(skipped).toEqual([
    { path: "/nonexistent-directory", kind: "failed", reason: "no such file or directory" },
  ]);
});

const hasGit = spawnSync("git", ["--version"]).status === 0;

// Skipped only where git is not installed: it is the reference here, never a need of the product.
test.skipIf(!hasGit)(
  "the list is the one that git makes, whatever the patterns",
  { timeout: 120_000 },
  async () => {
    const name = fc.constantFrom("a", "b", "a.log", "b c", "[x]", "build", "a\nb");
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"));
    const pattern = fc
      .tuple(
        fc.constantFrom("", "!", "\\", "#"),
        fc.constantFrom("", "/", "**/"),
        fc.constantFrom(
          "a",
          "b",
          "*.log",
          "*",
          "b c",
          "b\\ c",
          "[ab]",
          "\\[x\\]",
          "build",
          "a/b",
          "a/**",
          "a/**/b",
          "?",
          "**",
          "",
        ),
        fc.constantFrom("", "/", " ", "\r"),
      )
      .map((parts) => parts.join(""));
    const rules = fc.array(pattern, { maxLength: 4 }).map((lines) => lines.join("\n"));
    const directories = fc.dictionary(fc.constantFrom("", "a/", "b/", "a/b/", "[x]/", "b c/"), rules, {
      maxKeys: 3,
    });
    await fc.assert(
      fc.asyncProperty(fc.uniqueArray(path, { maxLength: 12 }), directories, async (paths, ignores) => {
        const wanted = paths.filter((each) => !paths.some((other) => other.startsWith(`${each}/`)));
        const files = Object.fromEntries(wanted.map((each) => [each, ""]));
        for (const [where, text] of Object.entries(ignores)) {
          if (where === "" || wanted.some((each) => each.startsWith(where)))
            files[`${where}.gitignore`] = text;
        }
        const root = tree(files);
        execFileSync("git", ["init", "-q", root]);
        const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
          cwd: root,
          encoding: "utf8",
        });
        expect(await names(root)).toEqual(listed.split("\0").filter(Boolean).sort());
      }),
      { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 3000 : 100 },
    );
  },
);
