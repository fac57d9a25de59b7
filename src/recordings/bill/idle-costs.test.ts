import { describe, expect, it } from "vitest";
import { createFacts, createFactsDraft } from "../sessions/session-facts.ts";
import { computeIdleCosts } from "./idle-costs.ts";
import { billSessions } from "./price-calls.ts";

const minuteMs = 60_000;

/** A session of Sonnet 4.5 ($3 a million; a read costs 0.1 of it, a write for five minutes 1.25). Each call is [minute,
 *  read, written]. */
function billCalls(...calls: readonly (readonly [minute: number, read: number, written: number])[]) {
  const draft = createFactsDraft(createFacts("claude-code"));
  for (const [index, [minute, read, written]] of calls.entries()) {
    const usage = { cache_read_input_tokens: read, cache_creation_input_tokens: written };
    const time = Date.UTC(2026, 5, 1) + minute * minuteMs;
    draft.answer("main", { id: `a${index}`, model: "claude-sonnet-4-5", time, usage });
  }
  return billSessions([draft.facts]);
}

describe("keep-alive pings", () => {
  it("save a write for each pause that ends in time, and cost a read for each ping", () => {
    // Two pings keep the cache for 14 minutes. After the last call, two more are wasted.
    const { usd, pings, pauses } = computeIdleCosts(billCalls([0, 0, 100_000], [12, 0, 100_000]));
    const read = (3 * 0.1 * 100_000) / 1e6;
    const write = (3 * 1.25 * 100_000) / 1e6;
    expect(pings.limit).toBe(2);
    expect(pings.usd - usd).toBeCloseTo(4 * read - (write - read), 8);
    expect(pauses).toMatchObject({ count: 2, returned: 0, breakEven: expect.closeTo(0.1 / 1.15, 6) });
  });

  it("are only a cost if nobody comes back", () => {
    const { usd, pings } = computeIdleCosts(billCalls([0, 0, 100_000], [1, 100_000, 1_000]));
    expect(pings.limit).toBe(1);
    expect(pings.usd).toBeGreaterThan(usd);
  });
});

describe("idle compaction", () => {
  it("writes less after a pause, and keeps the context smaller from then on", () => {
    const calls = [
      [0, 0, 20_000],
      [1, 20_000, 180_000],
      [60, 20_000, 180_000],
      [61, 200_000, 1_000],
    ] as const;
    const { usd, compaction } = computeIdleCosts(billCalls(...calls));
    // Before each pause, also after the last call, the context is read and 5,000 tokens are written as output. The summary
    // and the first request are left: 25,000 tokens of 200,000.
    const million = (tokens: number, factor: number): number => (3 * factor * tokens) / 1e6;
    const first = million(200_000, 0.1) + million(5_000, 5);
    const saved = million(175_000, 1.25) + million(175_000, 0.1);
    expect(compaction).toMatchObject({
      compactions: 1,
      savedOnReturn: expect.closeTo(million(175_000, 1.25) - first, 6),
    });
    expect(usd - compaction.usd).toBeCloseTo(saved - first, 6);
  });

  it("leaves small contexts alone", () => {
    const { usd, compaction } = computeIdleCosts(billCalls([0, 0, 90_000], [60, 0, 95_000]));
    expect(compaction).toMatchObject({ compactions: 0, usd });
  });
});
