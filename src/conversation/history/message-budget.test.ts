import { describe, expect, it } from "vitest";
import { createMemoryStore } from "../../core/store/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { exchange, exchanges, user } from "./exchanges.contract.ts";
import { forgetHistory } from "./history-store.ts";
import { createTrimmer, type Trimmer } from "./trimmer.ts";
import type { TrimmerOptions } from "./trimmer-options.ts";

const counter = await createCounter("bytes/4");
const window = 12_000;
const reserve = 2_000;
const prefixTokens = 1_000;
const create = (options: Partial<TrimmerOptions> = {}) =>
  createTrimmer({ contextWindow: window, reserve, prefixTokens, counter, format: "anthropic", ...options });
const budgetOf = (trimmer: Trimmer, messages = [user("go"), ...exchanges(10)]) =>
  trimmer.reduce({ messages }).stats.budget;

/** What a provider bills if its tokens are smaller or larger than the counter's. */
async function replay(factor: number, options: { observes: boolean; turns?: number }): Promise<number[]> {
  const trimmer = await create();
  const messages = [user("go")];
  return Array.from({ length: options.turns ?? 150 }, (_each, index) => {
    messages.push(...exchange(index, { result: 300 + 97 * (index % 9), thinking: 80 }));
    const { stats } = trimmer.reduce({ messages });
    const billed = Math.round(factor * (prefixTokens + stats.after));
    if (options.observes) trimmer.observe({ input_tokens: 3, cache_read_input_tokens: billed - 3 });
    return billed;
  });
}

describe("reported usage", () => {
  it.each([1.2, 1.5])(
    "of %f times the estimate keeps every request under the window and out of the reserve",
    async (factor) => {
      expect(Math.max(...(await replay(factor, { observes: false })))).toBeGreaterThan(window - reserve);
      expect(Math.max(...(await replay(factor, { observes: true })))).toBeLessThanOrEqual(window - reserve);
    },
  );

  it("below the estimate raises the budget, but never above the window", async () => {
    const [blind, observing] = [await replay(0.8, { observes: false }), await replay(0.8, { observes: true })];
    expect(Math.max(...observing)).toBeGreaterThan(Math.max(...blind));
    expect(Math.max(...observing)).toBeLessThanOrEqual(window - reserve);
  });

  it("before any request is ignored", async () => {
    const trimmer = await create();
    trimmer.observe({ input_tokens: 9_000 });
    expect(budgetOf(trimmer)).toBe(window - reserve - prefixTokens);
    const resumed = await create({ checkpoint: await trimmer.checkpoint() });
    resumed.observe({ input_tokens: 9_000 });
    expect(budgetOf(resumed)).toBe(window - reserve - prefixTokens);
  });

  it.each([undefined, null, {}, "none", { input_tokens: 0 }, { input_tokens: -4 }, { output_tokens: 12 }])(
    "without input tokens is ignored: %j",
    async (usage) => {
      const trimmer = await create();
      const before = budgetOf(trimmer);
      trimmer.observe(usage);
      expect(budgetOf(trimmer)).toBe(before);
      expect((await trimmer.checkpoint()).calibrator).toBeUndefined();
    },
  );

  it("is read in every shape that providers send", async () => {
    const shapes = [
      { input_tokens: 100, cache_creation_input_tokens: 900, cache_read_input_tokens: 3_000 },
      { prompt_tokens: 4_000, completion_tokens: 9 },
      { input_tokens: 4_000, input_tokens_details: { cached_tokens: 3_900 } },
    ];
    const budgets = await Promise.all(
      shapes.map(async (usage) => {
        const trimmer = await create();
        budgetOf(trimmer);
        trimmer.observe(usage);
        return budgetOf(trimmer);
      }),
    );
    expect(new Set(budgets).size).toBe(1);
    expect(budgets[0]).not.toBe(window - reserve - prefixTokens);
  });

  it("of a history that was then rewritten keeps the scale, but not the total", async () => {
    const trimmer = await create();
    const messages = [user("go")];
    for (let index = 0; ; index++) {
      messages.push(...exchange(index, { result: 1_800 }));
      const { stats, isEpoch } = trimmer.reduce({ messages });
      if (isEpoch) break;
      trimmer.observe({ input_tokens: Math.round(1.25 * (prefixTokens + stats.after)) });
    }
    const { calibrator } = await trimmer.checkpoint();
    expect(calibrator!.anchor).toBeNull();
    expect(calibrator!.appended.billed / calibrator!.appended.estimated).toBeGreaterThan(1.1);
  });
});

describe("a refusal", () => {
  const messages = [user("go"), ...exchanges(30)];

  it("with the provider's count trims the same request further", async () => {
    const trimmer = await create();
    const { after, budget } = trimmer.reduce({ messages }).stats;
    expect(trimmer.refused(Math.round(1.4 * (prefixTokens + after)))).toBeUndefined();
    const again = trimmer.reduce({ messages });
    expect(again.stats.budget).toBeLessThan(budget / 1.25);
    expect(again.isEpoch).toBe(true);
    expect(again.stats.after).toBeLessThan(after);
  });

  it("without a count corrects the counter by 15 %, and after that the window", async () => {
    const trimmer = await create();
    const { after } = trimmer.reduce({ messages }).stats;
    expect(trimmer.refused()).toBeUndefined();
    const again = trimmer.reduce({ messages }).stats;
    expect(again.after).toBeLessThan(after / 1.15);
    const most = trimmer.refused();
    expect(most).toBeLessThan((window - reserve) / 1.15);
    expect(most).toBeGreaterThan(again.after);
  });

  it("of a request that is far from filling the window shows that the window is smaller", async () => {
    const trimmer = await create({ contextWindow: 200_000 });
    const { after, budget } = trimmer.reduce({ messages }).stats;
    expect(trimmer.refused()).toBe(Math.floor((prefixTokens + after) / 1.15));
    expect(trimmer.reduce({ messages }).stats.budget).toBe(budget);
  });

  it("before any request is ignored", async () => {
    const trimmer = await create();
    expect(trimmer.refused(50_000)).toBeUndefined();
    expect(budgetOf(trimmer)).toBe(window - reserve - prefixTokens);
  });
});

describe("what was learned from usage", () => {
  const messages = [user("go"), ...exchanges(3)];

  it("is in the store before the history was ever trimmed, and removed with the history", async () => {
    const store = createMemoryStore();
    const shared = { store, sessionId: "s" };
    const trimmer = await create(shared);
    const { stats, isEpoch } = trimmer.reduce({ messages });
    expect(isEpoch).toBe(false);
    trimmer.observe({ input_tokens: Math.round(1.4 * (prefixTokens + stats.after)) });
    const here = trimmer.reduce({ messages }).stats.budget;
    expect(here).toBeLessThan(stats.budget);
    expect((await create(shared)).reduce({ messages }).stats.budget).toBe(here);
    await forgetHistory(store, "s");
    expect((await create(shared)).reduce({ messages }).stats.budget).toBe(stats.budget);
  });

  it("is ignored if the caller passes a checkpoint, or if the store fails", async () => {
    const store = createMemoryStore();
    const trimmer = await create({ store, sessionId: "s" });
    const { stats } = trimmer.reduce({ messages });
    const checkpoint = await trimmer.checkpoint();
    trimmer.observe({ input_tokens: Math.round(1.4 * (prefixTokens + stats.after)) });
    expect((await create({ store, sessionId: "s", checkpoint })).reduce({ messages }).stats.budget).toBe(stats.budget);
    const failing = { ...store, put: () => Promise.reject(new Error("full")) };
    const other = await create({ store: failing, sessionId: "t" });
    const before = other.reduce({ messages }).stats.budget;
    other.observe({ input_tokens: Math.round(1.4 * (prefixTokens + stats.after)) });
    expect(other.reduce({ messages }).stats.budget).toBeLessThan(before);
  });
});
