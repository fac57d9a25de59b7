/** The tables of models belong together: a model that one of them names is in the others, or a reason is here. */
import { expect, it } from "vitest";
import { findContextWindow } from "../src/conversation/sdk/context-windows.ts";
import { priceRows } from "../src/core/billing/prices.data.ts";
import { priceOf, providerOfModel } from "../src/core/billing/prices.ts";
import { claudeModels } from "../src/core/messages/bound-prefix.ts";
import { familyOfModel } from "../src/core/tokens/families.ts";

/** One answer fills the window. */
const withoutWindow = ["gpt-4"];

/** Retired before 2026, and never had a cache. */
const withoutPrice = [
  "claude-sonnet-3",
  "claude-2",
  "claude-2.0",
  "claude-2.1",
  "claude-v1",
  "claude-v2",
  "claude-instant",
];

const priced = [...new Set(priceRows.map(({ model }) => model))].filter((model) => model !== "");

it("every model with a price has a window, or a reason not to", () => {
  const missing = priced.filter((model) => {
    try {
      return findContextWindow(model).maxInput <= 0;
    } catch {
      return true;
    }
  });
  expect(missing).toEqual(withoutWindow);
});

it("every Claude of the table of thinking has a price, or a reason not to", () => {
  const missing = claudeModels.filter(({ model }) => priceOf({ provider: "anthropic", model }).row !== model);
  expect(missing.map(({ model }) => model).toSorted()).toEqual(withoutPrice.toSorted());
});

it("every Claude with a price is in the table of thinking", () => {
  const listed = new Set(claudeModels.map(({ model }) => model));
  expect(priced.filter((model) => model.startsWith("claude") && !listed.has(model))).toEqual([]);
});

it("every model of Anthropic and OpenAI with a price has a tokenizer", () => {
  const counted = priced.filter((model) => ["anthropic", "openai"].includes(providerOfModel(model) ?? ""));
  expect(counted.filter((model) => familyOfModel(model) === undefined)).toEqual([]);
});
