import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, test } from "vitest";
import { caseCount } from "../../../test/case-count.ts";
import { makeRepository } from "../../../test/make-repository.ts";
import { openIgnoreRules } from "../files/ignore-rules.ts";
import { listFiles, scanFolder } from "./scan-project.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-scan-")));
  return () => rmSync(root, { recursive: true, force: true });
});

function put(files: Readonly<Record<string, string>>, below: string = root): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(below, path)), { recursive: true });
    writeFileSync(join(below, path), text);
  }
}

const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
const author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always"];

function git(cwd: string, ...args: readonly string[]): void {
  execFileSync("git", [...author, ...args], { cwd, env, stdio: "pipe" });
}

function createRepository(files: Readonly<Record<string, string>>, below: string = root): void {
  put(files, below);
  git(below, "init", "--quiet");
  git(below, "add", "--all");
  git(below, "commit", "--quiet", "--allow-empty", "-m", "all");
}

async function pathsOf(directory: string = root, path: string = env.PATH ?? ""): Promise<string[]> {
  return (await scanFolder(directory, { env: { ...env, PATH: path } })).paths.toSorted();
}

it("returns the module, the language, the paths and the conventions of a project", async () => {
  createRepository({ "go.mod": "module example.com/x\n", "cmd/main.go": "", "AGENTS.md": "Rules." });
  const scan = await scanFolder(root, { env });
  expect(scan.facts.slice(0, 2)).toEqual([
    { name: "Module", value: "example.com/x" },
    { name: "Language", value: "Go" },
  ]);
  expect(scan.paths.toSorted()).toEqual(["AGENTS.md", "cmd/main.go", "go.mod"]);
  expect(scan.conventions).toEqual([{ path: "AGENTS.md", text: "Rules." }]);
  expect(scan.problems).toEqual([]);
});

it("refuses a missing directory and a file, by the given name", async () => {
  put({ file: "" });
  await expect(scanFolder(join(root, "file"))).rejects.toMatchObject({
    code: "unreadable_input",
    message: "is not a directory",
    file: join(root, "file"),
  });
  await expect(scanFolder(join(root, "missing"))).rejects.toMatchObject({ message: "no such directory" });
});

describe("the paths of a repository", () => {
  it("are the existing files that git tracks and the files that it would track", async () => {
    createRepository({ kept: "", gone: "", "old/gone": "", ".gitignore": "out/\n*.log\n" });
    put({ "out/x": "", "a.log": "", "new/file": "" });
    rmSync(join(root, "gone"));
    rmSync(join(root, "old"), { recursive: true });
    mkdirSync(join(root, "empty"));
    symlinkSync("/", join(root, "link"));
    const paths = [".gitignore", "kept", "link", "new/file"];
    expect(await pathsOf()).toEqual(paths);
    expect(await pathsOf(root, "")).toEqual(paths);
  });

  it("are those below a named folder, even one that git ignores", async () => {
    createRepository({ "a/b": "", c: "", ".gitignore": "out/\n" });
    put({ "out/deep/x": "" });
    expect(await pathsOf(join(root, "a"))).toEqual(["b"]);
    expect(await pathsOf(join(root, "out"))).toEqual(["deep/x"]);
  });

  it("contain a submodule and another repository as folders with unknown contents", async () => {
    const other = mkdtempSync(join(tmpdir(), "plimsoll-other-"));
    onTestFinished(() => rmSync(other, { recursive: true }));
    createRepository({ inside: "" }, other);
    createRepository({ a: "" });
    git(root, "submodule", "--quiet", "add", other, "libs/sub");
    createRepository({ x: "" }, join(root, "nested"));
    expect(await pathsOf()).toEqual([".gitmodules", "a", "libs/sub/", "nested/"]);
    expect(await pathsOf(join(root, "libs/sub"))).toEqual(["inside"]);
  });

  it("contain a file in conflict once", async () => {
    createRepository({ file: "1\n" });
    git(root, "checkout", "--quiet", "-b", "other");
    put({ file: "2\n" });
    git(root, "commit", "--quiet", "-am", "2");
    git(root, "checkout", "--quiet", "-");
    put({ file: "3\n" });
    git(root, "commit", "--quiet", "-am", "3");
    expect(() => git(root, "merge", "other")).toThrow();
    expect(await pathsOf()).toEqual(["file"]);
  });

  it("keep odd names apart", async () => {
    createRepository({ "line\nbreak": "", "tab\t": "", ünï: "", "*": "", "-- x": "", ":(top)": "" });
    const bytes = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]);
    writeFileSync(bytes, "");
    writeFileSync(Buffer.concat([bytes.subarray(0, -1), Buffer.from([0xfe])]), "");
    const paths = await pathsOf();
    expect(paths).toEqual(["*", "-- x", ":(top)", "a\uFFFD", "a\uFFFD", "line\nbreak", "tab\t", "ünï"].sort());
  });

  it("do not depend on a person's global excludes or on git's variables", async () => {
    createRepository({ a: "" });
    put({ mine: "", config: `[core]\nexcludesFile = ${join(root, "excludes")}\n`, excludes: "mine\n" });
    const odd = { ...env, GIT_CONFIG_GLOBAL: join(root, "config"), GIT_DIR: "/nowhere", GIT_WORK_TREE: "/" };
    const { paths, problems } = await scanFolder(root, { env: odd });
    expect(paths.toSorted()).toEqual(["a", "config", "excludes", "mine"]);
    expect(problems).toEqual([]);
  });
});

describe("without git", () => {
  it("walks a folder outside a repository and applies .gitignore files", async () => {
    put({
      a: "",
      "out/b": "",
      ".gitignore": "out/\n",
      "sub/.gitignore": "*.tmp\n",
      "sub/x.tmp": "",
      "sub/y": "",
    });
    expect(await scanFolder(root, { env })).toMatchObject({ problems: [] });
    expect(await pathsOf()).toEqual([".gitignore", "a", "sub/.gitignore", "sub/y"]);
  });

  it("reports that git is not on PATH, or the message of a failed git", async () => {
    createRepository({ a: "" });
    const without = await scanFolder(root, { env: {} });
    expect(without.paths).toEqual(["a"]);
    expect(without.problems).toEqual([{ path: ".", reason: "listed without git, because git is not on PATH" }]);
    writeFileSync(join(root, ".git/index"), "damaged, and long enough to be read as an index of files");
    const damaged = await scanFolder(root, { env });
    expect(damaged.paths).toEqual(["a"]);
    expect(damaged.problems).toEqual([{ path: ".", reason: expect.stringMatching(/^listed without git: .+/) }]);
  });

  it("ends a git that never ends with the scan", { timeout: 10_000 }, async () => {
    createRepository({ a: "" });
    put({ "bin/git": "#!/bin/sh\nexec sleep 60\n" });
    chmodSync(join(root, "bin/git"), 0o755);
    const signal = AbortSignal.timeout(200);
    const path = `${join(root, "bin")}:${env.PATH}`;
    await expect(scanFolder(root, { env: { PATH: path }, signal })).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });

  // Root can read every folder.
  it.skipIf(process.getuid?.() === 0)("names and shows a folder that cannot be read", async () => {
    put({ a: "", "closed/b": "" });
    chmodSync(join(root, "closed"), 0);
    onTestFinished(() => chmodSync(join(root, "closed"), 0o755));
    const scan = await scanFolder(root, { env });
    expect(scan.paths.toSorted()).toEqual(["a", "closed/"]);
    expect(scan.problems).toEqual([{ path: "closed", reason: "no permission to read it" }]);
  });
});

it("reports its progress", async () => {
  createRepository({ a: "", b: "" });
  const told: number[] = [];
  await scanFolder(root, { env, onProgress: (paths) => told.push(paths) });
  expect(told.at(-1)).toBe(2);
});

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

test("lists files in a fixed order, and directories after the files beside them", async () => {
  const root = tree({ "b/z": "", "b/a": "", a: "", c: "" });
  const { files } = await listFiles(root);
  expect(files.map((path) => relative(root, path))).toEqual(["a", "c", "b/a", "b/z"]);
});

test("leaves ignored files out at every level, even without a repository", async () => {
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

test("applies the rules of the repository above in a subdirectory", async () => {
  const root = tree({
    ".git/info/exclude": "secret\n",
    ".gitignore": "/d/x\n",
    "d/x": "",
    "d/secret": "",
    "d/y": "",
  });
  makeRepository(root);
  expect(await names(root, "d")).toEqual(["d/y"]);
});

test("lists an ignored directory that was named on purpose", async () => {
  const root = tree({
    ".gitignore": "vendor/\n",
    "vendor/lib/a": "",
    "vendor/.gitignore": "b",
    "vendor/b": "",
  });
  makeRepository(root);
  expect(await names(root, "vendor")).toEqual(["vendor/.gitignore", "vendor/lib/a"]);
  expect(await names(root, "vendor/lib")).toEqual(["vendor/lib/a"]);
});

test("applies the rules from the top down inside an ignored folder of a repository", async () => {
  const root = tree({
    ".gitignore": "*\n",
    "top/.gitignore": "y\n",
    "top/d/x": "",
    "top/d/y": "",
  });
  makeRepository(root);
  const rules = await openIgnoreRules(join(root, "top/d"), join(root, "top"));
  expect(["x", "y"].map((name) => rules.ignores(join(root, "top/d", name), "file"))).toEqual([false, true]);
});

test("a worktree uses the excludes of its repository", async () => {
  const root = tree({
    "main/.git/info/exclude": "hidden\n",
    "main/.git/worktrees/w/commondir": "../..\n",
    "main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n",
    "w/.git": "gitdir: ../main/.git/worktrees/w\n",
    "w/hidden": "",
    "w/shown": "",
  });
  makeRepository(join(root, "main"));
  expect(await names(root, "w")).toEqual(["w/shown"]);
});

test("does not wait for rules in a pipe or a device, and does not follow a link to rules, as in git", async () => {
  const root = tree({ "pipe/a": "", "link/a": "", "zero/a": "", rules: "a\n" });
  execFileSync("mkfifo", [join(root, "pipe/.gitignore")]);
  symlinkSync("../rules", join(root, "link/.gitignore"));
  symlinkSync("/dev/zero", join(root, "zero/.gitignore"));
  expect(await names(root)).toEqual(["link/a", "pipe/a", "rules", "zero/a"]);
});

test("the excludes of a repository may be a link, as in git", async () => {
  const root = tree({ rules: "a\n", a: "", b: "" });
  makeRepository(root);
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
])("%s affects only itself", async (_, pattern) => {
  const deep = `${"a/".repeat(100)}c`;
  const long = "a".repeat(250);
  const gitignore = `one\n${pattern}\ntwo\n`;
  const root = tree({ ".gitignore": gitignore, one: "", two: "", kept: "", [long]: "", [deep]: "" });
  const before = process.cpuUsage();
  expect(await names(root)).toEqual([".gitignore", deep, long, "kept"]);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(3_000);
});

test("a line with only an exclamation mark in a deeper file has no effect", async () => {
  for (const line of ["!", "! ", "!/", "/", "  "]) {
    const root = tree({ ".gitignore": "out\n", "d/.gitignore": `${line}\n`, "d/out/a": "", "d/a": "" });
    expect(await names(root), line).toEqual([".gitignore", "d/.gitignore", "d/a"]);
  }
});

test("leaves out a name with a line break like any other", async () => {
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

test("reports a link and never follows it, so a loop ends", async () => {
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

test("a missing directory is a failed entry, not an error", async () => {
  const { files, skipped } = await listFiles("/nonexistent-directory");
  expect(files).toEqual([]);
  expect(skipped).toEqual([{ path: "/nonexistent-directory", kind: "failed", reason: "no such file or directory" }]);
});

const hasGit = spawnSync("git", ["--version"]).status === 0;

// Skipped only if git is not installed: git is the reference here, and the product does not need it.
test.skipIf(!hasGit)("lists the same files as git, whatever the patterns", { timeout: 900_000 }, async () => {
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
        if (where === "" || wanted.some((each) => each.startsWith(where))) files[`${where}.gitignore`] = text;
      }
      const root = tree(files);
      execFileSync("git", ["init", "-q", root]);
      const listed = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "-z"], {
        cwd: root,
        encoding: "utf8",
      });
      expect(await names(root)).toEqual(listed.split("\0").filter(Boolean).sort());
      // Removing thousands of folders in one go takes longer than a hook may.
      for (const directory of scratch.splice(0)) rmSync(directory, { recursive: true });
    }),
    { numRuns: caseCount({ few: 10, deep: 300, long: 3_000 }) },
  );
});
