import { describe, expect, it } from "vitest";
import { billSessions } from "../bill/price-calls.ts";
import { billedCalls, sumTotals } from "../bill/sum-calls.ts";
import { readFacts, readRecording } from "./index.ts";
import type { SessionFacts } from "./session-facts.ts";

const total = (text: string) => sumTotals(billedCalls(billSessions([readFacts(text) as SessionFacts]), () => true));
const lines = (...values: readonly object[]) => values.map((value) => JSON.stringify(value)).join("\n");

describe("Copilot CLI", () => {
  const event = (id: string, type: string, data: object) => ({
    type,
    data,
    id,
    timestamp: "2026-11-01T08:00:00.000Z",
    parentId: null,
  });
  const usage = (id: string, inputTokens: number, cacheReadTokens: number, more: object = {}) =>
    event(`u-${id}`, "session.usage_record", {
      usage: {
        apiCallId: id,
        model: "gpt-5.4",
        inputTokens,
        outputTokens: 50,
        cacheReadTokens,
        cacheWriteTokens: 0,
        ...more,
      },
    });
  const text = lines(
    event("1", "session.start", { sessionId: "s", context: { cwd: "/repo" } }),
    event("2", "user.message", { content: "look", transformedContent: "<now/> look" }),
    event("3", "system.message", { role: "system", content: "You are an assistant." }),
    usage("c1", 12_000, 0),
    event("4", "assistant.message", {
      content: "Working.",
      apiCallId: "c1",
      toolRequests: [{ toolCallId: "t1", name: "view", arguments: { path: "a.ts" } }],
    }),
    event("5", "tool.execution_start", { toolCallId: "t1", toolName: "view", arguments: { path: "a.ts" } }),
    event("6", "tool.execution_complete", { toolCallId: "t1", result: { content: "export {}" } }),
    usage("c2", 14_000, 12_000),
    event("7", "assistant.message", { content: "Done.", apiCallId: "c2", toolRequests: [] }),
    usage("c3", 3_000, 0, { interactionType: "conversation-title" }),
  );

  it("has the usage of each request, and those beside the conversation apart", () => {
    expect(total(text)).toMatchObject({ calls: 3, uncached: 17_000, read: 12_000, output: 150 });
    const { session, project, calls, results } = readFacts(text) as SessionFacts;
    expect({ session, project, chains: calls.map(({ chain }) => chain) }).toEqual({
      session: "s",
      project: "/repo",
      chains: [0, 0, 1],
    });
    expect(results).toEqual([{ call: 1, tool: "view", file: "a.ts", chars: 9 }]);
  });

  it("becomes requests in Anthropic's format", () => {
    const { messages, system, source } = readRecording(text, { file: "events.jsonl" });
    expect({ system, source }).toEqual({ system: "You are an assistant.", source: "copilot-cli" });
    expect(messages).toEqual([
      { role: "user", content: "<now/> look" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Working." },
          { type: "tool_use", id: "t1", name: "view", input: { path: "a.ts" } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "export {}" }] },
      { role: "assistant", content: [{ type: "text", text: "Done." }] },
    ]);
  });
});

describe("cline", () => {
  const answer = (id: string, inputTokens: number, cacheReadTokens: number, content: readonly object[]) => ({
    id,
    role: "assistant",
    content,
    ts: 1_795_000_000_000,
    modelInfo: { id: "gpt-5.4" },
    metrics: { inputTokens, outputTokens: 50, cacheReadTokens, cacheWriteTokens: 0 },
  });
  const text = JSON.stringify({
    version: 1,
    agent: "lead",
    sessionId: "s",
    origin: { source: "cli" },
    system_prompt: "You are Cline.",
    messages: [
      { id: "p", role: "user", content: [{ type: "text", text: "look" }], ts: 1_795_000_000_000 },
      answer("a1", 3_600, 0, [{ type: "tool_use", id: "t1", name: "read_files", input: { path: "a.ts" } }]),
      {
        id: "r",
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t1", content: [{ query: "a.ts", result: "export {}" }] }],
      },
      answer("a2", 6_000, 3_500, [{ type: "text", text: "Done." }]),
    ],
  });

  it("has the usage of each answer; its input includes what was read", () => {
    expect(total(text)).toMatchObject({ calls: 2, uncached: 6_100, read: 3_500, output: 100 });
    expect(readFacts(text)?.results).toMatchObject([{ call: 1, tool: "read_files", file: "a.ts" }]);
  });

  it("becomes requests; results that are no blocks become text", () => {
    const { messages, system } = readRecording(text, { file: "s.messages.json" });
    expect(system).toBe("You are Cline.");
    expect(messages[2]).toEqual({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "t1", content: '[{"query":"a.ts","result":"export {}"}]' }],
    });
  });
});

describe("qwen-code", () => {
  let next = 0;
  const line = (type: string, fields: object) => ({
    uuid: `q${next++}`,
    parentUuid: null,
    sessionId: "s",
    timestamp: "2026-11-01T08:00:00.000Z",
    type,
    cwd: "/repo",
    version: "0.15.10",
    ...fields,
  });
  const tokens = (input: number, cached: number) => ({
    promptTokenCount: input,
    candidatesTokenCount: 50,
    thoughtsTokenCount: 0,
    cachedContentTokenCount: cached,
  });
  const telemetry = (id: string, input: number, cached: number) =>
    line("system", {
      subtype: "ui_telemetry",
      systemPayload: {
        uiEvent: {
          "event.name": "qwen-code.api_response",
          response_id: id,
          model: "qwen3-coder",
          input_token_count: input,
          cached_content_token_count: cached,
          output_token_count: 50,
        },
      },
    });
  const answer = (parts: readonly object[], input: number, cached: number) =>
    line("assistant", {
      model: "qwen3-coder",
      message: { role: "model", parts },
      usageMetadata: tokens(input, cached),
    });
  const text = lines(
    line("user", { message: { role: "user", parts: [{ text: "look" }] } }),
    telemetry("c1", 18_000, 0),
    answer([{ functionCall: { id: "t1", name: "read_file", args: { file_path: "a.ts" } } }], 18_000, 0),
    line("tool_result", {
      message: {
        role: "user",
        parts: [{ functionResponse: { id: "t1", name: "read_file", response: { output: "ok" } } }],
      },
    }),
    // A request of a sub-agent has no line of its own.
    telemetry("side", 5_000, 0),
    telemetry("c2", 20_000, 18_000),
    answer([{ text: "Done." }], 20_000, 18_000),
  );

  it("has each request once, and those of sub-agents apart", () => {
    expect(total(text)).toMatchObject({ calls: 3, uncached: 25_000, read: 18_000, output: 150 });
    const { agent, calls, results } = readFacts(text) as SessionFacts;
    expect({ agent, chains: calls.map(({ chain }) => chain) }).toEqual({ agent: "qwen-code", chains: [0, 1, 0] });
    expect(results).toMatchObject([{ call: 2, tool: "read_file", file: "a.ts" }]);
  });

  it("becomes requests in Anthropic's format", () => {
    expect(readRecording(text, { file: "chat.jsonl" }).messages).toEqual([
      { role: "user", content: [{ type: "text", text: "look" }] },
      { role: "assistant", content: [{ type: "tool_use", id: "t1", name: "read_file", input: { file_path: "a.ts" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "ok" }] },
      { role: "assistant", content: [{ type: "text", text: "Done." }] },
    ]);
  });
});
