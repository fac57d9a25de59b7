import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";

const script = new URL("quadratic-costs.mjs", import.meta.url).pathname;

/** Inputs that take more than `most` times as long if there is four times as much. In linear time it is 4, in quadratic
 *  time 16. The code is the built one, because what the test runner rewrites is slower than what users run. */
function steepInputs(work: string, most: number): [string, number][] {
  const output = execFileSync(process.execPath, [script, work, String(most)], { encoding: "utf8" });
  return Object.entries<number>(JSON.parse(output)).filter(([, ratio]) => ratio > most);
}

describe("four times as much of anything takes little more than four times as long", { tags: ["perf"] }, () => {
  it.each(["validate", "count", "intake", "trim", "replay", "replay with rfc", "replay with intake"])(
    "to %s",
    (work) => {
      expect(steepInputs(work, 8)).toEqual([]);
    },
    1_200_000,
  );
});
