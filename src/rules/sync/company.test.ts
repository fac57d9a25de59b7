import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { companyDirectory, syncCompany } from "./company.ts";

let root: string;
let repository: string;
let env: Record<string, string>;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "plimsoll-company-"));
  repository = join(root, "packs repo");
  env = { PATH: process.env.PATH ?? "", HOME: join(root, "home"), XDG_CACHE_HOME: join(root, "cache") };
  git("init", "--quiet", "--initial-branch=main");
  commit("one", "v1");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function git(...args: string[]): string {
  mkdirSync(repository, { recursive: true });
  const identity = ["-c", "user.name=T", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
  const settings = [...identity, "-c", "maintenance.auto=false"];
  // An empty GIT_TEMPLATE_DIR leaves out the sample hooks.
  const options = { cwd: repository, env: { ...env, GIT_TEMPLATE_DIR: "" }, encoding: "utf8" } as const;
  return execFileSync("git", [...settings, ...args], options).trim();
}

function commit(text: string, tag?: string): string {
  const file = join(repository, "packs/a/context.md");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  git("add", ".");
  git("commit", "--quiet", "--message", text);
  if (tag !== undefined) git("tag", tag);
  return git("rev-parse", "HEAD");
}

const url = () => `file://${repository.replace(" ", "%20")}`;
const place = () => ({ root, env });
const contextIn = (directory: string | undefined) => readFileSync(join(directory ?? "", "packs/a/context.md"), "utf8");

test("without a company there is no directory", async () => {
  expect(await companyDirectory(undefined, place())).toBeUndefined();
});

test("uses a directory in place, relative to the root or to HOME", async () => {
  expect(await companyDirectory({ source: "packs repo" }, place())).toBe(repository);
  expect(await companyDirectory({ source: "~/x" }, place())).toBe(join(root, "home/x"));
  expect(await syncCompany({ source: "packs repo" }, place())).toMatchObject({
    status: "in place",
    directory: repository,
  });
  expect(await syncCompany({ source: "nothing" }, place())).toMatchObject({
    status: "failed",
    reason: `${root}/nothing is not a directory`,
  });
});

test("uses a directory that is not a repository in place, with or without a revision", async () => {
  mkdirSync(join(root, "plain"));
  expect(await companyDirectory({ source: "plain", revision: "main" }, place())).toBe(join(root, "plain"));
});

test("a repository before its first sync is an error that says what to do", async () => {
  await expect(companyDirectory({ source: url(), revision: "main" }, place())).rejects.toMatchObject({
    code: "unreadable_input",
    hint: "Run plimsoll sync.",
  });
});

test.each(["main", "v1", "commit", "short commit"])("fetches a repository at a %s, without its .git", async (kind) => {
  const head = git("rev-parse", "HEAD");
  const revision = { commit: head, "short commit": head.slice(0, 9) }[kind] ?? kind;
  for (const source of [url(), "packs repo"]) {
    const synced = await syncCompany({ source, revision }, place());
    expect(synced).toMatchObject({ status: "updated", commit: head, reason: undefined });
    expect(await companyDirectory({ source, revision }, place())).toBe(synced.directory);
    expect(contextIn(synced.directory)).toBe("one");
    expect(existsSync(join(synced.directory ?? "", ".git"))).toBe(false);
  }
});

test("finds a commit that is not the tip of a branch", async () => {
  const first = git("rev-parse", "HEAD");
  commit("two");
  const synced = await syncCompany({ source: url(), revision: first }, place());
  expect(contextIn(synced.directory)).toBe("one");
  expect((await syncCompany({ source: url(), revision: first }, place())).status).toBe("current");
});

test("the next sync follows a branch, and keeps only the last two commits", async () => {
  const company = { source: url(), revision: "main" };
  const first = await syncCompany(company, place());
  expect((await syncCompany(company, place())).status).toBe("current");
  commit("two");
  expect(contextIn(await companyDirectory(company, place()))).toBe("one");
  expect((await syncCompany(company, place())).status).toBe("updated");
  expect(contextIn(await companyDirectory(company, place()))).toBe("two");
  expect(contextIn(first.directory)).toBe("one");
  commit("three");
  const third = await syncCompany(company, place());
  expect(existsSync(first.directory ?? "")).toBe(false);
  expect(readdirSync(dirname(third.directory ?? ""))).toHaveLength(3);
});

test("follows a moved tag and an annotated tag", async () => {
  const company = { source: url(), revision: "v1" };
  await syncCompany(company, place());
  commit("two");
  git("tag", "--force", "--annotate", "--message", "x", "v1");
  expect(contextIn((await syncCompany(company, place())).directory)).toBe("two");
});

test("keeps the last layer of a repository that is gone and reports why", async () => {
  const company = { source: url(), revision: "main" };
  const { directory, commit: last } = await syncCompany(company, place());
  rmSync(repository, { recursive: true });
  const failed = await syncCompany(company, place());
  expect(failed).toMatchObject({ status: "failed", directory, commit: last });
  expect(failed.reason).toMatch(/does not (exist|appear to be a git repository)/);
  expect(await companyDirectory(company, place())).toBe(directory);
});

test("a missing revision fails and leaves nothing behind", async () => {
  for (const revision of ["nope", "abcdef12"]) {
    const failed = await syncCompany({ source: url(), revision }, place());
    expect(failed).toMatchObject({ status: "failed", directory: undefined });
    expect(failed.reason).toContain(revision);
  }
  const left = readdirSync(join(root, "cache/plimsoll/company"), { recursive: true, encoding: "utf8" });
  expect(left.filter((path) => path.includes("/"))).toEqual([]);
});

test("the rest of a killed sync is not a layer, and the next sync removes it", async () => {
  const company = { source: url(), revision: "main" };
  const { directory = "" } = await syncCompany(company, place());
  const half = join(dirname(directory), "fetch-999999999.tmp");
  mkdirSync(join(half, "packs"), { recursive: true });
  expect(await companyDirectory(company, place())).toBe(directory);
  await syncCompany(company, place());
  expect(existsSync(half)).toBe(false);
  writeFileSync(join(dirname(directory), "current"), "torn");
  await expect(companyDirectory(company, place())).rejects.toMatchObject({ code: "unreadable_input" });
  expect(await syncCompany(company, place())).toMatchObject({ status: "updated", directory });
});

test("git variables in the environment have no effect", async () => {
  const marker = join(root, "ran");
  mkdirSync(join(root, "home"));
  mkdirSync(join(root, "hooks"));
  writeFileSync(join(root, "hooks/post-checkout"), `#!/bin/sh\ntouch '${marker}'\n`, { mode: 0o755 });
  writeFileSync(join(root, "home/.gitconfig"), `[core]\n\thooksPath = ${join(root, "hooks")}\n\tautocrlf = true\n`);
  commit("a\nb\n");
  env = { ...env, GIT_DIR: join(root, "elsewhere"), GIT_WORK_TREE: root };
  const synced = await syncCompany({ source: url(), revision: "main" }, place());
  expect(contextIn(synced.directory)).toBe("a\nb\n");
  expect(existsSync(marker)).toBe(false);
});

test("attributes of a repository cannot choose a filter of the user, even in a bare repository", async () => {
  const marker = join(root, "ran");
  writeFileSync(join(repository, ".gitattributes"), "* filter=own\n");
  commit("a\n");
  git("clone", "--quiet", "--bare", ".", join(root, "bare"));
  mkdirSync(join(root, "home"));
  writeFileSync(
    join(root, "home/.gitconfig"),
    `[filter "own"]\n\tsmudge = "touch '${marker}'; cat"\n\trequired = true\n`,
  );
  const synced = await syncCompany({ source: `file://${root}/bare`, revision: "main" }, place());
  expect(contextIn(synced.directory)).toBe("a\n");
  expect(existsSync(marker)).toBe(false);
});

test.each([
  [{ source: "--upload-pack=touch x" }, 'starts with "-"'],
  [{ source: "ext::sh -c touch% x" }, "makes git run a helper"],
  [{ source: "file::/x" }, "makes git run a helper"],
  [{ source: "ftp://a.example/x" }, "has the scheme ftp"],
  [{ source: "https://a.example/x", revision: "--force" }, 'starts with "-"'],
  [{ source: "https://a.example/x", revision: "a:b" }, "is not the name of a branch, tag or commit"],
  [{ source: "https://a.example/x", revision: "+main" }, "is not the name of a branch, tag or commit"],
  [{ source: "https://a.example/x", revision: "a..b" }, "is not the name of a branch, tag or commit"],
  [{ source: "https://a.example/x", revision: "" }, "is not the name of a branch, tag or commit"],
])("refuses %o", async (company, message) => {
  for (const action of [companyDirectory, syncCompany]) {
    await expect(action(company, place())).rejects.toMatchObject({
      code: "invalid_config",
      message: expect.stringContaining(message),
    });
  }
});

test.each(["secret", "p@secret", "p@sec@ret"])("a password in the address is not shown: %s", async (password) => {
  const source = `http://me:${password}@127.0.0.1:1/x.git`;
  const failed = await syncCompany({ source, revision: "main" }, { ...place(), allowPrivate: true });
  expect(failed).toMatchObject({ status: "failed", source: "http://127.0.0.1:1/x.git" });
  expect(JSON.stringify(failed)).not.toMatch(/sec|ret/);
});

test("keeps links in the repository", async () => {
  symlinkSync("/etc/hostname", join(repository, "packs/a/link.md"));
  commit("two");
  const { directory = "" } = await syncCompany({ source: url(), revision: "main" }, place());
  expect(
    readdirSync(join(directory, "packs/a"), { withFileTypes: true })
      .find(({ name }) => name === "link.md")
      ?.isSymbolicLink(),
  ).toBe(true);
});
