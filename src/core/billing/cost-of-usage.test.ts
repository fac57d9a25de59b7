import { describe, expect, it } from "vitest";
import { costOfUsage } from "./cost-of-usage.ts";

describe("costOfUsage", () => {
  it("adds up Anthropic's kinds and distinguishes the lifetimes", () => {
    const usage = {
      input_tokens: 1_000,
      cache_creation_input_tokens: 30_000,
      cache_creation: { ephemeral_5m_input_tokens: 10_000, ephemeral_1h_input_tokens: 20_000 },
      cache_read_input_tokens: 100_000,
      output_tokens: 2_000,
    };
    const cost = costOfUsage(usage, { model: "claude-opus-5-5" });
    expect(cost).toMatchObject({ read: 100_000, write5m: 10_000, write1h: 20_000, uncached: 1_000 });
    expect(cost).toMatchObject({ total: 131_000, output: 2_000 });
    // 100,000 · 0.05 + 10,000 · 1.25 + 20,000 · 2 + 1,000, at 4 dollars; 2,000 at 20 dollars are 10,000 units.
    expect(cost?.cost).toBeCloseTo(58_500);
    expect(cost?.outputCost).toBeCloseTo(10_000);
    expect(cost?.usd).toBeCloseTo(0.234 + 0.04);
    expect(cost?.price).toMatchObject({ row: "claude-opus-5.5", isDefault: false });
  });

  it("reads Gemini's usage, whose thoughts are output", () => {
    const usage = {
      ...{ promptTokenCount: 1_000, cachedContentTokenCount: 600 },
      ...{ candidatesTokenCount: 20, thoughtsTokenCount: 30, totalTokenCount: 1_050 },
    };
    const cost = costOfUsage(usage);
    expect(cost).toMatchObject({ read: 600, uncached: 400, total: 1_000, output: 50, price: { provider: "gemini" } });
  });

  it("treats writes without a lifetime as short ones", () => {
    const usage = {
      input_tokens: 5,
      cache_creation_input_tokens: 70,
      cache_creation: null,
      output_tokens: 1,
    };
    expect(costOfUsage(usage)).toMatchObject({ write5m: 70, write1h: 0, uncached: 5, read: 0 });
  });

  it("adds compactions, which the totals leave out, and counts nothing twice", () => {
    const step = { input_tokens: 100, cache_read_input_tokens: 1_000, output_tokens: 10 };
    const usage = {
      ...step,
      iterations: [
        { type: "compaction", ...step },
        { type: "message", ...step },
      ],
    };
    const once = costOfUsage(step);
    expect(costOfUsage(usage)).toMatchObject({ read: 2_000, uncached: 200, output: 20 });
    expect(costOfUsage(usage)?.usd).toBeCloseTo(2 * (once?.usd ?? 0));
    expect(costOfUsage({ ...step, iterations: null })).toEqual(once);
  });

  it("takes what was cached out of OpenAI's totals", () => {
    const chat = {
      prompt_tokens: 10_000,
      completion_tokens: 500,
      prompt_tokens_details: { cached_tokens: 8_064 },
    };
    const cost = costOfUsage(chat, { model: "gpt-5-mini" });
    expect(cost).toMatchObject({ read: 8_064, write5m: 0, uncached: 1_936, total: 10_000, output: 500 });
    // 8,064 · 0.1 + 1,936, at 0.25 dollars; 500 at 2 dollars.
    expect(cost?.cost).toBeCloseTo(2_742.4);
    expect(cost?.usd).toBeCloseTo((2_742.4 * 0.25 + 500 * 2) / 1e6);
  });

  it("reads the responses shape, with its writes", () => {
    const responses = {
      input_tokens: 10_000,
      output_tokens: 100,
      total_tokens: 10_100,
      input_tokens_details: { cached_tokens: 6_000, cache_write_tokens: 3_000 },
    };
    const cost = costOfUsage(responses, { model: "gpt-6-sol" });
    expect(cost).toMatchObject({ read: 6_000, write5m: 3_000, uncached: 1_000 });
    expect(cost?.cost).toBeCloseTo(600 + 3_750 + 1_000);
  });

  it("separates OpenAI's writes for 12 hours, which cost twice as much", () => {
    const usage = {
      input_tokens: 10_000,
      output_tokens: 100,
      input_tokens_details: {
        cached_tokens: 1_000,
        cache_write_tokens: 8_000,
        cache_write_tokens_details: { ttl_30m_tokens: 3_000, ttl_12h_tokens: 5_000 },
      },
    };
    const cost = costOfUsage(usage, { model: "gpt-6.1-sol" });
    expect(cost).toMatchObject({ read: 1_000, write5m: 3_000, write1h: 5_000, uncached: 1_000, total: 10_000 });
    expect(cost?.cost).toBeCloseTo(50 + 3_750 + 12_500 + 1_000);
  });

  it("bills a fast or regional answer, as its usage reports it", () => {
    const usage = { input_tokens: 1_000, cache_read_input_tokens: 100_000, output_tokens: 1_000 };
    const usd = (fields: object) => costOfUsage({ ...usage, ...fields }, { model: "claude-opus-5-5" })?.usd ?? 0;
    const standard = usd({ speed: "standard", inference_geo: "global" });
    expect(standard).toBeCloseTo(0.004 + 0.02 + 0.02);
    expect(usd({ speed: "fast" })).toBeCloseTo(2 * standard);
    expect(usd({ speed: null, inference_geo: "us" })).toBeCloseTo(1.1 * standard);
    expect(usd({ speed: "fast", inference_geo: "us" })).toBeCloseTo(2.2 * standard);
  });

  it("bills an older answer at the price of its day", () => {
    const usage = { cache_read_input_tokens: 1_000_000 };
    const usd = (day: string) => costOfUsage(usage, { model: "claude-sonnet-5-5", timeMs: Date.parse(day) })?.usd;
    expect([usd("2026-10-01"), usd("2026-11-01")]).toEqual([0.2, 0.1]);
  });

  it("never reports more cached tokens than the total", () => {
    const usage = {
      prompt_tokens: 100,
      prompt_tokens_details: { cached_tokens: 130, cache_write_tokens: 9 },
    };
    expect(costOfUsage(usage)).toMatchObject({ read: 100, write5m: 0, uncached: 0 });
  });

  it("bills a long prompt by its own prices, input and output", () => {
    const usage = (tokens: number) => ({ input_tokens: tokens, output_tokens: 1_000 });
    const model = "claude-haiku-5-5";
    expect(costOfUsage(usage(100_000), { model })?.usd).toBeCloseTo(0.01 + 0.0005);
    expect(costOfUsage(usage(100_001), { model })?.usd).toBeCloseTo(5 * (0.0100001 + 0.0005));
    expect(costOfUsage(usage(100_001), { model })?.cost).toBeCloseTo(500_005);
  });

  it("uses the given provider, then the model, then the shape of the usage", () => {
    const plain = { input_tokens: 10, output_tokens: 1 };
    expect(costOfUsage(plain)?.price.provider).toBe("anthropic");
    expect(costOfUsage(plain, { model: "gpt-5" })?.price.provider).toBe("openai");
    expect(costOfUsage({ prompt_tokens: 10 })?.price.provider).toBe("openai");
    expect(costOfUsage({ prompt_tokens: 10 }, { provider: "gemini" })?.price.provider).toBe("gemini");
    expect(costOfUsage(plain, { prices: { anthropic: { input: 1_000_000 } } })?.cost).toBe(10);
  });

  it.each([undefined, null, 7, "usage", {}, { input_tokens: 0 }, { input_tokens: null, output_tokens: "9" }])(
    "is undefined for %j",
    (usage) => {
      expect(costOfUsage(usage)).toBeUndefined();
    },
  );
});
