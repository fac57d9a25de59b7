import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";

const script = new URL("quadratic-costs.mjs", import.meta.url).pathname;

/** Inputs that take more than `most` times as long if there is four times as much. In linear time it is 4, in quadratic
 *  time 16. For work that is measured in seconds, inputs that take more than `most`. The code is the built one, because what
 *  the test runner rewrites is slower than what users run. */
function steepInputs(work: string, most: number): [string, number][] {
  const output = execFileSync(process.execPath, [script, work, String(most)], { encoding: "utf8" });
  // An input that was refused has an error and no ratio.
  return Object.entries<number>(JSON.parse(output)).filter(([, ratio]) => !(ratio <= most));
}

describe("four times as much of anything takes little more than four times as long", { tags: ["perf"] }, () => {
  it.each(["validate", "count", "intake", "trim", "trim with each policy"])(
    "to %s",
    (work) => {
      expect(steepInputs(work, 10)).toEqual([]);
    },
    120_000,
  );

  // Twice as much takes at most 2.6 times as long.
  it.each(["replay", "audit"])(
    "to %s",
    (work) => {
      expect(steepInputs(work, 6.8)).toEqual([]);
    },
    300_000,
  );
});

it("a bill with --what-if takes at most 2.6 times as long for twice as much", {
  tags: ["perf"],
  timeout: 600_000,
}, () => {
  expect(steepInputs("bill --what-if", 2.6)).toEqual([]);
});

it("a recording of 1 MB with thousands of short calls is replayed in ten seconds of processor time", {
  tags: ["perf"],
  timeout: 120_000,
}, () => {
  expect(steepInputs("thousands of calls", 10)).toEqual([]);
});

it("1 MB of anything is replayed, billed, audited, validated, trimmed, counted or taken in within four seconds of processor time", {
  tags: ["perf"],
  timeout: 600_000,
}, () => {
  expect(steepInputs("1 MB", 4)).toEqual([]);
});
