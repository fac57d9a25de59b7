import { describe, expect, it } from "vitest";
import { estimateTokens, reduceContextWithBudget } from "../../history/index.ts";
import { type ContextHookOptions, createContextHook } from "./context-hook.ts";
import type { AgentState, HookContext } from "./hook-context.ts";
import { createHookRegistry, lifecycleEvents } from "./hook-registry.ts";

const systemPrompt = "You are a careful engineer. ".repeat(10);
const tools = [{ name: "ls", description: "lists files", input_schema: { type: "object" } }];

function history(turns: number): object[] {
  return Array.from({ length: turns }, (_, turn) => [
    { role: "user", content: `question ${turn}` },
    { role: "assistant", content: [{ type: "tool_use", id: `c${turn}`, name: "ls", args: { turn } }] },
    { role: "tool", content: [{ type: "tool_result", tool_use_id: `c${turn}`, content: "x".repeat(700) }] },
    { role: "assistant", content: `answer ${turn}: ${"y".repeat(300)}` },
  ]).flat();
}

async function runHook(state: AgentState, limit: number, options?: ContextHookOptions): Promise<AgentState> {
  const registry = createHookRegistry();
  registry.register("before_inference", createContextHook(options));
  expect(await registry.run("before_inference", { model: { limit: { context: limit } }, state })).toBe(
    "continue",
  );
  return state;
}

describe("the context hook", () => {
  it("fits the history beside the system prompt and the reserved output", async () => {
    const messages = history(20);
    const limit = 20_000;
    const state = await runHook({ messages, systemPrompt, tools }, limit);
    const system = { role: "system", content: systemPrompt };
    const expected = reduceContextWithBudget(messages, {
      contextWindow: limit - estimateTokens([system]) - 16_000,
      tools,
      keepLastNAssistantMessages: 50,
      contextBudgetThreshold: 0.8,
    });
    expect(expected.metadata?.trimmed_up_to_message_index).toBeGreaterThan(0);
    expect(state).toEqual({
      messages,
      systemPrompt,
      tools,
      metadata: expected.metadata,
      llmInput: { messages: [system, ...expected.messages], maxTokens: 16_000, tools },
    });
    expect(state.messages).toBe(messages);
  });

  it("takes its options, and does without system prompt and tools", async () => {
    const messages = history(20);
    const options = {
      keepLastNAssistantMessages: 4,
      contextBudgetThreshold: 0.5,
      reservedOutputTokens: 1_000,
    };
    const { llmInput, metadata } = await runHook({ messages }, 9_000, options);
    const expected = reduceContextWithBudget(messages, { contextWindow: 8_000, ...options });
    expect(llmInput).toEqual({ messages: expected.messages, maxTokens: 1_000 });
    expect(metadata).toEqual({ trimmed_up_to_message_index: messages.length - 7 });
  });

  it("leaves metadata out while nothing was trimmed, null of a foreign checkpoint included", async () => {
    const state = await runHook({ messages: history(2), systemPrompt }, 200_000);
    expect("metadata" in state).toBe(false);
    expect(state.llmInput?.messages).toHaveLength(9);
    const foreign = JSON.parse('{"messages":[{"role":"user","content":"hi"}],"metadata":null}') as AgentState;
    await runHook(foreign, 200_000);
    expect(foreign.llmInput?.messages).toHaveLength(1);
  });

  it("never takes a window below 0, and tells what does not fit until it does", async () => {
    const messages = history(2);
    const state = await runHook({ messages, systemPrompt }, 1_000);
    expect(state.metadata).toEqual({ trimmed_up_to_message_index: 8 });
    const tokens = estimateTokens(state.llmInput?.messages.slice(1) ?? []);
    expect(state.overflow).toEqual({ tokens, threshold: 0 });
    await runHook(state, 200_000);
    expect("overflow" in state).toBe(false);
    expect(state.metadata).toEqual({ trimmed_up_to_message_index: 8 });
  });

  it("touches nothing at other events", () => {
    const hook = createContextHook();
    const state: AgentState = Object.freeze({ messages: history(2), systemPrompt });
    const context: HookContext = { model: { limit: { context: 0 } }, state };
    for (const event of lifecycleEvents.filter((each) => each !== "before_inference")) {
      expect(hook(context, event)).toBe("continue");
    }
    expect(state).toEqual({ messages: history(2), systemPrompt });
  });

  it("refuses wrong options when it is made, a model without a limit and malformed messages when it runs", async () => {
    expect(() => createContextHook({ reservedOutputTokens: -1 })).toThrow(
      "reservedOutputTokens must be a number of tokens",
    );
    expect(() => createContextHook({ keepLastNAssistantMessages: -1 })).toThrow(
      "keepLastNAssistantMessages must be",
    );
    expect(() => createContextHook({ contextBudgetThreshold: 2 })).toThrow("contextBudgetThreshold must be");
    await expect(runHook({ messages: [] }, Number.NaN)).rejects.toThrow(
      "model.limit.context must be a number of tokens",
    );
    const wrongPrompt = { messages: [], systemPrompt: 1 } as unknown as AgentState;
    await expect(runHook(wrongPrompt, 1)).rejects.toThrow(
      "state.systemPrompt must be a string, not a number",
    );
    const malformed: AgentState = { messages: [{ role: "user" }] };
    await expect(runHook(malformed, 1)).rejects.toThrow("messages[0].content must be a string or an array");
    expect(malformed).toEqual({ messages: [{ role: "user" }] });
  });
});
