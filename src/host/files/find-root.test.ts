import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { makeGitDirectory, makeRepository } from "../../../test/make-repository.ts";
import { isOtherProject, projectRoot, repositoryAround } from "./find-root.ts";

let root: string;
let home: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-root-")));
  home = make("home");
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

function make(path: string): string {
  mkdirSync(join(root, path), { recursive: true });
  return join(root, path);
}

function write(path: string, text: string): void {
  make(dirname(path));
  writeFileSync(join(root, path), text);
}

test("the nearest repository or .plimsoll in use is the root", () => {
  makeRepository(join(root, "home/team"));
  write("home/team/part/.plimsoll/config.yaml", "");
  expect(projectRoot(make("home/team/other/src"), home)).toBe(join(root, "home/team"));
  expect(projectRoot(make("home/team/part/src"), home)).toBe(join(root, "home/team/part"));
  expect(projectRoot(`${join(root, "home/team/other/src")}/`, `${home}/`)).toBe(join(root, "home/team"));
});

describe("what makes .plimsoll a project", () => {
  test.each(["config.yaml", "notes.yaml", "packs/a/pack.yaml", "profiles/a.yaml", "adapters/a.yaml"])("%s", (path) => {
    write(`work/.plimsoll/${path}`, "");
    expect(projectRoot(make("work/a/b"), home)).toBe(join(root, "work"));
    expect(isOtherProject(join(root, "work/a"), root)).toBe(true);
  });

  test.each([
    ["an empty folder", () => make("work/.plimsoll")],
    ["a folder with something else", () => make("work/.plimsoll/cache")],
    ["a file", () => write("work/.plimsoll", "config.yaml")],
    ["a link that leads nowhere", () => symlinkSync("gone", join(make("work"), ".plimsoll"))],
  ])("not %s", (_, leave) => {
    leave();
    const cwd = make("work/a");
    expect(projectRoot(cwd, home)).toBe(cwd);
    expect(isOtherProject(cwd, root)).toBe(false);
  });
});

describe("the search ends", () => {
  beforeEach(() => {
    makeRepository(root);
    write(".plimsoll/config.yaml", "");
  });

  test("below the home directory, which is a root only for itself", () => {
    makeRepository(home);
    const cwd = make("home/team");
    for (const named of [home, `${home}/`]) expect(projectRoot(cwd, named)).toBe(cwd);
    expect(repositoryAround(cwd, home)).toBeUndefined();
    expect(projectRoot(home, home)).toBe(home);
    rmSync(join(home, ".git"), { recursive: true });
    expect(projectRoot(home, home)).toBe(home);
    expect(projectRoot(cwd, join(root, "elsewhere"))).toBe(root);
  });

  test("at a home directory that is named by a link", () => {
    symlinkSync(home, join(root, "link"));
    expect(projectRoot(make("home/team"), join(root, "link"))).toBe(join(home, "team"));
  });

  test("below the temporary directory, where programs leave things", () => {
    vi.stubEnv("TMPDIR", make("temporary"));
    makeRepository(join(root, "temporary"));
    const cwd = make("temporary/work");
    expect(projectRoot(cwd, home)).toBe(cwd);
    expect(projectRoot(join(root, "temporary"), home)).toBe(join(root, "temporary"));
  });

  const isRoot = process.geteuid?.() === 0;
  const other = 65_534;

  test.skipIf(!isRoot)("at a folder of another user, unless it starts in one (needs root)", () => {
    const cwd = make("theirs/work");
    makeRepository(join(root, "theirs"));
    chownSync(join(root, "theirs"), other, other);
    expect(projectRoot(cwd, home)).toBe(cwd);
    expect(repositoryAround(cwd, home)).toBeUndefined();
    chownSync(cwd, other, other);
    expect(projectRoot(cwd, home)).toBe(join(root, "theirs"));
  });

  test.skipIf(!isRoot)("at a repository that another user put into a folder above (needs root)", () => {
    const cwd = make("shared/work");
    makeRepository(join(root, "shared"));
    chownSync(join(root, "shared/.git"), other, other);
    expect(projectRoot(cwd, home)).toBe(cwd);
    expect(projectRoot(join(root, "shared"), home)).toBe(join(root, "shared"));
  });

  test.skipIf(!isRoot)("at another file system (needs root)", ({ skip }) => {
    const mounted = make("mounted");
    if (spawnSync("mount", ["-t", "tmpfs", "none", mounted]).status !== 0) skip("mount is not allowed here");
    try {
      const cwd = make("mounted/work");
      expect(projectRoot(cwd, home)).toBe(cwd);
      expect(projectRoot(mounted, home)).toBe(mounted);
    } finally {
      execFileSync("umount", [mounted]);
    }
  });
});

// Git's answer, which ours must be.

/** Returns the top of the work tree that git finds, at most below the test's folder. */
function askGit(folder: string): string | undefined {
  const env = { PATH: process.env.PATH, HOME: home, GIT_CEILING_DIRECTORIES: dirname(root), GIT_CONFIG_NOSYSTEM: "1" };
  const { status, stdout } = spawnSync("git", ["rev-parse", "--show-toplevel"], { cwd: folder, env, encoding: "utf8" });
  return status === 0 ? stdout.trimEnd() : undefined;
}

function git(folder: string, ...args: readonly string[]): void {
  const settings = ["-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"];
  execFileSync("git", [...settings, ...args], {
    cwd: join(root, folder),
    stdio: "ignore",
    env: { ...process.env, HOME: home },
  });
}

/** Everything that may be in a folder instead of a repository, or as one. */
const layouts: Readonly<Record<string, (folder: string) => void>> = {
  nothing: () => {},
  repository: makeRepository,
  "empty folder": (folder) => mkdirSync(join(folder, ".git")),
  "only HEAD": (folder) => withHead(folder, "ref: refs/heads/main\n", []),
  "no refs": (folder) => withHead(folder, "ref: refs/heads/main\n", ["objects"]),
  "no objects": (folder) => withHead(folder, "ref: refs/heads/main\n", ["refs"]),
  "a commit in HEAD": (folder) => withHead(folder, `${"0123456789abcdefABCD".repeat(2)}\n`),
  "a short commit in HEAD": (folder) => withHead(folder, `${"a".repeat(39)}\n`),
  "spaces in HEAD": (folder) => withHead(folder, "ref: \t refs/heads/main"),
  "HEAD outside of refs": (folder) => withHead(folder, "ref: heads/main\n"),
  "empty HEAD": (folder) => withHead(folder, ""),
  "HEAD is a folder": (folder) => mkdirSync(join(folder, ".git/HEAD"), { recursive: true }),
  "HEAD is a link": (folder) => {
    withHead(folder, undefined);
    symlinkSync("refs/heads/main", join(folder, ".git/HEAD"));
  },
  "HEAD is a link elsewhere": (folder) => {
    withHead(folder, undefined);
    writeFileSync(join(folder, ".git/main"), "ref: refs/heads/main\n");
    symlinkSync("main", join(folder, ".git/HEAD"));
  },
  "objects is a file": (folder) => {
    withHead(folder, "ref: refs/heads/main\n", ["refs"]);
    writeFileSync(join(folder, ".git/objects"), "");
  },
  "empty file": (folder) => writeFileSync(join(folder, ".git"), ""),
  "file with nonsense": (folder) => writeFileSync(join(folder, ".git"), "nonsense\n"),
  "file without a path": (folder) => writeFileSync(join(folder, ".git"), "gitdir: \n"),
  "file that leads nowhere": (folder) => writeFileSync(join(folder, ".git"), "gitdir: ../gone\n"),
  "file that leads to an empty folder": (folder) => {
    mkdirSync(join(folder, "elsewhere"));
    writeFileSync(join(folder, ".git"), "gitdir: elsewhere\n");
  },
  "file with a relative path": (folder) => {
    makeGitDirectory(join(folder, "elsewhere"));
    writeFileSync(join(folder, ".git"), "gitdir: elsewhere\r\n\n");
  },
  "file with an absolute path": (folder) => {
    makeGitDirectory(join(folder, "elsewhere"));
    writeFileSync(join(folder, ".git"), `gitdir: ${join(folder, "elsewhere")}`);
  },
  "file with a second line": (folder) => {
    makeGitDirectory(join(folder, "elsewhere"));
    writeFileSync(join(folder, ".git"), "gitdir: elsewhere\nmore\n");
  },
  "link to a repository": (folder) => {
    makeGitDirectory(join(folder, "elsewhere"));
    symlinkSync("elsewhere", join(folder, ".git"));
  },
  "link to a file": (folder) => {
    makeGitDirectory(join(folder, "elsewhere"));
    writeFileSync(join(folder, "file"), "gitdir: elsewhere\n");
    symlinkSync("file", join(folder, ".git"));
  },
  "link that leads nowhere": (folder) => symlinkSync("gone", join(folder, ".git")),
  "shared directory": (folder) => {
    makeGitDirectory(join(folder, "shared"));
    withHead(folder, "ref: refs/heads/main\n", []);
    writeFileSync(join(folder, ".git/commondir"), "../shared\n");
  },
  "shared directory that is gone": (folder) => {
    makeRepository(folder);
    writeFileSync(join(folder, ".git/commondir"), "../gone\n");
  },
  "bare repository": makeGitDirectory,
};

function withHead(folder: string, head: string | undefined, names: readonly string[] = ["objects", "refs"]): void {
  for (const name of ["", ...names]) mkdirSync(join(folder, ".git", name), { recursive: true });
  if (head !== undefined) writeFileSync(join(folder, ".git/HEAD"), head);
}

test("finds the same repository as git in every layout, below and above others", () => {
  const names = Object.keys(layouts);
  const pairs = names.map((name) => [name, "nothing"] as const);
  const anyOf = fc.constantFrom(...names);
  const check = (chosen: readonly string[]) => {
    const folder = mkdtempSync(join(root, "case-"));
    const folders = chosen.map((_, index) => join(folder, ...["a", "b", "c"].slice(0, index)));
    for (const [index, each] of folders.entries()) {
      mkdirSync(each, { recursive: true });
      layouts[chosen[index]!]!(each);
    }
    expect(repositoryAround(folders.at(-1)!, home)?.root, chosen.join(" > ")).toBe(askGit(folders.at(-1)!));
  };
  for (const pair of pairs) check(["repository", ...pair]);
  const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 500 : 30;
  fc.assert(fc.property(fc.tuple(anyOf, anyOf, anyOf), check), { numRuns });
});

test("finds the same repository as git in what git makes", () => {
  make("main/deep");
  git("main", "init", "--quiet");
  write("main/deep/a", "");
  git("main", "add", ".");
  git("main", "commit", "--quiet", "-m", "A");
  git("main", "worktree", "add", "--quiet", "../linked");
  make("around");
  git("around", "init", "--quiet");
  git("around", "submodule", "--quiet", "add", join(root, "main"), "module");
  git(".", "init", "--quiet", "--separate-git-dir", "kept.git", "separate");
  git(".", "clone", "--quiet", "--bare", "main", "around/bare.git");
  git("main", "checkout", "--quiet", "--detach");
  cpSync(join(root, "around"), join(root, "copied"), { recursive: true });
  // A linked work tree whose repository is gone, as in a container that has only the work tree.
  cpSync(join(root, "linked"), join(root, "around/stray"), { recursive: true });
  const named = ["main", "linked", "around", "around/module", "separate", "copied/module"];
  const tables = spawnSync("git", ["init", "--quiet", "--ref-format=reftable", join(root, "tables")]).status === 0;
  for (const each of [...named, ...(tables ? ["tables"] : [])]) {
    const folder = make(join(each, "deep"));
    expect(repositoryAround(folder, home)?.root, each).toBe(join(root, each));
    expect(askGit(folder), each).toBe(join(root, each));
  }
  write("around/stray/.git", "gitdir: /no/such/worktrees/linked\n");
  for (const each of ["around/bare.git", "around/bare.git/refs", "around/.git", "around/stray/deep", "home"]) {
    expect(repositoryAround(join(root, each), home), each).toBeUndefined();
    expect(askGit(join(root, each)), each).toBeUndefined();
  }
});

test("does not wait for a pipe", () => {
  const folder = make("work");
  withHead(folder, undefined);
  for (const name of ["work/.git/HEAD", "work/.git/commondir"]) execFileSync("mkfifo", [join(root, name)]);
  expect(repositoryAround(folder, home)).toBeUndefined();
  rmSync(join(root, "work/.git/HEAD"));
  write("work/.git/HEAD", "ref: refs/heads/main\n");
  expect(repositoryAround(folder, home)).toBeUndefined();
});
