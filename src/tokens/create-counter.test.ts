import { describe, expect, it } from "vitest";
import { describeCounter } from "./counter.contract.ts";
import { counterNameForModel, counterNames, createCounter } from "./create-counter.ts";
import { heuristics } from "./heuristics.ts";

for (const name of counterNames) {
  if (heuristics.some((counter) => counter.name === name)) continue; // heuristics.test.ts has them
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

  it("takes the dearest estimator when the model is unknown, and says so", async () => {
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
  ])("refuses %j by name", async (name) => {
    await expect(createCounter(name as string)).rejects.toMatchObject({
      code: "unknown_counter",
      message: expect.stringContaining(`"${name}"`),
      hint: expect.stringContaining("exact:o200k"),
    });
  });
});
