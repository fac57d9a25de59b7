import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createContextBudget } from "../../../compose/index.ts";
import { createMemoryStore } from "../../../store/index.ts";
import { createCounter } from "../../../tokens/index.ts";
import { sampleNebula, samplePhase } from "../files/sample-nebula.contract.ts";
import { freshRecord } from "../record/record-changes.ts";
import { phasePrompt, promptSources } from "./phase-prompt.ts";
import { keepAnswer } from "./state/answers.ts";

const phase = samplePhase("api", { title: "The API" });
const nebula = sampleNebula(phase);

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

test("a fence that one answer leaves open does not take the next answer in", async () => {
  const counter = await createCounter("bytes/4");
  const [one, two] = ["one", "two"].map((id) => ({ ...phase, id, title: `The ${id}` }));
  const last = { ...phase, dependsOn: ["one", "two"] };
  const plan = { ...nebula, phases: [one!, two!, last] };
  const key = "plan-1";
  const store = createMemoryStore();
  await keepAnswer(store, { key, phase: "one" }, "One says\n```sh\nnpm test");
  await keepAnswer(store, { key, phase: "two" }, "Two says ok");
  const { phases, ...record } = freshRecord(undefined, plan);
  const completed = Object.entries(phases).map(([id, run]) => [id, { ...run, state: "completed" as const }]);
  const { text } = await phasePrompt(
    last,
    { ...record, phases: Object.fromEntries(completed) },
    { nebula: plan, key, counter, budget: createContextBudget({ counter }), project: "", store },
  );
  expect(text).toContain(
    "### one: The one\n\nOne says\n```sh\nnpm test\n```\n\n### two: The two\n\nTwo says ok\n\n---\n",
  );
});

test("the snapshot of a run has the room of its share, so that every prompt begins with all of it", async () => {
  const cwd = mkdtempSync(join(tmpdir(), "plimsoll-sources-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  for (let file = 0; file < 50; file++) writeFileSync(join(cwd, `a-file-of-many-${file}.txt`), "");
  writeFileSync(join(cwd, "AGENTS.md"), "A rule that is told at length.\n".repeat(500));
  const counter = await createCounter("bytes/4");
  const shares = { project: 0.2, fabric: 0.2, priorWork: 0.1 };
  const sources = await promptSources(nebula, { counter, cwd, env: {}, maxContextTokens: 1_000, shares });
  expect(sources.isProjectTruncated).toBe(true);
  expect(counter.count(sources.project)).toBeGreaterThan(370);
  expect(sources.project).toMatch(/ entries omitted\]\n```\n\n## Conventions\n\n### AGENTS\.md\n\nA rule/);
  const fabric = `## Notes\n${"- a note\n".repeat(900)}`;
  const later = { fabric, priorWork: "What was done.\n".repeat(900) };
  for (const layers of [{}, later]) {
    const { text } = sources.budget!.compose({ ...layers, project: sources.project });
    expect(text.startsWith(sources.project)).toBe(true);
  }
});

test("the budget of a run is the one that is asked for, else the nebula's, else 10,000 tokens", async () => {
  const counter = await createCounter("bytes/4");
  const cwd = mkdtempSync(join(tmpdir(), "plimsoll-sources-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  const maxTokens = async (ofNebula?: number, asked?: number) => {
    const planned = { ...nebula, execution: { maxContextTokens: ofNebula } };
    const settings = { counter, cwd, env: {}, maxContextTokens: asked };
    return (await promptSources(planned, settings)).budget?.maxTokens;
  };
  expect(await maxTokens(300, 200)).toBe(200);
  expect(await maxTokens(300)).toBe(300);
  expect(await maxTokens()).toBe(10_000);
  expect([await maxTokens(0), await maxTokens(300, 0)]).toEqual([undefined, undefined]);
});
