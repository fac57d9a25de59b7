import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { generateSession } from "../generate/generate-session.ts";

const script = new URL("history-costs.mjs", import.meta.url).pathname;
const limits = {
  /** A turn of a history of 5,000 messages, by one of 50. */
  perTurn: 3,
  /** Reducing a history that was parsed again, by parsing it. */
  parsedAnew: 1,
};

/** The code is the built one, because what the test runner rewrites is slower than what users run. */
function highCosts(): string[] {
  const folder = mkdtempSync(join(tmpdir(), "plimsoll-costs-"));
  const file = join(folder, "messages.json");
  writeFileSync(file, JSON.stringify(generateSession({ seed: 3, turns: 2600 }).messages));
  const output = execFileSync(process.execPath, [script, JSON.stringify(limits), file], { encoding: "utf8" });
  rmSync(folder, { recursive: true });
  const costs = JSON.parse(output) as Record<keyof typeof limits, Record<string, number>>;
  return [...above(costs.perTurn, limits.perTurn), ...above(costs.parsedAnew, limits.parsedAnew)];
}

function above(ratios: Readonly<Record<string, number>>, limit: number): string[] {
  return Object.entries(ratios).flatMap(([kind, ratio]) =>
    ratio > limit ? [`${kind}: ${ratio.toFixed(2)} is above ${limit}`] : [],
  );
}

it("trimming costs what is new: a turn of 5,000 messages like one of 50, parsed-anew messages less than JSON.parse", {
  tags: ["perf"],
  timeout: 120_000,
}, () => {
  expect(highCosts()).toEqual([]);
});
