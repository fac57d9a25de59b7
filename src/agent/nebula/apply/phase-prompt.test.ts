import { expect, test } from "vitest";
import { createContextBudget } from "../../../compose/index.ts";
import { createCounter } from "../../../tokens/index.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import { phasePrompt } from "./phase-prompt.ts";
import { freshRecord } from "./state/record-changes.ts";

const phase: Phase = {
  id: "api",
  title: "The API",
  file: "/plan/api.md",
  body: "Make it.",
  dependsOn: [],
  scope: [],
  allowScopeOverlap: false,
  gate: "trust",
  priority: 2,
  labels: [],
};
const nebula: Nebula = {
  directory: "/plan",
  name: "plan",
  description: "",
  goals: [],
  constraints: [],
  execution: {},
  phases: [phase],
};

test("a project that was cut before it became a layer is a truncated layer, though all of it is in the prompt", async () => {
  const counter = await createCounter("bytes/4");
  const budget = createContextBudget({ counter, maxTokens: 1_000 });
  const sources = { nebula, key: "plan-1", counter, budget, project: "## Structure\n\n- src/" };
  const record = freshRecord(undefined, nebula);
  const truncated = async (isProjectTruncated?: boolean) => {
    const { layers, overflow } = await phasePrompt(phase, record, { ...sources, isProjectTruncated });
    return [layers.map((layer) => [layer.name, layer.truncated]), overflow];
  };
  expect(await truncated()).toEqual([[["project", false]], 0]);
  expect(await truncated(true)).toEqual([[["project", true]], 0]);
});
