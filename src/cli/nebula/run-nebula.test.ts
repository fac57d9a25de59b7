import { describe, expect, test } from "vitest";
import type { ApplyReport } from "../../agent/index.ts";
import { mayRunAgain } from "./run-nebula.ts";

const standing = (...states: ApplyReport["phases"][number]["state"][]): ApplyReport => ({
  phases: states.map((state, index) => ({
    id: `p${index}`,
    state,
    attempts: 1,
    promptTokens: 1,
    seconds: 1,
  })),
});

describe("before all runs again", () => {
  test.each([true, false])("a person is asked where the run before has stopped half way: %j", async (yes) => {
    const asked: string[] = [];
    const ask = async (question: string) => asked.push(question) > 0 && yes;
    expect(await mayRunAgain(standing("completed", "failed", "blocked"), ask)).toBe(yes);
    expect(asked).toEqual([
      "1 of 3 phases have completed in the run before, and --resume keeps them. Run all again?",
    ]);
  });

  test.each([
    ["nothing ran", standing("waiting", "waiting")],
    ["nothing has completed", standing("failed", "blocked")],
    ["all has completed", standing("completed", "completed")],
  ])("nobody is asked where %s", async (_, before) => {
    const ask = () => Promise.reject(new Error("asked"));
    expect(await mayRunAgain(before, ask)).toBe(true);
  });

  test("nobody is asked where nobody can be", async () => {
    expect(await mayRunAgain(standing("completed", "failed"), undefined)).toBe(true);
  });
});
