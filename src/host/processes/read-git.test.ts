import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Environment } from "../directories.ts";
import { type GitRefusal, inspectRepository } from "./inspect-repository.ts";
import { changeGit, readGit } from "./read-git.ts";
import { findProgram } from "./start-git.ts";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-git-")));
  return () => rmSync(folder, { recursive: true, force: true });
});

const env = { PATH: process.env.PATH, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };

function git(cwd: string, ...args: readonly string[]): string {
  const author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always"];
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

async function inspect(root: string, more: Record<string, string> = {}): ReturnType<typeof inspectRepository> {
  return inspectRepository({ root, env: { ...env, ...more }, signal: new AbortController().signal });
}

async function reasonOf(root: string, more?: Record<string, string>): Promise<string> {
  const answer = await inspect(root, more);
  return "refused" in answer ? `${answer.refused}: ${answer.reason}` : "used";
}

test("finds the place of a root below the work tree", async () => {
  const root = createRepository("a\nb");
  expect(await inspect(root)).toMatchObject({ toplevel: root, prefix: "", isShallow: false });
  expect(await inspect(join(root, "deep/er"))).toMatchObject({ toplevel: root, prefix: "deep/er/" });
});

test("uses a linked worktree, a submodule and a shallow clone", async () => {
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

test("a folder outside a repository, in .git or laid out as a bare repository is not in a repository", async () => {
  const root = createRepository("a");
  git(folder, "clone", "--quiet", "--bare", root, "bare");
  for (const each of [folder, join(folder, "bare"), join(folder, "bare/refs"), join(root, ".git")])
    expect(await reasonOf(each)).toBe("no_repository: the folder is not in a git repository");
});

const elsewhere = "unsafe: its work tree does not hold this folder (core.worktree)";
const foreign = expect.stringMatching(/^unsafe: its \.git leads to a directory that does not name this work tree/);

test("refuses a work tree elsewhere, even one around the root", async () => {
  const root = createRepository("a");
  mkdirSync(join(folder, "other"));
  for (const path of [join(folder, "other"), "../../other", "../deep"]) {
    git(root, "config", "core.worktree", path);
    expect(await reasonOf(root)).toBe(elsewhere);
  }
  git(root, "config", "core.worktree", "../..");
  expect(await reasonOf(root)).toBe("unsafe: its work tree is elsewhere (core.worktree)");
  git(root, "config", "core.worktree", "..");
  expect(await reasonOf(root)).toBe("used");
});

test("refuses a .git that leads to another repository, unless a person names the folder", async () => {
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

test("refuses a link out of .git", async () => {
  const root = createRepository("a");
  for (const path of ["packed-refs", "info/grafts", "objects/info/alternates", "shallow"]) {
    const place = join(root, ".git", path);
    mkdirSync(dirname(place), { recursive: true });
    symlinkSync(join(folder, "outside"), place);
    writeFileSync(join(folder, "outside"), "a line\n");
    expect(await reasonOf(root)).toBe(`unsafe: "${path}" in its .git is a link out of it`);
    rmSync(place);
  }
  expect(await reasonOf(root)).toBe("used");
});

test("accepts the list of commits that blame ignores in the work tree, or if the user chose it", async () => {
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

function createTree(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "find-program-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

test("finds the first program of a name on PATH, with its whole path", async () => {
  const root = createTree({
    "a/other": "",
    "b/tool": "#!/bin/sh\n",
    "c/tool": "#!/bin/sh\n",
    "d/tool/file": "",
  });
  for (const path of ["b/tool", "c/tool"]) chmodSync(join(root, path), 0o755);
  const path = ["a", "d", "b", "c"].map((name) => join(root, name)).join(delimiter);
  expect(await findProgram("tool", { PATH: path })).toBe(join(root, "b/tool"));
  expect(await findProgram("missing", { PATH: path })).toBeUndefined();
  expect(await findProgram("tool", {})).toBeUndefined();
});

test("a file without permission to run is not a program, and the working directory is not searched", async () => {
  const root = createTree({ "a/tool": "" });
  expect(await findProgram("tool", { PATH: join(root, "a") })).toBeUndefined();
  expect(await findProgram("package.json", { PATH: `.${delimiter}${delimiter}src` })).toBeUndefined();
});

describe.skipIf(process.platform === "win32")("what git answered", () => {
  /** A git that writes down how it is called. */
  function watchedGit(): { env: Record<string, string>; started: () => string[] } {
    const log = join(folder, "log");
    const program = execFileSync("which", ["git"], { encoding: "utf8" }).trim();
    mkdirSync(join(folder, "bin"));
    writeFileSync(join(folder, "bin/git"), `#!/bin/sh\necho "$*" >> '${log}'\nexec '${program}' "$@"\n`);
    chmodSync(join(folder, "bin/git"), 0o755);
    return {
      env: { ...env, PATH: `${join(folder, "bin")}${delimiter}${process.env.PATH}`, HOME: join(folder, "home") },
      started: () => {
        const lines = existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(0, -1) : [];
        rmSync(log, { force: true });
        return lines.map((line) => /(?<= )(rev-parse|config|ls-files|status)(?= |$)/.exec(line)?.[0] ?? line).sort();
      },
    };
  }

  /** Files count as settled two seconds after a change. */
  function later(): void {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10_000 });
    onTestFinished(() => void vi.useRealTimers());
  }

  async function statusOf(root: string, more: Environment): Promise<string> {
    const git = await readGit({ root, env: more, signal: new AbortController().signal }, ["status", "--short", "--"]);
    if ("refused" in git) return git.reason;
    const chunks: Buffer[] = [];
    for await (const chunk of git.output) chunks.push(chunk);
    return `${Buffer.concat(chunks)}${(await git.end).stderr}`;
  }

  const whole = ["config", "ls-files", "rev-parse", "status"];

  test("is remembered from the second call on", async () => {
    const root = createRepository("a");
    const watched = watchedGit();
    later();
    for (const expected of [whole, whole, ["status"], ["status"]]) {
      expect(await statusOf(root, watched.env)).toBe("");
      expect(watched.started()).toEqual(expected);
    }
    writeFileSync(join(root, "a.txt"), "2\n");
    expect(await statusOf(root, watched.env)).toBe(" M a.txt\n");
    expect(watched.started()).toEqual(["status"]);
  });

  test("is not remembered while the files are so new that a change could stay unnoticed", async () => {
    const root = createRepository("a");
    const watched = watchedGit();
    for (let call = 0; call < 3; call++) {
      await statusOf(root, watched.env);
      expect(watched.started()).toEqual(whole);
    }
  });

  test.each<[string, (root: string) => void]>([
    ["the work tree moves", (root) => git(root, "config", "core.worktree", folder)],
    [
      "another .git takes its place",
      (root) => {
        renameSync(join(root, ".git"), join(folder, "away"));
        writeFileSync(join(root, ".git"), `gitdir: ${join(folder, "away")}\n`);
      },
    ],
    ["a link leads out of .git", (root) => symlinkSync(join(folder, "log"), join(root, ".git/info/grafts"))],
  ])("is asked again when %s, and the repository is refused", async (_, change) => {
    const root = createRepository("a");
    later();
    for (let call = 0; call < 3; call++) expect(await reasonOf(root)).toBe("used");
    writeFileSync(join(folder, "log"), "");
    change(root);
    expect(await reasonOf(root)).toMatch(/^unsafe: /);
  });

  test("is asked again when an included file changes", async () => {
    const root = createRepository("a");
    git(root, "config", "include.path", "more");
    later();
    for (let call = 0; call < 3; call++) expect(JSON.stringify(await inspect(root))).not.toContain("filter.x");
    git(root, "config", "--file", ".git/more", "filter.x.clean", "false");
    expect(JSON.stringify(await inspect(root))).toContain("filter.x");
  });

  test("runs no filter that was added between two calls, even under the old size and time", async () => {
    const root = createRepository("a");
    const config = join(root, ".git/config");
    const filter = `[filter "x"]\n\tclean = touch ${join(folder, "ran")}\n`;
    writeFileSync(join(root, ".gitattributes"), "*.txt filter=x\n");
    writeFileSync(config, `${readFileSync(config, "utf8")}${filter.replaceAll(/./g, "#")}`);
    const time = new Date("2026-01-01");
    utimesSync(config, time, time);
    later();
    for (let call = 0; call < 3; call++) await statusOf(root, env);
    const before = statSync(config);
    writeFileSync(config, readFileSync(config, "utf8").replace(/#+\n#+\n$/, filter));
    utimesSync(config, time, time);
    expect(statSync(config)).toMatchObject({ size: before.size, mtimeMs: before.mtimeMs });
    writeFileSync(join(root, "a.txt"), "2\n");
    expect(await statusOf(root, env)).toContain(" M a.txt");
    expect(existsSync(join(folder, "ran"))).toBe(false);
  });

  test("is asked again when a user sets something for the first time, or a closer .git appears", async () => {
    const root = createRepository("a");
    const watched = watchedGit();
    later();
    const ask = async (path: string) => {
      const answer = await inspect(path, watched.env);
      return { answer, started: watched.started() };
    };
    for (let call = 0; call < 2; call++) await ask(join(root, "deep"));
    expect((await ask(join(root, "deep"))).started).toEqual([]);
    mkdirSync(join(folder, "home"));
    writeFileSync(join(folder, "home/.gitconfig"), "[user]\n\tname = Grace\n");
    const { answer } = await ask(join(root, "deep"));
    expect(answer).toMatchObject({ settings: expect.arrayContaining([expect.objectContaining({ value: "Grace" })]) });
    await ask(join(root, "deep"));
    expect((await ask(join(root, "deep"))).started).toEqual([]);
    git(join(root, "deep"), "init", "--quiet");
    expect((await ask(join(root, "deep"))).answer).toMatchObject({ toplevel: join(root, "deep"), prefix: "" });
  });

  test("is asked each time if the settings depend on the branch", async () => {
    const root = createRepository("a");
    const watched = watchedGit();
    git(root, "config", "includeIf.onbranch:other.path", "more");
    git(root, "config", "--file", ".git/more", "filter.y.clean", "false");
    later();
    for (let call = 0; call < 3; call++) {
      expect(JSON.stringify(await inspect(root, watched.env))).not.toContain("filter.y");
      expect(watched.started()).toEqual(["config", "rev-parse"]);
    }
    git(root, "checkout", "--quiet", "-b", "other");
    expect(JSON.stringify(await inspect(root, watched.env))).toContain("filter.y");
  });

  test("a submodule that is added between two calls is inspected", async () => {
    const inner = createRepository("inner");
    const root = createRepository("a");
    later();
    for (let call = 0; call < 3; call++) await statusOf(root, env);
    git(root, "submodule", "--quiet", "add", inner, "lib");
    git(join(root, "lib"), "config", "filter.x.clean", `touch ${join(folder, "ran")}`);
    writeFileSync(join(root, "lib/.gitattributes"), "*.txt filter=x\n");
    writeFileSync(join(root, "lib/a.txt"), "2\n");
    expect(await statusOf(root, env)).toContain("Am lib");
    expect(existsSync(join(folder, "ran"))).toBe(false);
  });
});

describe("a change of a repository", () => {
  const change = (root: string, ...args: string[]) =>
    changeGit({ root, env, signal: new AbortController().signal }, args);

  test.each(["gitdir:**/worktrees/**", "onbranch:new"])(
    "runs no filter of a file that %s includes",
    async (condition) => {
      const root = createRepository("a");
      writeFileSync(join(root, ".gitattributes"), "* filter=x\n");
      git(root, "add", "--all");
      git(root, "commit", "--quiet", "-m", "Filter");
      git(root, "config", `includeIf.${condition}.path`, "more");
      git(root, "config", "--file", ".git/more", "filter.x.smudge", `touch ${join(folder, "ran")}`);
      const changed = await change(root, "worktree", "add", "--quiet", "-b", "new", join(folder, "new"));
      expect(existsSync(join(folder, "ran"))).toBe(false);
      expect(changed).toMatchObject({ refused: "unsafe", reason: expect.stringContaining(condition) });
    },
  );

  test.each([
    ["add", "--all"],
    ["status", "--porcelain"],
    ["diff", "--name-only"],
  ])("runs no filter of a submodule: git %s", async (...args) => {
    const root = createRepository("a");
    git(root, "submodule", "--quiet", "add", createRepository("inner"), "lib");
    git(root, "commit", "--quiet", "-m", "Submodule");
    git(join(root, "lib"), "config", "filter.x.clean", `touch ${join(folder, "ran")}`);
    writeFileSync(join(root, "lib/.gitattributes"), "* filter=x\n");
    writeFileSync(join(root, "lib/a.txt"), "2\n");
    expect(await change(root, ...args)).toMatchObject({ code: 0 });
    expect(existsSync(join(folder, "ran"))).toBe(false);
  });

  test("adds nothing beside a submodule that cannot be inspected", async () => {
    const root = createRepository("a");
    git(root, "submodule", "--quiet", "add", createRepository("inner"), "lib");
    git(root, "commit", "--quiet", "-m", "Submodule");
    git(join(root, "lib"), "config", "core.worktree", folder);
    expect(await change(root, "status", "--porcelain")).toMatchObject({ code: 0 });
    expect(await change(root, "add", "--all")).toMatchObject({
      refused: "unsafe",
      reason: expect.stringContaining("lib"),
    });
  });

  test("turns off hooks that are settings", async () => {
    const root = createRepository("a");
    git(root, "config", "hook.x.event", "post-commit");
    git(root, "config", "hook.x.command", "false");
    expect(await change(root, "config", "--get", "hook.x.enabled")).toMatchObject({ stdout: "false\n" });
  });
});
