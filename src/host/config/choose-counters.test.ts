import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { chooseCounter, chooseCounters, modelForCounter } from "./choose-counters.ts";

let base: string;
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "plimsoll-counters-"));
  for (const folder of ["configured/.plimsoll", "modelled/.plimsoll", "plain"])
    mkdirSync(join(base, folder), { recursive: true });
  writeFileSync(join(base, "configured/.plimsoll/config.yaml"), "counter: chars/3.5\n");
  writeFileSync(join(base, "modelled/.plimsoll/config.yaml"), "model: gpt-5\n");
});
afterAll(() => rmSync(base, { recursive: true }));

function callOf<Options>(options: Options, folder = "plain") {
  const notes: string[] = [];
  const call = {
    options,
    cwd: join(base, folder),
    env: { HOME: join(base, "home") },
    output: { note: (text: string) => void notes.push(text) },
  };
  // Nothing else of a call is looked at.
  return { call: call as never, notes };
}

test.each([
  ["the one that is named", { counter: "bytes/3.5" }, "configured", "bytes/3.5", []],
  ["that of the model", { model: "gpt-5" }, "configured", "estimate:o200k", []],
  ["the configuration's", {}, "configured", "chars/3.5", []],
  ["that of the configuration's model", {}, "modelled", "estimate:o200k", []],
  ["that of the configuration's model, which auto asks for", { counter: "auto" }, "modelled", "estimate:o200k", []],
  ["that of the model, whatever the configuration's", { model: "gpt-4" }, "modelled", "estimate:cl100k", []],
  ["the command's own", {}, "plain", "bytes/4", []],
  ["that of the model, which auto asks for", { counter: "auto", model: "gpt-5" }, "plain", "estimate:o200k", []],
  [
    "the one that is named, whatever the model",
    { counter: "bytes/4", model: "gpt-5" },
    "plain",
    "bytes/4",
    ["--model has no effect with --counter bytes/4"],
  ],
])("a command counts with %s", async (_, options, folder, name, told) => {
  const { call, notes } = callOf(options, folder);
  expect((await chooseCounter(call, "bytes/4")).name).toBe(name);
  expect(notes).toEqual(told);
});

test("several are chosen in their order, each once", async () => {
  const { call, notes } = callOf({
    counter: ["bytes/4", "auto", "estimate:o200k", "bytes/4"],
    model: "gpt-5",
  });
  const chosen = await chooseCounters(call, "auto");
  expect(chosen.map(({ name }) => name)).toEqual(["bytes/4", "estimate:o200k"]);
  expect(notes).toEqual([]);
});

test("a model with another use chooses the counter unless one is named", () => {
  expect(modelForCounter({ model: "gpt-5" })).toBe("gpt-5");
  expect(modelForCounter({ counter: "auto", model: "gpt-5" })).toBe("gpt-5");
  expect(modelForCounter({ counter: "bytes/4", model: "gpt-5" })).toBeUndefined();
});
