import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createCounter } from "../../../tokens/index.ts";
import type { Nebula } from "../files/nebula.ts";
import { promptSources } from "./apply-nebula.ts";

const cwd = mkdtempSync(join(tmpdir(), "plimsoll-sources-"));
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

test("the snapshot of a run has the room of its share, so that every prompt begins with all of it", async () => {
  for (let file = 0; file < 50; file++) writeFileSync(join(cwd, `a-file-of-many-${file}.txt`), "");
  writeFileSync(join(cwd, "AGENTS.md"), "A rule that is told at length.\n".repeat(500));
  const counter = await createCounter("bytes/4");
  const nebula = { directory: cwd, phases: [] } as unknown as Nebula;
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
