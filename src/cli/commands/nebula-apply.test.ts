import { PassThrough } from "node:stream";
import { setImmediate as immediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import type { ApplyReport } from "../../plans/nebula/index.ts";
import { mayRunAgain } from "../apply-progress.ts";
import { createQuestions } from "../questions.ts";

function trial() {
  const stdin = new PassThrough();
  const asked: string[] = [];
  const asking: boolean[] = [];
  const controller = new AbortController();
  const ask = createQuestions({
    stdin,
    output: { problem: (text) => asked.push(text) },
    signal: controller.signal,
    onAsking: (isAsking) => asking.push(isAsking),
  });
  return { stdin, asked, asking, controller, ask };
}

test.each([
  ["y", true],
  ["Yes ", true],
  ["n", false],
  ["", false],
  ["yesterday", false],
])("%j is an answer", async (answer, expected) => {
  const { stdin, asked, asking, ask } = trial();
  const said = ask("Start it?");
  stdin.write(`${answer}\n`);
  expect(await said).toBe(expected);
  expect(asked).toEqual(["Start it? [y/N]"]);
  expect(asking).toEqual([true, false]);
});

test("questions are asked one after the other", async () => {
  const { stdin, asked, ask } = trial();
  const answers = [ask("One?"), ask("Two?")];
  await immediate();
  expect(asked).toEqual(["One? [y/N]"]);
  stdin.write("y\n");
  expect(await answers[0]).toBe(true);
  await immediate();
  stdin.write("n\n");
  expect(await answers[1]).toBe(false);
  expect(asked).toHaveLength(2);
});

test("the end of the input and an interrupt mean no; after that nothing is asked", async () => {
  const ended = trial();
  ended.stdin.end();
  expect(await ended.ask("Start it?")).toBe(false);
  const { asked, controller, ask } = trial();
  const open = ask("One?");
  const next = ask("Two?");
  await immediate();
  controller.abort();
  expect([await open, await next]).toEqual([false, false]);
  expect(asked).toEqual(["One? [y/N]"]);
});

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
  test.each([true, false])("a person is asked if the last run did not finish: %j", async (yes) => {
    const asked: string[] = [];
    const ask = async (question: string) => asked.push(question) > 0 && yes;
    expect(await mayRunAgain(standing("completed", "failed", "blocked"), ask)).toBe(yes);
    expect(asked).toEqual([
      "1 of 3 phases completed in the last run, and --resume would keep them. Run all phases again?",
    ]);
  });

  test.each([
    ["nothing ran", standing("waiting", "waiting")],
    ["nothing has completed", standing("failed", "blocked")],
    ["all has completed", standing("completed", "completed")],
  ])("nothing is asked if %s", async (_, before) => {
    const ask = () => Promise.reject(new Error("asked"));
    expect(await mayRunAgain(before, ask)).toBe(true);
  });

  test("nothing is asked without a terminal", async () => {
    expect(await mayRunAgain(standing("completed", "failed"), undefined)).toBe(true);
  });
});
