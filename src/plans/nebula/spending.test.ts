import { expect, test } from "vitest";
import type { Nebula, Phase } from "./nebula.ts";
import type { NebulaRecord, PhaseRun } from "./nebula-record.ts";
import { dollars, grantFor, spentOn } from "./spending.ts";

const run = (state: PhaseRun["state"], costs: number[] = [], budgetUsd?: number): PhaseRun => ({
  ...{ title: "", state, attempts: costs.length, promptTokens: 0, seconds: 0, budgetUsd },
  history: costs.map((costUsd, index) => ({ attempt: index + 1, outcome: "x", seconds: 1, promptTokens: 1, costUsd })),
});

function grant(phases: Record<string, PhaseRun>, limits: { own?: number; all?: number; maxWorkers?: number }) {
  const nebula = { execution: { maxBudgetUsd: limits.all } } as Nebula;
  const phase = { id: "a", maxBudgetUsd: limits.own } as Phase;
  const record = { phases } as unknown as NebulaRecord;
  return grantFor(phase, record, { nebula, maxWorkers: limits.maxWorkers ?? 1 });
}

test("without a limit an attempt may cost anything", () => {
  expect(grant({ a: run("waiting", [5]) }, {})).toEqual({ budgetUsd: undefined });
});

test("attempts of a phase share its limit", () => {
  expect(grant({ a: run("waiting", [0.2, 0.3]) }, { own: 1 }).budgetUsd).toBeCloseTo(0.5);
  expect(grant({ a: run("waiting", [0.7, 0.3]) }, { own: 1 }).refusal).toContain("$1.00 is used up by 2 attempts");
});

test("all phases share the limit of the nebula, and the smaller limit counts", () => {
  const phases = { a: run("waiting"), b: run("completed", [2]), c: run("failed", [1, 0.5]) };
  expect(grant(phases, { all: 5 }).budgetUsd).toBeCloseTo(1.5);
  expect(grant(phases, { all: 5, own: 1 }).budgetUsd).toBeCloseTo(1);
  expect(grant(phases, { all: 3.5 }).refusal).toContain("the nebula's limit of $3.50 is used up");
});

test("phases that run at the same time stay within the limit together", () => {
  const [four, two] = [
    { all: 4, maxWorkers: 4 },
    { all: 4, maxWorkers: 2 },
  ];
  const waiting = { a: run("waiting"), b: run("waiting"), c: run("waiting"), d: run("waiting") };
  expect(grant(waiting, four).budgetUsd).toBeCloseTo(1);
  expect(grant({ ...waiting, b: run("running", [], 1) }, four).budgetUsd).toBeCloseTo(1);
  expect(grant({ ...waiting, b: run("running", [], 2) }, two).budgetUsd).toBeCloseTo(2);
  expect(grant({ a: run("waiting"), b: run("running", [], 4) }, two).refusal).toContain("used up");
  // The last phase gets all that is left.
  expect(grant({ a: run("waiting"), b: run("completed", [1]) }, four).budgetUsd).toBeCloseTo(3);
});

test("an attempt without a reported cost counts as nothing", () => {
  expect(spentOn({ history: [{ attempt: 1, outcome: "x", seconds: 1, promptTokens: 1 }] })).toBe(0);
  expect(spentOn(undefined)).toBe(0);
});

test("small amounts have more digits", () => {
  expect([0, 0.01234, 1.2, 1234.5].map(dollars)).toEqual(["$0.00", "$0.0123", "$1.20", "$1234.50"]);
});
