import { describe, expect, it } from "vitest";
import { describeCounter } from "./counter.contract.ts";
import { type CounterName, counterNameForModel, counterNames, createCounter, heuristics } from "./create-counter.ts";

for (const name of counterNames) {
  if (heuristics.some((counter) => counter.name === name)) continue; // heuristics.test.ts tests them
  const additiveAtLineBreaks = name === "auto" || name.startsWith("estimate:");
  describeCounter(name, () => createCounter(name), { additiveAtLineBreaks });
}

describe("createCounter", () => {
  it("makes every counter under its own name", async () => {
    for (const name of counterNames.filter((each) => each !== "auto")) {
      expect((await createCounter(name)).name).toBe(name);
    }
  });

  it("makes the estimator of the model's family for auto", async () => {
    expect((await createCounter("auto", { model: "openai/gpt-4o" })).name).toBe("estimate:o200k");
    expect((await createCounter("auto", { model: "claude-sonnet-4-5" })).name).toBe("estimate:claude-3");
  });

  it("uses the highest estimator for an unknown model, and says so", async () => {
    expect(counterNameForModel("gemini-3-pro")).toEqual({ name: "estimate:claude-5", known: false });
    expect(counterNameForModel(undefined)).toEqual({ name: "estimate:claude-5", known: false });
    expect(counterNameForModel("claude-opus-5")).toEqual({ name: "estimate:claude-5", known: true });
    expect((await createCounter("auto")).name).toBe("estimate:claude-5");
  });

  it.each([
    "",
    "bytes/5",
    "exact",
    "exact:",
    "exact:claude-5",
    "estimate:gpt",
    "EXACT:o200k",
    "estimate:o200k:junk",
    "exact:o200k:",
    " auto",
    undefined,
    null,
    7,
  ])("refuses the name %j", async (name) => {
    await expect(createCounter(name as CounterName)).rejects.toMatchObject({
      code: "unknown_counter",
      message: expect.stringContaining(`"${name}"`),
      hint: expect.stringContaining("exact:o200k"),
    });
  });
});

for (const counter of heuristics) describeCounter(counter.name, async () => counter);

it.each([
  ["bytes/4", "abcd", 1],
  ["bytes/4", "abcde", 2],
  ["bytes/4", "中文", 2],
  ["bytes/3.5", "abcdefg", 2],
  ["bytes/3.5", "中文", 2],
  ["bytes/3.5", "中文ab", 3],
  ["chars/3.5", "abcdefg", 2],
  ["chars/3.5", "abcdefgh", 3],
  ["chars/3.5", "中文", 1],
  ["chars/3.5", "😀😀", 2],
])("%s counts %j as %i, rounded up", (name, text, tokens) => {
  expect(heuristics.find((counter) => counter.name === name)?.count(text)).toBe(tokens);
});
