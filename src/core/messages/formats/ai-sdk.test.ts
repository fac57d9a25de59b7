import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fields } from "../../text/index.ts";
import { countTools } from "../count-messages.ts";
import type { PartEdit } from "../message-format.ts";
import { aiSdkFormat } from "./ai-sdk.ts";
import { characterCounter, testMessageFormat } from "./message-format.contract.ts";

const anyText = fc.string({ unit: "binary" });
const constant = <T extends string>(...types: T[]) => fc.constantFrom(...types);
const providerOptions = fc.oneof(
  fc.record({ openai: fc.record({ itemId: fc.string(), reasoningEncryptedContent: fc.base64String() }) }),
  fc.record({ anthropic: fc.record({ signature: fc.base64String() }) }),
);
const optional: { requiredKeys: ("type" | "text")[] } = { requiredKeys: ["type", "text"] };
const text = fc.record({ type: constant("text"), text: anyText, providerOptions }, optional);
const reasoning = fc.record({ type: constant("reasoning"), text: fc.string(), providerOptions }, optional);
const bytes = fc.oneof(
  fc.base64String(),
  fc.uint8Array(),
  fc.webUrl().map((url) => new URL(url)),
  fc.record({ type: constant("data"), data: fc.base64String() }),
  fc.record({ type: constant("reference"), reference: fc.constant({ openai: "file_1" }) }),
);
const file = fc.record({
  type: constant("file"),
  data: bytes,
  mediaType: constant("image/png", "application/pdf"),
});
const image = fc.record({ type: constant("image"), image: bytes });
const call = fc.record(
  {
    type: constant("tool-call"),
    toolCallId: fc.string(),
    toolName: fc.string(),
    input: fc.dictionary(fc.string(), fc.jsonValue()),
    providerExecuted: fc.boolean(),
  },
  { requiredKeys: ["type", "toolCallId", "toolName", "input"] },
);
const listed = fc.oneof(
  fc.record({ type: constant("text"), text: anyText }),
  fc.record({
    type: constant("image-data", "file-data", "media"),
    data: fc.base64String(),
    mediaType: constant("image/png"),
  }),
  fc.record({ type: constant("image-url", "file-url"), url: fc.webUrl() }),
);
const output = fc.oneof(
  fc.record({ type: constant("text", "error-text"), value: anyText }),
  fc.record({ type: constant("json", "error-json"), value: fc.jsonValue() }),
  fc.record({ type: constant("content"), value: fc.array(listed) }),
  fc.record({ type: constant("execution-denied"), reason: fc.string() }, { requiredKeys: ["type"] }),
);
const result = fc.record({
  type: constant("tool-result"),
  toolCallId: fc.string(),
  toolName: fc.string(),
  output,
});
const request = fc.record({
  type: constant("tool-approval-request"),
  approvalId: fc.string(),
  toolCallId: fc.string(),
});
const response = fc.record({
  type: constant("tool-approval-response"),
  approvalId: fc.string(),
  approved: fc.boolean(),
});
const custom = fc.record({ type: constant("custom"), kind: constant("openai.compaction") });
const message = fc.oneof(
  fc.record({ role: constant("system"), content: anyText }),
  fc.record({ role: constant("user"), content: fc.oneof(anyText, fc.array(fc.oneof(text, image, file))) }),
  fc.record({
    role: constant("assistant"),
    content: fc.oneof(anyText, fc.array(fc.oneof(text, reasoning, file, call, result, request, custom))),
  }),
  fc.record({ role: constant("tool"), content: fc.array(fc.oneof(result, response)) }),
);

testMessageFormat({
  format: aiSdkFormat,
  message,
  sample: {
    role: "tool",
    content: [{ type: "tool-result", toolCallId: "1", toolName: "ls", output: { type: "text", value: "x" } }],
  },
});

const read = (role: string, ...content: object[]) => aiSdkFormat.read({ role, content }, "messages[0]").parts;
const edit = (role: string, part: object, change: PartEdit) =>
  (aiSdkFormat.edit({ role, content: [part] }, new Map([[0, change]])) as { content: Fields[] }).content[0];
const trim = { action: "replace", text: "[trimmed]" } as const;

describe("AI SDK messages", () => {
  const toolCall = { type: "tool-call", toolCallId: "1", toolName: "ls", input: { path: "a" } };
  const toolResult = { type: "tool-result", toolCallId: "1", toolName: "ls" };

  it("pair calls and results by id, with the tool's name on both", () => {
    expect(read("assistant", toolCall, { ...toolCall, toolCallId: "2" })).toMatchObject([
      { kind: "tool_call", callId: "1", toolName: "ls", pieces: [{ args: { path: "a" } }] },
      { kind: "tool_call", callId: "2", toolName: "ls" },
    ]);
    expect(read("tool", { ...toolResult, output: { type: "text", value: "x" } })).toMatchObject([
      { kind: "tool_result", callId: "1", toolName: "ls" },
    ]);
  });

  it("never edit what the provider ran, approvals and custom parts", () => {
    const done = { ...toolResult, output: { type: "json", value: {} } };
    const others = [
      { ...toolCall, providerExecuted: true, dynamic: true },
      done,
      { type: "tool-approval-request", approvalId: "a", toolCallId: "1" },
      { type: "custom", kind: "openai.compaction" },
      { type: "reasoning-file", mediaType: "image/png", data: "AAAA" },
    ];
    const parts = read("assistant", ...others);
    expect(parts.map(({ kind }) => kind)).toEqual(others.map(() => "other"));
    expect(parts.map(({ callId, exchangeRole }) => [callId, exchangeRole])).toEqual([
      ["1", "call"],
      ["1", "result"],
      ...others.slice(2).map(() => [undefined, undefined]),
    ]);
    expect(() => edit("assistant", done, trim)).toThrow("cannot be replaced");
    expect(edit("tool", done, trim)).toEqual({ ...done, output: { type: "text", value: "[trimmed]" } });
  });

  it("replace a trimmed result with a text, and a trimmed input with an object", () => {
    const failed = {
      ...toolResult,
      output: { type: "error-json", value: {} },
      providerOptions: { a: { b: 1 } },
    };
    expect(edit("tool", failed, trim)).toEqual({ ...failed, output: { type: "text", value: "[trimmed]" } });
    expect(edit("assistant", toolCall, trim)).toEqual({ ...toolCall, input: { trimmed: "[trimmed]" } });
  });

  it("bind only reasoning that belongs to an item of OpenAI's", () => {
    const bound = (fields: object) => read("assistant", { type: "reasoning", text: "hm", ...fields })[0]?.isBound;
    expect(bound({})).toBe(undefined);
    expect(bound({ providerOptions: { anthropic: { signature: "A" } } })).toBe(undefined);
    expect(bound({ providerOptions: { openai: { itemId: "rs_1" } } })).toBe(true);
    expect(bound({ providerMetadata: { azure: { itemId: "rs_1" } } })).toBe(true);
    expect(bound({ providerOptions: { openai: { itemId: null, reasoningEncryptedContent: "A" } } })).toBe(true);
  });

  it("lose the item id of a replaced text, which would be sent instead of it", () => {
    const openai = { itemId: "msg_1", phase: "final" };
    const said = { type: "text", text: "a", providerOptions: { openai, other: { x: 1 } } };
    const replaced = {
      type: "text",
      text: "[trimmed]",
      providerOptions: { openai: { phase: "final" }, other: { x: 1 } },
    };
    expect(edit("assistant", said, trim)).toEqual(replaced);
    expect(edit("assistant", said, { action: "replace", text: "a" })).toBe(said);
  });

  it("lose the item id of a call whose input is replaced, wherever the id is", () => {
    const input = { trimmed: "[trimmed]" };
    for (const field of ["providerOptions", "providerMetadata"]) {
      const called = { ...toolCall, [field]: { openai: { itemId: "fc_1", x: 1 }, other: null } };
      const trimmed = { ...toolCall, input, [field]: { openai: { x: 1 }, other: null } };
      expect(edit("assistant", called, trim)).toEqual(trimmed);
      const trimmedBefore = { ...called, input };
      expect(edit("assistant", trimmedBefore, trim)).toBe(trimmedBefore);
    }
  });

  it("merge if both have the same provider options, and never system messages", () => {
    const user = { role: "user", content: "a" };
    const both = ["a", "a"].map((each) => ({ type: "text", text: each }));
    expect(aiSdkFormat.merge(user, user)).toEqual({ role: "user", content: both });
    expect(aiSdkFormat.merge(user, { ...user, providerOptions: {} })).toBe(undefined);
    expect(aiSdkFormat.merge({ role: "system", content: "a" }, { role: "system", content: "b" })).toBe(undefined);
  });

  it("count tools by their JSON, and add the model's tool prompt", () => {
    const inputSchema = { type: "object", properties: {} };
    const tool = { type: "function", name: "ls", description: "Lists.", inputSchema };
    const json = JSON.stringify({ name: "ls", description: "Lists.", inputSchema }).length;
    const counted = (each: object, model?: string) =>
      countTools([each], characterCounter(), { format: "ai-sdk", model });
    expect(counted({ ...tool, strict: true }, "gpt-5")).toBe(12 + json);
    expect(counted(tool, "claude-opus-4-8")).toBe(290 + json);
    expect(counted(tool)).toBe(675 + json);
    const search = { type: "provider", id: "openai.web_search", name: "web_search", args: {} };
    expect(counted(search, "gpt-5")).toBe(12 + 700 + JSON.stringify(search).length);
  });
});
