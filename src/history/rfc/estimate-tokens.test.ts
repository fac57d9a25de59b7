import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { estimateTokens, estimateToolOverhead, finalEstimate, tokensOf } from "./estimate-tokens.ts";
import type { RfcMessage } from "./rfc-message.ts";

const user = (content: unknown) => ({ role: "user", content });
const call = { type: "tool_use", id: "c1", name: "test_tool", args: {} };

describe("the RFC's estimate of messages", () => {
  it.each([
    ["one line", [user("Hello world")], 13],
    ["two messages", [user("Hello"), { role: "assistant", content: "World" }], 21],
    [
      "a result of 400 bytes",
      [{ role: "tool", content: [{ type: "tool_result", tool_use_id: "c1", content: "A".repeat(400) }] }],
      141,
    ],
    ["nothing", [], 0],
    ["an empty message", [user("")], 9],
    ["an image", [user([{ type: "image", source: { type: "base64", data: "AAAA" } }])], 2112],
    ["the placeholder", [{ role: "assistant", content: "[trimmed]" }], 12],
    [
      "text beside a call",
      [{ role: "assistant", content: [{ type: "text", text: "Thinking..." }, call] }],
      32,
    ],
  ])("is exact for %s", (_, messages, tokens) => {
    expect(estimateTokens(messages)).toBe(tokens);
  });

  it("counts bytes of UTF-8, not characters", () => {
    // 4 + 3 + 2 bytes, and 3 for a surrogate without its other half
    expect(estimateTokens([user("😀漢é")])).toBe(Math.ceil((8 + Math.ceil(9 / 3.5)) * 1.05));
    expect(estimateTokens([user("\ud800")])).toBe(estimateTokens([user("漢")]));
  });

  it("takes a call's arguments under either name", () => {
    const args = { path: "src/a.ts" };
    const estimate = (part: object) => estimateTokens([{ role: "assistant", content: [part] }]);
    const expected = Math.ceil((8 + 3 + Math.ceil((2 + JSON.stringify(args).length + 30) / 3.5)) * 1.05);
    expect(estimate({ type: "tool_use", name: "ls", args })).toBe(expected);
    expect(estimate({ type: "tool_call", name: "ls", input: args })).toBe(expected);
    expect(estimate({ type: "tool_use", name: "test_tool" })).toBe(estimate(call));
  });

  it("counts a part of an unknown kind as its JSON", () => {
    const part = { type: "audio", data: "x".repeat(100) };
    const expected = 8 + 3 + Math.ceil(JSON.stringify(part).length / 3.5);
    expect(tokensOf(user([part]) as RfcMessage)).toEqual({ full: expected, trimmed: expected });
  });

  it("says what a message counts once trimmed", () => {
    const content = [
      { type: "text", text: "x".repeat(100) },
      call,
      { type: "tool_result", tool_use_id: "c1", content: "y".repeat(100) },
      { type: "image" },
    ];
    const placeholders = content.map((part) => {
      if (part.type === "text") return { ...part, text: "[trimmed]" };
      return part.type === "tool_result" ? { ...part, content: "[trimmed]" } : part;
    });
    const { trimmed } = tokensOf({ role: "assistant", content } as RfcMessage);
    expect(trimmed).toBe(tokensOf({ role: "assistant", content: placeholders } as RfcMessage).full);
  });

  it("rounds up once for the whole list", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary", maxLength: 40 }), { maxLength: 8 }), (texts) => {
        const raw = texts.reduce(
          (sum, text) => sum + 8 + Math.ceil(new TextEncoder().encode(text).length / 3.5),
          0,
        );
        expect(estimateTokens(texts.map(user))).toBe(finalEstimate(raw));
        expect(finalEstimate(raw)).toBe(Math.ceil(raw * 1.05));
      }),
    );
  });
});

describe("the RFC's estimate of tool definitions", () => {
  it("adds a fifth for JSON and 8 a tool, without the 5 % of safety", () => {
    const tool = { name: "ls", description: "lists files", input_schema: { type: "object" } };
    const bytes = "ls".length + "lists files".length + '{"type":"object"}'.length;
    const tokens = Math.ceil(Math.ceil(bytes * 1.2) / 3.5) + 8;
    expect(estimateToolOverhead([tool])).toBe(tokens);
    expect(estimateToolOverhead([tool, tool])).toBe(2 * tokens);
    // 31.2 bytes are 32, one more than 9 tokens hold
    expect(estimateToolOverhead([{ name: "x".repeat(26) }])).toBe(10 + 8);
  });

  it("is 0 without tools, and takes a tool without description or schema", () => {
    expect(estimateToolOverhead()).toBe(0);
    expect(estimateToolOverhead([])).toBe(0);
    expect(estimateToolOverhead([{ name: "ls" }])).toBe(Math.ceil(3 / 3.5) + 8);
  });

  it("names what is malformed", () => {
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const estimate = (tools: unknown) => () => estimateToolOverhead(tools as object[]);
    expect(estimate({})).toThrow("tools must be an array, not an object");
    expect(estimate([{ name: "a" }, null])).toThrow("tools[1] must be an object, not null");
    expect(estimate([{}])).toThrow("tools[0].name must be a string, not undefined");
    expect(estimate([{ name: "a", description: 1 }])).toThrow("tools[0].description must be a string");
    expect(estimate([{ name: "a", input_schema: circular }])).toThrow(
      "tools[0].input_schema cannot be written",
    );
  });
});
