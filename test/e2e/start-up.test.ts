import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mainFile } from "./run-plimsoll.ts";

const runs = process.env.PLIMSOLL_DEEP === "1" ? 60 : 15;

test("the version costs at most 1.5 times what starting Node costs", { timeout: 120_000, retry: 2 }, () => {
  const bare: number[] = [];
  const version: number[] = [];
  // In turns, so that a busy moment of the machine hits both.
  for (let round = 0; round < runs; round++) {
    bare.push(timeOf(["-e", "0"]));
    version.push(timeOf([mainFile, "--version"]));
  }
  expect(median(version) / median(bare)).toBeLessThanOrEqual(1.5);
});

function timeOf(args: readonly string[]): number {
  const start = performance.now();
  const { status } = spawnSync(process.execPath, args);
  expect(status).toBe(0);
  return performance.now() - start;
}

function median(times: readonly number[]): number {
  return [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)]!;
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
