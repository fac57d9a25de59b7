import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fields } from "../../text/index.ts";
import { countMessage, countMessages } from "../count-messages.ts";
import type { PartEdit } from "../message-format.ts";
import { characterCounter, testMessageFormat } from "./message-format.contract.ts";
import { openAiFormat } from "./openai.ts";

const anyText = fc.string({ unit: "binary" });
const text = fc.record({ type: fc.constant("text"), text: anyText });
const image = fc.record({
  type: fc.constant("image_url"),
  image_url: fc.record({
    url: fc.oneof(
      fc.webUrl(),
      fc.base64String().map((data) => `data:image/png;base64,${data}`),
    ),
  }),
});
const audio = fc.record({
  type: fc.constant("input_audio"),
  input_audio: fc.record({ data: fc.base64String(), format: fc.constant("wav") }),
});
const file = fc.record({ type: fc.constant("file"), file: fc.record({ file_data: fc.base64String() }) });
const refusal = fc.record({ type: fc.constant("refusal"), refusal: fc.string({ minLength: 1 }) });
const call = fc.oneof(
  fc.record({
    id: fc.string(),
    type: fc.constant("function"),
    function: fc.record({ name: fc.string(), arguments: fc.json() }),
  }),
  fc.record({
    id: fc.string(),
    type: fc.constant("custom"),
    custom: fc.record({ name: fc.string(), input: anyText }),
  }),
);
const system = fc.record({
  role: fc.constantFrom("system", "developer"),
  content: fc.oneof(anyText, fc.array(text)),
});
const user = fc.record({
  role: fc.constant("user"),
  content: fc.oneof(anyText, fc.array(fc.oneof(text, image, audio, file))),
});
const assistant = fc.record(
  {
    role: fc.constant("assistant"),
    content: fc.oneof(fc.constant(null), anyText, fc.array(fc.oneof(text, refusal))),
    tool_calls: fc.array(call),
    refusal: fc.oneof(fc.constant(null), fc.string({ minLength: 1 })),
    audio: fc.record({ id: fc.string() }),
    function_call: fc.record({ name: fc.string(), arguments: fc.json() }),
    reasoning_content: fc.string(),
  },
  { requiredKeys: ["role"] },
);
const tool = fc.record({
  role: fc.constant("tool"),
  tool_call_id: fc.string(),
  content: fc.oneof(anyText, fc.array(fc.oneof(text, image))),
});
const legacy = fc.record({
  role: fc.constant("function"),
  name: fc.string(),
  content: fc.oneof(fc.constant(null), anyText),
});

testMessageFormat({
  format: openAiFormat,
  message: fc.oneof(system, user, assistant, assistant, tool, legacy),
  sample: { role: "tool", tool_call_id: "call_1", content: "x" },
});

const callOf = (id: string, name: string, args: string) => ({
  id,
  type: "function",
  function: { name, arguments: args },
});
const read = (message: object) => openAiFormat.read(message as Fields, "messages[0]");
const edit = (message: object, edits: Record<number, PartEdit>) =>
  openAiFormat.edit(message as Fields, new Map(Object.entries(edits).map(([at, each]) => [Number(at), each])));
const drop = { action: "drop" } as const;
const trim = { action: "replace", text: "[trimmed]" } as const;

describe("OpenAI chat messages", () => {
  it("cost 4 each and 3 for the reply, and a name one more than its text", () => {
    const count = (messages: object[]) => countMessages(messages, characterCounter(), { format: "openai" });
    expect(count([{ role: "user", content: "hello" }])).toBe(3 + 4 + 5);
    expect(count([{ role: "user", content: [{ type: "text", text: "hello" }] }])).toBe(3 + 4 + 5);
    expect(count([{ role: "user", name: "Ada", content: "hello" }])).toBe(3 + 4 + 5 + (3 + 1));
    expect(count([{ role: "assistant", content: null }])).toBe(3 + 4);
  });

  it("count a call's arguments as the text they are, without the quotes of a string in JSON", () => {
    const message = { role: "assistant", content: null, tool_calls: [callOf("c", "cat", '{"path":"a"}')] };
    const tokens = countMessages([message], characterCounter(), { format: "openai" });
    expect(tokens).toBe(3 + 4 + 9 + "cat".length + '{"path":"a"}'.length);
  });

  it("are read as parts: reasoning, text, refusal, legacy calls, calls", () => {
    const message = {
      role: "assistant",
      reasoning_content: "hm",
      content: [{ type: "text", text: "a" }],
      refusal: "no",
      function_call: { name: "f", arguments: "{}" },
      tool_calls: [callOf("c1", "ls", "{}"), callOf("c2", "cat", '{"path":"a"}')],
    };
    expect(read(message)).toMatchObject({
      role: "assistant",
      parts: [
        { kind: "thinking", value: "hm" },
        { kind: "text", value: { text: "a" } },
        { kind: "other", value: "no" },
        { kind: "other", value: { name: "f" } },
        { kind: "tool_call", callId: "c1", toolName: "ls" },
        { kind: "tool_call", callId: "c2", toolName: "cat", pieces: [{ args: '{"path":"a"}' }] },
      ],
    });
  });

  it("have signed thinking of gateways as parts, and count its copy for people once", () => {
    const blocks = [
      { type: "thinking", thinking: "first thought", signature: "A".repeat(40) },
      { type: "redacted_thinking", data: "B".repeat(40) },
    ];
    const details = [{ type: "reasoning.text", text: "hm", signature: "C".repeat(40) }];
    const message = { role: "assistant", reasoning_content: "first thought", thinking_blocks: blocks, content: "a" };
    expect(read(message).parts.map(({ kind }) => kind)).toEqual(["thinking", "thinking", "thinking", "text"]);
    expect(countMessage(message, characterCounter(), { format: "openai" })).toBe(
      countMessage({ ...message, reasoning_content: undefined }, characterCounter(), { format: "openai" }),
    );
    expect(read({ role: "assistant", reasoning_details: details, content: "a" }).parts).toHaveLength(2);
    const drop = (...places: number[]) => new Map(places.map((place) => [place, { action: "drop" as const }]));
    expect(openAiFormat.edit(message, drop(0, 1, 2))).toEqual({ role: "assistant", content: "a" });
    expect(openAiFormat.edit(message, drop(2))).toEqual({ ...message, thinking_blocks: [blocks[0]] });
    expect(openAiFormat.claims({ role: "assistant", content: "a", thinking_blocks: blocks })).toBe(true);
  });

  it("read developer messages as system messages, and legacy results as tool messages", () => {
    expect(read({ role: "developer", content: "Be brief." }).role).toBe("system");
    expect(read({ role: "tool", tool_call_id: "c1", content: "x" })).toMatchObject({
      role: "tool",
      parts: [{ kind: "tool_result", callId: "c1" }],
    });
    expect(read({ role: "function", name: "f", content: null })).toMatchObject({
      role: "tool",
      parts: [{ kind: "other", callId: undefined }],
    });
  });

  it("accept null, absent and empty content, empty calls, and arguments that are not JSON", () => {
    expect(read({ role: "assistant", content: null, tool_calls: [] }).parts).toEqual([]);
    expect(read({ role: "assistant", tool_calls: [callOf("c1", "ls", "")] }).parts).toHaveLength(1);
    const broken = { role: "assistant", content: "", tool_calls: [callOf("c1", "ls", '{"path": "a')] };
    expect(read(broken).parts).toMatchObject([{ kind: "text" }, { pieces: [{ args: '{"path": "a' }] }]);
    expect(edit(broken, { 1: trim })).toEqual({
      role: "assistant",
      content: "",
      tool_calls: [callOf("c1", "ls", '{"trimmed":"[trimmed]"}')],
    });
  });

  it("lose only a dropped part: content becomes null without text, and an empty list of calls is removed", () => {
    const message = { role: "assistant", content: "a", tool_calls: [callOf("c1", "ls", "{}")] };
    expect(edit(message, { 0: drop })).toEqual({ ...message, content: null });
    expect(edit(message, { 1: drop })).toEqual({ role: "assistant", content: "a" });
    expect(edit({ role: "assistant", reasoning_content: "hm", content: "a" }, { 0: drop })).toEqual({
      role: "assistant",
      content: "a",
    });
  });

  it("trim one of several parallel calls and do not change the others", () => {
    const calls = ["c1", "c2", "c3"].map((id) => callOf(id, "ls", '{"path":"src"}'));
    const edited = edit({ role: "assistant", content: null, tool_calls: calls }, { 1: trim }) as {
      tool_calls: unknown[];
    };
    expect(edited.tool_calls).toEqual([calls[0], callOf("c2", "ls", '{"trimmed":"[trimmed]"}'), calls[2]]);
    expect(edited.tool_calls[0]).toBe(calls[0]);
    const custom = { id: "c4", type: "custom", custom: { name: "patch", input: "*** Begin" } };
    expect(edit({ role: "assistant", tool_calls: [custom] }, { 0: trim })).toEqual({
      role: "assistant",
      tool_calls: [{ id: "c4", type: "custom", custom: { name: "patch", input: '{"trimmed":"[trimmed]"}' } }],
    });
  });

  it("count results as strings and as lists with images, in whatever order they come", () => {
    const gif = Buffer.from("GIF89a\x1c\0\x1c\0\0\0\0", "latin1").toString("base64");
    const url = `data:image/gif;base64,${gif}`;
    const list = [
      { type: "text", text: "shot" },
      { type: "image_url", image_url: { url } },
    ];
    const results = [
      { role: "tool", tool_call_id: "c2", content: "ok" },
      { role: "tool", tool_call_id: "c1", content: list },
    ];
    const counts = results.map((result) => countMessage(result, characterCounter()));
    expect(counts).toEqual([4 + 3 + 2, 4 + 3 + 4 + 1]);
    expect(results.map((result) => read(result).parts[0]?.callId)).toEqual(["c2", "c1"]);
    expect(edit(results[1] as object, { 0: trim })).toEqual({ ...results[1], content: "[trimmed]" });
  });

  it("count an image by its data, else by a constant, and a file by its pages", () => {
    const count = (part: object) =>
      countMessage({ role: "user", content: [part] }, characterCounter(), { format: "openai" }) - 4;
    expect(count({ type: "image_url", image_url: { url: "https://example.org/a.png" } })).toBe(2000);
    expect(count({ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } })).toBe(2000);
    const pdf = Buffer.from("%PDF /Type /Page /Type /Page /Type /Pages").toString("base64");
    expect(count({ type: "file", file: { file_data: `data:application/pdf;base64,${pdf}` } })).toBe(2 * 3000);
    expect(count({ type: "file", file: { file_data: pdf } })).toBe(2 * 3000);
  });

  it("merge texts, and texts with the calls after them, and nothing else", () => {
    const merge = (first: object, second: object) => openAiFormat.merge(first as Fields, second as Fields);
    const said = { role: "assistant", content: "a" };
    const calls = { role: "assistant", content: null, tool_calls: [callOf("c1", "ls", "{}")] };
    const more = { role: "assistant", content: null, tool_calls: [callOf("c2", "ls", "{}")] };
    const texts = ["a", "a"].map((each) => ({ type: "text", text: each }));
    expect(merge(said, said)).toEqual({ role: "assistant", content: texts });
    expect(merge(said, calls)).toEqual({ ...calls, content: "a" });
    expect(merge(calls, more)).toEqual({ ...calls, tool_calls: [...calls.tool_calls, ...more.tool_calls] });
    expect(merge(calls, said)).toBe(undefined);
    expect(merge({ role: "user", content: "a", name: "Ada" }, { role: "user", content: "b" })).toBe(undefined);
    const result = { role: "tool", tool_call_id: "c1", content: "x" };
    expect(merge(result, { ...result, tool_call_id: "c2" })).toBe(undefined);
    expect(merge(said, { role: "user", content: "a" })).toBe(undefined);
  });

  it("name the path of what is malformed in calls and results", () => {
    const count = (message: object) => () => countMessages([message], characterCounter(), { format: "openai" });
    const calling = (tool_calls: unknown) => count({ role: "assistant", content: null, tool_calls });
    expect(calling({})).toThrow("messages[0].tool_calls must be an array, not an object");
    expect(calling("x")).toThrow("messages[0].tool_calls must be an array, not a string");
    expect(calling([7])).toThrow("messages[0].tool_calls[0] must be an object, not a number");
    expect(calling([{ id: "c1" }])).toThrow("messages[0].tool_calls[0].function must be an object, not undefined");
    expect(calling([{ function: { name: "f", arguments: {} } }])).toThrow(
      "messages[0].tool_calls[0].function.arguments must be a string, not an object",
    );
    expect(count({ role: "tool", tool_call_id: "c1", content: [7] })).toThrow(
      "messages[0].content[0] must be an object",
    );
    expect(count({ role: "tool", tool_call_id: "c1", content: 7 })).toThrow(
      "messages[0].content must be a string or an array",
    );
  });
});
