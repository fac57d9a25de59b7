import { expect, test } from "vitest";
import { generateBilledSession } from "../../test/generate/billed-sessions.ts";
import { packFacts, unpackFacts } from "./packed-facts.ts";
import { readFacts } from "./sessions/index.ts";
import type { SessionFacts } from "./sessions/session-facts.ts";

test.each(["claude-code", "codex"] as const)("packed facts of %s are the same after JSON", (agent) => {
  const text = generateBilledSession({ seed: 5, agent, calls: 60 }).text;
  const facts = readFacts(text) as SessionFacts;
  const [first, ...rest] = facts.calls as [SessionFacts["calls"][number], ...SessionFacts["calls"]];
  const extra = [{ read: 1, write5m: 2, write1h: 3, uncached: 4, output: 5 }];
  const whole: SessionFacts = { ...facts, subAgent: "Explore", damaged: 2, calls: [{ ...first, extra }, ...rest] };
  expect(whole.calls.some(({ back }) => back !== undefined)).toBe(true);
  expect(unpackFacts(JSON.parse(JSON.stringify(packFacts(whole))))).toEqual(whole);
});
