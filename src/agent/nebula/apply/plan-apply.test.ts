import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createMemoryStore } from "../../../store/index.ts";
import { createCounter } from "../../../tokens/index.ts";
import type { Phase } from "../files/nebula.ts";
import { sampleNebula, samplePhase } from "../files/sample-nebula.contract.ts";
import { nebulaKey } from "../record/nebula-key.ts";
import { openNebulaRecord } from "../record/nebula-record.ts";
import { endedRecord, freshRecord, startedRecord } from "../record/record-changes.ts";
import { planApply } from "./plan-apply.ts";

const nebula = sampleNebula(samplePhase("api"), samplePhase("page", { dependsOn: ["api"] }));

test("a plan has the phases as a run reports them, with the tokens that they would be told or were told", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "plimsoll-plan-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const store = createMemoryStore();
  const options = { counter: await createCounter("bytes/4"), cwd, env: {}, store };
  const [api, page] = nebula.phases as [Phase, Phase];
  await openNebulaRecord(store, nebulaKey(nebula.directory)).change(() => {
    const start = { promptTokens: 7, attemptFolder: "/runs/api.1" };
    const { record: started } = startedRecord(freshRecord(undefined, nebula), api, start);
    const { record: ended } = endedRecord(started, api, { state: "completed", seconds: 2 });
    const { record: again } = startedRecord(ended, page, start);
    return endedRecord(again, page, { state: "failed", seconds: 3, error: "No." }).record;
  });
  const resumed = await planApply(nebula, { ...options, resume: true });
  const told = resumed.waves[1]![0]!.promptTokens;
  expect(told).toBeGreaterThan(20);
  expect(resumed.phases).toEqual([
    { id: "api", state: "completed", attempts: 1, promptTokens: 7, seconds: 2 },
    { id: "page", state: "waiting", attempts: 1, promptTokens: told, seconds: 3 },
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
