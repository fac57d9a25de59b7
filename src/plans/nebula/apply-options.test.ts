import { expect, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { defaultAgentLimits } from "../agent/index.ts";
import type { ApplyOptions } from "./application.ts";
import { settleApplyOptions } from "./apply-nebula.ts";
import { sampleNebula } from "./sample-nebula.contract.ts";

const nebula = sampleNebula();
const needed: ApplyOptions = {
  store: createMemoryStore(),
  storeFile: "/state.db",
  counter: await createCounter("bytes/4"),
  command: () => "true",
  cwd: "/",
};

test("defaults come from the nebula, or else are one worker, no resume and the usual agent limits", () => {
  const settled = settleApplyOptions(nebula, needed);
  expect(settled).toMatchObject({ ...needed, ...defaultAgentLimits, maxWorkers: 1, resume: false });
  expect(settled.env).toBe(process.env);
  const planned = { ...nebula, execution: { maxWorkers: 3 } };
  expect(settleApplyOptions(planned, needed).maxWorkers).toBe(3);
  expect(settleApplyOptions(planned, { ...needed, maxWorkers: 2, timeoutMs: undefined })).toMatchObject({
    maxWorkers: 2,
    timeoutMs: defaultAgentLimits.timeoutMs,
  });
});

test("without an approve function, phases with a gate may not start", async () => {
  const phase = { id: "a", title: "A", file: "/plan/a.md", body: "", dependsOn: [], scope: [] };
  const gated = { ...phase, gate: "review" as const, priority: 2, labels: [] };
  expect(await settleApplyOptions(nebula, needed).approve(gated)).toBe(false);
});
