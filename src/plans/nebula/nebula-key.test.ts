import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { movedKey, nebulaKey, runKey, storedKey } from "./nebula-key.ts";
import { openNebulaRecord, readAnswer, writeAnswer } from "./nebula-record.ts";
import { freshRecord } from "./record-changes.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-key-")));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const env = () => ({ PATH: process.env.PATH, HOME: join(root, "home") });
const keyOf = (directory: string, name = "plan") => nebulaKey({ directory, name }, env());
const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=me", "-c", "user.email=me@x", ...args], { cwd, encoding: "utf8" });
const commit = (cwd: string) => git(cwd, "commit", "-q", "--allow-empty", "-m", String(Math.random()));

test("outside of a repository the key is made from the real path, whatever path leads there", async () => {
  const plan = join(root, "my plan");
  mkdirSync(plan);
  symlinkSync(plan, join(root, "link"));
  const key = await keyOf(plan);
  expect(key).toMatch(/^my-plan-[0-9a-f]{10}$/);
  expect(await keyOf(plan, "another name")).toBe(key);
  expect(await keyOf(join(root, "link"))).toBe(key);
  expect(await keyOf(`${plan}/`)).toBe(key);
  expect(await keyOf(join(root, "gone"))).toMatch(/^gone-[0-9a-f]{10}$/);
  expect(await keyOf(join(root, "gone"))).not.toBe(await keyOf(join(tmpdir(), "gone")));
});

test("the runs of a folder have a key of their own for each store", async () => {
  const plan = join(root, "plan");
  mkdirSync(plan);
  symlinkSync(plan, join(root, "link"));
  const key = runKey(plan, join(root, "link", "state.db"));
  writeFileSync(join(plan, "state.db"), "");
  expect(runKey(plan, join(plan, "state.db"))).toBe(key);
  expect(runKey(plan, join(root, "state.db"))).not.toBe(key);
  expect(runKey(plan, "postgres://a/b")).not.toBe(runKey(plan, "postgres://a/c"));
});

describe("in a repository", () => {
  let first: string;
  beforeEach(() => {
    first = join(root, "first");
    mkdirSync(join(first, "plans/one"), { recursive: true });
    git(first, "init", "-q", "-b", "main");
    commit(first);
    commit(first);
  });

  test("the key is the same in every clone, and another for another path, name or history", async () => {
    const key = await keyOf(join(first, "plans/one"));
    expect(key).toMatch(/^plan-[0-9a-f]{10}$/);
    git(root, "clone", "-q", first, "second");
    mkdirSync(join(root, "second/plans/one"), { recursive: true });
    commit(join(root, "second"));
    expect(await keyOf(join(root, "second/plans/one"))).toBe(key);
    expect(await keyOf(join(root, "second/plans"))).not.toBe(key);
    expect(await keyOf(join(root, "second/plans/one"), "other")).not.toBe(key);
    const other = join(root, "other");
    mkdirSync(join(other, "plans/one"), { recursive: true });
    git(other, "init", "-q", "-b", "main");
    commit(other);
    expect(await keyOf(join(other, "plans/one"))).not.toBe(key);
    // A merged history has a first commit of its own.
    git(first, "fetch", "-q", other, "main");
    git(first, "merge", "-q", "--allow-unrelated-histories", "-m", "both", "FETCH_HEAD");
    expect(await keyOf(join(first, "plans/one"))).toBe(key);
  });

  test("a clone folder's own name does not count, and a worktree has the same key", async () => {
    git(root, "clone", "-q", first, "renamed");
    git(first, "worktree", "add", "-q", join(root, "tree"));
    const key = await keyOf(first);
    expect([await keyOf(join(root, "renamed")), await keyOf(join(root, "tree"))]).toEqual([key, key]);
  });

  test("without a commit, and in a shallow clone, the key is made from the real path", async () => {
    const empty = join(root, "empty");
    mkdirSync(empty);
    git(empty, "init", "-q");
    expect(await keyOf(empty)).toMatch(/^empty-/);
    git(root, "clone", "-q", "--depth=1", `file://${first}`, "shallow");
    expect(await keyOf(join(root, "shallow"))).toMatch(/^shallow-/);
  });

  test("a record with the folder's name is found, and moved with its answers", async () => {
    const nebula = { ...sampleNebula(samplePhase("api")), directory: join(root, "later") };
    mkdirSync(nebula.directory);
    const store = createMemoryStore();
    const old = await nebulaKey(nebula, env());
    await openNebulaRecord(store, old).change((current) => freshRecord(current, nebula));
    await writeAnswer(store, { key: old, phase: "api" }, "Made.");
    git(nebula.directory, "init", "-q");
    commit(nebula.directory);
    const key = await nebulaKey(nebula, env());
    expect(key).not.toBe(old);
    expect(await storedKey(store, nebula, env())).toBe(old);
    expect(await movedKey(store, nebula, env())).toBe(key);
    expect(await storedKey(store, nebula, env())).toBe(key);
    expect((await openNebulaRecord(store, key).read())?.phases.api?.state).toBe("waiting");
    expect(await readAnswer(store, { key, phase: "api" })).toBe("Made.");
    expect([await store.list("nebula"), await store.list("nebula-answers")].map((all) => all.length)).toEqual([1, 1]);
    expect(await movedKey(store, nebula, env())).toBe(key);
  });
});
