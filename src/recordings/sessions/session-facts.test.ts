import { describe, expect, test } from "vitest";
import { findLosses } from "../bill/find-losses.ts";
import { billSessions } from "../bill/price-calls.ts";
import { weighResults } from "../bill/weigh-results.ts";
import { readFacts } from "./index.ts";
import { readOpencode } from "./opencode.ts";
import type { SessionFacts } from "./session-facts.ts";

function billed(lines: readonly object[]) {
  const text = lines.map((line) => JSON.stringify(line)).join("\n");
  const [session] = billSessions([readFacts(text) as SessionFacts]);
  if (session === undefined) throw new Error("no session");
  return session;
}

describe("gemini-cli", () => {
  const stamp = (second: number): string => new Date(Date.UTC(2026, 10, 1, 9, 0, second)).toISOString();
  const head = (second: number): object => ({
    ...{ sessionId: "one", projectHash: "abc", startTime: stamp(second), lastUpdated: stamp(second), kind: "main" },
  });
  const person = { id: "prompt-1", timestamp: stamp(1), type: "user", content: [{ text: "Read a.ts." }] };
  const answer = (id: string, second: number, tokens: { input: number; cached: number }): object => ({
    ...{ id, timestamp: stamp(second), type: "gemini", content: "Reading.", thoughts: [], model: "gemini-2.5-pro" },
    tokens: { ...tokens, output: 50, thoughts: 0, tool: 0, total: tokens.input + 50 },
  });
  const response = (id: string): object => ({
    functionResponse: { id, name: "read_file", response: { output: "x".repeat(4000) } },
  });
  const call = (id: string): object => ({
    ...{ id, name: "read_file", args: { file_path: "/repo/a.ts" }, status: "success", result: [response(id)] },
  });
  /** The program writes an answer, then the answer with its calls, then the results as a message of their own. */
  const first = answer("answer-1", 2, { input: 11_000, cached: 0 });
  const results = { id: "results-1", timestamp: stamp(3), type: "user", content: [response("call-1")] };
  const second = answer("answer-2", 4, { input: 12_100, cached: 10_900 });
  const session = [
    ...[head(0), { $set: { messages: [] } }, person, first, { ...first, toolCalls: [call("call-1")] }, results],
    second,
  ];

  test("a result that is recorded with its call and as a message is weighed once", () => {
    const [result, ...others] = weighResults(billed(session));
    expect(others).toEqual([]);
    // The prompt grew by 1,100 tokens: the result, and the text of the answer before it.
    expect(result).toMatchObject({ tool: "read_file", file: "/repo/a.ts", carried: 1 });
    expect(result?.tokens).toBeGreaterThan(1000);
  });

  test("a session that another process continues is resumed, not compacted", () => {
    const repeated = { id: "answer-1_response", timestamp: stamp(5), type: "user", content: [response("call-1")] };
    const resumed = billed([
      ...session,
      head(5),
      { $set: { messages: [person] } },
      { $set: { messages: [person, { ...first, toolCalls: [call("call-1")] }, repeated, results, second] } },
      { id: "prompt-2", timestamp: stamp(6), type: "user", content: [{ text: "Go on." }] },
      answer("answer-3", 7, { input: 14_000, cached: 0 }),
    ]);
    expect(findLosses(resumed).map(({ cause }) => cause)).toEqual(["resumed"]);
  });

  test("a history that a summary replaced is compacted", () => {
    const summary = { id: "summary", timestamp: stamp(5), type: "user", content: [{ text: "They read a.ts." }] };
    const compacted = billed([
      ...session,
      { $set: { messages: [summary] } },
      answer("answer-3", 7, { input: 9_000, cached: 0 }),
    ]);
    expect(findLosses(compacted).map(({ cause }) => cause)).toEqual(["compaction"]);
  });
});

describe("opencode", () => {
  test("does not count the request for a summary as a call, and shows the compaction at the next call", () => {
    const answer = (created: number, cache: { read: number; write: number }, more: object = {}) => ({
      info: {
        ...{ id: `m${created}`, role: "assistant", agent: "build", modelID: "claude-sonnet-4-5", ...more },
        ...{ time: { created, completed: created + 1 }, tokens: { input: 0, output: 50, reasoning: 0, cache } },
      },
      parts: [{ type: "text", text: "Working." }],
    });
    const facts = readOpencode({
      info: { id: "ses_1" },
      messages: [
        { info: { role: "user", time: { created: 1 } }, parts: [{ type: "text", text: "Read a.ts." }] },
        answer(2, { read: 0, write: 8000 }),
        answer(4, { read: 8000, write: 6000 }),
        { info: { role: "user", time: { created: 5 } }, parts: [{ type: "compaction" }] },
        answer(6, { read: 0, write: 5000 }, { agent: "compaction", summary: true }),
        answer(8, { read: 7000, write: 1000 }),
      ],
    });
    expect(facts.calls.map(({ chain }) => chain)).toEqual([0, 0, 1, 0]);
    const [session] = billSessions([facts]);
    if (session === undefined) throw new Error("no session");
    expect(findLosses(session)).toMatchObject([{ call: 3, cause: "compaction", rewritten: 1000 }]);
    expect(facts.calls[3]?.marks).toEqual(["compaction"]);
  });
});
