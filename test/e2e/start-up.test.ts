import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mainFile } from "./run-plimsoll.ts";

const mostRounds = process.env.PLIMSOLL_DEEP === "1" ? 200 : 60;

test("the version costs at most 1.5 times what starting Node costs", { timeout: 120_000 }, () => {
  let [bare, version] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  // The least of each, in turns, until it is below the limit: others share the machine, and never make a run shorter.
  for (let round = 0; round < 5 || (round < mostRounds && version / bare > 1.5); round++) {
    bare = Math.min(bare, timeOf(["-e", "0"]));
    version = Math.min(version, timeOf([mainFile, "--version"]));
  }
  expect(version / bare).toBeLessThanOrEqual(1.5);
});

function timeOf(args: readonly string[]): number {
  const start = performance.now();
  const { status } = spawnSync(process.execPath, args);
  expect(status).toBe(0);
  return performance.now() - start;
}

test("a Node without process.getBuiltinModule runs the command too", () => {
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-old-node-"));
  writeFileSync(join(folder, "old.cjs"), "process.getBuiltinModule = undefined;\n");
  writeFileSync(join(folder, "a.txt"), "one\n");
  const args = ["-r", join(folder, "old.cjs"), mainFile, "count", "a.txt", "--counter", "bytes/4"];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8" });
  rmSync(folder, { recursive: true });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toContain("a.txt");
});
