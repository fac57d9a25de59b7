import fc from "fast-check";
import { expect, it } from "vitest";
import type { BillableBlock } from "../../core/billing/index.ts";
import { createCacheSimulator, priceOf, type Ttl } from "../../core/billing/index.ts";
import { chooseLifetime, hasAnchor, type LifetimeState } from "./choose-lifetime.ts";

const minute = 60_000;
const model = "claude-sonnet-5";
const price = priceOf({ provider: "anthropic", model });

interface Call {
  /** The minutes before the call. */
  readonly pause: number;
  readonly added: number;
  /** Whether nothing of the last request is left. */
  readonly isRewritten?: boolean;
}

/** Bills the calls with one lifetime, with the rule or with a lifetime for each call. Returns what each of them cost, and
 *  its lifetime. */
function billCalls(calls: readonly Call[], lifetime: Ttl | "auto" | readonly Ttl[], read: number) {
  const cost = { input: 1, output: 5, cache_read: read, cache_write_5m: 1.25, cache_write_1h: 2 };
  const simulator = createCacheSimulator({ provider: "anthropic", model, prices: { [model]: cost } });
  let blocks: BillableBlock[] = [{ key: "system", tokens: 40_000, kind: "prefix" }];
  let state: LifetimeState | undefined;
  let [nowMs, anchor] = [0, -1];
  return calls.map(({ pause, added, isRewritten = false }, index) => {
    nowMs += pause * minute;
    if (isRewritten) [blocks, anchor] = [[{ key: `system ${index}`, tokens: 40_000, kind: "prefix" }], -1];
    blocks = [...blocks, { key: index, tokens: added, kind: "text" }];
    const tokens = blocks.reduce((sum, block) => sum + block.tokens, 0);
    const chosen = chooseLifetime(state, { nowMs, tokens, isRewritten }, { ...price, read });
    state = chosen.state;
    const isFixed = lifetime === "5m" || lifetime === "1h";
    const ttl = isFixed ? lifetime : lifetime === "auto" ? chosen.ttl : lifetime[index]!;
    const end = blocks.length - 1;
    const places = isFixed || anchor < 0 ? [end] : [anchor, end];
    const breakpoints = places.map((after) => ({ after, ttl }));
    if (ttl === "1h") anchor = end;
    return { ttl, paid: simulator.bill({ blocks, breakpoints, startMs: nowMs }).cost };
  });
}

/** Bills calls that each add 1,000 tokens, the pauses before them in minutes. The first two do not count. */
function bill(pauses: readonly number[], lifetime: Ttl | "auto", read = 0.1) {
  const billed = billCalls(
    pauses.map((pause) => ({ pause, added: 1_000 })),
    lifetime,
    read,
  );
  const cost = billed.slice(2).reduce((sum, { paid }) => sum + paid, 0);
  return { cost, hours: billed.filter(({ ttl }) => ttl === "1h").length };
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

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 100;
const pause = fc.oneof({ weight: 4, arbitrary: fc.constant(0.3) }, fc.integer({ min: 1, max: 90 }));

it("any pauses cost at most a little more than 5 minutes", () => {
  fc.assert(
    fc.property(fc.array(pause, { minLength: 5, maxLength: 60 }), (pauses) => {
      expect(bill(pauses, "auto").cost).toBeLessThanOrEqual(1.05 * bill(pauses, "5m").cost);
    }),
    { numRuns },
  );
});

it("a conversation never costs more than 1.02 of 5 minutes, whatever its calls are and wherever it ends", () => {
  const call = fc.record({
    pause,
    added: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: 60_000 })),
    isRewritten: fc.integer({ min: 0, max: 9 }).map((digit) => digit === 0),
  });
  const read = fc.constantFrom(0.1, 0.05, 0.025);
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 60 }), read, (calls, price) => {
      const short = billCalls(calls, "5m", price);
      let [paid, limit] = [0, 0];
      for (const [index, each] of billCalls(calls, "auto", price).entries()) {
        paid += each.paid;
        limit += 1.02 * short[index]!.paid;
        expect(paid).toBeLessThanOrEqual(limit + 1e-6);
      }
    }),
    { numRuns },
  );
});

it.each([0.1, 0.05, 0.025])(
  "no rule costs at most 1.02 of the better lifetime in every short conversation, at %f",
  (read) => {
    const begun: readonly Call[] = [
      { pause: 0, added: 0 },
      { pause: 0.5, added: 0 },
      { pause: 0.5, added: 100_000 },
    ];
    const paused: readonly Call[] = [...begun, { pause: 6, added: 0 }];
    const sum = (calls: readonly Call[], lifetime: Ttl | readonly Ttl[]): number =>
      billCalls(calls, lifetime, read)
        .slice(2)
        .reduce((total, { paid }) => total + paid, 0);
    const compare = (calls: readonly Call[], rule: readonly Ttl[]): number =>
      sum(calls, rule) / Math.min(sum(calls, "5m"), sum(calls, "1h"));
    const both = ["5m", "1h"] as const;
    // Whatever a rule chooses for these calls, it cannot know whether a pause comes next.
    const rules = both.flatMap((first) => both.flatMap((second) => both.map((third) => [first, second, third])));
    for (const rule of rules) {
      const last = both.map((fourth) => compare(paused, [...rule, fourth]));
      expect(Math.max(compare(begun, rule), Math.min(...last)), rule.join()).toBeGreaterThan(1.15);
    }
  },
);

it("an hour is paid from what hours have saved, and otherwise waits for credit", () => {
  const call = { nowMs: minute, tokens: 91_000, isRewritten: false };
  const { state } = chooseLifetime(undefined, { ...call, nowMs: 0, tokens: 90_000 }, price);
  const expectant = { ...state, gaps: 20, pauses: 10 };
  expect(chooseLifetime(expectant, call, price).ttl).toBe("1h");
  const poor = { ...expectant, credit: 0, coldCredit: 0 };
  const waiting = chooseLifetime(poor, call, price);
  expect(waiting.ttl).toBe("5m");
  expect(waiting.state.credit).toBeCloseTo(0.02 * (0.1 * 90_000 + 1.25 * 1_000));
  expect(chooseLifetime({ ...poor, credit: 1_000 }, call, price).ttl).toBe("1h");
  const anchored = { ...poor, anchorTokens: 80_000, anchorMs: 0, exposure: 10_000 };
  const afterPause = chooseLifetime(anchored, { ...call, nowMs: 20 * minute }, price);
  expect(afterPause.ttl).toBe("1h");
  expect(afterPause.state.credit).toBeCloseTo(1.15 * 80_000 - (0.75 * 11_000 - 0.02 * 1.25 * 91_000));
});
