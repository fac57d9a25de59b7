import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";

const script = new URL("token-runs.mjs", import.meta.url).pathname;

/** Runs that take longer than `limitMs`. The code is the built one, because what the test runner rewrites is slower than what users run. */
function slowRuns(counter: string, limitMs: number): [string, number][] {
  const output = execFileSync(process.execPath, [script, counter, String(limitMs)], { encoding: "utf8" });
  return Object.entries<number>(JSON.parse(output)).filter(([, ms]) => ms > limitMs);
}

describe("1 MB of one thing", { tags: ["perf"] }, () => {
  it.each(["estimate:o200k", "estimate:claude-5"])("is estimated in at most 25 ms by %s", (counter) => {
    expect(slowRuns(counter, 25)).toEqual([]);
  });

  it.each(["exact:o200k", "exact:cl100k"])("is counted in at most a second by %s", (counter) => {
    expect(slowRuns(counter, 1_000)).toEqual([]);
  });
});
