import { describe, expect, it } from "vitest";
import { contextWindowOf } from "./context-windows.ts";

describe("the table of context windows", () => {
  it.each([
    ["claude-opus-5-5", 1_000_000],
    ["us.anthropic.claude-sonnet-5-v1:0", 1_000_000],
    ["claude-haiku-5-5", 1_000_000],
    ["anthropic/claude-opus-4.6", 1_000_000],
    ["claude-sonnet-4-6", 1_000_000],
    ["claude-sonnet-4-5-20250929", 200_000],
    ["claude-opus-4-20250514", 200_000],
    ["claude-3-5-sonnet-20241022", 200_000],
    ["claude-haiku-4-5", 200_000],
    ["gpt-4.1-mini", 1_000_000],
    ["openai/gpt-4o", 128_000],
    ["gpt-5.2-chat-latest", 128_000],
    ["o4-mini", 200_000],
    ["gemini-3.8-flash", 1_048_576],
  ])("knows that of %s", (model, tokens) => {
    expect(contextWindowOf(model)).toEqual({ tokens, maxInput: tokens });
  });

  it.each([
    ["gpt-6.1-sol", { tokens: 1_050_000, maxInput: 922_000 }],
    ["gpt-5.6-terra", { tokens: 1_050_000, maxInput: 922_000 }],
    ["gpt-5.4-mini", { tokens: 400_000, maxInput: 272_000 }],
    ["gpt-5-2025-08-07", { tokens: 400_000, maxInput: 272_000 }],
  ])("knows that %s keeps a part of it for answers", (model, window) => {
    expect(contextWindowOf(model)).toEqual(window);
  });

  it("asks for the window of a model that it does not know", () => {
    const unknown = () => contextWindowOf("deployment-7");
    expect(unknown).toThrow('the context window of model "deployment-7" is not known');
    expect(unknown).toThrow(expect.objectContaining({ code: "invalid_argument" }));
    expect(() => contextWindowOf(undefined)).toThrow("the context window of the model is not known");
  });
});
