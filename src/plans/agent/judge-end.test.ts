import { expect, test } from "vitest";
import { judgeEnd } from "./judge-end.ts";
import type { AgentEnd } from "./watch-agent.ts";

const end: AgentEnd = { outcome: "completed", code: 0, answer: "", stderr: "", seconds: 3 };

/** As Claude Code 2.1.325 prints it with --output-format=json, shortened. */
const claudeResult = {
  type: "result",
  subtype: "success",
  is_error: false,
  result: "Fixed it.",
  total_cost_usd: 0.195795,
  usage: {
    input_tokens: 515,
    cache_creation_input_tokens: 4_000,
    cache_read_input_tokens: 60_000,
    output_tokens: 150,
  },
  permission_denials: [] as object[],
};
const claude = (changes: object, more: object = {}) =>
  judgeEnd({ ...end, answer: `${JSON.stringify({ ...claudeResult, ...changes })}\n`, ...more }, { agent: "claude" });

/** As codex exec 0.166 prints events with --json. */
const events = (...more: object[]) =>
  [
    { type: "thread.started", thread_id: "x" },
    { type: "item.completed", item: { id: "0", type: "agent_message", text: "I will look." } },
    { type: "item.completed", item: { id: "1", type: "command_execution", command: "ls", status: "completed" } },
    { type: "item.completed", item: { id: "2", type: "agent_message", text: "Fixed it." } },
    ...more,
  ]
    .map((event) => `${JSON.stringify(event)}\n`)
    .join("");
const usage = { input_tokens: 30_607, cached_input_tokens: 20_000, output_tokens: 150 };
const codex = (answer: string, more: object = {}) =>
  judgeEnd({ ...end, answer, ...more }, { agent: "codex", model: "gpt-5" });

test("the answer, cost and usage of Claude Code are read from its JSON", () => {
  expect(claude({})).toEqual({
    ...end,
    answer: "Fixed it.",
    costUsd: 0.195795,
    usage: { inputTokens: 64_515, cachedTokens: 60_000, outputTokens: 150 },
    denials: [],
    totals: { costUsd: 0.195795, usage: { inputTokens: 64_515, cachedTokens: 60_000, outputTokens: 150 } },
  });
});

test("a session that goes on costs only what it added", () => {
  const usage = { inputTokens: 25_000, cachedTokens: 16_000, outputTokens: 150 };
  const ended = { ...end, answer: `${JSON.stringify({ ...claudeResult, session_id: "s" })}\n` };
  const resumed = judgeEnd(ended, { agent: "claude", before: { costUsd: 0.15, usage } });
  expect(resumed.costUsd).toBeCloseTo(0.045795);
  expect(resumed).toMatchObject({ session: "s", usage: { inputTokens: 64_515 }, totals: { costUsd: 0.195795 } });
  // Codex reports no cost, and counts tokens from the beginning of the session.
  const answer = events({
    type: "turn.completed",
    usage: { input_tokens: 30_607, cached_input_tokens: 20_000, output_tokens: 150 },
  });
  const codexEnd = judgeEnd({ ...end, answer }, { agent: "codex", model: "gpt-5", before: { usage } });
  expect(codexEnd.usage).toEqual({ inputTokens: 5_607, cachedTokens: 4_000, outputTokens: 0 });
});

test("a session whose name could be an option does not go on", () => {
  const answer = JSON.stringify({ type: "thread.started", thread_id: "--dangerously-bypass-approvals-and-sandbox" });
  const judged = judgeEnd({ ...end, answer }, { agent: "codex" });
  expect(judged.session).toBeUndefined();
  expect(judged.outcome).toBe("completed");
});

test("an event that cannot be made a text is passed over", () => {
  const answer = `${events()}{"type":"error","message":{"toString":1,"valueOf":1}}\n`;
  expect(judgeEnd({ ...end, answer }, { agent: "codex" }).answer).not.toBe(answer);
});

test("an agent whose tools were denied has not completed", () => {
  const permission_denials = [
    { tool_name: "Write", tool_input: { file_path: "src/a.ts", content: "x" } },
    { tool_name: "Bash", tool_input: { command: "npm test" } },
    { tool_name: "Bash", tool_input: { command: "npm test" } },
  ];
  const denied = claude({ permission_denials });
  expect(denied).toMatchObject({ outcome: "denied", code: 0, answer: "Fixed it.", costUsd: 0.195795 });
  expect(denied.denials).toEqual(["Write src/a.ts", "Bash npm test"]);
  expect(denied.error).toBe("The agent was not allowed to use: Write src/a.ts, Bash npm test.");
  expect(denied.hint).toContain("--allow");
  const many = (count: number) => {
    const denials = Array.from({ length: count }, (_each, index) => ({ tool_name: `Tool${index}` }));
    return claude({ permission_denials: denials }).error;
  };
  expect(many(5)).toBe("The agent was not allowed to use: Tool0, Tool1, Tool2, Tool3, Tool4.");
  expect(many(7)).toBe("The agent was not allowed to use: Tool0, Tool1, Tool2, Tool3, Tool4 and 2 more.");
  expect(claude({ permission_denials: undefined })).toMatchObject({ outcome: "completed", denials: [] });
});

test("an agent that reached its limit is over budget, whatever its exit code", () => {
  const result = { subtype: "error_max_budget_usd", is_error: true, errors: ["Reached maximum budget ($0.01)"] };
  const ended = claude({ ...result, result: undefined }, { outcome: "failed", code: 1, error: "exit code 1" });
  expect(ended).toMatchObject({ outcome: "over_budget", answer: "", costUsd: 0.195795 });
  expect(ended.error).toContain("Reached maximum budget ($0.01)");
});

test("an error that an agent reports fails it, even if its exit code is 0", () => {
  const ended = claude({ subtype: "success", is_error: true, result: "API Error: 401" });
  expect(ended).toMatchObject({ outcome: "failed", answer: "API Error: 401" });
  expect(ended.error).toContain("API Error: 401");
  const long = claude({ is_error: true, result: "no ".repeat(1_000) });
  expect(long.error!.length).toBeLessThan(300);
  expect(long.error).toMatch(/no n?o?…$/);
});

test("a run that a hook stopped has failed, although Claude Code ends with 0 and reports no error", () => {
  const stopped = { terminal_reason: "hook_stopped", result: "", permission_denials: [{ tool_name: "Bash" }] };
  const judged = claude(stopped);
  expect(judged).toMatchObject({ outcome: "failed", code: 0 });
  expect(judged.error).toContain('a hook stopped it. If it was the spend guard, "plimsoll guard" says why');
});

test("codex's answer is its last message, and its usage has a price", () => {
  const ended = codex(events({ type: "turn.completed", usage }));
  expect(ended).toMatchObject({ outcome: "completed", answer: "Fixed it.", denials: [] });
  expect(ended.usage).toEqual({ inputTokens: 30_607, cachedTokens: 20_000, outputTokens: 150 });
  const later = events(
    { type: "item.completed", item: { id: "3", type: "agent_message", text: "All tests pass." } },
    { type: "item.completed", item: { id: "4", type: "command_execution", text: "ls" } },
    { type: "item.updated", item: { id: "5", type: "agent_message", text: "And" } },
    { type: "item.completed", item: null },
  );
  expect(codex(later).answer).toBe("All tests pass.");
  // 10,607 at 1.25 dollars a million, 20,000 at a tenth of that, 150 at 10 dollars.
  expect(ended.costUsd).toBeCloseTo(0.01725875, 6);
});

test("usage has no price without a model, or for a model that has none", () => {
  const answer = events({ type: "turn.completed", usage });
  const prices = { "unheard-of": { input: 1, output: 2 } };
  const priced = judgeEnd({ ...end, answer }, { agent: "codex", model: "unheard-of", prices });
  expect(priced.costUsd).toBeGreaterThan(0);
  // A person may set only a part of a price.
  const part = { "unheard-of": { output: 2 } };
  expect(judgeEnd({ ...end, answer }, { agent: "codex", model: "unheard-of", prices: part }).costUsd).toBeGreaterThan(
    0,
  );
  for (const model of [undefined, "unheard-of"]) {
    const ended = judgeEnd({ ...end, answer }, { agent: "codex", model });
    expect(ended).toMatchObject({ usage: { inputTokens: 30_607 } });
    expect(ended.costUsd).toBeUndefined();
  }
});

test("what codex's sandbox stopped is a denial", () => {
  const stderr = [
    "2026-11-16T17:59:30Z  WARN codex_sandboxing::violation: recorded sandbox violation: resource=filesystem backend=linux_sandbox reason=read_only_file_system path=unknown",
    "2026-11-16T17:59:31Z ERROR codex_core::tools::router: error=patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings",
    "WARNING: something else",
  ].join("\n");
  const denied = codex(events({ type: "turn.completed", usage }), { stderr });
  expect(denied.outcome).toBe("denied");
  expect(denied.denials).toEqual([
    "filesystem (read_only_file_system)",
    "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings",
  ]);
});

test("codex's own failure is told in its words", () => {
  const answer = events({ type: "turn.failed", error: { message: "unexpected status 401" } });
  const ended = codex(answer, { outcome: "failed", code: 1, error: "The agent ended with exit code 1." });
  expect(ended).toMatchObject({ outcome: "failed", answer: "Fixed it." });
  expect(ended.error).toBe("The agent ended with exit code 1. It reports: unexpected status 401");
});

test("an agent that failed without a word of its own has failed for the reason of its exit code", () => {
  const failed = { ...end, outcome: "failed", code: 1, error: "The agent ended with exit code 1." } as const;
  expect(judgeEnd(failed, { unchangedScope: ["src/**"] })).toEqual({ ...failed, denials: [] });
});

test("output that is not the expected JSON is the answer as it is", () => {
  const codexEvents = events({ type: "turn.completed", usage });
  expect(judgeEnd({ ...end, answer: codexEvents }, { agent: "opencode" }).answer).toBe(codexEvents);
  for (const agent of ["claude", "codex", "opencode", undefined]) {
    for (const answer of ["plain text\n", '{"half": ', "[1]", "", '{"type":"other"}', '{"type":"an.item.of"}']) {
      expect(judgeEnd({ ...end, answer }, { agent })).toEqual({ ...end, answer, denials: [] });
    }
  }
});

test("an agent that was stopped stays stopped, and what it reported is read", () => {
  const ended = codex(events(), { outcome: "timed_out", code: null, error: "too long", stderr: "" });
  expect(ended).toMatchObject({ outcome: "timed_out", answer: "Fixed it.", error: "too long" });
  const failing = events({ type: "turn.failed", error: { message: "interrupted" } });
  expect(codex(failing, { outcome: "timed_out", code: null, error: "too long" })).toMatchObject({
    outcome: "timed_out",
    error: "too long",
  });
});

test("an agent that changed nothing although it should has not completed", () => {
  expect(judgeEnd({ ...end, answer: "Done." }, {})).toMatchObject({ outcome: "completed" });
  const unchanged = judgeEnd({ ...end, answer: "Done." }, { unchangedScope: ["src/**"] });
  expect(unchanged).toMatchObject({
    outcome: "unchanged",
    answer: "Done.",
    hint: expect.stringContaining("--allow"),
  });
  expect(unchanged.error).toBe("The agent changed no file in its scope, src/**.");
});

test("hostile output has no effect beyond its text", () => {
  const strange = { total_cost_usd: -5, usage: { input_tokens: "many" }, permission_denials: [null, 3, {}], result: 7 };
  const ended = claude(strange);
  expect(ended.costUsd).toBeUndefined();
  expect(ended.usage).toBeUndefined();
  expect(ended.outcome).toBe("denied");
  expect(ended.denials).toEqual(["a tool"]);
});

test("usage counts although it has as much input as output, and no tokens are no usage", () => {
  const same = { usage: { input_tokens: 7, output_tokens: 7 } };
  expect(claude(same).usage).toEqual({ inputTokens: 7, cachedTokens: 0, outputTokens: 7 });
  expect(claude({ usage: { input_tokens: 0, output_tokens: 0 } }).usage).toBeUndefined();
});
