import { expect, it } from "vitest";
import { goalsOf, renderReport } from "../bench/compose/render-report.ts";

const parts = {
  layers: [
    { name: "compose half", milliseconds: 40 },
    { name: "compose whole", milliseconds: 90, ratio: 2.25, addedMs: 50 },
    { name: "compose other", milliseconds: 160 },
  ],
  snapshot: [
    { name: "git", milliseconds: 100, items: 100_000 },
    { name: "git, all", milliseconds: 200, items: 100_000 },
    { name: "snapshot", milliseconds: 2_100, ratio: 10.5, addedMs: 1_900, items: 100_000 },
  ],
  apply: [
    { name: "spawned", milliseconds: 2, items: 200 },
    { name: "one", milliseconds: 400, items: 1 },
    { name: "a phase", milliseconds: 17, ratio: 8.5, addedMs: 15, items: 200 },
  ],
  many: [
    { name: "agents alone", milliseconds: 1_000, items: 1_000 },
    { name: "many phases", milliseconds: 77_000, ratio: 77, addedMs: 76_000, items: 1_000 },
    { name: "many phases, processor time", milliseconds: 9_000, ratio: 9, addedMs: 8_000, items: 1_000 },
  ],
};

it("what was measured is held against the goals, and what it is compared with is not", () => {
  expect(goalsOf(parts).map(({ measured, met }) => [measured, met])).toEqual([
    [90, true],
    [160, false],
    [2.25, true],
    [2_100, false],
    [15, true],
    [76_000, false],
  ]);
});

it("the report is one table", () => {
  const lines = renderReport({ node: "20.0.0", rounds: 3, load: 1, ...parts, goals: goalsOf(parts) }).split("\n");
  expect(lines[2]).toMatch(/^ +ms +× plain +\+ ms +items$/);
  expect(lines[8]).toMatch(/^snapshot +2,100 +10\.50 +1,900 +100,000$/);
  expect(lines[11]).toMatch(/^a phase +17\.00 +8\.50 +15\.00 +200$/);
  expect(lines).toContain("MISSED    160.00  compose other, ms, at most 150");
  expect(lines).toContain("MISSED  76000.00  many phases, ms beyond its agents, at most 75,000");
});
