import { describe, expect, it } from "vitest";
import { priceRows } from "./prices.data.ts";
import { type Provider, priceOf, providerOfModel, providers } from "./prices.ts";

/** The day on which the facts of these tests were collected. */
const timeMs = Date.parse("2026-11-18");

describe("priceOf", () => {
  it.each([
    ["claude-opus-5-5", "claude-opus-5.5", 4, 0.05, 512],
    ["anthropic/claude-opus-5.5", "claude-opus-5.5", 4, 0.05, 512],
    ["claude-fable-5-1", "claude-fable-5.1", 10, 0.025, 512],
    ["claude-opus-4-20250514", "claude-opus-4", 15, 0.1, 1024],
    ["claude-opus-4-1-20250805", "claude-opus-4.1", 15, 0.1, 1024],
    ["us.anthropic.claude-3-5-haiku-20241022-v1:0", "claude-haiku-3.5", 0.8, 0.1, 2048],
    ["claude-3-opus-20240229", "claude-opus-3", 15, 0.1, 1024],
    ["claude-sonnet-4@20250514", "claude-sonnet-4", 3, 0.1, 1024],
    ["claude-opus-4-5[1m]", "claude-opus-4.5", 5, 0.1, 4096],
    ["claude-haiku-4-5-20251001", "claude-haiku-4.5", 1, 0.1, 4096],
  ])("knows %s", (model, row, input, read, minPrefix) => {
    expect(priceOf({ provider: "anthropic", model })).toMatchObject({
      row,
      input,
      read,
      minPrefix,
      isDefault: false,
    });
  });

  it.each([
    ["gpt-5-2025-08-07", "gpt-5", "automatic", 1],
    ["gpt-5-mini", "gpt-5-mini", "automatic", 1],
    ["openai/gpt-5.3-codex", "gpt-5.3", "automatic", 1],
    ["gpt-5.6-sol", "gpt-5.6-sol", "breakpoints", 1.25],
    ["gpt-6.1-terra-2026-10-26", "gpt-6.1-terra", "breakpoints", 1.25],
    ["azure/o3", "o3", "automatic", 1],
    ["o3-mini", "o3-mini", "automatic", 1],
    ["ft:gpt-4o-mini:acme", "gpt-4o-mini", "automatic", 1],
  ])("knows %s, and when its writes began to cost", (model, row, matching, write5m) => {
    expect(priceOf({ provider: "openai", model })).toMatchObject({ row, write5m, rules: { matching } });
  });

  it("reports when a model is unknown and the provider's default applies", () => {
    for (const model of [undefined, "claude-opus-9", "claude-opus-4-9", "claude-opus-50", "my-model"]) {
      const price = priceOf({ provider: "anthropic", model });
      expect(price).toMatchObject({ model, row: "", isDefault: true, read: 0.05, write5m: 1.25, write1h: 2 });
    }
    expect(priceOf({ provider: "openai", model: "gpt-5.9-sol" })).toMatchObject({ row: "", isDefault: true });
    expect(priceOf({ provider: "gemini", model: "gemini-9" })).toMatchObject({ row: "", isDefault: true });
  });

  it("prefers the user's prices, and keeps the ratio of cache prices to input", () => {
    const prices = { "claude-opus-5-5": { input: 8 } };
    const price = priceOf({ provider: "anthropic", model: "claude-opus-5-5", prices });
    expect(price).toMatchObject({ input: 8, output: 20, read: 0.05, write5m: 1.25 });
    expect(price.source).toContain("your own prices over platform.claude.com");
  });

  it("reads cache prices as dollars, a minimum as tokens and lifetimes as seconds", () => {
    const prices = {
      company: { input: 4, cache_read: 1, cache_write_5m: 6, cache_write_1h: 10, min_prefix: 10 },
      other: { input: 1 },
      anthropic: { lifetime_5m_seconds: 60, lifetime_1h_seconds: 600 },
    };
    const price = priceOf({ provider: "anthropic", model: "Company", prices });
    expect(price).toMatchObject({ input: 4, read: 0.25, write5m: 1.5, write1h: 2.5, minPrefix: 10 });
    expect(price).toMatchObject({ isDefault: false, rules: { lifetimeMs: { "5m": 60_000, "1h": 600_000 } } });
  });

  it("applies the most specific of the user's prices last", () => {
    const prices = {
      "claude-opus-5-5": { output: 3 },
      "claude-opus*": { input: 2, output: 2 },
      "claude*": { input: 1, output: 1, min_prefix: 1 },
      anthropic: { input: 0.5, min_prefix: 0, cache_read: 0.5 },
    };
    const price = (model: string) => priceOf({ provider: "anthropic", model, prices });
    expect(price("claude-opus-5-5")).toMatchObject({ input: 2, output: 3, minPrefix: 1, read: 1 });
    expect(price("claude-sonnet-5")).toMatchObject({ input: 1, output: 1, minPrefix: 1 });
    expect(price("mine")).toMatchObject({ input: 0.5, output: 10, minPrefix: 0 });
  });

  it("refuses invalid prices", () => {
    const price = (values: Record<string, number>) => () =>
      priceOf({ provider: "anthropic", prices: { anthropic: values } });
    expect(price({ inputs: 1 })).toThrow('unknown price "inputs"');
    expect(price({ input: -1 })).toThrow('"input" must be a number from 0, not -1');
    expect(price({ input: Number.NaN })).toThrow("not NaN");
    expect(price({ input: 0, cache_read: 1 })).toThrow("needs an input price above 0");
    expect(price({ input: 0 })).not.toThrow();
    expect(() => priceOf({ provider: "mistral" as "openai" })).toThrow('unknown provider "mistral"');
  });
});

describe("the table of prices", () => {
  it("has one row per model and date, and one default per provider, each with source and month", () => {
    const names = priceRows.map(({ provider, model, from = "" }) => `${provider}/${model} ${from}`);
    expect(new Set(names).size).toBe(names.length);
    expect(priceRows.filter(({ model }) => model === "").map(({ provider }) => provider)).toEqual([...providers]);
    for (const row of priceRows) {
      expect(row.source).not.toBe("");
      expect(row.asOf).toMatch(/^202\d-(0[1-9]|1[012])$/);
      expect(row.output).toBeGreaterThan(row.input);
      expect(row.read).toBeLessThanOrEqual(row.write5m);
      expect(row.write5m).toBeLessThanOrEqual(row.write1h);
    }
  });

  it("finds every row by its own name", () => {
    for (const { provider, model } of priceRows.filter((row) => row.model !== "")) {
      expect(priceOf({ provider, model }).row).toBe(model);
      expect(providerOfModel(model)).toBe(provider);
    }
    expect(providerOfModel("llama-4")).toBeUndefined();
  });

  it("has the price since the model exists before each dated one, and dates in order", () => {
    const dated = priceRows.filter(({ from }) => from !== undefined);
    expect(dated.length).toBeGreaterThan(0);
    for (const row of dated) {
      expect(row.from).toMatch(/^202\d-\d\d-\d\d$/);
      const dates = priceRows.filter(({ model }) => model === row.model).map(({ from }) => from ?? "");
      expect(dates).toEqual(dates.toSorted());
      expect(dates[0]).toBe("");
    }
  });
});

/** What a million tokens cost on 2026-11-18, in dollars. */
interface Fact {
  readonly input: number;
  readonly output: number;
  readonly read?: number;
  readonly write5m?: number;
  readonly write1h?: number;
  readonly minPrefix?: number;
  /** Above how many tokens it costs more, and then input and output. */
  readonly long?: readonly [above: number, input: number, output: number];
}

const claude = (model: string, prices: readonly number[], minPrefix: number): readonly [string, Fact] => {
  const [input = 0, output = 0, write5m = 0, write1h = 0, read = 0] = prices;
  return [model, { input, output, write5m, write1h, read, minPrefix }];
};
const gpt = (input: number, output: number, read: number): Fact => {
  const long = [272_000, 2 * input, 1.5 * output] as const;
  return { input, output, read, write5m: 1.25 * input, write1h: 2.5 * input, long };
};

describe("the price of", () => {
  it.each<readonly [string, Fact]>([
    claude("claude-fable-5-2", [8, 40, 10, 16, 0.2], 512),
    claude("claude-mythos-5-2", [8, 40, 10, 16, 0.2], 512),
    claude("claude-fable-5-1", [10, 50, 12.5, 20, 0.25], 512),
    claude("claude-mythos-5-1", [10, 50, 12.5, 20, 0.25], 512),
    claude("claude-fable-5", [10, 50, 12.5, 20, 1], 512),
    claude("claude-mythos-preview", [25, 125, 31.25, 50, 2.5], 2048),
    claude("claude-opus-5-5", [4, 20, 5, 8, 0.2], 512),
    claude("claude-opus-5", [5, 25, 6.25, 10, 0.5], 512),
    claude("claude-opus-4-8", [5, 25, 6.25, 10, 0.5], 1024),
    claude("claude-opus-4-7", [5, 25, 6.25, 10, 0.5], 2048),
    claude("claude-opus-4-6", [5, 25, 6.25, 10, 0.5], 4096),
    claude("claude-opus-4-5", [5, 25, 6.25, 10, 0.5], 4096),
    claude("claude-sonnet-5-5", [2, 10, 2.5, 4, 0.1], 512),
    claude("claude-sonnet-5", [2, 10, 2.5, 4, 0.2], 1024),
    claude("claude-haiku-4-5", [1, 5, 1.25, 2, 0.1], 4096),
    [
      "claude-haiku-5-5",
      {
        ...{ input: 0.1, output: 0.5, write5m: 0.125, write1h: 0.2, read: 0.01, minPrefix: 512 },
        long: [100_000, 0.5, 2.5],
      },
    ],
    ["gpt-6.1-sol", gpt(2, 10, 0.1)],
    ["gpt-6.1-terra", gpt(1, 5, 0.05)],
    ["gpt-6-astra", gpt(10, 50, 1)],
    ["gpt-6-sol", gpt(2, 10, 0.2)],
    ["gpt-6-luna", gpt(0.1, 0.5, 0.01)],
    ["gpt-5.6-sol", gpt(4, 20, 0.4)],
    ["gpt-5.6-terra", gpt(2, 12, 0.2)],
    ["gpt-5.6-luna", gpt(0.2, 1.2, 0.02)],
    ["gpt-5.6-cyber", { input: 12.5, output: 75, read: 1.25, write5m: 15.625 }],
    ["gpt-5.5-pro", { input: 30, output: 180, read: 30, long: [272_000, 60, 270] }],
    ["gpt-5.4-pro", { input: 30, output: 180, read: 30, long: [272_000, 60, 270] }],
    ["gpt-5.5", { input: 5, output: 30, read: 0.5, long: [272_000, 10, 45] }],
    ["gpt-5.4-mini", { input: 0.75, output: 4.5, read: 0.075 }],
    ["gpt-5.2-pro", { input: 21, output: 168, read: 21 }],
    ["gpt-5.1-codex-mini", { input: 0.25, output: 2 }],
    ["o3-pro", { input: 20, output: 80, read: 20 }],
    ["o1-pro", { input: 150, output: 600, read: 150 }],
    ["chat-latest", { input: 5, output: 30 }],
    ["gpt-4-turbo", { input: 10, output: 30, read: 10 }],
    ["gpt-4", { input: 30, output: 60, read: 30 }],
    ["codex-mini-latest", { input: 1.5, output: 6 }],
    ["gemini-4-argon", { input: 2, output: 10, read: 0.1 }],
    ["gemini-3.8-flash", { input: 0.75, output: 3.75, read: 0.075 }],
    ["gemini-3.7-flash", { input: 0.75, output: 3.75, read: 0.075 }],
    ["gemini-3.6-flash", { input: 0.75, output: 3.75, read: 0.075 }],
    ["gemini-3.5-flash-lite", { input: 0.3, output: 2.5 }],
    ["gemini-3.1-pro-preview", { input: 2, output: 12, read: 0.2, long: [200_000, 4, 18] }],
    ["gemini-3.1-flash-lite", { input: 0.25, output: 1.5 }],
    ["gemini-3-flash-preview", { input: 0.5, output: 3 }],
    ["gemini-flash-latest", { input: 1.5, output: 9 }],
    ["grok-4.7", { input: 2, output: 6, read: 0.5, long: [200_000, 4, 12] }],
    ["deepseek-v4-pro", { input: 1.32, output: 3.96, read: 0.044 }],
    ["kimi-k3.1-pro", { input: 2, output: 10, read: 0.2 }],
    ["qwen3.8-max", { input: 2, output: 6, read: 0.25 }],
    ["glm-5.3", { input: 1.4, output: 4.4, read: 0.26 }],
  ])("%s is that of the price list", (model, fact) => {
    const price = priceOf({ provider: providerOfModel(model) as Provider, model, timeMs });
    expect(price.isDefault).toBe(false);
    expect(price).toMatchObject({ input: fact.input, output: fact.output });
    for (const kind of ["read", "write5m", "write1h"] as const) {
      if (fact[kind] !== undefined) expect(price[kind] * price.input).toBeCloseTo(fact[kind], 9);
    }
    if (fact.minPrefix !== undefined) expect(price.minPrefix).toBe(fact.minPrefix);
    const { above, input, output } = price.longPrompt ?? { above: 0, input: 0, output: 0 };
    const [limit = 0, longInput = 0, longOutput = 0] = fact.long ?? [];
    expect(above).toBe(limit);
    expect(input * price.input).toBeCloseTo(longInput, 9);
    expect(output * price.output).toBeCloseTo(longOutput, 9);
  });

  it("a call is that of its day, and the newest without a time", () => {
    const read = (day?: string) => {
      const time = day === undefined ? undefined : Date.parse(day);
      const { read, input } = priceOf({ provider: "anthropic", model: "claude-sonnet-5-5", timeMs: time });
      return read * input;
    };
    expect([read("2026-10-06T23:59:59Z"), read("2026-10-07"), read()]).toEqual([0.2, 0.1, 0.1]);
    const argon = (time?: number) => priceOf({ provider: "gemini", model: "gemini-4-argon", timeMs: time }).input;
    expect([argon(timeMs), argon(Date.parse("2026-12-01")), argon()]).toEqual([2, 4, 4]);
  });

  it("a fast request is higher with the models that have the mode, cache prices included", () => {
    const fast = (model: string) => {
      const { input, output, read, isDefault } = priceOf({ provider: "anthropic", model, timeMs, speed: "fast" });
      return [input, output, input * read, isDefault];
    };
    expect(fast("claude-fable-5-2")).toEqual([16, 80, 0.4, false]);
    expect(fast("claude-opus-5-5")).toEqual([8, 40, 0.4, false]);
    expect(fast("claude-sonnet-5-5")).toEqual([4, 20, 0.2, false]);
    expect(fast("claude-haiku-5-5")).toEqual([0.2, 1, expect.closeTo(0.02), false]);
    expect(fast("claude-sonnet-5")).toEqual([2, 10, 0.2, false]);
    const named = priceOf({ provider: "anthropic", model: "anthropic/claude-opus-5-fast" });
    expect(named).toMatchObject({ row: "claude-opus-5", input: 10, output: 50 });
  });

  it("a regional request is higher from Claude 4.5 on, and never twice", () => {
    const input = (model: string, inferenceGeo?: string) =>
      priceOf({ provider: "anthropic", model, timeMs, inferenceGeo }).input;
    const profile = "arn:aws:bedrock:us-east-1:123456789012:inference-profile/";
    expect(input("us.anthropic.claude-sonnet-5-5-v1:0")).toBeCloseTo(2.2);
    expect(input("us.anthropic.claude-sonnet-5-5-v1:0", "us")).toBeCloseTo(2.2);
    expect(input(`${profile}eu.anthropic.claude-opus-5-5-v1:0`)).toBeCloseTo(4.4);
    expect(input("bedrock/jp.anthropic.claude-haiku-4-5-20251001-v1:0")).toBeCloseTo(1.1);
    expect(input("claude-opus-5-5", "us")).toBeCloseTo(4.4);
    expect(input("claude-opus-5-5", "global")).toBe(4);
    expect(input(`${profile}global.anthropic.claude-opus-5-5-v1:0`)).toBe(4);
    expect(input("anthropic.claude-opus-5-5")).toBe(4);
    expect(input("us.anthropic.claude-sonnet-4-20250514-v1:0")).toBe(3);
  });

  it.each([
    ["us.anthropic.claude-sonnet-5-5-v1:0", "claude-sonnet-5.5"],
    ["anthropic.claude-opus-5-5-20260922-v1:0", "claude-opus-5.5"],
    ["claude-opus-5-5@20260922", "claude-opus-5.5"],
    ["openrouter/anthropic/claude-opus-5.5:beta", "claude-opus-5.5"],
    ["arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-fable-5-2-v1:0", "claude-fable-5.2"],
    ["x-ai/grok-4.7", "grok-4.7"],
    ["qwen/qwen3.8-max-0902", "qwen3.8-max"],
    ["publishers/google/models/gemini-4-argon", "gemini-4-argon"],
  ])("%s is in the row %s", (model, row) => {
    expect(priceOf({ provider: providerOfModel(model) as Provider, model }).row).toBe(row);
  });
});
