import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";

const script = new URL("message-costs.mjs", import.meta.url).pathname;

/** Ratios above their limit in each of up to three processes: other tests share the processor. The code is the built one, because
 *  what the test runner rewrites is slower than what users run. */
function highCosts(counter: string): [string, number][] {
  let high: [string, number][] = [];
  for (let attempt = 0; attempt < 3; attempt++) {
    const { parsedAnew, everyTurn } = measure(counter) as Costs;
    high = Object.entries(parsedAnew).filter(([, ratio]) => ratio >= 1);
    if (everyTurn > limits[counter.startsWith("bytes") ? "length" : "tokens"]) high.push(["every turn", everyTurn]);
    if (high.length === 0) break;
  }
  return high;
}

function measure(job: string): unknown {
  return JSON.parse(execFileSync(process.execPath, [script, job], { encoding: "utf8" }));
}

interface Costs {
  /** Counting messages that were parsed again, by JSON.parse of the same text. */
  parsedAnew: Record<string, number>;
  /** Counting on each of 200 turns, by counting without any memory. */
  everyTurn: number;
}

// Where counting is one division, looking at a message is a larger share of it.
const limits = { tokens: 1 / 20, length: 1 / 10 };

describe("counting messages", { tags: ["perf"] }, () => {
  it.each(["estimate:claude-5", "exact:o200k", "bytes/4"])(
    "that were parsed again costs less than JSON.parse, and every turn a twentieth of recounting, by %s",
    (counter) => {
      expect(highCosts(counter)).toEqual([]);
    },
    90_000,
  );
});

// A hash that nobody can forge takes longer than parsing, so a message is hashed once, when it is new, and compared after.
it("comparing a message takes less than half the time of parsing it, and hashing it about twice", {
  tags: ["perf"],
}, () => {
  const { hashing, comparing } = measure("hash") as { hashing: number; comparing: number };
  expect(comparing).toBeLessThan(0.4);
  expect(hashing).toBeLessThan(2.2);
});
