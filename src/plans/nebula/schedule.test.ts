import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PhaseState } from "../compose/index.ts";
import { createSchedule, type Schedule, type ScheduledPhase } from "./schedule.ts";

const phase = (id: string, ...dependsOn: string[]): ScheduledPhase => ({ id, dependsOn });

function takeAll(schedule: Schedule): string[] {
  const taken: string[] = [];
  for (let id = schedule.next(); id !== undefined; id = schedule.next()) taken.push(id);
  return taken;
}

const diamond = [phase("a"), phase("b", "a"), phase("c", "a"), phase("d", "b", "c")];

describe("the schedule", () => {
  test("offers a phase once, after all its dependencies have completed", () => {
    const schedule = createSchedule(diamond);
    expect(takeAll(schedule)).toEqual(["a"]);
    schedule.end("a", "completed");
    expect(takeAll(schedule)).toEqual(["b", "c"]);
    schedule.end("c", "completed");
    expect(takeAll(schedule)).toEqual([]);
    schedule.end("b", "completed");
    expect(takeAll(schedule)).toEqual(["d"]);
  });

  test("offers ready phases in the given order, not in the order in which they became ready", () => {
    const schedule = createSchedule([phase("x"), phase("y"), phase("after-y", "y"), phase("z")]);
    expect([schedule.next(), schedule.next()]).toEqual(["x", "y"]);
    schedule.end("y", "completed");
    expect(takeAll(schedule)).toEqual(["after-y", "z"]);
  });

  test("a failed phase blocks all that needs it, through several steps, and nothing else", () => {
    const schedule = createSchedule([phase("a"), phase("b"), phase("c", "a"), phase("d", "c", "b"), phase("e", "b")]);
    takeAll(schedule);
    expect(schedule.end("a", "failed")).toEqual(["c", "d"]);
    schedule.end("b", "completed");
    expect(takeAll(schedule)).toEqual(["e"]);
  });

  test("does not offer completed phases, and offers phases that needed them", () => {
    const states = new Map<string, PhaseState>([
      ["a", "completed"],
      ["b", "running"],
    ]);
    const schedule = createSchedule(diamond, states);
    expect(takeAll(schedule)).toEqual(["c"]);
    schedule.end("c", "completed");
    schedule.again("b");
    expect(takeAll(schedule)).toEqual(["b"]);
    schedule.end("b", "completed");
    expect(takeAll(schedule)).toEqual(["d"]);
  });

  test("does not offer a phase on hold; phases that need it wait and are not blocked", () => {
    const schedule = createSchedule(diamond);
    schedule.next();
    schedule.hold("a");
    expect(takeAll(schedule)).toEqual([]);
    schedule.again("a");
    expect(takeAll(schedule)).toEqual(["a"]);
    schedule.end("a", "completed");
    expect(takeAll(schedule)).toEqual(["b", "c"]);
  });

  test("a dependency that is named twice counts once", () => {
    const schedule = createSchedule([phase("a"), phase("b", "a", "a")]);
    takeAll(schedule);
    schedule.end("a", "completed");
    expect(takeAll(schedule)).toEqual(["b"]);
  });
});

/** Phases that depend only on earlier ones, so that there is no cycle, and which of them fail. */
const runs = fc
  .array(fc.record({ needs: fc.array(fc.nat(), { maxLength: 4 }), fails: fc.boolean(), slow: fc.nat(3) }), {
    maxLength: 25,
  })
  .map((drafts) =>
    drafts.map(({ needs, fails, slow }, index) => ({
      id: `p${index}`,
      dependsOn: index === 0 ? [] : needs.map((need) => `p${need % index}`),
      fails: fails && slow === 0,
      slow,
    })),
  );

type Trial = (typeof runs extends fc.Arbitrary<infer Phases> ? Phases : never)[number];

/** Runs them, so many at a time; which one ends first is drawn, too. Gives the state of each that did not stay waiting. */
function runAll(phases: readonly Trial[], workers: number): Map<string, PhaseState> {
  const schedule = createSchedule(phases);
  const states = new Map<string, PhaseState>();
  const byId = new Map(phases.map((each) => [each.id, each]));
  const running: Trial[] = [];
  const fill = () => {
    for (let id = schedule.next(); id !== undefined; id = running.length < workers ? schedule.next() : undefined)
      running.push(byId.get(id)!);
  };
  for (fill(); running.length > 0; fill()) {
    const [ended] = running.splice(running[0]!.slow % running.length, 1);
    for (const need of ended!.dependsOn) expect(states.get(need)).toBe("completed");
    const state = ended!.fails ? "failed" : "completed";
    states.set(ended!.id, state);
    for (const blocked of schedule.end(ended!.id, state)) states.set(blocked, "blocked");
  }
  return states;
}

test("every phase of any graph ends in the state that its own and its ancestors' ends make it have", () => {
  fc.assert(
    fc.property(runs, fc.integer({ min: 1, max: 4 }), (phases, workers) => {
      const states = runAll(phases, workers);
      const expected = new Map<string, PhaseState>();
      for (const { id, dependsOn, fails } of phases) {
        const isBlocked = dependsOn.some((need) => expected.get(need) !== "completed");
        expected.set(id, isBlocked ? "blocked" : fails ? "failed" : "completed");
      }
      for (const { id } of phases) expect([id, states.get(id)]).toEqual([id, expected.get(id)]);
    }),
    { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300 },
  );
});

describe("a phase that another machine runs", () => {
  const plan = [
    { id: "a", dependsOn: [] },
    { id: "b", dependsOn: ["a"] },
  ];

  test("does not start here, and what needs it starts after its end", () => {
    const schedule = createSchedule(plan);
    schedule.see("a", "running");
    expect(schedule.next()).toBeUndefined();
    schedule.see("a", "completed");
    expect([schedule.next(), schedule.next()]).toEqual(["b", undefined]);
  });

  test("starts here if the other machine loses it, also if it was left to that machine", () => {
    const schedule = createSchedule(plan);
    schedule.see("a", "running");
    schedule.see("a", "waiting");
    expect(schedule.next()).toBe("a");
    // A record that is older than the claim changes nothing.
    schedule.see("a", "waiting");
    expect(schedule.next()).toBeUndefined();
    schedule.leave("a");
    schedule.see("a", "waiting");
    expect(schedule.next()).toBe("a");
  });

  test("blocks what needs it if it failed", () => {
    const schedule = createSchedule(plan);
    schedule.see("a", "failed");
    expect(schedule.next()).toBeUndefined();
    schedule.see("b", "waiting");
    expect(schedule.next()).toBeUndefined();
  });
});
