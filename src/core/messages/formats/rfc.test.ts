import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countMessage, countMessages } from "../count-messages.ts";
import { characterCounter, testMessageFormat } from "./message-format.contract.ts";
import { rfcFormat } from "./rfc.ts";

const part = fc.oneof(
  fc.record({ type: fc.constant("text"), text: fc.string({ unit: "binary" }) }),
  fc.record({ type: fc.constant("tool_use"), id: fc.string(), name: fc.string(), args: fc.jsonValue() }),
  fc.record({ type: fc.constant("tool_result"), tool_use_id: fc.string(), content: fc.string() }),
  fc.record({ type: fc.constant("image"), source: fc.record({ data: fc.base64String() }) }),
);
const message = fc.record({
  role: fc.constantFrom("system", "user", "assistant", "tool"),
  content: fc.oneof(fc.string(), fc.array(part)),
});

testMessageFormat({
  format: rfcFormat,
  message,
  sample: { role: "tool", content: [{ type: "tool_result", tool_use_id: "c1", content: "x" }] },
});

describe("RFC messages", () => {
  it("cost 8 per message and 3 per part", () => {
    const count = (content: unknown) =>
      countMessage({ role: "user", content } as object, characterCounter(), { format: "rfc" });
    expect(count("hello")).toBe(8 + 5);
    expect(count("")).toBe(8);
    expect(count([{ type: "text", text: "hello" }])).toBe(8 + 3 + 5);
    expect(count([{ type: "image", source: { type: "url", url: "u" } }])).toBe(8 + 3 + 2000);
  });

  it("count calls by name and argument JSON and results by their content", () => {
    const conversation = [
      { role: "user", content: "go" },
      { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "ls", args: { a: 1 } }] },
      { role: "tool", content: [{ type: "tool_result", tool_use_id: "c1", content: "a b c" }] },
    ];
    const call = 8 + 3 + 9 + 2 + '{"a":1}'.length;
    expect(countMessages(conversation, characterCounter())).toBe(8 + 2 + call + (8 + 3 + 9 + 5));
  });

  it("accept the name tool_call for a call", () => {
    const content = [{ type: "tool_call", id: "c1", name: "ls", args: {} }];
    expect(countMessage({ role: "assistant", content }, characterCounter())).toBe(8 + 3 + 9 + 2 + 2);
  });

  it("keep the name of the field with a call's arguments", () => {
    const edits = new Map([[0, { action: "replace", text: "[trimmed]" } as const]]);
    const edit = (call: object) => {
      const content = [{ type: "tool_use", id: "c1", name: "ls", ...call }];
      return rfcFormat.edit({ role: "assistant", content }, edits)?.content;
    };
    const trimmed = { trimmed: "[trimmed]" };
    expect(edit({ args: { a: 1 } })).toMatchObject([{ id: "c1", name: "ls", args: trimmed }]);
    expect(edit({ input: { a: 1 } })).toEqual([{ type: "tool_use", id: "c1", name: "ls", input: trimmed }]);
  });

  it("merge results of one turn into one message, but never different roles", () => {
    const tool = (id: string) => rfcFormat.toolResult({ callId: id, toolName: undefined }, "x");
    expect(rfcFormat.merge(tool("a"), tool("b"))).toEqual({
      role: "tool",
      content: ["a", "b"].map((id) => ({ type: "tool_result", tool_use_id: id, content: "x" })),
    });
    expect(rfcFormat.merge(tool("a"), { role: "user", content: "x" })).toBe(undefined);
  });
});
