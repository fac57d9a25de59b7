import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";

const script = new URL("history-costs.mjs", import.meta.url).pathname;

interface Costs {
  /** A turn of a history of 5,000 messages, by one of 50. */
  readonly perTurn: Readonly<Record<string, number>>;
  /** Reducing a history that was parsed anew, by parsing it. */
  readonly parsedAnew: Readonly<Record<string, number>>;
}

/** Ratios above their limit in each of up to three processes: other tests share the processor. The code is the built one, because
 *  what the test runner rewrites is slower than what users run. */
function highCosts(): string[] {
  let high: string[] = [];
  for (let attempt = 0; attempt < 3; attempt++) {
    const output = execFileSync(process.execPath, [script], { encoding: "utf8" });
    const { perTurn, parsedAnew } = JSON.parse(output) as Costs;
    high = [...above(perTurn, 3), ...above(parsedAnew, 1)];
    if (high.length === 0) break;
  }
  return high;
}

function above(ratios: Readonly<Record<string, number>>, limit: number): string[] {
  return Object.entries(ratios).flatMap(([kind, ratio]) =>
    ratio > limit ? [`${kind}: ${ratio.toFixed(2)} is above ${limit}`] : [],
  );
}

it("trimming costs what is new: a turn of 5,000 messages like one of 50, parsed-anew messages less than JSON.parse", {
  timeout: 120_000,
}, () => {
  expect(highCosts()).toEqual([]);
});
