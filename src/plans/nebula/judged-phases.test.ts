/** Phases whose agent ends by itself and whose work still does not count, and what they cost. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import type { ApplyEvent, ApplyOptions, ApplyReport } from "./application.ts";
import { applyNebula } from "./apply-nebula.ts";
import type { Nebula, Phase } from "./nebula.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";

let folder: string;
let store: Store;
let events: ApplyEvent[];
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-judged-")));
  store = createMemoryStore();
  events = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

type Act = Record<string, string>;

function apply(phases: readonly Phase[], act: Act, more: Partial<ApplyOptions> & { limit?: number } = {}) {
  const { limit, ...options } = more;
  const nebula: Nebula = { ...sampleNebula(...phases), directory: folder };
  return applyNebula(
    { ...nebula, execution: { ...nebula.execution, maxBudgetUsd: limit } },
    {
      store,
      storeFile: join(folder, "state.db"),
      command: ({ id }, { budgetUsd }) => `echo ${id} ${budgetUsd ?? "-"} >>"${folder}/started"\n${act[id] ?? ""}`,
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: join(folder, "home") },
      timeoutMs: 20_000,
      onEvent: (event) => events.push(event),
      ...options,
    },
  );
}

const results = ({ phases }: ApplyReport) => phases.map(({ id, state, outcome }) => `${id} ${outcome ?? state}`);
const started = () => readFileSync(join(folder, "started"), "utf8").trimEnd().split("\n");
const claude = (costUsd: number, more: object = {}) => {
  const usage = { input_tokens: 900, cache_read_input_tokens: 100, output_tokens: 10 };
  const value = { type: "result", subtype: "success", result: "Done.", total_cost_usd: costUsd, usage, ...more };
  return `echo '${JSON.stringify(value)}'`;
};

const scoped = (id: string, more: Partial<Phase> = {}) => samplePhase(id, { scope: [`${id}.txt`], ...more });

describe("a phase with a scope", () => {
  test("is unchanged if its agent changes nothing in it, and blocks what needs it", async () => {
    const phases = [scoped("a"), scoped("b", { dependsOn: ["a"] }), samplePhase("c")];
    const report = await apply(phases, { a: "echo >other.txt; echo done", c: "echo done" });
    expect(results(report)).toEqual(["a unchanged", "c completed", "b blocked"]);
    expect(report.phases[0]?.error).toMatch(/^The agent changed no file in its scope, a\.txt\. .*--allow edit\.$/);
    expect(events).toContainEqual(
      expect.objectContaining({ event: "ended", phase: "a", state: "failed", outcome: "unchanged" }),
    );
  });

  test("completes on --resume with what an earlier attempt did", async () => {
    const half = await apply([scoped("a")], { a: "echo >a.txt; exit 1" });
    expect(results(half)).toEqual(["a failed"]);
    const resumed = await apply([scoped("a")], { a: "echo nothing left to do" }, { resume: true });
    expect(results(resumed)).toEqual(["a completed"]);
    expect(resumed.phases[0]?.history?.map(({ outcome }) => outcome)).toEqual(["failed", "completed"]);
    // A new run compares with its own start.
    expect(results(await apply([scoped("a")], { a: "echo nothing" }))).toEqual(["a unchanged"]);
  });

  test("compares again from now if its scope was edited", async () => {
    await apply([scoped("a")], { a: "echo >b.txt; exit 1" });
    const other = scoped("a", { scope: ["b.txt"] });
    expect(results(await apply([other], { a: "echo done" }, { resume: true }))).toEqual(["a unchanged"]);
  });
});

describe("a phase with a worktree", { timeout: 30_000 }, () => {
  beforeEach(() => {
    const git = (...args: string[]) => execFileSync("git", args, { cwd: folder });
    git("init", "--quiet", "-b", "main");
    git("-c", "user.name=me", "-c", "user.email=me@x", "commit", "--quiet", "--allow-empty", "-m", "start");
  });
  const worktrees = { worktrees: true };

  test("is judged by the files of its worktree, not by those of the project", { tags: ["deep"] }, async () => {
    const act = { a: "echo >a.txt", b: `echo >"${folder}/b.txt"` };
    const report = await apply([scoped("a"), scoped("b")], act, worktrees);
    expect(results(report)).toEqual(["a completed", "b unchanged"]);
    expect([existsSync(join(folder, "a.txt")), existsSync(join(folder, "b.txt"))]).toEqual([false, true]);
  });

  test("completes on --resume with what an earlier attempt left in its worktree", { tags: ["deep"] }, async () => {
    await apply([scoped("a"), scoped("b")], { a: "echo >a.txt; exit 1", b: "exit 1" }, worktrees);
    const resumed = await apply([scoped("a"), scoped("b")], {}, { ...worktrees, resume: true });
    expect(results(resumed)).toEqual(["a completed", "b unchanged"]);
  });

  test("compares with its new worktree if the old one is gone", { tags: ["deep"] }, async () => {
    const phases = [scoped("a"), samplePhase("b")];
    await apply(phases, { a: "exit 1", b: "echo >a.txt" }, worktrees);
    rmSync(join(folder, "home/.local/state/plimsoll/worktrees"), { recursive: true });
    expect(results(await apply(phases, {}, { ...worktrees, resume: true }))).toEqual(["a unchanged", "b completed"]);
  });

  test("compares with the project if it continues there", { tags: ["deep"] }, async () => {
    await apply([scoped("a")], { a: "echo >a.txt; exit 1" }, worktrees);
    expect(results(await apply([scoped("a")], {}, { resume: true }))).toEqual(["a unchanged"]);
  });
});

describe("a phase that a person reviews", () => {
  const reviewed = (more: Partial<Phase> = {}) => [scoped("a", { gate: "review", ...more })];
  let asked: number;
  beforeEach(() => {
    asked = 0;
  });
  const answering = (yes: boolean): Partial<ApplyOptions> => ({
    agent: "claude",
    approve: async () => {
      asked += 1;
      return yes;
    },
  });
  const usage = { inputTokens: 1_000, cachedTokens: 100, outputTokens: 10 };

  test.each([
    ["denied", `echo >a.txt; ${claude(0.1, { permission_denials: [{ tool_name: "Bash" }] })}`],
    ["unchanged", claude(0.1)],
    ["over_budget", `echo >a.txt; ${claude(0.9)}`],
  ])("is %s before anybody is asked", async (outcome, act) => {
    const report = await apply(reviewed({ maxBudgetUsd: 0.5 }), { a: act }, answering(true));
    expect([results(report), asked]).toEqual([[`a ${outcome}`], 0]);
  });

  test("keeps what its attempt used and cost until it is accepted, and counts it once", async () => {
    const act = { a: `echo >a.txt; ${claude(0.25)}` };
    const first = await apply(reviewed(), act, answering(false));
    const attempt = { attempt: 1, outcome: "completed", costUsd: 0.25, usage };
    expect(first.phases[0]).toMatchObject({ state: "waiting", attempts: 1, costUsd: 0.25, history: [attempt] });
    const second = await apply(reviewed(), act, { ...answering(true), resume: true });
    expect(second.phases[0]).toMatchObject({ state: "completed", attempts: 1, costUsd: 0.25, history: [attempt] });
    expect(second.phases[0]?.history).toHaveLength(1);
    expect(events.at(-1)).toMatchObject({ event: "ended", state: "completed", costUsd: 0.25, usage });
    expect([started().length, asked]).toEqual([1, 2]);
  });

  test("counts for the limit of the nebula while it waits", async () => {
    const act = { a: `echo >a.txt; ${claude(0.25)}`, b: claude(0.25) };
    const phases = [...reviewed(), samplePhase("b")];
    const report = await apply(phases, act, { ...answering(false), limit: 0.2 });
    expect(results(report)).toEqual(["a waiting", "b waiting"]);
    expect(started()).toEqual(["a 0.2"]);
  });
});

test("a phase that runs again keeps its cost, and compares its scope with the new start", async () => {
  const limited = [scoped("a", { maxBudgetUsd: 0.3 })];
  const first = await apply(limited, { a: `echo >a.txt; ${claude(0.2)}` }, { agent: "claude" });
  expect(results(first)).toEqual(["a completed"]);
  const again = await apply(limited, { a: claude(0.2) }, { agent: "claude", rerun: ["a"] });
  expect(again.phases[0]).toMatchObject({ outcome: "unchanged", attempts: 2, costUsd: 0.4 });
  const last = await apply(limited, {}, { agent: "claude", rerun: ["a"] });
  expect(last.phases[0]).toMatchObject({
    state: "waiting",
    error: expect.stringContaining("is used up by 2 attempts"),
  });
  expect(last.phases[0]?.outcome).toBeUndefined();
});

describe("what an agent reports", () => {
  test("is the cost and usage of every attempt, and denied tools", async () => {
    const denied = claude(0.25, { permission_denials: [{ tool_name: "Bash", tool_input: { command: "ls" } }] });
    const first = await apply([samplePhase("a")], { a: denied }, { agent: "claude" });
    expect(results(first)).toEqual(["a denied"]);
    expect(first.phases[0]?.error).toContain("not allowed to use: Bash ls.");
    const second = await apply([samplePhase("a")], { a: claude(0.5) }, { agent: "claude", resume: true });
    const usage = { inputTokens: 1_000, cachedTokens: 100, outputTokens: 10 };
    expect(second.phases[0]).toMatchObject({ state: "completed", attempts: 2, costUsd: 0.75 });
    expect(second.phases[0]?.history).toMatchObject([
      { attempt: 1, outcome: "denied", costUsd: 0.25, usage },
      { attempt: 2, outcome: "completed", costUsd: 0.5, usage },
    ]);
    expect(events.at(-1)).toMatchObject({ event: "ended", costUsd: 0.5, usage });
  });

  test("has a price if the model has one", async () => {
    const event = { type: "turn.completed", usage: { input_tokens: 1_000_000, output_tokens: 0 } };
    const phase = samplePhase("a", { model: "gpt-5" });
    const report = await apply([phase], { a: `echo '${JSON.stringify(event)}'` }, { agent: "codex" });
    expect(report.phases[0]?.costUsd).toBeCloseTo(1.25);
  });

  test("goes to the environment as the model, where one is known", async () => {
    const phase = samplePhase("a", { model: "m" });
    await apply([phase], { a: 'echo "$PLIMSOLL_MODEL $PLIMSOLL_PHASE" >>started' });
    expect(started()).toEqual(["a -", "m a"]);
  });
});

describe("a limit on the cost", () => {
  test("of a phase is passed on, and what an agent costs beyond it fails the phase", async () => {
    const limited = samplePhase("a", { maxBudgetUsd: 0.3 });
    const report = await apply([limited], { a: claude(0.4) }, { agent: "claude" });
    expect(started()).toEqual(["a 0.3"]);
    expect(results(report)).toEqual(["a over_budget"]);
    expect(report.phases[0]?.error).toContain("cost $0.4000, more than its limit of $0.3000");
    const again = await apply([limited], { a: claude(0.1) }, { agent: "claude", resume: true });
    expect(started()).toEqual(["a 0.3"]);
    expect(again.phases[0]).toMatchObject({ state: "waiting", error: expect.stringContaining("is used up") });
  });

  test("of the nebula stops phases that would start after it is used up", async () => {
    const phases = [samplePhase("a"), samplePhase("b"), samplePhase("c")];
    const act = { a: claude(0.6), b: claude(0.6), c: claude(0.6) };
    const report = await apply(phases, act, { agent: "claude", limit: 1 });
    expect(started()).toEqual(["a 1", "b 0.4"]);
    expect(results(report)).toEqual(["a completed", "b completed", "c waiting"]);
    expect(report.phases[2]?.error).toContain("the nebula's limit of $1.00 is used up");
    expect(events.at(-1)).toMatchObject({ event: "notice", phase: "c" });
  });
});

test("each phase is counted with its own counter, and bytes/4 without one", async () => {
  const counter = ({ id }: Phase) => ({ name: id, count: (text: string) => (text === "" ? 0 : id === "a" ? 1 : 2) });
  const report = await apply([samplePhase("a"), samplePhase("b")], {}, { counter });
  expect(report.phases.map(({ promptTokens }) => promptTokens)).toEqual([1, 2]);
  const plain = await apply([samplePhase("a", { body: "x" })], {}, { maxContextTokens: 0 });
  expect(plain.phases[0]?.promptTokens).toBeGreaterThan(10);
});

test("conventions that the agent loads by itself are named without their text", async () => {
  const { writeFileSync } = await import("node:fs");
  writeFileSync(join(folder, "CLAUDE.md"), "Use tabs.\n");
  const keep = { a: "cat >prompt" };
  await apply([samplePhase("a")], keep, { loadsItself: ({ path }) => path === "CLAUDE.md" });
  const prompt = () => readFileSync(join(folder, "prompt"), "utf8");
  expect(prompt()).toContain("### CLAUDE.md\n\nNot repeated here");
  expect(prompt()).not.toContain("Use tabs.");
  await apply([samplePhase("a")], keep);
  expect(prompt()).toContain("Use tabs.");
});
