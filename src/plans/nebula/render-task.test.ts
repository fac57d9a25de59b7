import { expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import { addToFabric, emptyFabric } from "../compose/index.ts";
import type { Phase } from "./nebula.ts";
import { parseFabricBlock, phasePrompt, renderTask } from "./phase-prompt.ts";
import { freshRecord } from "./record-changes.ts";
import { sampleNebula, samplePhase } from "./sample-nebula.contract.ts";

const phase = samplePhase("api", { title: "The API" });
const nebula = sampleNebula(phase);

const plain = { goals: [], constraints: [] };
const sample = (more: Partial<Phase>) => samplePhase("api", { title: "Do it", ...more });

test("title, goals, constraints and body come in this order, then how to report", () => {
  const task = renderTask(
    { goals: ["one", "two\nlines"], constraints: ["three"] },
    sample({ title: "Do\nit", body: "## Why\n\n  because" }),
  );
  expect(task).toContain(
    "# Do it\n\n## This phase\n\n- Id: api\n- It has no scope: change only what the task needs\n\n## Goals of the whole\n\n- one\n- two lines\n\n## Constraints\n\n- three\n\n## Why\n\n  because\n\n## How to report\n\n",
  );
});

test("empty parts leave no heading", () => {
  const task = renderTask({ goals: ["  "], constraints: [] }, sample({ body: "" }));
  expect(task).toMatch(/^# Do it\n\n## This phase\n(?:.*\n)+\n## How to report\n/);
  expect(task).toBe(renderTask(plain, sample({ body: "" })));
});

test("a phase knows its id, its scope and what others claim", async () => {
  const task = renderTask(plain, sample({ scope: ["src/api/**", "docs/`api`.md"] }));
  expect(task).toContain("\n- Id: api\n- Change only files of its scope: `src/api/**`, `` docs/`api`.md ``\n");
  const counter = await createCounter("bytes/4");
  const { fabric: claims } = addToFabric(
    emptyFabric,
    { claims: [{ path: "src/page/**" }, { path: "a\nb" }] },
    { from: "page" },
  );
  const { fabric: all } = addToFabric(claims, { claims: [{ path: "src/api/**" }] }, { from: "api" });
  const { fabric } = addToFabric(all, { claims: [{ path: "done/**" }] }, { from: "done" });
  const record = { ...freshRecord(undefined, nebula), fabric };
  const done = { title: "Done", state: "completed" as const, attempts: 1, promptTokens: 0, seconds: 0 };
  const sources = { nebula, key: "plan-1", counter, project: "" };
  const { text } = await phasePrompt(phase, { ...record, phases: { ...record.phases, done } }, sources);
  expect(text).toContain("\n- Others are changing: `src/page/**` (page), `a b` (page)\n");
  expect(text).not.toMatch(/done\/|\(api\)/);
});

test("the example block is valid, and reports nothing if it is only repeated", async () => {
  const task = renderTask(plain, sample({ title: "t", body: "" }));
  expect(task).toContain("\n```fabric\n");
  const repeated = await parseFabricBlock(`${task}\n${task}`);
  expect(repeated).toEqual({ problems: [], rest: expect.not.stringContaining("entanglements") });
  const { report, problems } = await parseFabricBlock(task.replace("what others may call", "f()"));
  expect(problems).toEqual([]);
  expect(report).toMatchObject({ entanglements: [{}], discoveries: [{}], notes: [{}] });
});
