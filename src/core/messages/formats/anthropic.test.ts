import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fields } from "../../text/index.ts";
import { countMessage, countMessages } from "../count-messages.ts";
import type { PartEdit } from "../message-format.ts";
import { anthropicFormat } from "./anthropic.ts";
import { characterCounter, testMessageFormat } from "./message-format.contract.ts";

const text = fc.record({ type: fc.constant("text"), text: fc.string({ unit: "binary" }) });
const image = fc.record({
  type: fc.constant("image"),
  source: fc.record({ type: fc.constant("base64"), data: fc.base64String() }),
});
const result = fc.record({
  type: fc.constant("tool_result"),
  tool_use_id: fc.string(),
  content: fc.oneof(fc.string(), fc.array(fc.oneof(text, image))),
});
const call = fc.record({
  type: fc.constant("tool_use"),
  id: fc.string(),
  name: fc.string(),
  input: fc.dictionary(fc.string(), fc.jsonValue()),
});
const thinking = fc.record({
  type: fc.constant("thinking"),
  thinking: fc.string(),
  signature: fc.base64String(),
});
const message = fc.record({
  role: fc.constantFrom("user", "assistant", "system"),
  content: fc.oneof(fc.string(), fc.array(fc.oneof(text, image, result, call, thinking))),
});

testMessageFormat({
  format: anthropicFormat,
  message,
  sample: { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "x" }] },
});

/** Tokens of one block, at one token per character, without the message's frame. */
function countBlock(block: object, model?: string): number {
  return countMessage({ role: "user", content: [block] }, characterCounter(), { format: "anthropic", model }) - 4;
}

describe("Anthropic blocks", () => {
  it("frame one text message with 7 tokens, as a string or as a block", () => {
    expect(countMessages([{ role: "user", content: "hello" }], characterCounter())).toBe(3 + 4 + 5);
    expect(countBlock({ type: "text", text: "hello" })).toBe(5);
  });

  it("count parallel calls and a call without result by name and argument JSON", () => {
    const one = { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a" } };
    expect(countBlock(one)).toBe(9 + "read".length + '{"path":"a"}'.length);
    const two = { ...one, id: "toolu_2", name: "ls", input: {} };
    const both = countMessage({ role: "assistant", content: [one, two] }, characterCounter());
    expect(both).toBe(4 + (9 + 4 + 12) + (9 + 2 + 2));
  });

  it("count tool results as strings, as blocks with images, and empty", () => {
    const result = { type: "tool_result", tool_use_id: "t", is_error: true };
    expect(countBlock({ ...result, content: "done" })).toBe(9 + 4);
    expect(countBlock(result)).toBe(9);
    const picture = { type: "image", source: { type: "url", url: "https://example.org/a.png" } };
    expect(countBlock({ ...result, content: [{ type: "text", text: "see" }, picture] })).toBe(9 + 3 + 2000);
  });

  it("do not bill cache_control, citations or ids", () => {
    const plain = { type: "text", text: "hi" };
    const decorated = { ...plain, cache_control: { type: "ephemeral" }, citations: [{ cited_text: "long" }] };
    expect(countBlock(decorated)).toBe(countBlock(plain));
    const unknown = { type: "new_kind", value: 1 };
    expect(countBlock({ ...unknown, cache_control: { type: "ephemeral" } })).toBe(countBlock(unknown));
  });

  it("count thinking by its text, and by its signature where more is hidden in it", () => {
    const seal = (bytes: number) => "A".repeat(((bytes + 174) * 4) / 3);
    expect(countBlock({ type: "thinking", thinking: "x".repeat(60), signature: seal(60) })).toBe(60);
    expect(countBlock({ type: "thinking", thinking: "x".repeat(60), signature: seal(180) })).toBe(180);
    expect(countBlock({ type: "thinking", thinking: "", signature: seal(300) })).toBe(100);
    expect(countBlock({ type: "redacted_thinking", data: seal(300) })).toBe(100);
    expect(countBlock({ type: "redacted_thinking", data: "short" })).toBe(1);
  });

  it("count documents by their text, their blocks, their pages or a constant", () => {
    const document = (source: object) => ({ type: "document", title: "abc", source });
    expect(countBlock(document({ type: "text", media_type: "text/plain", data: "hello" }))).toBe(3 + 5);
    expect(countBlock(document({ type: "content", content: [{ type: "text", text: "four" }] }))).toBe(3 + 4);
    const page = "<< /Type /Pages >> << /Type /Page >> << /Type/Page /Parent 1 0 R >>";
    const data = Buffer.from(`%PDF-1.4 ${page}`).toString("base64");
    expect(countBlock(document({ type: "base64", media_type: "application/pdf", data }))).toBe(3 + 6000);
    expect(countBlock(document({ type: "file", file_id: "file_1" }))).toBe(3 + 30_000);
  });

  it("count server tool calls and results, sealed search results by their size", () => {
    const query = { type: "server_tool_use", id: "s", name: "web_search", input: { query: "q" } };
    expect(countBlock(query)).toBe(9 + 10 + '{"query":"q"}'.length);
    const found = { type: "web_search_result", url: "u" };
    const sealed = "A".repeat(((300 + 174) * 4) / 3);
    const results = [{ ...found, encrypted_content: sealed }];
    const search = { type: "web_search_tool_result", tool_use_id: "s", content: results };
    expect(countBlock(search)).toBe(9 + JSON.stringify(found).length + 100);
    const failed = { type: "web_search_tool_result", tool_use_id: "s", content: { error_code: "busy" } };
    expect(countBlock(failed)).toBe(JSON.stringify(failed).length);
    const body = { type: "document", source: { type: "text", data: "page text" } };
    const fetched = { type: "web_fetch_result", url: "u" };
    const fetch = { type: "web_fetch_tool_result", tool_use_id: "f", content: { ...fetched, content: body } };
    expect(countBlock(fetch)).toBe(9 + JSON.stringify(fetched).length + 9);
  });

  it("count an image by the resolution at which the model sees it", () => {
    const png = Buffer.alloc(24);
    png.write("\x89PNG\r\n\x1a\n", "latin1");
    png.writeUInt32BE(3840, 16);
    png.writeUInt32BE(2160, 20);
    const picture = { type: "image", source: { type: "base64", data: png.toString("base64") } };
    expect(countBlock(picture, "claude-opus-4-8")).toBe(4784);
    expect(countBlock(picture, "claude-sonnet-4-5")).toBe(1560);
    expect(countBlock(picture)).toBe(4784);
  });

  it("refuse arguments that cannot be written as JSON, with their path", () => {
    const input: Record<string, unknown> = {};
    input.self = input;
    const cyclic = { role: "assistant", content: [{ type: "tool_use", id: "t", name: "n", input }] };
    expect(() => countMessages([cyclic], characterCounter())).toThrow("messages[0].content[0].input cannot be");
  });
});

describe("edited Anthropic messages", () => {
  const edit = (message: object, ...edits: [number, PartEdit][]) =>
    anthropicFormat.edit(message as Fields, new Map(edits));
  const replace = (text: string): PartEdit => ({ action: "replace", text });
  const marker = { cache_control: { type: "ephemeral" } };

  it("keep a plain string a string", () => {
    expect(edit({ role: "user", content: "long", id: 1 }, [0, replace("[trimmed]")])).toEqual({
      role: "user",
      content: "[trimmed]",
      id: 1,
    });
  });

  it("replace a result's images with the text, and keep its error and markers", () => {
    const image = { type: "image", source: { type: "url", url: "u" } };
    const result = { type: "tool_result", tool_use_id: "t", is_error: true, ...marker };
    const message = {
      role: "user",
      content: [
        { ...result, content: [image] },
        { type: "text", text: "hi" },
      ],
    };
    expect(edit(message, [0, replace("[trimmed]")])).toEqual({
      role: "user",
      content: [{ ...result, content: "[trimmed]" }, message.content[1]],
    });
    expect(edit(message, [1, { action: "drop" }])?.content).toEqual([message.content[0]]);
  });

  it("keep a call's input an object, with its id and name, and do not change its neighbours", () => {
    const thinking = { type: "thinking", thinking: "hm", signature: "s" };
    const call = { type: "tool_use", id: "t", name: "write", input: { text: "long" }, caller: "direct" };
    const message = { role: "assistant", content: [thinking, call] };
    const edited = edit(message, [1, replace("[trimmed]")]) as { content: object[] };
    expect(edited.content).toEqual([thinking, { ...call, input: { trimmed: "[trimmed]" } }]);
    expect(edited.content[0]).toBe(thinking);
  });

  it("know every kind of block", () => {
    const types = "text thinking redacted_thinking tool_use tool_result image document server_tool_use";
    const more = "mcp_tool_use mcp_tool_result web_search_tool_result web_fetch_tool_result compaction search_result";
    const fields = { text: "", thinking: "", data: "", name: "n", source: { type: "url" } };
    const content = `${types} ${more}`.split(" ").map((type) => ({ type, ...fields }));
    const { parts } = anthropicFormat.read({ role: "user", content }, "message");
    expect(parts.map(({ kind }) => kind).join(" ")).toBe(
      `text thinking thinking tool_call tool_result media media ${"other ".repeat(7).trim()}`,
    );
  });

  it("pair calls and results of the provider's own tools", () => {
    const content = [
      { type: "server_tool_use", id: "s1", name: "bash_code_execution", input: {} },
      { type: "bash_code_execution_tool_result", tool_use_id: "s1", content: {} },
      { type: "container_upload", file_id: "f" },
    ];
    const { parts } = anthropicFormat.read({ role: "assistant", content }, "message");
    expect(parts.map(({ exchangeRole, callId, toolName }) => [exchangeRole, callId, toolName])).toEqual([
      ["call", "s1", "bash_code_execution"],
      ["result", "s1", undefined],
      [undefined, undefined, undefined],
    ]);
  });
});

it("refuses another provider's calls and tools, which it would not count", async () => {
  const { countMessages, countTools } = await import("../index.ts");
  const counter = { name: "characters", count: (text: string) => text.length };
  const call = {
    role: "assistant",
    content: "",
    tool_calls: [{ id: "1", function: { name: "f", arguments: "{}" } }],
  };
  expect(() => countMessages([call], counter, { format: "anthropic" })).toThrow("messages[0].tool_calls");
  expect(() => countTools([{ type: "function", function: { name: "f" } }], counter)).toThrow("tools[0].function");
  expect(() => countMessages([{ role: "user", content: "x" }], "bytes/4" as never)).toThrow("must be a counter");
});
