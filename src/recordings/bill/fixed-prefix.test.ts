import { expect, it } from "vitest";
import { readFacts } from "../sessions/index.ts";
import type { SessionFacts } from "../sessions/session-facts.ts";
import { weighPrefix } from "./fixed-prefix.ts";
import { billSessions } from "./price-calls.ts";

const attachment = (type: string, fields: object) => ({
  type: "attachment",
  uuid: type,
  attachment: { type, ...fields },
});
const answer = (id: string, read: number, written: number, block: object = { type: "text", text: "ok" }) => ({
  type: "assistant",
  uuid: id,
  timestamp: "2026-06-01T08:00:00.000Z",
  requestId: `r-${id}`,
  message: {
    id,
    model: "claude-sonnet-4-5",
    stop_reason: "end_turn",
    content: [block],
    usage: { input_tokens: 0, output_tokens: 10, cache_read_input_tokens: read, cache_creation_input_tokens: written },
  },
});
const prompt = { type: "user", uuid: "p", sessionId: "s", message: { role: "user", content: "x".repeat(4_000) } };

function weigh(...lines: readonly object[]) {
  const facts = readFacts(lines.map((line) => JSON.stringify(line)).join("\n")) as SessionFacts;
  return weighPrefix(billSessions([facts]), () => true);
}

it("costs what the first call holds without the prompt, written once and read by later calls", () => {
  const prefix = weigh(prompt, answer("a", 0, 21_000), answer("b", 21_000, 500), answer("c", 5_000, 17_000));
  expect(prefix).toMatchObject({ conversations: 1, tokens: 20_000, silent: 1 });
  // Sonnet 4.5: $3 a million, a write costs 1.25 and a read 0.1 of it. The last call read only 5,000 tokens of it.
  expect(prefix.usd).toBeCloseTo((3 * (20_000 * 1.25 + 20_000 * 0.1 + 5_000 * 0.1 + 15_000 * 1.25)) / 1e6, 8);
  expect(prefix.sent).toMatchObject({ read: 25_000, write5m: 35_000 });
  expect(prefix.parts).toEqual([
    { name: "system text and tools", tokens: 20_000, sessions: 1, usd: expect.closeTo(prefix.usd, 8) },
  ]);
});

it("names the tools, skills, agents and servers that were offered and never used", () => {
  const use = (name: string, input: object = {}) => ({ type: "tool_use", id: `t-${name}`, name, input });
  const result = (name: string) => ({
    type: "user",
    uuid: `u-${name}`,
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: `t-${name}`, content: "ok" }] },
  });
  const tools = ["WebFetch", "mcp__docs__find", "mcp__mail__send"];
  const prefix = weigh(
    prompt,
    attachment("deferred_tools_delta", { addedNames: tools, addedLines: tools }),
    attachment("mcp_instructions_delta", { addedNames: ["docs"], addedBlocks: ["x".repeat(400)] }),
    attachment("skill_listing", { content: "- commit: Writes a commit.\n- plugin:review: Reviews.\n" }),
    attachment("agent_listing_delta", { addedTypes: ["Explore", "Plan"], addedLines: ["x".repeat(800), ""] }),
    answer("a", 0, 21_000, use("mcp__docs__find")),
    result("mcp__docs__find"),
    answer("b", 21_000, 100, use("Skill", { skill: "plugin:review" })),
    answer("c", 21_100, 100, use("Agent", { subagent_type: "Plan" })),
  );
  const { tools: deferred, skills, agents, servers } = prefix.offered;
  expect([deferred, skills, agents, servers].map(({ offered, used }) => [offered, used])).toEqual([
    [3, 1],
    [2, 1],
    [2, 1],
    [2, 1],
  ]);
  expect([deferred, skills, agents, servers].map(({ unused }) => unused.map(({ name }) => name))).toEqual([
    ["WebFetch", "mcp__mail__send"],
    ["commit"],
    ["Explore"],
    ["mail"],
  ]);
  expect(prefix.silent).toBe(0);
  expect(prefix.parts.map(({ name, tokens }) => [name, tokens])).toEqual(
    expect.arrayContaining([
      ["agents", 200],
      ["instructions of MCP servers", 100],
    ]),
  );
  const usd = prefix.parts.reduce((sum, part) => sum + part.usd, 0);
  expect(usd).toBeCloseTo(prefix.usd, 8);
});
