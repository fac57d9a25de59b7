import { expect, test } from "vitest";
import { createMemoryStore } from "../../../store/index.ts";
import { createCounter } from "../../../tokens/index.ts";
import { defaultAgentLimits } from "../../process/watch-agent.ts";
import { sampleNebula } from "../files/sample-nebula.contract.ts";
import { type ApplyOptions, settleOptions } from "./apply-options.ts";

const nebula = sampleNebula();
const needed: ApplyOptions = {
  store: createMemoryStore(),
  storeFile: "/state.db",
  counter: await createCounter("bytes/4"),
  command: () => "true",
  cwd: "/",
};

test("what is not said is the nebula's, else one phase at a time, anew, within the limits of any agent", () => {
  const settled = settleOptions(nebula, needed);
  expect(settled).toMatchObject({ ...needed, ...defaultAgentLimits, maxWorkers: 1, resume: false });
  expect(settled.env).toBe(process.env);
  const planned = { ...nebula, execution: { maxWorkers: 3 } };
  expect(settleOptions(planned, needed).maxWorkers).toBe(3);
  expect(settleOptions(planned, { ...needed, maxWorkers: 2, timeoutMs: undefined })).toMatchObject({
    maxWorkers: 2,
    timeoutMs: defaultAgentLimits.timeoutMs,
  });
});

test("where nobody says who may start, phases with a gate may not", async () => {
  const phase = { id: "a", title: "A", file: "/plan/a.md", body: "", dependsOn: [], scope: [] };
  const gated = { ...phase, gate: "review" as const, priority: 2, labels: [] };
  expect(await settleOptions(nebula, needed).approve(gated)).toBe(false);
});
