import { describe, expect, it } from "vitest";
import { findModelRow, isClaude, normaliseModel } from "./families.ts";

const spellings: Readonly<Record<string, readonly string[]>> = {
  "claude-opus-5.5": [
    "claude-opus-5-5",
    "Claude-Opus-5.5",
    "claude-opus-5-5-20260922",
    "claude-opus-5-5-latest",
    "claude-opus-5-5[1m]",
    "claude-opus-5-5@20260922",
    "claude-opus-5-5@default",
    "vertex_ai/claude-opus-5-5@20260922",
    "publishers/anthropic/models/claude-opus-5-5@20260922",
    "anthropic.claude-opus-5-5",
    "anthropic.claude-opus-5-5-20260922-v1:0",
    "us.anthropic.claude-opus-5-5-v1:0",
    "global.anthropic.claude-opus-5-5-20260922-v1:0",
    "us-gov.anthropic.claude-opus-5-5-v1:0:200k",
    "bedrock/converse/eu.anthropic.claude-opus-5-5-v1:0",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-opus-5-5-v1:0",
    "arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-opus-5-5-20260922-v1:0",
    "anthropic/claude-opus-5.5",
    "anthropic/claude-opus-5.5:beta",
    "openrouter/anthropic/claude-opus-5.5:thinking",
    "anthropic:claude-opus-5-5",
    "databricks-claude-opus-5-5",
    "anthropic--claude-5.5-opus",
    "opus-5.5",
  ],
  "claude-haiku-3.5": ["claude-3-5-haiku-20241022", "us.anthropic.claude-3-5-haiku-20241022-v1:0", "claude-3.5-haiku"],
  "claude-sonnet-4": ["claude-sonnet-4-20250514", "claude-sonnet-4-0", "claude-4-sonnet", "claude-sonnet-4@20250514"],
  "claude-opus-4.10": ["claude-opus-4-10"],
  "claude-mythos-preview": ["anthropic.claude-mythos-preview-v1:0", "claude-mythos-preview"],
  "claude-opus": ["opus", "opus[1m]", "claude-opus"],
  "gpt-4o-mini": ["ft:gpt-4o-mini-2024-07-18:acme::abc", "openai/gpt-4o-mini", "openai:gpt-4o-mini"],
  "gpt-6.1-terra": ["gpt-6.1-terra-2026-10-26", "azure/gpt-6.1-terra"],
  o3: ["azure/o3", "openai:o3", "o3-2025-04-16"],
  "chat-latest": ["chat-latest", "openai/chat-latest"],
  "gemini-4-argon": ["models/gemini-4-argon", "google/gemini-4-argon", "publishers/google/models/gemini-4-argon"],
  "grok-4.7": ["x-ai/grok-4.7", "xai:grok-4.7"],
  "deepseek-v4-pro": ["deepseek/deepseek-v4-pro:free", "accounts/fireworks/models/deepseek-v4-pro"],
  "deepseek-chat": ["deepseek-chat:free"],
  "qwen3.8-max": ["qwen/qwen3.8-max", "qwen.qwen3.8-max-v1:0"],
};

describe("normaliseModel", () => {
  it.each(Object.entries(spellings).flatMap(([name, ids]) => ids.map((id) => [id, name])))(
    'reads "%s" as %s, and that name as itself',
    (id, name) => {
      expect(normaliseModel(id)).toBe(name);
      expect(normaliseModel(name)).toBe(name);
    },
  );

  it("leaves a name that it does not know", () => {
    for (const name of ["", "deployment-7", "llama-4", "my-model"]) expect(normaliseModel(name)).toBe(name);
  });
});

it("finds the longest row of a model, and no row of another version", () => {
  const rows = ["gpt-5", "gpt-5-mini", "claude-opus-5"].map((model) => ({ model }));
  const found = (model: string) => findModelRow(model, rows)?.model;
  expect(found("gpt-5-mini-2025-08-07")).toBe("gpt-5-mini");
  expect(found("openai/gpt-5-nano")).toBe("gpt-5");
  expect(["gpt-5.6", "gpt-50", "claude-opus-5-5", ""].map(found)).toEqual(Array(4).fill(undefined));
  expect(findModelRow("anything", [...rows, { model: "" }])?.model).toBe("");
});

it("knows a Claude under each of its names", () => {
  const claudes = ["claude", "us.anthropic.claude-v2:1", "claude-instant-1.2", "opus", "anthropic/claude-next"];
  expect(claudes.filter((model) => !isClaude(model))).toEqual([]);
  expect(["gpt-5", "gemini-4-argon", "o3", "magnum-opus", ""].filter(isClaude)).toEqual([]);
});
