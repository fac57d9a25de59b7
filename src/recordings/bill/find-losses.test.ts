import { describe, expect, test } from "vitest";
import { type BilledRecording, causesOf, generateBilledSession } from "../../../test/generate/billed-sessions.ts";
import { readFacts } from "../sessions/index.ts";
import type { SessionFacts } from "../sessions/session-facts.ts";
import { findLosses } from "./find-losses.ts";
import { billSessions } from "./price-calls.ts";
import { billedCalls, sumTotals } from "./sum-calls.ts";

function factsOf(text: string): SessionFacts {
  return readFacts(text) as SessionFacts;
}

function found({ text }: BilledRecording) {
  const [session] = billSessions([factsOf(text)]);
  const losses = session === undefined ? [] : findLosses(session);
  // The id of the request follows that of the answer.
  return losses.map(({ call, cause }) => ({ id: session?.calls[call]?.fact.id.split(" ")[0], cause }));
}

function generate(count: number, from = 0): readonly BilledRecording[] {
  return Array.from({ length: count }, (_, index) =>
    generateBilledSession({ seed: from + index, agent: index % 3 === 2 ? "codex" : "claude-code", calls: 60 }),
  );
}

describe("planted causes", () => {
  test.each(["claude-code", "codex"] as const)("are found one by one in sessions of %s", (agent) => {
    for (const [index, cause] of causesOf[agent].entries()) {
      const recording = generateBilledSession({ seed: 500 + index, agent, calls: 80, causes: [cause] });
      expect(recording.planted.length, cause).toBeGreaterThan(0);
      expect(found(recording), cause).toEqual(recording.planted);
    }
  });

  test("are all found in 12 sessions, and none is invented", () => {
    for (const recording of generate(12)) expect(found(recording)).toEqual(recording.planted);
  });

  test("are all found in 200 sessions, and none is invented", { tags: ["deep"] }, () => {
    const recordings = generate(200, 1000);
    expect(recordings.flatMap(({ planted }) => planted).length).toBeGreaterThan(500);
    for (const recording of recordings) expect(found(recording), recording.session).toEqual(recording.planted);
  });
});

test("sums equal what was billed", () => {
  const recordings = generate(12, 300);
  const sessions = billSessions(recordings.map(({ text }) => factsOf(text)));
  const { usd, unpriced, ...totals } = sumTotals(billedCalls(sessions, () => true));
  const expected: Record<string, number> = {};
  for (const { totals: own } of recordings) {
    for (const [kind, value] of Object.entries(own)) expected[kind] = (expected[kind] ?? 0) + value;
  }
  expect(totals).toEqual(expected);
  expect(unpriced).toBe(0);
  expect(usd).toBeGreaterThan(0);
});
