import { describe, expect, it } from "vitest";
import { priceRows } from "./prices.data.ts";
import { priceOf, providerOfModel } from "./prices.ts";

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
      expect(price).toMatchObject({ model, row: "", isDefault: true, read: 0.1, write5m: 1.25, write1h: 2 });
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
    expect(price({ input: -1 })).toThrow('"input" must be a number from 0, got -1');
    expect(price({ input: Number.NaN })).toThrow("got NaN");
    expect(price({ input: 0, cache_read: 1 })).toThrow("needs an input price above 0");
    expect(price({ input: 0 })).not.toThrow();
    expect(() => priceOf({ provider: "mistral" as "openai" })).toThrow('unknown provider "mistral"');
  });
});

describe("the table of prices", () => {
  it("has one row per model and one default per provider, each with source and month", () => {
    const names = priceRows.map(({ provider, model }) => `${provider}/${model}`);
    expect(new Set(names).size).toBe(names.length);
    expect(priceRows.filter(({ model }) => model === "").map(({ provider }) => provider)).toEqual([
      "anthropic",
      "openai",
      "gemini",
    ]);
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
});
