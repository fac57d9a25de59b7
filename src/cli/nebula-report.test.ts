import { PassThrough } from "node:stream";
import { setImmediate as immediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { Output } from "../host/index.ts";
import type { ApplyEvent } from "../plans/nebula/index.ts";
import { tellApply } from "./apply-progress.ts";
import { renderApplyPlan } from "./commands/nebula-apply.ts";
import { duration, renderApplyReport } from "./nebula-report.ts";

function trial({ json = false, completed = 0 } = {}) {
  const lines: string[] = [];
  const unused = () => {
    throw new Error("nothing goes to stdout");
  };
  const output: Output = {
    ...{
      json,
      quiet: false,
      watched: false,
      terminal: false,
      columns: undefined,
      style: { bold: unused, dim: unused },
    },
    ...{ result: unused, exactResult: unused },
    note: (text) => lines.push(`note ${text}`),
    problem: (text) => lines.push(`problem ${text}`),
    event: (value) => lines.push(JSON.stringify(value)),
    progress: (text) => lines.push(`progress ${text}`),
    settle: () => lines.push("settle"),
  };
  const { startProgress } = tellApply(output, () => new Date(0));
  const progress = startProgress({ phases: 4, completed, shown: (path) => path.replace("/home/me", "~") });
  return { lines, output, ...progress };
}

const started: ApplyEvent = {
  event: "started",
  phase: "api",
  attempt: 1,
  promptTokens: 4210,
  adopted: false,
};
const completed: ApplyEvent = {
  event: "ended",
  phase: "api",
  state: "completed",
  seconds: 12.34,
  promptTokens: 4210,
};

describe("for people", () => {
  test("a line for each start and end, and a summary", () => {
    const { lines, onEvent } = trial();
    onEvent(started);
    onEvent(completed);
    expect(lines).toEqual([
      "note api: waiting → running, prompt 4,210 tokens",
      "progress 0 of 4 completed · running api · 3 waiting · 4,210 prompt tokens\n  api  0 s        starts (0 s)",
      "note api: running → completed, 12.3 s, prompt 4,210 tokens, not checked",
      "progress 1 of 4 completed · 3 waiting · 4,210 prompt tokens",
    ]);
  });

  test("phases that completed in the last run count from the start", () => {
    const { lines, onEvent } = trial({ completed: 3 });
    onEvent(started);
    expect(lines.at(-1)).toBe(
      "progress 3 of 4 completed · running api · 4,210 prompt tokens\n  api  0 s        starts (0 s)",
    );
  });

  test("the line of a start says what was cut from the context", () => {
    const { lines, onEvent } = trial();
    onEvent({ ...started, truncated: ["fabric", "priorWork"], overflow: 38 });
    onEvent({ ...started, truncated: [], overflow: 0 });
    expect(lines[0]).toBe(
      "note api: waiting → running, prompt 4,210 tokens, fabric and prior work truncated, 38 tokens of discoveries did not fit",
    );
    expect(lines[2]).toBe("note api: waiting → running, prompt 4,210 tokens");
  });

  test("later attempts and agents of the last run are marked", () => {
    const { lines, onEvent } = trial();
    onEvent({ ...started, attempt: 3 });
    onEvent({ ...started, adopted: true });
    expect(lines[0]).toMatch(/, attempt 3$/);
    expect(lines[2]).toMatch(/, started by the last run$/);
  });

  test("a failure is never hidden, and names the file with its output", () => {
    const { lines, onEvent } = trial();
    onEvent(started);
    const error = "The agent ended with exit code 3.\nno \u001b[31msuch table";
    onEvent({ ...completed, state: "failed", error, stderr: "/home/me/stderr" });
    onEvent({ event: "blocked", phase: "page", by: "api" });
    onEvent({ ...completed, phase: "docs", state: "failed", error, stdout: "/home/me/stdout" });
    expect(lines.at(-2)).toMatch(/\nIts whole output on stdout: ~\/stdout$/);
    expect(lines[2]).toBe(
      "problem api: running → failed after 12.3 s. The agent ended with exit code 3.\nno \\x1b[31msuch table\nIts whole output on stderr: ~/stderr",
    );
    expect(lines.at(-1)).toBe("progress 0 of 4 completed · 1 waiting · 2 failed · 1 blocked · 4,210 prompt tokens");
  });

  test("an interrupt is never hidden", () => {
    const { lines, interrupt } = trial();
    interrupt();
    expect(lines).toEqual(["settle", "problem interrupted: the agents were stopped. Use --resume to continue"]);
  });

  test("while a person types nothing is drawn", async () => {
    const { lines, output, onEvent, questions: createQuestions } = trial();
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    const questions = createQuestions({ options: {}, stdin, output, env: {} }, new AbortController().signal);
    const phase = { id: "api", attempts: 1, promptTokens: 1, seconds: 1 };
    const said = questions.mayRunAgain({
      phases: [
        { ...phase, state: "completed" },
        { ...phase, state: "failed" },
      ],
    });
    await immediate();
    onEvent(started);
    expect(lines).toEqual(["settle", expect.stringMatching(/^problem 1 of 2/), expect.stringMatching(/^note /)]);
    stdin.write("y\n");
    expect(await said).toBe(true);
    expect(lines.at(-1)).toMatch(/^progress .*running api/);
  });
});

test("for programs every event is a line of JSON with its time", () => {
  const { lines, onEvent, interrupt } = trial({ json: true });
  onEvent(started);
  onEvent({ event: "held", phase: "page", gate: "review" });
  interrupt();
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { time: "1970-01-01T00:00:00.000Z", ...started },
    { time: "1970-01-01T00:00:00.000Z", event: "held", phase: "page", gate: "review" },
    { time: "1970-01-01T00:00:00.000Z", event: "interrupted", message: expect.stringContaining("--resume") },
  ]);
});

test.each([
  [0.04, "0.0 s"],
  [99.94, "99.9 s"],
  [250.2, "4 min 10 s"],
  [179.6, "3 min 0 s"],
  [7_200, "120 min 0 s"],
])("%d seconds are shown as %s", (seconds, shown) => {
  expect(duration(seconds)).toBe(shown);
});

test("the report has a line for each phase, the first line of its error, and a sum", () => {
  const report = {
    phases: [
      {
        id: "api",
        state: "failed",
        attempts: 2,
        promptTokens: 4210,
        seconds: 1.25,
        error: "It failed.\nno table",
      },
      { id: "docs", state: "completed", attempts: 1, promptTokens: 90, seconds: 130 },
      {
        id: "page",
        state: "blocked",
        attempts: 0,
        promptTokens: 0,
        seconds: 0,
        error: "api did not complete.",
      },
    ],
  } as const;
  expect(renderApplyReport(report).split("\n")).toEqual([
    "api   failed     2 attempts       1.3 s  4,210 tokens  It failed.",
    "docs  completed  1 attempt   2 min 10 s     90 tokens  not checked",
    "page  blocked                                          api did not complete.",
    "3 phases: 1 completed, 1 failed, 1 blocked",
  ]);
  expect(renderApplyReport({ phases: [] })).toBe("0 phases: nothing to do");
});

test("a phase that runs is counted as such, and has no time yet", () => {
  const phase = { id: "api", state: "running", attempts: 1, promptTokens: 90, seconds: 0 } as const;
  expect(renderApplyReport({ phases: [phase] }).split("\n")).toEqual([
    "api  running  1 attempt    90 tokens",
    "1 phase: 1 running",
  ]);
});

test("the plan has the waves, and the tokens and layers of each prompt", () => {
  const layer = { omitted: 0, truncated: false };
  const planned = { title: "The API", state: "waiting", promptTokens: 1234, overflow: 0 } as const;
  const plan = {
    waves: [
      [
        { ...planned, id: "api", layers: [{ ...layer, name: "project", tokens: 900, truncated: true }] },
        { ...planned, id: "docs", state: "completed", layers: [] },
      ],
      [
        { ...planned, id: "page", layers: [] },
        {
          ...planned,
          id: "guide",
          layers: [{ ...layer, name: "priorWork", tokens: 40, truncated: true }],
          overflow: 38,
        },
      ],
    ],
  } as const;
  expect(renderApplyPlan(plan).split("\n").slice(0, -1)).toEqual([
    "wave 1",
    "  api   The API  1,234 tokens  project 900 (truncated)",
    "  docs  The API                completed",
    "wave 2",
    "  page   The API  1,234 tokens  no context",
    "  guide  The API  1,234 tokens  prior work 40 (truncated), 38 tokens of discoveries did not fit",
  ]);
});
