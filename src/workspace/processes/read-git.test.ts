import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { type GitRefusal, inspectRepository, readGit } from "./read-git.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-git-")));
  return () => rmSync(folder, { recursive: true, force: true });
});

const env = { PATH: process.env.PATH, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };

function git(cwd: string, ...args: readonly string[]): string {
  const author = [
    "-c",
    "user.name=Ada",
    "-c",
    "user.email=ada@example.org",
    "-c",
    "protocol.file.allow=always",
  ];
  return execFileSync("git", [...author, ...args], { cwd, env, encoding: "utf8", stdio: "pipe" });
}

function createRepository(name: string): string {
  const root = join(folder, name);
  mkdirSync(join(root, "deep/er"), { recursive: true });
  for (const path of ["a.txt", "deep/er/b.txt"]) writeFileSync(join(root, path), "1\n");
  git(root, "init", "--quiet");
  git(root, "add", "--all");
  git(root, "commit", "--quiet", "-m", "Begin");
  return root;
}

async function inspect(
  root: string,
  more: Record<string, string> = {},
): ReturnType<typeof inspectRepository> {
  return inspectRepository({ root, env: { ...env, ...more }, signal: new AbortController().signal });
}

async function reasonOf(root: string, more?: Record<string, string>): Promise<string> {
  const answer = await inspect(root, more);
  return "refused" in answer ? `${answer.refused}: ${answer.reason}` : "used";
}

test("a root that is a folder of the work tree is told with its place there", async () => {
  const root = createRepository("a\nb");
  expect(await inspect(root)).toMatchObject({ toplevel: root, prefix: "", isShallow: false });
  expect(await inspect(join(root, "deep/er"))).toMatchObject({ toplevel: root, prefix: "deep/er/" });
});

test("a linked worktree, a submodule and a shallow clone are used as they are", async () => {
  const main = createRepository("main");
  git(main, "worktree", "add", "--quiet", join(folder, "linked"));
  expect(await inspect(join(folder, "linked/deep"))).toMatchObject({ prefix: "deep/" });
  const around = createRepository("around");
  git(around, "submodule", "--quiet", "add", main, "lib");
  expect(await inspect(join(around, "lib"))).toMatchObject({ toplevel: join(around, "lib"), prefix: "" });
  git(main, "commit", "--quiet", "--allow-empty", "-m", "More");
  git(folder, "clone", "--quiet", "--depth=1", `file://${main}`, "shallow");
  expect(await inspect(join(folder, "shallow"))).toMatchObject({ isShallow: true });
});

test("a folder in no repository, in .git or laid out as a bare one is in none", async () => {
  const root = createRepository("a");
  git(folder, "clone", "--quiet", "--bare", root, "bare");
  for (const each of [folder, join(folder, "bare"), join(folder, "bare/refs"), join(root, ".git")])
    expect(await reasonOf(each)).toBe("no_repository: the folder is in no git repository");
});

const elsewhere = "unsafe: its work tree does not hold this folder (core.worktree)";
const foreign = expect.stringMatching(
  /^unsafe: its \.git leads to a directory that does not name this work tree/,
);

test("a work tree that is set elsewhere is refused, also one around the root", async () => {
  const root = createRepository("a");
  mkdirSync(join(folder, "other"));
  for (const path of [join(folder, "other"), "../../other", "../deep"]) {
    git(root, "config", "core.worktree", path);
    expect(await reasonOf(root)).toBe(elsewhere);
  }
  git(root, "config", "core.worktree", "../..");
  expect(await reasonOf(root)).toBe("unsafe: its work tree lies elsewhere (core.worktree)");
  git(root, "config", "core.worktree", "..");
  expect(await reasonOf(root)).toBe("used");
});

test("a .git that leads to a repository of something else is refused, unless a person names the folder", async () => {
  const other = createRepository("other");
  for (const [name, make] of [
    ["file", (path: string) => writeFileSync(path, `gitdir: ${other}/.git\n`)],
    ["link", (path: string) => symlinkSync(join(other, ".git"), path)],
  ] as const) {
    const root = join(folder, name);
    mkdirSync(root);
    make(join(root, ".git"));
    expect(await reasonOf(root)).toEqual(foreign);
    const config = join(folder, "config");
    writeFileSync(config, `[safe]\n\tdirectory = *\n`);
    expect(await reasonOf(root, { GIT_CONFIG_GLOBAL: config })).toEqual(foreign);
    writeFileSync(config, `[safe]\n\tdirectory = ${root}\n`);
    expect(await reasonOf(root, { GIT_CONFIG_GLOBAL: config })).toBe("used");
  }
});

test("a file of .git that is a link out of it is refused", async () => {
  const root = createRepository("a");
  for (const path of ["packed-refs", "info/grafts", "objects/info/alternates", "shallow"]) {
    const place = join(root, ".git", path);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(folder, "outside"), place);
    writeFileSync(join(folder, "outside"), "a line\n");
    expect(await reasonOf(root)).toBe(`unsafe: "${path}" in its .git is a link to somewhere else`);
    rmSync(place);
  }
  expect(await reasonOf(root)).toBe("used");
});

test("the list of commits that blame ignores lies in the work tree, or the user has chosen it", async () => {
  const root = createRepository("a");
  writeFileSync(join(folder, "list"), "");
  const blame = async (more: Record<string, string> = {}) => {
    const place = { root, env: { ...env, ...more }, signal: new AbortController().signal };
    const started = await readGit(place, ["blame", "--", "a.txt"]);
    if ("refused" in started) return (started as GitRefusal).reason;
    for await (const _ of started.output);
    return (await started.end).stderr;
  };
  const refused = "blame.ignoreRevsFile names a file that may not be read";
  git(root, "config", "blame.ignoreRevsFile", "../list");
  expect(await blame()).toBe(refused);
  git(root, "config", "blame.ignoreRevsFile", "ignored");
  symlinkSync("../list", join(root, "ignored"));
  expect(await blame()).toBe(refused);
  rmSync(join(root, "ignored"));
  writeFileSync(join(root, "ignored"), "");
  expect(await blame()).toBe("");
  git(root, "config", "--unset", "blame.ignoreRevsFile");
  writeFileSync(join(folder, "config"), `[blame]\n\tignoreRevsFile = ${join(folder, "list")}\n`);
  expect(await blame({ GIT_CONFIG_GLOBAL: join(folder, "config") })).toBe("");
});
