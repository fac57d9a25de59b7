import { PassThrough } from "node:stream";
import { setImmediate as immediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createQuestions } from "./ask-person.ts";

function trial() {
  const stdin = new PassThrough();
  const asked: string[] = [];
  const asking: boolean[] = [];
  const controller = new AbortController();
  const { ask } = createQuestions({
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

test("the end of the input is a no, and so is an interrupt; after that nobody is asked", async () => {
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
