import { describe, expect, it } from "vitest";
import { type ModelLimit, rejects } from "./anthropic-settings.ts";
import { validateRequest } from "./index.ts";

const user = { role: "user", content: "hi" };

function find(request: object): string[] {
  return validateRequest({ messages: [user], ...request }).map(({ path, rule }) => `${path} ${rule}`);
}

describe("what a model rejects", () => {
  const all: readonly ModelLimit[] = ["system-role", "prefill", "sampling", "budget", "disabled", "forced-tool"];

  it.each([
    ["claude-3-5-sonnet-20241022", ["system-role"]],
    ["claude-sonnet-4-20250514", ["system-role"]],
    ["us.anthropic.claude-opus-4-5-20251101-v1:0", ["system-role"]],
    ["claude-haiku-4-5", ["system-role"]],
    ["claude-sonnet-4.6", ["system-role", "prefill"]],
    ["claude-opus-4-7", ["system-role", "prefill", "sampling", "budget"]],
    ["anthropic/claude-opus-4.8", ["prefill", "sampling", "budget"]],
    ["claude-sonnet-5", ["system-role", "prefill", "sampling", "budget"]],
    ["claude-opus-5-20260724", ["prefill", "sampling", "budget"]],
    ["claude-haiku-5-5", ["prefill", "sampling", "budget"]],
    ["claude-fable-5", ["prefill", "sampling", "budget", "disabled"]],
    ["claude-mythos-5-1", ["prefill", "sampling", "budget", "disabled", "forced-tool"]],
    ["claude-opus-5-5", ["prefill", "sampling", "budget", "disabled", "forced-tool"]],
    ["claude-sonnet-5-5", ["prefill", "sampling", "budget", "disabled", "forced-tool"]],
    ["claude-next", []],
    ["gpt-5", []],
  ])("is known of %s", (model, limits) => {
    expect(all.filter((limit) => rejects(model, limit))).toEqual(limits);
  });
});

describe("a request", () => {
  const end = { role: "assistant", content: "The answer is" };

  it("to a newer model must not end with the assistant", () => {
    const messages = [user, end];
    expect(find({ model: "claude-opus-4-5", messages })).toEqual([]);
    expect(find({ model: "claude-opus-4-6", messages })).toEqual(["messages[1].role prefill"]);
    expect(find({ messages })).toEqual([]);
  });

  it("to an older model must not have system messages", () => {
    const messages = [user, { role: "system", content: "be brief" }];
    expect(find({ model: "claude-sonnet-5", messages })).toEqual(["messages[1].role system-role"]);
    expect(find({ model: "claude-opus-5", messages })).toEqual([]);
  });

  it("to a newer model must not have sampling parameters, except with their defaults", () => {
    const model = "claude-opus-5";
    expect(find({ model, temperature: 0, top_p: 0.9, top_k: 5 })).toEqual([
      "temperature sampling-parameter",
      "top_p sampling-parameter",
      "top_k sampling-parameter",
    ]);
    expect(find({ model, temperature: 1, top_p: null })).toEqual([]);
    expect(find({ model: "claude-opus-4-5", temperature: 0 })).toEqual([]);
  });

  it("must set thinking and tools as its model accepts them", () => {
    const enabled = { type: "enabled", budget_tokens: 2000 };
    expect(find({ model: "claude-opus-4-8", thinking: enabled })).toEqual(["thinking.budget_tokens thinking-setting"]);
    expect(find({ model: "claude-opus-4-8", thinking: { type: "disabled" } })).toEqual([]);
    expect(find({ model: "claude-opus-5-5", thinking: { type: "disabled" } })).toEqual([
      "thinking.type thinking-setting",
    ]);
    expect(find({ model: "claude-opus-5-5", tool_choice: { type: "any" } })).toEqual(["tool_choice.type forced-tool"]);
    expect(find({ model: "claude-opus-5-5", tool_choice: { type: "auto" } })).toEqual([]);
  });
});
