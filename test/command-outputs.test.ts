/** What `run_command` keeps of a long output: the lines that a person would look for. */
import { expect, test } from "vitest";
import { createIntake } from "../src/conversation/intake/index.ts";
import { createMemoryStore } from "../src/core/store/index.ts";
import { createCounter } from "../src/core/tokens/index.ts";
import { laterKinds } from "./command-outputs/later-kinds.ts";

test.each(laterKinds)("keeps the lines that matter of: $kind", async ({ command, text, needles }) => {
  const counter = await createCounter("auto");
  const intake = await createIntake({
    store: createMemoryStore(),
    sessionId: "commands",
    counter,
    deltas: false,
    maxResultTokens: 2_000,
    recallHint: (id) => `recall with id ${id}, and pattern or lines`,
  });
  const admitted = await intake.admit({ tool: "run_command", input: { command }, text });
  expect(counter.count(text)).toBeGreaterThan(10_000);
  expect(counter.count(admitted.text)).toBeLessThanOrEqual(2_000);
  for (const needle of needles) expect(admitted.text).toContain(needle);
});
