/** Attempts of one phase until its work is accepted: checks, scope, reviewer, gates, conflicts. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createMemoryStore, type Store } from "../../core/store/index.ts";
import type { ApplyEvent, ApplyOptions, ApplyReport, FinishedWork, GateAnswer } from "./application.ts";
import { applyNebula } from "./apply-nebula.ts";
import type { Nebula, Phase } from "./nebula.ts";
import { diffWork } from "./open-git.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";

let folder: string;
let project: string;
let store: Store;
let events: ApplyEvent[];
let env: Record<string, string | undefined>;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "plimsoll-loop-")));
  project = join(folder, "project");
  env = { PATH: process.env.PATH, HOME: join(folder, "home"), OUT: folder };
  store = createMemoryStore();
  events = [];
  mkdirSync(project);
  git("init", "-q", "-b", "main");
  write("src/a.txt", "old\n");
  write("other.txt", "other\n");
  git("add", "-A");
  git("commit", "-qm", "Start");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function git(...args: readonly string[]): string {
  const who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
  return execFileSync("git", [...who, ...args], { cwd: project, encoding: "utf8", stdio: "pipe" });
}

function write(path: string, text: string): void {
  mkdirSync(join(project, path, ".."), { recursive: true });
  writeFileSync(join(project, path), text);
}

/** The agent keeps each prompt, and does in its nth attempt what the nth text says. */
function apply(
  phases: readonly Phase[],
  acts: Readonly<Record<string, readonly string[]>>,
  more: Partial<ApplyOptions> = {},
) {
  const nebula: Nebula = { ...sampleNebula(...phases), directory: join(folder, "plan") };
  return applyNebula(nebula, {
    store,
    storeFile: join(folder, "state.db"),
    command: ({ id }, { session = "" }) => {
      const cases = (acts[id] ?? []).map((act, index) => `${index + 1}) ${act} ;;`).join("\n");
      return `n=$(($(cat "$OUT/${id}.count" 2>/dev/null || echo 0) + 1)); echo $n >"$OUT/${id}.count"
cat >"$OUT/${id}.$n"; echo "${session}" >"$OUT/${id}.session.$n"
case $n in
${cases}
*) echo done ;;
esac`;
    },
    cwd: project,
    env,
    timeoutMs: 20_000,
    onEvent: (event) => events.push(event),
    ...more,
  });
}

const scoped = (more: Partial<Phase> = {}) => samplePhase("a", { scope: ["src/**"], ...more });
const prompt = (attempt: number, id = "a") => readFileSync(join(folder, `${id}.${attempt}`), "utf8");
const attempts = (id = "a") => Number(readFileSync(join(folder, `${id}.count`), "utf8"));
const results = ({ phases }: ApplyReport) => phases.map(({ id, state, outcome }) => `${id} ${outcome ?? state}`);
const outcomes = ({ phases }: ApplyReport) => phases[0]?.history?.map(({ outcome }) => outcome);
const notices = () => events.flatMap((event) => (event.event === "notice" ? [event.message] : []));

describe("checks", () => {
  const check = ["echo looking; grep -q new src/a.txt"];

  test("decide whether the work counts, and the agent is told what failed", async () => {
    const report = await apply([scoped({ check })], { a: ["echo bad >src/a.txt", "echo new >src/a.txt"] });
    expect([results(report), outcomes(report)]).toEqual([["a completed"], ["check_failed", "completed"]]);
    expect(report.phases[0]?.history?.map(({ checks }) => checks)).toEqual(["failed", "passed"]);
    expect(prompt(1)).toContain("these commands must succeed, and you may run them exactly so: `echo looking;");
    expect(prompt(2)).toMatch(
      /What is wrong so far[\s\S]*failed \(exit code 1\)\. Its output:\n\n```\nlooking\n\[exit code 1\]/,
    );
    expect(prompt(2)).toContain("## How to report");
  });

  test("do not believe an agent that says it is done, and end after max_review_cycles attempts", async () => {
    const gaveUp = "echo bad >src/a.txt; echo 'All tests fail, I gave up.'";
    const report = await apply([scoped({ check, maxReviewCycles: 2 })], { a: [gaveUp, gaveUp, gaveUp] });
    expect([results(report), attempts()]).toEqual([["a check_failed"], 2]);
    expect(report.phases[0]?.error).toContain("failed: exit code 1.");
    expect(report.phases[0]?.error).toContain("It had 2 attempts (max_review_cycles)");
    // A person who resumes gives it more, and the agent knows what is wrong.
    const resumed = await apply(
      [scoped({ check, maxReviewCycles: 2 })],
      { a: ["", "", "echo new >src/a.txt"] },
      { resume: true },
    );
    expect([results(resumed), attempts()]).toEqual([["a completed"], 3]);
    expect(prompt(3)).toContain("What is wrong so far");
  });

  test("end after their time limit, and with the run", { tags: ["deep"] }, async () => {
    const report = await apply([scoped({ check: ["sleep 30"], checkTimeoutMs: 300, maxReviewCycles: 1 })], {
      a: ["echo new >src/a.txt"],
    });
    expect(report.phases[0]?.error).toContain("ended after 0.3 s");
  });
});

describe("a scope", () => {
  const act = ["echo new >src/a.txt; echo x >>other.txt; echo y >new.txt", "git checkout other.txt; rm new.txt"];

  test("names what was changed outside of it, without what was changed before", async () => {
    write("dirty.txt", "by a person\n");
    expect(results(await apply([scoped()], { a: act }))).toEqual(["a completed"]);
    expect(notices()).toContainEqual(
      expect.stringMatching(/^it changed new\.txt, other\.txt, outside of its scope, src/),
    );
  });

  test("fails the phase if it should, and the agent is told", async () => {
    const report = await apply([scoped({ scopePolicy: "fail" })], { a: act });
    expect(outcomes(report)).toEqual(["outside_scope", "completed"]);
    expect(prompt(2)).toContain("Undo these changes");
  });

  test("fails the phase if git can no longer show what changed", async () => {
    // Git then refuses to add any file.
    const hide = "printf '* text working-tree-encoding=UTF-16\\n' >.gitattributes; echo x >>other.txt";
    const act = [`echo new >src/a.txt; ${hide}`, "rm .gitattributes; git checkout other.txt"];
    const report = await apply([scoped({ scopePolicy: "fail" })], { a: act });
    expect(outcomes(report)).toEqual(["outside_scope", "completed"]);
    expect(prompt(2)).toContain("Git cannot show what you changed");
  });

  test.each([false, true])(
    "may leave out files that git tracks although it ignores them, worktrees: %j",
    async (worktrees) => {
      write(".gitignore", "*.log\n");
      write("kept.log", "log\n");
      git("add", "-f", ".gitignore", "kept.log");
      git("commit", "-qm", "Keep a log");
      const phase = scoped({ scopePolicy: "fail", maxReviewCycles: 1 });
      expect(results(await apply([phase], { a: ["echo new >src/a.txt"] }, { worktrees }))).toEqual(["a completed"]);
      const touched = await apply([phase], { a: ["", "echo newer >src/a.txt; echo x >kept.log"] });
      expect(touched.phases[0]?.error).toContain("It changed kept.log, outside of its scope");
    },
  );

  test("of a run in a folder of the repository also covers the files around it, if they are merged", async () => {
    const phase = samplePhase("a", { scope: ["**"], scopePolicy: "fail", maxReviewCycles: 1 });
    const options = { worktrees: true, cwd: join(project, "src") };
    const report = await apply([phase], { a: ["echo new >a.txt; echo x >>../other.txt"] }, options);
    expect(report.phases[0]?.error).toContain("It changed ../other.txt, outside of its scope");
  });

  test("is checked without a change of what a person has staged, even in a split index", async () => {
    git("config", "core.splitIndex", "true");
    git("config", "splitIndex.sharedIndexExpire", "now");
    write("other.txt", "staged\n");
    git("update-index", "--split-index");
    git("add", "other.txt");
    write("other.txt", "not staged\n");
    const index = readFileSync(join(project, ".git/index"));
    expect(results(await apply([scoped()], { a: ["echo new >src/a.txt"] }))).toEqual(["a completed"]);
    expect(readFileSync(join(project, ".git/index"))).toEqual(index);
    expect(git("diff", "--cached")).toContain("+staged");
  });

  test("of a phase that may only read needs no change", async () => {
    const report = await apply([scoped({ allow: "read" })], { a: ["echo 'It is fine.'"] });
    expect(results(report)).toEqual(["a completed"]);
  });
});

describe("an agent with a session", () => {
  const result = (costUsd: number, more: object = {}) => {
    const usage = { input_tokens: 900, cache_read_input_tokens: 100, output_tokens: 10 };
    const value = { type: "result", result: "Done.", session_id: "s-1", total_cost_usd: costUsd, usage, ...more };
    return `echo '${JSON.stringify(value)}'`;
  };
  const check = ["grep -q new src/a.txt"];

  test("goes on in it, knows the task, and each attempt costs what it added", async () => {
    const report = await apply(
      [scoped({ check, maxBudgetUsd: 1 })],
      { a: [`echo bad >src/a.txt; ${result(0.13)}`, `echo new >src/a.txt; ${result(0.26)}`] },
      { agent: "claude" },
    );
    expect(report.phases[0]?.history?.map(({ costUsd }) => costUsd)).toEqual([0.13, 0.13]);
    expect(readFileSync(join(folder, "a.session.2"), "utf8")).toBe("s-1\n");
    expect(prompt(2)).toMatch(/^Your work on this phase is not accepted yet\./);
    expect(prompt(2)).not.toContain("## How to report");
  });

  test("begins with the whole task if its session cannot go on", async () => {
    const report = await apply(
      [scoped({ check })],
      {
        a: [
          `echo bad >src/a.txt; ${result(0.1)}`,
          "echo No conversation found >&2; exit 1",
          `echo new >src/a.txt; ${result(0.2)}`,
        ],
      },
      { agent: "claude" },
    );
    expect(outcomes(report)).toEqual(["check_failed", "failed", "completed"]);
    expect(readFileSync(join(folder, "a.session.3"), "utf8")).toBe("\n");
    expect(prompt(3)).toMatch(/What is wrong so far[\s\S]*## How to report/);
  });

  test("may be denied a command if its checks pass", async () => {
    const denials = { permission_denials: [{ tool_name: "Bash", tool_input: { command: "npm test" } }] };
    const act = [`echo new >src/a.txt; ${result(0.1, denials)}`];
    expect(results(await apply([scoped({ check })], { a: act }, { agent: "claude" }))).toEqual(["a completed"]);
    expect(notices()).toContainEqual(expect.stringContaining("Bash npm test. That does not matter: its checks pass"));
  });
});

test("a reviewer accepts the work or has findings, and its cost counts", async () => {
  const verdicts = ["I cannot say\nACCEPT\nbecause of these\n**FINDINGS**:\n- src/a.txt: says bad", "ACCEPT"];
  const seen: string[] = [];
  const review = (_: Phase, start: object) => {
    seen.push(JSON.stringify(start));
    const text = { type: "result", result: verdicts[seen.length - 1], total_cost_usd: 0.01, session_id: "r" };
    return { command: `cat >"$OUT/review.${seen.length}"; cat <<'END'\n${JSON.stringify(text)}\nEND`, agent: "claude" };
  };
  const act = ["echo bad >src/a.txt", "echo new >src/a.txt"];
  const report = await apply([scoped({ reviewer: {}, check: ["true"] })], { a: act }, { review });
  expect(outcomes(report)).toEqual(["findings", "completed"]);
  expect(report.phases[0]?.costUsd).toBeCloseTo(0.02);
  expect(prompt(2)).toContain("- src/a.txt: says bad");
  const asked = readFileSync(join(folder, "review.1"), "utf8");
  for (const part of ["Make it.", "-old", "+bad", "- `true`: exit code 0"]) expect(asked).toContain(part);
});

test("neither a long answer nor long findings stop the loop", async () => {
  const review = () => ({
    command: "cat >/dev/null; yes '' | head -n 300000; echo FINDINGS; yes 'No.' | head -n 300000",
  });
  const act = "echo new >src/a.txt; yes '`' | head -n 300000";
  const report = await apply([scoped({ reviewer: {}, maxReviewCycles: 2 })], { a: [act, act] }, { review });
  expect(outcomes(report)).toEqual(["findings", "findings"]);
  expect(report.phases[0]?.error?.length).toBeLessThan(3_000);
  expect(prompt(2).length).toBeLessThan(30_000);
  expect(prompt(2)).toContain("No.\nNo.\n");
});

test("a reviewer that failed has accepted nothing", async () => {
  const review = () => ({ command: "cat >/dev/null; echo ACCEPT; exit 1" });
  const report = await apply([scoped({ reviewer: {} })], { a: ["echo new >src/a.txt"] }, { review });
  expect([results(report), attempts()]).toEqual([["a failed"], 1]);
  expect(report.phases[0]?.error).toMatch(/gave no verdict: .*exit code 1/);
});

test("a run that is interrupted during a review leaves the phase waiting", async () => {
  const interrupt = new AbortController();
  const review = () => ({ command: "cat >/dev/null; sleep 30" });
  const report = await apply(
    [scoped({ reviewer: {} })],
    { a: ["echo new >src/a.txt"] },
    {
      review,
      signal: interrupt.signal,
      onEvent: (event) => event.event === "doing" && event.text === "review" && interrupt.abort(),
    },
  );
  expect(results(report)).toEqual(["a waiting"]);
});

describe("a person at a gate", () => {
  const answering = (...answers: readonly (boolean | GateAnswer)[]) => {
    const works: FinishedWork[] = [];
    const approve = async (_: Phase, work?: FinishedWork) => answers[works.push(work!) - 1] ?? true;
    return { works, approve };
  };

  test("says no with words, which the next attempt reads", async () => {
    const { approve } = answering({ action: "reject", words: "no, use port 80" }, true);
    const act = ["echo 8080 >src/a.txt", "echo 80 >src/a.txt"];
    const report = await apply([scoped({ gate: "review" })], { a: act }, { approve });
    expect(outcomes(report)).toEqual(["rejected", "completed"]);
    expect(prompt(2)).toContain("no, use port 80");
  });

  test("starts the phase again from its task, or skips it", async () => {
    const { approve } = answering({ action: "retry" }, { action: "skip" });
    const report = await apply(
      [scoped({ gate: "review" })],
      { a: ["echo 1 >src/a.txt", "echo 2 >src/a.txt"] },
      { approve },
    );
    expect([results(report), attempts()]).toEqual([["a skipped"], 2]);
    expect(prompt(2)).not.toContain("What is wrong");
  });

  test.each(["plain", "dirty", "worktrees"])("sees only the work of this phase: %s", async (kind) => {
    if (kind === "dirty") write("other.txt", "by a person\n");
    const { approve, works } = answering(true);
    const diffs: string[] = [];
    const look: ApplyOptions["approve"] = async (phase, work) => {
      diffs.push(await diffWork(work!, { env }));
      return approve(phase, work);
    };
    const act = { a: ["echo new >src/a.txt; echo made >src/b.txt"] };
    await apply([scoped({ gate: "review" })], act, { approve: look, worktrees: kind === "worktrees" });
    expect(works).toHaveLength(1);
    for (const part of ["-old", "+new", "+made"]) expect(diffs[0]).toContain(part);
    expect(diffs[0]).not.toContain("other");
  });
});

describe("a conflict with the work of others", () => {
  const both = () => [scoped(), samplePhase("b", { scope: ["src/**"], allowScopeOverlap: true })];
  const slow = 'while [ ! -e "$OUT/go" ]; do sleep 0.05; done';
  const options = (more: Partial<ApplyOptions> = {}): Partial<ApplyOptions> => ({
    worktrees: true,
    maxWorkers: 2,
    ...more,
    onEvent(event) {
      events.push(event);
      if (event.event === "ended" && event.phase === "a") writeFileSync(join(folder, "go"), "");
    },
  });

  test("is resolved by its agent, in its own folder", { tags: ["deep"] }, async () => {
    const resolve = "printf 'by a\\nby b\\n' >src/a.txt";
    const report = await apply(
      both(),
      { a: ["echo by a >src/a.txt"], b: [`${slow}; echo by b >src/a.txt`, resolve] },
      options(),
    );
    expect(results(report)).toEqual(["a completed", "b completed"]);
    expect(prompt(2, "b")).toContain("Conflict in: src/a.txt");
    expect(git("show", "nebula/plan:src/a.txt")).toBe("by a\nby b\n");
  });

  test("is not resolved while its marks are there, also after another failure", { tags: ["deep"] }, async () => {
    const [first, second] = both();
    const checked = { ...second!, check: ["test -e src/ok"], maxReviewCycles: 4 };
    const resolve = "printf 'by a\\nby b\\n' >src/a.txt";
    const report = await apply(
      [first!, checked],
      {
        a: ["echo by a >src/a.txt"],
        b: [`${slow}; echo by b >src/a.txt; touch src/ok`, "rm src/ok", "touch src/ok", resolve],
      },
      options(),
    );
    expect(report.phases[1]?.history?.map(({ outcome }) => outcome)).toEqual([
      ...["conflict", "check_failed", "conflict", "completed"],
    ]);
    expect(git("show", "nebula/plan:src/a.txt")).toBe("by a\nby b\n");
  });

  test("may be resolved in favour of the later work", { tags: ["deep"] }, async () => {
    const acts = { a: ["echo by a >src/a.txt"], b: [`${slow}; echo by b >src/a.txt`, "echo by b >src/a.txt"] };
    const report = await apply(both(), acts, options());
    expect(results(report)).toEqual(["a completed", "b completed"]);
    expect(git("show", "nebula/plan:src/a.txt")).toBe("by b\n");
  });

  test("is found in a folder of the repository too", { tags: ["deep"] }, async () => {
    const phases = ["a", "b"].map((id) => samplePhase(id, { scope: ["**"], allowScopeOverlap: true }));
    const acts = { a: ["echo by a >a.txt"], b: [`${slow}; echo by b >a.txt`, "echo more >b.txt", "echo both >a.txt"] };
    const report = await apply(phases, acts, options({ cwd: join(project, "src") }));
    expect(report.phases[1]?.history?.map(({ outcome }) => outcome)).toEqual(["conflict", "conflict", "completed"]);
    expect(git("show", "nebula/plan:src/a.txt")).toBe("both\n");
  });

  test("that a person has merged is accepted by --resume, and no agent runs", { tags: ["deep"] }, async () => {
    const phases = both().map((phase) => ({ ...phase, maxReviewCycles: 1 }));
    const acts = { a: ["echo by a >src/a.txt"], b: [`${slow}; echo by b >src/a.txt; echo 'The answer of b.'`] };
    const report = await apply(phases, acts, options());
    expect(results(report)).toEqual(["a completed", "b conflict"]);
    git("checkout", "-q", "nebula/plan");
    expect(() => git("merge", "-q", "nebula-phase/plan/b")).toThrow();
    write("src/a.txt", "by both\n");
    git("commit", "-qam", "Merge b by hand");
    git("checkout", "-q", "main");
    const resumed = await apply(phases, acts, options({ resume: true }));
    expect([results(resumed), attempts("b")]).toEqual([["a completed", "b completed"], 1]);
    expect(git("show", "nebula/plan:src/a.txt")).toBe("by both\n");
    expect(existsSync(join(folder, "b.2"))).toBe(false);
  });
});
