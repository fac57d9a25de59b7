import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fields } from "../../text/index.ts";
import { countMessage, countMessages } from "../count-messages.ts";
import { characterCounter, testMessageFormat } from "./message-format.contract.ts";
import { responsesFormat } from "./responses.ts";
import { builtInItem } from "./responses-items.contract.ts";

const anyText = fc.string({ unit: "binary" });
const constant = <T extends string>(...types: T[]) => fc.constantFrom(...types);
const dataUrl = fc.base64String().map((data) => `data:image/png;base64,${data}`);
const inputPart = fc.oneof(
  fc.record({ type: constant("input_text"), text: anyText }),
  fc.record({
    type: constant("input_image"),
    image_url: fc.oneof(dataUrl, fc.webUrl()),
    detail: constant("auto"),
  }),
  fc.record({ type: constant("input_file"), file_data: fc.base64String(), filename: fc.string() }),
);
const outputPart = fc.oneof(
  fc.record({ type: constant("output_text"), text: anyText, annotations: fc.constant([]) }),
  fc.record({ type: constant("refusal"), refusal: fc.string({ minLength: 1 }) }),
);
const item = fc.oneof(
  fc.record(
    {
      type: constant("message"),
      role: constant("user", "system", "developer"),
      content: fc.oneof(anyText, fc.array(inputPart)),
    },
    { requiredKeys: ["role", "content"] },
  ),
  fc.record({
    type: constant("message"),
    id: fc.string(),
    role: constant("assistant"),
    content: fc.array(outputPart),
  }),
  fc.record({
    type: constant("function_call"),
    call_id: fc.string(),
    name: fc.string(),
    arguments: fc.json(),
  }),
  fc.record({ type: constant("custom_tool_call"), call_id: fc.string(), name: fc.string(), input: anyText }),
  fc.record({
    type: constant("function_call_output", "custom_tool_call_output"),
    call_id: fc.string(),
    output: fc.oneof(anyText, fc.array(inputPart)),
  }),
  fc.record(
    {
      type: constant("reasoning"),
      id: fc.string(),
      summary: fc.array(fc.record({ type: constant("summary_text"), text: fc.string() })),
      content: fc.array(fc.record({ type: constant("reasoning_text"), text: fc.string() })),
      encrypted_content: fc.oneof(fc.constant(null), fc.base64String()),
    },
    { requiredKeys: ["type", "id", "summary"] },
  ),
  fc.record({ type: constant("compaction"), encrypted_content: fc.base64String() }),
  fc.record({ type: constant("image_generation_call"), id: fc.string(), result: fc.base64String() }),
  fc.record({
    type: constant("computer_call_output"),
    call_id: fc.string(),
    output: fc.record({ type: constant("computer_screenshot"), image_url: dataUrl }),
  }),
  fc.record({ type: constant("item_reference"), id: fc.string() }),
  fc.record({ type: constant("web_search_call", "mcp_list_tools", "mcp_call"), id: fc.string() }),
  builtInItem,
);

const hologram = { type: "hologram", beam: "blue" };

testMessageFormat({
  format: responsesFormat,
  message: item,
  sample: { type: "function_call_output", call_id: "call_1", output: "x" },
  malformed: [
    [{ role: "nobody", content: "x" }, 'messages[1].role "nobody" is not a role'],
    [{ content: "x" }, "messages[1].role must be a string, not undefined"],
    [{}, "messages[1].role must be a string, not undefined"],
    [{ type: 7 }, "messages[1].type must be a string, not a number"],
    [{ role: "user" }, "messages[1].content must be a string or an array, not undefined"],
    [{ role: "user", content: [7] }, "messages[1].content[0] must be an object, not a number"],
    [{ role: "user", content: [{ type: "input_text" }] }, "messages[1].content[0].text must be a string"],
    [{ type: "function_call", name: "ls" }, "messages[1].arguments must be a string, not undefined"],
    [{ type: "function_call", arguments: "{}" }, "messages[1].name must be a string, not undefined"],
    [{ type: "custom_tool_call", name: "ls", input: {} }, "messages[1].input must be a string, not an object"],
    [{ type: "function_call_output" }, "messages[1].output must be a string or an array, not undefined"],
    [{ type: "function_call_output", output: [7] }, "messages[1].output[0] must be an object"],
    [{ type: "reasoning", summary: [{}] }, "messages[1].summary[0].text must be a string"],
    [{ type: "computer_call_output" }, "messages[1].output must be an object, not undefined"],
  ],
  unknown: { message: hologram, part: hologram },
});

const read = (value: object) => responsesFormat.read(value as Fields, "messages[0]");
const trim = (value: object) =>
  responsesFormat.edit(value as Fields, new Map([[0, { action: "replace", text: "[trimmed]" }]]));

describe("OpenAI responses items", () => {
  it("are one message each, of the assistant, the tool, or the role that they name", () => {
    const items = [
      { role: "developer", content: "Be brief." },
      { type: "message", role: "user", content: [{ type: "input_text", text: "go" }] },
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "A".repeat(400) },
      { type: "function_call", id: "fc_1", call_id: "c1", name: "ls", arguments: "{}" },
      { type: "function_call_output", call_id: "c1", output: "x" },
      { type: "web_search_call", id: "ws_1", status: "completed" },
      { type: "tool_search_output", call_id: "c2", tools: [] },
      { id: "msg_1" },
    ];
    const seen = items.map(read).map(({ role, parts: [part] }) => [role, part?.kind, part?.callId]);
    expect(seen).toEqual([
      ["system", "text", undefined],
      ["user", "text", undefined],
      ["assistant", "thinking", undefined],
      ["assistant", "tool_call", "c1"],
      ["tool", "tool_result", "c1"],
      ["assistant", "other", undefined],
      ["tool", "other", undefined],
      ["assistant", "other", undefined],
    ]);
    expect(read(items[2] as object).parts[0]?.isBound).toBe(true);
    expect(read(items[3] as object).parts[0]).toMatchObject({ toolName: "ls", pieces: [{ args: "{}" }] });
  });

  it("keep ids, states and arguments that are not JSON when trimmed", () => {
    const call = {
      type: "function_call",
      id: "fc_1",
      call_id: "c1",
      name: "ls",
      arguments: '{"path',
      status: "completed",
    };
    expect(trim(call)).toEqual({ ...call, arguments: '{"trimmed":"[trimmed]"}' });
    const custom = {
      type: "custom_tool_call",
      id: "ctc_1",
      call_id: "c2",
      name: "patch",
      input: "*** Begin",
    };
    expect(trim(custom)).toEqual({ ...custom, input: '{"trimmed":"[trimmed]"}' });
    const output = {
      type: "function_call_output",
      call_id: "c1",
      output: [{ type: "input_text", text: "x" }],
    };
    expect(trim(output)).toEqual({ ...output, output: "[trimmed]" });
    expect(trim({ ...output, type: "custom_tool_call_output" })).toMatchObject({ output: "[trimmed]" });
  });

  it("count reasoning by what is hidden, by its own text, or by its summary", () => {
    const count = (fields: object) =>
      countMessage({ type: "reasoning", id: "rs_1", summary: [], ...fields }, characterCounter()) - 4;
    const summary = [
      { type: "summary_text", text: "so" },
      { type: "summary_text", text: "then" },
    ];
    expect(count({ summary })).toBe("so\nthen".length);
    expect(count({ summary, content: [{ type: "reasoning_text", text: "at length" }] })).toBe(9);
    const hidden = 4000 * 0.75 - 174;
    expect(count({ encrypted_content: "A".repeat(4000) })).toBe(Math.ceil(hidden / 3));
    expect(count({ summary, encrypted_content: "A".repeat(4000) })).toBe(hidden);
    expect(count({ encrypted_content: null })).toBe(1);
  });

  it("count results with images, generated images and screenshots by their size, never by their base64", () => {
    const gif = Buffer.from("GIF89a\x1c\0\x1c\0\0\0\0", "latin1").toString("base64");
    const image_url = `data:image/gif;base64,${gif}`;
    const count = (value: object) => countMessage(value, characterCounter()) - 4;
    const output = [
      { type: "input_text", text: "shot" },
      { type: "input_image", image_url },
    ];
    expect(count({ type: "function_call_output", call_id: "c1", output })).toBe(3 + 4 + 1);
    expect(count({ type: "computer_call_output", call_id: "c1", output: { image_url } })).toBe(1);
    expect(count({ type: "image_generation_call", id: "ig_1", result: gif })).toBe(1);
    expect(count({ type: "image_generation_call", id: "ig_1", result: null })).toBe(2000);
    expect(
      count({ type: "function_call_output", call_id: "c1", output: [{ type: "input_image", file_id: "f" }] }),
    ).toBe(3 + 2000);
  });

  it("count unknown items by their JSON, and sealed content by its size", () => {
    const search = { type: "web_search_call", id: "ws_1", action: { type: "search", query: "x" } };
    expect(countMessage(search, characterCounter())).toBe(4 + JSON.stringify(search).length);
    const compaction = { type: "compaction", encrypted_content: "A".repeat(4000) };
    const shown = JSON.stringify({ type: "compaction" }).length;
    expect(countMessage(compaction, characterCounter())).toBe(4 + shown + (4000 * 0.75 - 174) / 3);
  });

  it("are never merged", () => {
    const user = { type: "message", role: "user", content: "a" };
    expect(responsesFormat.merge(user, user)).toBe(undefined);
  });

  it("frame a request once, however many items it has", () => {
    const call = { type: "function_call", call_id: "c1", name: "ls", arguments: "" };
    const items = [{ role: "user", content: "go" }, call, { ...call, call_id: "c2" }];
    const output = { type: "function_call_output", output: "" };
    const outputs = ["c2", "c1"].map((call_id) => ({ ...output, call_id }));
    const alone = [...items, ...outputs].map((each) => countMessage(each, characterCounter(), { format: "responses" }));
    const sum = alone.reduce((total, tokens) => total + tokens, 0);
    expect(countMessages([...items, ...outputs], characterCounter())).toBe(3 + sum);
  });
});
