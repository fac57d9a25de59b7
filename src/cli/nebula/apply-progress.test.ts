import { describe, expect, test } from "vitest";
import type { ApplyEvent } from "../../agent/index.ts";
import { createApplyProgress, duration } from "./apply-progress.ts";

function trial({ json = false, completed = 0 } = {}) {
  const lines: string[] = [];
  const progress = createApplyProgress({
    output: {
      json,
      note: (text) => lines.push(`note ${text}`),
      problem: (text) => lines.push(`problem ${text}`),
      event: (value) => lines.push(JSON.stringify(value)),
      progress: (text) => lines.push(`progress ${text}`),
      settle: () => lines.push("settle"),
    },
    phases: 4,
    completed,
    shown: (path) => path.replace("/home/me", "~"),
    now: () => new Date(0),
  });
  return { lines, ...progress };
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
  test("a line for each start and end, and how all stands", () => {
    const { lines, tell } = trial();
    tell(started);
    tell(completed);
    expect(lines).toEqual([
      "note api: waiting → running, prompt 4,210 tokens",
      "progress 0 of 4 completed · running api · 3 waiting · 4,210 prompt tokens",
      "note api: running → completed, 12.3 s, prompt 4,210 tokens",
      "progress 1 of 4 completed · 3 waiting · 4,210 prompt tokens",
    ]);
  });

  test("what a run before has completed counts from the beginning", () => {
    const { lines, tell } = trial({ completed: 3 });
    tell(started);
    expect(lines.at(-1)).toBe("progress 3 of 4 completed · running api · 4,210 prompt tokens");
  });

  test("what of the context was cut is told with the start", () => {
    const { lines, tell } = trial();
    tell({ ...started, truncated: ["fabric", "priorWork"], overflow: 38 });
    tell({ ...started, truncated: [], overflow: 0 });
    expect(lines[0]).toBe(
      "note api: waiting → running, prompt 4,210 tokens, fabric and prior work truncated, 38 tokens of discoveries did not fit",
    );
    expect(lines[2]).toBe("note api: waiting → running, prompt 4,210 tokens");
  });

  test("attempts after the first, and agents of the run before, are told apart", () => {
    const { lines, tell } = trial();
    tell({ ...started, attempt: 3 });
    tell({ ...started, adopted: true });
    expect(lines[0]).toMatch(/, attempt 3$/);
    expect(lines[2]).toMatch(/, started by the run before$/);
  });

  test("a failure is never hidden, and says where all of its words are", () => {
    const { lines, tell } = trial();
    tell(started);
    const error = "The agent ended with exit code 3.\nno \u001b[31msuch table";
    tell({ ...completed, state: "failed", error, stderr: "/home/me/stderr" });
    tell({ event: "blocked", phase: "page", by: "api" });
    tell({ ...completed, phase: "docs", state: "failed", error, stdout: "/home/me/stdout" });
    expect(lines.at(-2)).toMatch(/\nAll that it said on stdout: ~\/stdout$/);
    expect(lines[2]).toBe(
      "problem api: running → failed after 12.3 s. The agent ended with exit code 3.\nno \\x1b[31msuch table\nAll that it said on stderr: ~/stderr",
    );
    expect(lines.at(-1)).toBe(
      "progress 0 of 4 completed · 1 waiting · 2 failed · 1 blocked · 4,210 prompt tokens",
    );
  });

  test("an interrupt is never hidden", () => {
    const { lines, interrupt } = trial();
    interrupt();
    expect(lines).toEqual(["settle", "problem interrupted: the agents were ended, --resume goes on"]);
  });

  test("while a person types nothing is drawn", () => {
    const { lines, tell, pause } = trial();
    pause(true);
    tell(started);
    expect(lines).toEqual(["settle", expect.stringMatching(/^note /)]);
    pause(false);
    expect(lines.at(-1)).toMatch(/^progress .*running api/);
  });
});

test("for programs every event is a line of JSON with its time", () => {
  const { lines, tell, interrupt } = trial({ json: true });
  tell(started);
  tell({ event: "held", phase: "page", gate: "review" });
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
