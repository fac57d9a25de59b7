import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openGitRemote } from "./git-remote.ts";

let root: string;
const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=me", "-c", "user.email=me@x", ...args], { cwd, encoding: "utf8" }).trim();
const commit = (cwd: string) => git(cwd, "commit", "-q", "--allow-empty", "-m", String(Math.random()));
const head = (clone: string) => git(join(root, clone), "rev-parse", "HEAD");
const open = (clone: string, name = "origin") =>
  openGitRemote(name, {
    root: join(root, clone),
    env: { PATH: process.env.PATH, HOME: join(root, "home") },
    folder: join(root, `${clone}-state`),
  });

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-remote-")));
  mkdirSync(join(root, "home"));
  git(root, "init", "-q", "--bare", "-b", "main", "bare.git");
  for (const name of ["one", "two"]) {
    git(root, "clone", "-q", "bare.git", name);
    if (name === "one") {
      commit(join(root, name));
      git(join(root, name), "push", "-q", "origin", "HEAD:main");
    }
  }
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

test("a branch moves only from the commit that it is at, and its commits arrive in the other clone", async () => {
  const [one, two] = [await open("one"), await open("two")];
  expect(await one.fetch("work")).toBeUndefined();
  const first = head("one");
  expect(await one.move("work", { from: undefined, to: first })).toBe(true);
  expect(await two.move("work", { from: undefined, to: head("two") })).toBe(first === head("two"));
  commit(join(root, "one"));
  expect(await one.move("work", { from: first, to: head("one") })).toBe(true);
  commit(join(root, "two"));
  expect(await two.move("work", { from: first, to: head("two") })).toBe(false);
  const fetched = await two.fetch("work");
  expect(fetched).toBe(head("one"));
  expect(git(join(root, "two"), "cat-file", "-t", fetched!)).toBe("commit");
  await two.replace("work", head("two"));
  expect(await one.fetch("work")).toBe(head("two"));
  expect(git(join(root, "two"), "for-each-ref", "refs/heads")).not.toContain("work");
});

test("a remote that is unknown, unreachable or refuses is an error with the reason", async () => {
  await expect(open("one", "upstream")).rejects.toThrow('the repository has no remote "upstream"');
  const one = await open("one");
  writeFileSync(join(root, "bare.git/hooks/pre-receive"), "#!/bin/sh\necho no pushes today >&2\nexit 1\n");
  chmodSync(join(root, "bare.git/hooks/pre-receive"), 0o755);
  await expect(one.move("work", { from: undefined, to: head("one") })).rejects.toThrow(
    /could not be pushed to: pre-receive hook declined: no pushes today/,
  );
  rmSync(join(root, "bare.git"), { recursive: true });
  await expect(one.fetch("work")).rejects.toThrow(/the remote origin could not be fetched from: /);
  git(root, "clone", "-q", "--depth=1", `file://${join(root, "one")}`, "shallow");
  await expect(open("shallow")).rejects.toThrow("the clone is shallow");
});

test("settings of the repository choose no program", async () => {
  const ran = join(root, "ran");
  for (const key of ["core.sshCommand", "remote.origin.uploadpack", "remote.origin.receivepack", "credential.helper"])
    git(join(root, "one"), "config", key, `touch ${ran}; false`);
  git(join(root, "one"), "config", `url.ext::sh -c touch% ${ran}.insteadOf`, root);
  const one = await open("one");
  expect(await one.move("work", { from: undefined, to: head("one") })).toBe(true);
  expect(await one.fetch("work")).toBe(head("one"));
  git(join(root, "one"), "config", "remote.origin.url", `ext::sh -c "touch ${ran}"`);
  await expect(open("one").then((remote) => remote.fetch("work"))).rejects.toThrow(/transport 'ext' not allowed/);
  expect(existsSync(ran)).toBe(false);
});
