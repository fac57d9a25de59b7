import { expect, test } from "vitest";
import { renderApplyPlan, renderApplyReport } from "./apply-report.ts";

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
    "docs  completed  1 attempt   2 min 10 s     90 tokens",
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

test("the plan has the waves, and for each prompt its tokens and what of each layer is in it", () => {
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
