import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { planApply } from "./apply-nebula.ts";
import type { Phase } from "./nebula.ts";
import { nebulaKey } from "./nebula-key.ts";
import { openNebulaRecord } from "./nebula-record.ts";
import { endedRecord, freshRecord, startedRecord } from "./record-changes.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";

const nebula = sampleNebula(samplePhase("api"), samplePhase("page", { dependsOn: ["api"] }));

test("a plan has the phases as a run reports them, with the tokens of their prompts", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "plimsoll-plan-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const store = createMemoryStore();
  const options = { counter: await createCounter("bytes/4"), cwd, env: {}, store };
  const [api, page] = nebula.phases as [Phase, Phase];
  await openNebulaRecord(store, await nebulaKey(nebula)).change(() => {
    const start = { promptTokens: 7, attemptFolder: "/runs/api.1" };
    const { record: started } = startedRecord(freshRecord(undefined, nebula), api, start);
    const { record: ended } = endedRecord(started, api, { state: "completed", seconds: 2 });
    const { record: again } = startedRecord(ended, page, start);
    return endedRecord(again, page, { state: "failed", seconds: 3, error: "No." }).record;
  });
  const ended = (outcome: string, seconds: number) => ({ attempt: 1, outcome, seconds, promptTokens: 7 });
  const resumed = await planApply(nebula, { ...options, resume: true });
  const told = resumed.waves[1]![0]!.promptTokens;
  expect(told).toBeGreaterThan(20);
  expect(resumed.phases).toEqual([
    { id: "api", state: "completed", attempts: 1, promptTokens: 7, seconds: 2, history: [ended("completed", 2)] },
    { id: "page", state: "waiting", attempts: 1, promptTokens: told, seconds: 3, history: [ended("failed", 3)] },
  ]);
  expect(resumed.waves[0]).toEqual([
    { id: "api", title: "The api", state: "completed", promptTokens: 7, layers: [], overflow: 0 },
  ]);
  const fresh = await planApply(nebula, options);
  expect(fresh.phases.map(({ state, attempts }) => [state, attempts])).toEqual([
    ["waiting", 0],
    ["waiting", 0],
  ]);
});
