import { expect, it } from "vitest";
import { packFacts, unpackFacts } from "../packed-facts.ts";
import { createFacts, createFactsDraft } from "../sessions/session-facts.ts";
import { billSessions } from "./price-calls.ts";

it("bills each call at the price of its day, speed and region, also from an index", () => {
  const draft = createFactsDraft(createFacts("claude-code"));
  const usage = { cache_read_input_tokens: 1_000_000 };
  const answer = (id: string, day: string, more: object = {}) =>
    draft.answer("main", { id, model: "claude-sonnet-5-5", time: Date.parse(day), usage: { ...usage, ...more } });
  answer("older", "2026-10-01");
  answer("newer", "2026-11-01", { speed: "standard", inference_geo: "global" });
  answer("fast", "2026-11-01", { speed: "fast" });
  answer("regional", "2026-11-01", { inference_geo: "us" });
  for (const facts of [draft.facts, unpackFacts(packFacts(draft.facts))]) {
    const [billed] = billSessions([facts]);
    expect(billed?.calls.map(({ usd }) => usd)).toEqual([0.2, 0.1, 0.2, expect.closeTo(0.11)]);
  }
});
