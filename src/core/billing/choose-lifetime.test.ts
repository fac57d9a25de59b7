import fc from "fast-check";
import { expect, it } from "vitest";
import { createCacheSimulator } from "./cache-simulator.ts";
import { chooseLifetime, hasAnchor, type LifetimeState } from "./choose-lifetime.ts";
import type { BillableBlock } from "./prefix-chain.ts";
import { priceOf, type Ttl } from "./prices.ts";

const minute = 60_000;
const model = "claude-sonnet-5";
const price = priceOf({ provider: "anthropic", model });

/** Bills calls that each add some tokens, the pauses before them in minutes. */
function bill(pauses: readonly number[], lifetime: Ttl | "auto", read = 0.1) {
  const cost = { input: 1, output: 5, cache_read: read, cache_write_5m: 1.25, cache_write_1h: 2 };
  const simulator = createCacheSimulator({ provider: "anthropic", model, prices: { [model]: cost } });
  const blocks: BillableBlock[] = [{ key: "system", tokens: 40_000, kind: "prefix" }];
  const ttls: Ttl[] = [];
  let state: LifetimeState | undefined;
  let [nowMs, tokens, anchor, total] = [0, 40_000, -1, 0];
  for (const [index, pause] of pauses.entries()) {
    nowMs += pause * minute;
    tokens += 1_000;
    blocks.push({ key: index, tokens: 1_000, kind: "text" });
    const chosen = chooseLifetime(state, { nowMs, tokens, isRewritten: false }, { ...price, read });
    state = chosen.state;
    const ttl = lifetime === "auto" ? chosen.ttl : lifetime;
    const places = lifetime !== "auto" || anchor < 0 ? [blocks.length - 1] : [anchor, blocks.length - 1];
    const breakpoints = places.map((after) => ({ after, ttl }));
    const { cost: paid } = simulator.bill({ blocks: [...blocks], breakpoints, startMs: nowMs });
    if (index >= 2) total += paid;
    ttls.push(ttl);
    if (ttl === "1h") anchor = blocks.length - 1;
  }
  return { cost: total, hours: ttls.filter((ttl) => ttl === "1h").length, ttls };
}

const calls = (count: number, pauseAt: (index: number) => number) =>
  Array.from({ length: count }, (_, index) => pauseAt(index));

it.each([0.1, 0.05, 0.025])("an agent that never pauses pays hardly more than with 5 minutes, at %f", (read) => {
  const steady = calls(100, () => 0.5);
  const auto = bill(steady, "auto", read);
  expect(auto.cost).toBeLessThan(1.01 * bill(steady, "5m", read).cost);
  expect(auto.hours).toBeLessThanOrEqual(5);
});

it.each([0.1, 0.05, 0.025])("a person who pauses pays less than with either lifetime, at %f", (read) => {
  const pausing = calls(100, (index) => (index % 10 === 9 ? 20 : 0.5));
  const auto = bill(pausing, "auto", read).cost;
  expect(auto).toBeLessThan(bill(pausing, "1h", read).cost);
  expect(auto).toBeLessThan(bill(pausing, "5m", read).cost);
});

it("the first call and one that writes everything again take 5 minutes", () => {
  const first = chooseLifetime(undefined, { nowMs: 0, tokens: 90_000, isRewritten: false }, price);
  expect(first.ttl).toBe("5m");
  const state = { ...first.state, gaps: 20, pauses: 10, anchorTokens: 90_000, anchorMs: 0 };
  const late = chooseLifetime(state, { nowMs: 61 * minute, tokens: 91_000, isRewritten: false }, price);
  expect(late.ttl).toBe("5m");
  expect(hasAnchor(late.state, 61 * minute, price)).toBe(false);
  const trimmed = chooseLifetime(state, { nowMs: minute, tokens: 95_000, isRewritten: true }, price);
  expect([trimmed.ttl, trimmed.state.anchorTokens]).toEqual(["5m", 0]);
  // The next call finds everything in the cache, so that an hour is cheap.
  const next = chooseLifetime(late.state, { nowMs: 62 * minute, tokens: 92_000, isRewritten: false }, price);
  expect(next.ttl).toBe("1h");
});

it("any pauses cost at most a little more than 5 minutes", () => {
  const pause = fc.oneof({ weight: 4, arbitrary: fc.constant(0.3) }, fc.integer({ min: 1, max: 90 }));
  fc.assert(
    fc.property(fc.array(pause, { minLength: 5, maxLength: 60 }), (pauses) => {
      expect(bill(pauses, "auto").cost).toBeLessThanOrEqual(1.05 * bill(pauses, "5m").cost);
    }),
    { numRuns: process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 100 },
  );
});
