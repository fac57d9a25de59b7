import { describe, expect, test } from "vitest";
import { addToFabric, emptyFabric, maxEntries, maxEntryLength } from "../compose/index.ts";
import type { Phase } from "./nebula.ts";
import type { NebulaRecord, PhaseRun } from "./nebula-record.ts";
import { endedRecord, freshRecord, person, resumedRecord, startedRecord } from "./record-changes.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";

const phase = (id: string, scope: readonly string[] = []) => samplePhase(id, { scope });
const nebula = (...ids: string[]) => sampleNebula(...ids.map((id) => phase(id)));
const run = (more: Partial<PhaseRun> = {}): PhaseRun => ({
  title: "old",
  state: "completed",
  attempts: 1,
  promptTokens: 10,
  seconds: 2,
  ...more,
});
const recordOf = (phases: NebulaRecord["phases"]): NebulaRecord => ({
  ...freshRecord(undefined, nebula()),
  phases,
});
const start = { promptTokens: 7, attemptFolder: "/runs/a.1" };

describe("a record for a new run", () => {
  test("has every phase waiting and keeps only what people added, and the numbers of ids", () => {
    const note = (id: string, from: string) => ({ id, kind: "note" as const, text: id, from });
    const before: NebulaRecord = {
      ...recordOf({ a: run(), gone: run() }),
      fabric: {
        ...emptyFabric,
        notes: [note("n1", "a"), note("n2", person)],
        claims: [{ id: "c1", path: "x", owner: "a" }],
        lastIds: { ...emptyFabric.lastIds, notes: 2, claims: 1 },
      },
    };
    const fresh = freshRecord(before, nebula("a", "b"));
    expect(fresh).toMatchObject({ name: "plan", directory: "/plan" });
    expect(Object.entries(fresh.phases).map(([id, { state, attempts }]) => [id, state, attempts])).toEqual([
      ["a", "waiting", 0],
      ["b", "waiting", 0],
    ]);
    expect(fresh.fabric.notes.map(({ id }) => id)).toEqual(["n2"]);
    expect(fresh.fabric.claims).toEqual([]);
    expect(fresh.fabric.lastIds).toMatchObject({ notes: 2, claims: 1 });
  });
});

describe("a record to resume", () => {
  test("keeps phases that completed or still run, lets others wait without their error, and updates titles", () => {
    const before = recordOf({
      done: run(),
      runs: run({ state: "running", attemptFolder: "/runs/runs.1" }),
      lost: run({ state: "running", attemptFolder: "/runs/lost.1" }),
      failed: run({ state: "failed", attempts: 3, error: "It failed." }),
      blocked: run({ state: "blocked", attempts: 0, error: "failed did not complete." }),
      gone: run(),
    });
    const { phases } = resumedRecord(
      before,
      nebula("done", "runs", "lost", "failed", "blocked", "new"),
      new Set(["runs"]),
    );
    expect(Object.entries(phases).map(([id, each]) => [id, each.state, each.attempts, each.title])).toEqual([
      ["done", "completed", 1, "The done"],
      ["runs", "running", 1, "The runs"],
      ["lost", "waiting", 1, "The lost"],
      ["failed", "waiting", 3, "The failed"],
      ["blocked", "waiting", 0, "The blocked"],
      ["new", "waiting", 0, "The new"],
    ]);
    expect(Object.values(phases).filter(({ error }) => error !== undefined)).toEqual([]);
  });
});

describe("claims of a record to resume", () => {
  const started = (record: NebulaRecord, id: string, ...scope: string[]): NebulaRecord =>
    startedRecord(record, phase(id, scope), start).record;
  const claiming = (record: NebulaRecord, from: string, path: string): NebulaRecord => ({
    ...record,
    fabric: addToFabric(record.fabric, { claims: [{ path }] }, { from }).fabric,
  });
  const claimsOf = ({ fabric }: NebulaRecord): string[] =>
    fabric.claims.map(({ id, path, owner }) => `${id} ${path} ${owner}`);

  test("are removed with a renamed or removed phase, and those of people stay", () => {
    const ran = started(started(recordOf({}), "done", "src/1"), "failed", "src/2");
    const { record } = endedRecord(claiming(ran, person, "docs"), phase("done"), {
      state: "completed",
      seconds: 1,
    });
    const [done, failed, renamed] = [phase("done", ["src/1"]), phase("failed", ["src/2"]), phase("new", ["src/1"])];
    const resumed = (...phases: Phase[]) => resumedRecord(record, { ...nebula(), phases });
    expect(claimsOf(resumed(renamed, failed))).toEqual(["c2 src/2 failed", "c3 docs person"]);
    expect(claimsOf(resumed(done))).toEqual(["c1 src/1 done", "c3 docs person"]);
    expect(resumed(done, failed, renamed).fabric).toBe(record.fabric);
  });

  test("are those of the current scope, and what the agent claimed itself", () => {
    const ran = claiming(started(recordOf({}), "a", "src/old", "src/both"), "a", "src/found");
    const { record: failed } = endedRecord(ran, phase("a"), { state: "failed", seconds: 1 });
    const edited = phase("a", [" src/both", "src/new"]);
    const resumed = resumedRecord(failed, { ...nebula(), phases: [edited] });
    expect(claimsOf(resumed)).toEqual(["c2 src/both a", "c3 src/found a"]);
    const again = startedRecord(resumed, edited, start).record;
    expect(claimsOf(again)).toEqual(["c2 src/both a", "c3 src/found a", "c4 src/new a"]);
    expect(claimsOf(started(again, "a", "src/new"))).toEqual(["c3 src/found a", "c4 src/new a"]);
  });

  test("of an agent that still runs stay as they were at its start", () => {
    const running = started(recordOf({}), "a", "src/old");
    const edited = { ...nebula(), phases: [phase("a", ["src/new"])] };
    expect(claimsOf(resumedRecord(running, edited, new Set(["a"])))).toEqual(["c1 src/old a"]);
  });
});

describe("a phase", () => {
  test("that starts has one attempt more and claims its scope, each path once", () => {
    const scope = ["src/a/**", " ", "x".repeat(maxEntryLength + 1)];
    const { record: first, omitted } = startedRecord(
      recordOf({ a: run({ state: "failed", error: "No." }) }),
      phase("a", scope),
      start,
    );
    expect(first.phases.a).toEqual({
      title: "The a",
      state: "running",
      attempts: 2,
      cycles: 1,
      seconds: 0,
      scopeClaims: ["c1"],
      ...start,
    });
    expect(first.fabric.claims).toEqual([{ id: "c1", path: "src/a/**", owner: "a" }]);
    expect(omitted).toBeUndefined();
    expect(startedRecord(first, phase("a", scope), start).record.fabric.claims).toHaveLength(1);
  });

  test("that ends brings its state, its report and what it blocks in one step", () => {
    const before = recordOf({
      a: run({ state: "running", ...start }),
      b: run({ state: "waiting", attempts: 0 }),
    });
    const { record: ended } = endedRecord(before, phase("a"), {
      state: "failed",
      seconds: 3,
      error: "It failed.",
      report: { discoveries: [{ detail: "no table" }] },
      date: "2026-01-02",
      blocked: ["b"],
    });
    expect(ended.phases.a).toMatchObject({
      state: "failed",
      seconds: 3,
      error: "It failed.",
      attemptFolder: "/runs/a.1",
    });
    expect(ended.phases.b).toMatchObject({ state: "blocked", error: "a did not complete." });
    expect(ended.fabric.discoveries).toMatchObject([{ detail: "no table", from: "a", date: "2026-01-02" }]);
  });

  const full = (kind: "claims" | "notes", count = maxEntries): NebulaRecord => {
    const texts = Array.from({ length: count }, (_, index) => `${index}`);
    const report =
      kind === "notes" ? { notes: texts.map((text) => ({ text })) } : { claims: texts.map((path) => ({ path })) };
    return {
      ...recordOf({ a: run({ state: "running" }) }),
      fabric: addToFabric(emptyFabric, report, { from: person }).fabric,
    };
  };
  const report = { discoveries: [{ detail: "no table" }], notes: [{ text: "x" }, { text: "y" }] };
  const end = { state: "completed", seconds: 1, report } as const;

  test("completes with everything that fits, and reports what is left out", () => {
    const { record, omitted } = endedRecord(full("notes", maxEntries - 1), phase("a"), end);
    expect(record.phases.a?.state).toBe("completed");
    expect(record.fabric.discoveries).toMatchObject([{ detail: "no table" }]);
    expect(record.fabric.notes).toHaveLength(maxEntries);
    expect(record.fabric.notes.at(-1)).toMatchObject({ text: "x", from: "a" });
    expect(omitted).toBe("the fabric is full. Left out: 1 of its notes. It keeps at most 10,000 of each kind");
  });

  test("starts even if its claims do not fit, with a notice and a note", () => {
    const { record, omitted } = startedRecord(full("claims"), phase("a", ["src/**"]), start);
    expect(record.phases.a?.state).toBe("running");
    expect(record.fabric.claims).toHaveLength(maxEntries);
    expect(omitted).toContain("1 of its claims");
    expect(record.fabric.notes).toMatchObject([{ kind: "failure", from: "a", text: omitted }]);
  });
});

test("the end of a phase keeps the state of its scope only if another attempt may need it", () => {
  const scopeState = { scope: ["src"], folder: "/p", hash: "h" };
  const { record } = startedRecord(recordOf({ a: run({ state: "waiting" }) }), phase("a", ["src"]), {
    ...start,
    scopeState,
  });
  const ended = (state: "completed" | "failed" | "waiting") =>
    endedRecord(record, phase("a"), { state, seconds: 1 }).record.phases.a?.scopeState;
  expect([ended("completed"), ended("failed"), ended("waiting")]).toEqual([undefined, scopeState, scopeState]);
});
