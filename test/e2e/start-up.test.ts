import { spawnSync } from "node:child_process";
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
