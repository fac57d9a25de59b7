import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { scanProject } from "./scan-project.ts";

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
const author = [
  "-c",
  "user.name=Ada",
  "-c",
  "user.email=ada@example.org",
  "-c",
  "protocol.file.allow=always",
];

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
  return (await scanProject(directory, { env: { ...env, PATH: path } })).paths.toSorted();
}

it("tells the module, the language, the paths and the conventions of a project", async () => {
  createRepository({ "go.mod": "module example.com/x\n", "cmd/main.go": "", "AGENTS.md": "Rules." });
  const scan = await scanProject(root, { env });
  expect(scan.facts.slice(0, 2)).toEqual([
    { name: "Module", value: "example.com/x" },
    { name: "Language", value: "Go" },
  ]);
  expect(scan.paths.toSorted()).toEqual(["AGENTS.md", "cmd/main.go", "go.mod"]);
  expect(scan.conventions).toEqual([{ path: "AGENTS.md", text: "Rules." }]);
  expect(scan.problems).toEqual([]);
});

it("refuses what is no directory, or not there, by the name that it was given", async () => {
  put({ file: "" });
  await expect(scanProject(join(root, "file"))).rejects.toMatchObject({
    code: "unreadable_input",
    message: "is no directory",
    file: join(root, "file"),
  });
  await expect(scanProject(join(root, "missing"))).rejects.toMatchObject({ message: "no such directory" });
});

describe("the paths of a repository", () => {
  it("are those that git tracks and that are there, and those that it would track", async () => {
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

  it("are those below a folder that was named, also one that git leaves out", async () => {
    createRepository({ "a/b": "", c: "", ".gitignore": "out/\n" });
    put({ "out/deep/x": "" });
    expect(await pathsOf(join(root, "a"))).toEqual(["b"]);
    expect(await pathsOf(join(root, "out"))).toEqual(["deep/x"]);
  });

  it("hold a submodule and another repository as folders of which no more is known", async () => {
    const other = mkdtempSync(join(tmpdir(), "plimsoll-other-"));
    onTestFinished(() => rmSync(other, { recursive: true }));
    createRepository({ inside: "" }, other);
    createRepository({ a: "" });
    git(root, "submodule", "--quiet", "add", other, "libs/sub");
    createRepository({ x: "" }, join(root, "nested"));
    expect(await pathsOf()).toEqual([".gitmodules", "a", "libs/sub/", "nested/"]);
    expect(await pathsOf(join(root, "libs/sub"))).toEqual(["inside"]);
  });

  it("come once for a file in conflict", async () => {
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
    expect(paths).toEqual(
      ["*", "-- x", ":(top)", "a\uFFFD", "a\uFFFD", "line\nbreak", "tab\t", "ünï"].sort(),
    );
  });

  it("do not depend on what a person excludes for all repositories, nor on variables of git", async () => {
    createRepository({ a: "" });
    put({ mine: "", config: `[core]\nexcludesFile = ${join(root, "excludes")}\n`, excludes: "mine\n" });
    const odd = { ...env, GIT_CONFIG_GLOBAL: join(root, "config"), GIT_DIR: "/nowhere", GIT_WORK_TREE: "/" };
    const { paths, problems } = await scanProject(root, { env: odd });
    expect(paths.toSorted()).toEqual(["a", "config", "excludes", "mine"]);
    expect(problems).toEqual([]);
  });
});

describe("without git", () => {
  it("a folder in no repository is walked, and .gitignore files hold", async () => {
    put({
      a: "",
      "out/b": "",
      ".gitignore": "out/\n",
      "sub/.gitignore": "*.tmp\n",
      "sub/x.tmp": "",
      "sub/y": "",
    });
    expect(await scanProject(root, { env })).toMatchObject({ problems: [] });
    expect(await pathsOf()).toEqual([".gitignore", "a", "sub/.gitignore", "sub/y"]);
  });

  it("says that it is not on PATH, and what git said where it failed", async () => {
    createRepository({ a: "" });
    const without = await scanProject(root, { env: {} });
    expect(without.paths).toEqual(["a"]);
    expect(without.problems).toEqual([{ path: ".", reason: "listed without git, which is not on PATH" }]);
    writeFileSync(join(root, ".git/index"), "damaged, and long enough to be read as an index of files");
    const damaged = await scanProject(root, { env });
    expect(damaged.paths).toEqual(["a"]);
    expect(damaged.problems).toEqual([
      { path: ".", reason: expect.stringMatching(/^listed without git: .+/) },
    ]);
  });

  it("a git that never ends is ended with the scan", { timeout: 10_000 }, async () => {
    createRepository({ a: "" });
    put({ "bin/git": "#!/bin/sh\nexec sleep 60\n" });
    chmodSync(join(root, "bin/git"), 0o755);
    const signal = AbortSignal.timeout(200);
    const path = `${join(root, "bin")}:${env.PATH}`;
    await expect(scanProject(root, { env: { PATH: path }, signal })).rejects.toMatchObject({
      name: "TimeoutError",
    });
  });

  // A user that may do anything reads every folder.
  it.skipIf(process.getuid?.() === 0)("a folder that cannot be read is named and shown", async () => {
    put({ a: "", "closed/b": "" });
    chmodSync(join(root, "closed"), 0);
    onTestFinished(() => chmodSync(join(root, "closed"), 0o755));
    const scan = await scanProject(root, { env });
    expect(scan.paths.toSorted()).toEqual(["a", "closed/"]);
    expect(scan.problems).toEqual([{ path: "closed", reason: "no permission to read it" }]);
  });
});

it("tells how far it is", async () => {
  createRepository({ a: "", b: "" });
  const told: number[] = [];
  await scanProject(root, { env, onProgress: (paths) => told.push(paths) });
  expect(told.at(-1)).toBe(2);
});
