import { describe, expect, it } from "vitest";
import { countMessages, countTools } from "../messages/index.ts";
import type { Counter } from "../tokens/index.ts";
import { billableRequest } from "./billable-request.ts";
import { createCacheSimulator } from "./cache-simulator.ts";

const counter: Counter = { name: "characters", count: (text) => text.length };
const marker = { type: "ephemeral" };
const tools = [
  { name: "read", description: "Reads a file.", input_schema: { type: "object" } },
  { name: "list", description: "Lists files.", input_schema: { type: "object" }, cache_control: marker },
];
const call = { type: "tool_use", id: "t1", name: "read", input: { path: "a.ts" } };
const result = { type: "tool_result", tool_use_id: "t1", content: "export const a = 1;" };
const messages = [
  { role: "user", content: "Fix it." },
  { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "" }, call] },
  { role: "user", content: [result, { type: "text", text: "And quickly." }] },
];
const request = { model: "claude-sonnet-5", system: "Be brief.", tools, messages };

function derive(more: object, given: object = request) {
  return billableRequest({ ...given, ...more }, { counter });
}

describe("billableRequest of an Anthropic request", () => {
  it("has a block for each tool, system text and part, in the order of the cache", () => {
    expect(derive({}).blocks.map(({ kind }) => kind)).toEqual([
      "prefix",
      "prefix",
      "prefix",
      "text",
      "thinking",
      "tool_call",
      "tool_result",
      "text",
    ]);
  });

  it("has as many tokens as the counting functions return", () => {
    const total = derive({}).blocks.reduce((sum, { tokens }) => sum + tokens, 0);
    const { model } = request;
    const counted = countMessages(messages, counter, { model }) + countTools(tools, counter, { model });
    expect(total).toBe(counted + request.system.length);
    const forced = derive({ tool_choice: { type: "any" } }).blocks[0]?.tokens;
    expect(forced).toBeGreaterThan(derive({}).blocks[0]?.tokens ?? Infinity);
    expect(derive({ messages: [{ role: "user", content: [] }], tools: [], system: [] }).blocks).toHaveLength(1);
  });

  it("finds markers on tools, system, parts and inside results, with their lifetimes", () => {
    const system = [{ type: "text", text: "Be brief.", cache_control: { ...marker, ttl: "1h" } }];
    const inner = { ...result, content: [{ type: "text", text: "x", cache_control: marker }] };
    const marked = derive({
      system,
      tools: [tools[0], { ...tools[1], cache_control: { ...marker, ttl: "1h" } }],
      messages: [...messages.slice(0, 2), { role: "user", content: [inner] }],
    });
    expect(marked.breakpoints).toEqual([
      { after: 1, ttl: "1h" },
      { after: 2, ttl: "1h" },
      { after: 6, ttl: "5m" },
    ]);
  });

  it("puts the request's own cache_control on the last block that can carry it", () => {
    expect(derive({ cache_control: marker }).breakpoints).toEqual([
      { after: 1, ttl: "5m" },
      { after: 7, ttl: "5m" },
    ]);
    const thinking = { type: "thinking", thinking: "hm", signature: "", cache_control: marker };
    const ending = [...messages, { role: "assistant", content: [thinking, { type: "text", text: "" }] }];
    const automatic = derive({ messages: ending, cache_control: { ...marker, ttl: "1h" }, tools: [] });
    expect(automatic.breakpoints).toEqual([{ after: 5, ttl: "1h" }]);
  });

  it("has the same keys wherever the markers are, and other keys for other content", () => {
    const keys = (more: object) => derive(more).blocks.map(({ key }) => key);
    const moved = [
      { role: "user", content: [{ type: "text", text: "Fix it.", cache_control: marker }] },
      ...messages.slice(1),
    ];
    expect(keys({ messages: moved, tools: [tools[0], { ...tools[1], cache_control: undefined }] })).toEqual(keys({}));
    const edited = keys({ messages: [...messages.slice(0, 2), { role: "user", content: "New." }] });
    expect(edited.slice(0, 6)).toEqual(keys({}).slice(0, 6));
    expect(edited[6]).not.toBe(keys({})[6]);
    const asAssistant = keys({ messages: [{ role: "assistant", content: "Fix it." }, ...messages.slice(1)] });
    expect(asAssistant[3]).not.toBe(keys({})[3]);
  });

  it.each([
    [{ model: "claude-opus-5-5" }, 0],
    [{ speed: "fast" }, 2],
    [{ tool_choice: { type: "any" } }, 3],
    [{ thinking: { type: "enabled", budget_tokens: 1_024 } }, 3],
    [{ output_config: { effort: "low" } }, 3],
    [{ temperature: 0.2, max_tokens: 7, metadata: { user_id: "u" } }, 8],
  ])("keeps of the cache what %j leaves of it", (more, kept) => {
    const [before, now] = [derive({}), derive(more)].map(({ blocks }) => blocks.map(({ key }) => key));
    const first = now?.findIndex((key, index) => key !== before?.[index]) ?? -1;
    expect(first === -1 ? 8 : first).toBe(kept);
    expect(now?.slice(kept + 1)).toEqual(before?.slice(kept + 1));
  });

  it("bills a conversation turn by turn", () => {
    const { bill } = createCacheSimulator({
      provider: "anthropic",
      prices: { anthropic: { min_prefix: 0 } },
    });
    const first = bill(derive({ messages: messages.slice(0, 1), cache_control: marker }));
    expect(first).toMatchObject({ read: 0, uncached: 0 });
    const second = bill(derive({ cache_control: marker }));
    expect(second).toMatchObject({ read: first.total, uncached: 0, isBreak: false });
  });

  it("names the path of what is malformed", () => {
    const fails = (more: object) => () => derive(more);
    expect(fails({ messages: undefined })).toThrow("neither a list of messages nor an input");
    expect(fails({ messages: [{ role: "user", content: 7 }] })).toThrow("messages[0].content");
    expect(fails({ system: 7 })).toThrow(/^system must be a string or an array, not a number/);
    expect(fails({ tools: [tools[0], tools[1], {}] })).toThrow("tools[2].name");
    expect(() => billableRequest({ messages }, { counter, format: "rfc" })).toThrow(
      expect.objectContaining({ code: "invalid_argument" }),
    );
    expect(() => billableRequest(null as unknown as object, { counter })).toThrow("neither a list");
  });
});

describe("billableRequest of an OpenAI request", () => {
  const chat = {
    model: "gpt-5.6-sol",
    tools: [{ type: "function", function: { name: "read", parameters: { type: "object" } } }],
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Fix it." }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: "{}" } }],
      },
      { role: "tool", tool_call_id: "c1", content: "export const a = 1;" },
    ],
  };
  const point = { prompt_cache_breakpoint: { mode: "explicit" } };

  it("has a block for each part and a breakpoint at the end", () => {
    const { blocks, breakpoints } = derive({}, chat);
    expect(blocks.map(({ kind }) => kind)).toEqual(["prefix", "text", "text", "tool_call", "tool_result"]);
    expect(breakpoints).toEqual([{ after: 4, ttl: "5m" }]);
    const total = blocks.reduce((sum, { tokens }) => sum + tokens, 0);
    const options = { format: "openai", model: chat.model } as const;
    expect(total).toBe(countMessages(chat.messages, counter, options) + countTools(chat.tools, counter, options));
  });

  it("takes the latest three markers beside its own, or the latest four alone", () => {
    const content = "abcde".split("").map((text) => ({ type: "text", text, ...point }));
    const marked = {
      messages: [
        { role: "user", content },
        { role: "user", content: "Go." },
      ],
      tools: [],
    };
    const places = (more: object) => derive({ ...marked, ...more }, chat).breakpoints.map(({ after }) => after);
    expect(places({})).toEqual([2, 3, 4, 5]);
    expect(places({ prompt_cache_options: { mode: "explicit" } })).toEqual([1, 2, 3, 4]);
    const unmarked = { messages: chat.messages, prompt_cache_options: { mode: "explicit" } };
    expect(places(unmarked)).toEqual([]);
    expect(derive({ prompt_cache_options: { ttl: "12h" } }, chat).breakpoints).toEqual([{ after: 4, ttl: "1h" }]);
  });

  it("has the same keys wherever the markers are, in results too", () => {
    const keys = (given: object) => derive({}, given).blocks.map(({ key }) => key);
    const output = (more: object) => ({
      model: "gpt-6-sol",
      instructions: "Be brief.",
      input: [
        { role: "user", content: [{ type: "input_text", text: "Fix it.", ...more }] },
        { type: "function_call", call_id: "c1", name: "read", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: [{ type: "input_text", text: "1", ...more }] },
      ],
    });
    expect(keys(output(point))).toEqual(keys(output({})));
    expect(keys(output({}))).toHaveLength(4);
    expect(derive({}, output(point)).breakpoints.map(({ after }) => after)).toEqual([1, 3, 3]);
  });

  it("reads an input that is one text", () => {
    const { blocks } = derive({}, { model: "gpt-5", input: "Hello." });
    expect(blocks.map(({ kind }) => kind)).toEqual(["text"]);
  });

  it("is billed by prefix for models before GPT-5.6", () => {
    const { bill } = createCacheSimulator({ provider: "openai", model: "gpt-5" });
    const long = [{ role: "user", content: "x".repeat(2_000) }, ...chat.messages.slice(1)];
    bill(derive({ model: "gpt-5", messages: long.slice(0, 1) }, chat));
    const next = bill(derive({ model: "gpt-5", messages: long }, chat));
    expect(next.read).toBeGreaterThan(1_920);
    expect(next.read % 128).toBe(0);
  });
});
