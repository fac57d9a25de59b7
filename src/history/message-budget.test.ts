import { describe, expect, it } from "vitest";
import { createCounter } from "../tokens/index.ts";
import { exchange, exchanges, user } from "./exchanges.contract.ts";
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
