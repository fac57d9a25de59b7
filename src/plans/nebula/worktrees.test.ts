import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { nameBranches } from "./worktrees.ts";

const isBranch = (name: string): boolean => spawnSync("git", ["check-ref-format", "--branch", name]).status === 0;

test.each(["x/../../y", "a..b.lock", "a.lock.", "a.lock.lock", "-rf", "日本", "@{u}", "a.-.", ".", "lock"])(
  "git accepts the branches of a nebula named %s",
  (name) => {
    const { branch, branchOf } = nameBranches(name);
    expect(branch).toSatisfy(isBranch);
    expect(branchOf({ id: "one" })).toSatisfy(isBranch);
  },
);

test("git accepts the branch of every phase, and no two phases have the same one", () => {
  const ids = ["a", "a.", "a..", "a...b", "a..b", "a.b", "a.lock", "a..lock", "a.lock.lock", "a.lock.", "a.lock.b"];
  const branches = ids.map((id) => nameBranches("plan").branchOf({ id }));
  for (const branch of branches) expect(branch).toSatisfy(isBranch);
  expect(new Set(branches).size).toBe(ids.length);
});
