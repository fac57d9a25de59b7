import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { countMessage, countMessages, countSystem, countTools } from "./count-messages.ts";
import { type ContentCounter, createArgumentsCounter, createTextCounter } from "./count-parts.ts";
import { callCounter, characterCounter, generateSession } from "./formats/message-format.contract.ts";
import { isSameJson, takeSnapshot } from "./json-snapshot.ts";
import type { ToolChoice } from "./message-format.ts";

describe("countMessages", () => {
  it("is 0 for no messages and the sum of its messages plus one frame otherwise", () => {
    expect(countMessages([], characterCounter())).toBe(0);
    const session = generateSession(5);
    const counter = characterCounter();
    const sum = session.reduce((total, message) => total + countMessage(message, counter, { format: "anthropic" }), 0);
    expect(countMessages(session, counter)).toBe(sum + 3);
  });

  it("recognises the format from the first message that shows it", () => {
    const plain = { role: "user", content: "go" };
    const rfc = { role: "assistant", content: [{ type: "tool_use", id: "1", name: "ls", args: {} }] };
    const anthropic = { role: "assistant", content: [{ type: "tool_use", id: "1", name: "ls", input: {} }] };
    const count = (messages: object[]) => countMessages(messages, characterCounter());
    expect(count([plain])).toBe(3 + 4 + 2);
    expect(count([plain, rfc])).toBe(8 + 2 + (8 + 3 + 9 + 2 + 2));
    expect(count([plain, anthropic])).toBe(3 + 4 + 2 + (4 + 9 + 2 + 2));
    expect(countMessages([plain], characterCounter(), { format: "rfc" })).toBe(8 + 2);
  });

  it("counts a message again under another format or model", () => {
    const counter = characterCounter();
    const bytes = Buffer.from("GIF89a\xd0\x07\xd0\x07\0\0\0", "latin1").toString("base64");
    const content = [{ type: "image", source: { type: "base64", data: bytes } }];
    const message = { role: "user", content };
    expect(countMessage(message, counter, { format: "anthropic", model: "claude-opus-4-8" })).toBe(4 + 69 * 69);
    expect(countMessage(message, counter, { format: "anthropic", model: "claude-opus-4-5" })).toBe(4 + 39 * 39);
    expect(countMessage(message, counter, { format: "rfc", model: "claude-opus-4-5" })).toBe(8 + 3 + 39 * 39);
  });

  it("notices content that was replaced, grown or trimmed in place", () => {
    const counter = characterCounter();
    const result: Record<string, unknown> = {
      type: "tool_result",
      tool_use_id: "t",
      content: "a long result",
    };
    const message: Record<string, unknown> = { role: "user", content: [result] };
    expect(countMessage(message, counter)).toBe(4 + 9 + 13);
    result.content = "[trimmed]";
    expect(countMessage(message, counter)).toBe(4 + 9 + 9);
    (message.content as object[]).push({ type: "text", text: "and" });
    expect(countMessage(message, counter)).toBe(4 + 9 + 9 + 3);
    (message.content as Record<string, unknown>[])[1] = { type: "text", text: "and more" };
    expect(countMessage(message, counter)).toBe(4 + 9 + 9 + 8);
    (message.content as unknown[]).push(null);
    expect(() => countMessage(message, counter)).toThrow("message.content[2] must be an object, not null");
    message.content = "new";
    expect(countMessage(message, counter)).toBe(4 + 3);
  });

  it("notices every edit in place, however deep and of whatever length", () => {
    const gif = (edge: number) => Buffer.from(`GIF89a${String.fromCharCode(edge, 0, edge, 0)}\0\0\0`, "latin1");
    const picture = (edge: number) => gif(edge).toString("base64");
    const call = { type: "tool_use", id: "1", name: "run", input: { command: "ls", flags: ["-l"] } };
    const result = {
      type: "tool_result",
      tool_use_id: "1",
      content: [{ type: "text", text: "a long result" }],
    };
    const image = { type: "image", source: { type: "base64", data: picture(28) } };
    const document = { type: "document", title: "t", source: { type: "text", data: "x" } };
    const unknown = { type: "hologram", beam: { colour: "blue" } };
    const content: object[] = [{ type: "text", text: "same" }, call, result, image, document, unknown];
    const message: Record<string, unknown> = { role: "user", content };
    const counter = { name: "test:e", count: (text: string) => text.length + 50 * text.split("e").length };
    const check = () => expect(countMessage(message, counter)).toBe(countMessage(message, { ...counter }));
    check();
    const edits = [
      () => Object.assign(content[0] as object, { text: "eeee" }),
      () => Object.assign(call, { input: { command: "ls -la" } }),
      () => Object.assign(call.input, { command: "ls -e" }),
      () => Object.assign(call, { name: "execute" }),
      () => Object.assign(result.content[0] as object, { text: "[trimmed]" }),
      () => Object.assign(result.content, { 1: { type: "text", text: "more" } }),
      () => Object.assign(image.source, { data: picture(140) }),
      () => Object.assign(image, { source: { type: "base64", data: picture(90) } }),
      () => Object.assign(document.source, { data: "a longer text" }),
      () => Object.assign(unknown.beam, { colour: "green" }),
      () => content.reverse(),
      () => content.pop(),
    ];
    for (const edit of edits) {
      const before = countMessage(message, counter);
      edit();
      check();
      if (edit !== edits[10]) expect(countMessage(message, counter)).not.toBe(before);
    }
    message.tool_calls = [];
    expect(() => countMessage(message, counter)).toThrow("message.tool_calls");
  });

  it("counts a result that was replaced with a placeholder and restored", () => {
    const counter = callCounter();
    const result = { type: "tool_result", tool_use_id: "t", content: "a long result" };
    const message = { role: "user", content: [result] };
    const tokens = ["a long result", "[trimmed]", "a long result"].map((content) => {
      result.content = content;
      return countMessage(message, counter);
    });
    expect(tokens).toEqual([26, 22, 26]);
    expect(counter.calls).toBe(2);
  });

  it("counts only what is new when a session is parsed again, trimmed or continued", () => {
    const counter = callCounter();
    const session = JSON.stringify(generateSession(50));
    countMessages(JSON.parse(session), counter);
    const calls = counter.calls;
    countMessages(JSON.parse(session), counter);
    countMessages(JSON.parse(session).slice(0, 60), counter);
    expect(counter.calls).toBe(calls);
    const trimmed = JSON.parse(session) as { role: string; content: { content?: string }[] }[];
    for (const { role, content } of trimmed.slice(1, 41)) if (role === "user") content[0]!.content = "[trimmed]";
    countMessages([...trimmed, { role: "user", content: "And now?" }], counter);
    expect(counter.calls).toBe(calls + 2);
  });

  it("refuses results nested without end", () => {
    let nested: object = { type: "tool_result", tool_use_id: "t", content: "x" };
    const count = () => () => countMessages([{ role: "user", content: [nested] }], characterCounter());
    for (let depth = 0; depth < 8; depth++) nested = { type: "tool_result", tool_use_id: "t", content: [nested] };
    expect(count()()).toBe(3 + 4 + 9 * 9 + 1);
    for (let depth = 0; depth < 20_000; depth++) nested = { type: "tool_result", tool_use_id: "t", content: [nested] };
    expect(count()).toThrow(expect.objectContaining({ code: "invalid_message" }));
    expect(count()).toThrow("is nested more than 8 levels deep");
    const cyclic: { type: string; content: object[] } = { type: "tool_result", content: [] };
    cyclic.content.push(cyclic);
    nested = cyclic;
    expect(count()).toThrow("is nested more than 8 levels deep");
  });

  it("counts empty texts, lone surrogates and byte order marks as they are", () => {
    for (const text of ["", "\ud800", "\udc00x", "\ufeffa\r\nb"]) {
      expect(countMessage({ role: "user", content: text }, characterCounter())).toBe(4 + text.length);
    }
  });

  it("counts a tool result of 10 MB in one pass", () => {
    const content = [{ type: "tool_result", tool_use_id: "t", content: "x".repeat(10_000_000) }];
    const counter = callCounter();
    const count = (parts: object[]) => countMessage({ role: "user", content: parts }, counter);
    expect(count(content)).toBe(4 + 9 + 10_000_000);
    expect(count(structuredClone(content))).toBe(4 + 9 + 10_000_000);
    expect(counter.calls).toBe(1);
  });

  it("refuses messages that are not a list, and an unknown format", () => {
    const count = (messages: unknown, format?: string) => () =>
      countMessages(messages as object[], characterCounter(), { format: format as "rfc" });
    expect(count({})).toThrow("messages must be an array, not an object");
    expect(count([{ role: "user", content: "x" }], "smoke")).toThrow('unknown message format "smoke"');
  });
});

describe("countSystem", () => {
  it("counts a text like a list of that one block, with the frame of a message, and 0 for none", () => {
    const count = (system: unknown) => countSystem(system, characterCounter());
    expect(count("Be brief.")).toBe(4 + "Be brief.".length);
    expect(count([{ type: "text", text: "Be brief." }])).toBe(count("Be brief."));
    expect([undefined, null, ""].map(count)).toEqual([0, 0, 0]);
    expect(() => count(7)).toThrow("system must be a string or an array, not a number");
  });
});

const deep = process.env.PLIMSOLL_DEEP === "1";

const textOf = (index: number, length = 100) => `${index} `.padEnd(length, "abc");
// Texts of one length that differ in a place that no sample includes.
const alike = (index: number) => `${"line of output ".repeat(100)}${10_000 + index}${" ok".repeat(300)}`;

/** Counts characters, and how often it is called. */
function createTally(): { calls: number; count(text: string): number } {
  const tally = {
    calls: 0,
    count(text: string): number {
      tally.calls++;
      return text.length;
    },
  };
  return tally;
}

function countAll(texts: ContentCounter<string>, contents: readonly string[]): void {
  texts.restart();
  // Copies, as JSON.parse makes them.
  for (const text of JSON.parse(JSON.stringify(contents))) expect(texts.count(text)).toBe(text.length);
}

describe("the text cache", () => {
  it("counts a text once, and an equal text not again", () => {
    const tally = createTally();
    const { count } = createTextCounter(tally.count);
    expect([count(textOf(1)), count(textOf(1)), count(textOf(2))]).toEqual([100, 100, 100]);
    expect(tally.calls).toBe(2);
  });

  it("distinguishes texts that differ in one character", () => {
    const base = "x".repeat(5000);
    const check = (at: number) => {
      const { count } = createTextCounter((text) => text.split("y").length);
      const other = `${base.slice(0, at)}y${base.slice(at + 1)}`;
      expect([count(base), count(other), count(base), count(other)]).toEqual([1, 2, 1, 2]);
    };
    fc.assert(fc.property(fc.nat(4999), check), { numRuns: deep ? 5000 : 200 });
  });

  it("remembers any number of texts that are almost the same, in any order", () => {
    const tally = createTally();
    const texts = createTextCounter(tally.count);
    const contents = Array.from({ length: 400 }, (_, index) => alike(index));
    countAll(texts, contents);
    expect(tally.calls).toBe(400);
    countAll(texts, contents);
    countAll(texts, contents.toReversed());
    countAll(texts, contents.slice(100));
    expect(tally.calls).toBe(400);
  });

  it("counts only the new texts of a history where some were added, replaced, repeated or left out", () => {
    const text = fc.nat(30).map(alike);
    const check = (histories: string[][]) => {
      const tally = createTally();
      const texts = createTextCounter(tally.count);
      for (const history of histories) countAll(texts, history);
      expect(tally.calls).toBe(new Set(histories.flat()).size);
    };
    fc.assert(fc.property(fc.array(fc.array(text, { maxLength: 40 }), { maxLength: 6 }), check), {
      numRuns: deep ? 2000 : 50,
    });
  });

  it("starts over when it is full", () => {
    const tally = createTally();
    const { count } = createTextCounter(tally.count, 10_000);
    for (let index = 0; index < 20; index++) count(textOf(index));
    count(textOf(0));
    expect(tally.calls).toBe(20);
    for (let index = 20; index < 40; index++) count(textOf(index));
    count(textOf(0));
    expect(tally.calls).toBe(41);
  });

  it("does not grow with the number of look-ups", () => {
    const tally = createTally();
    const texts = createTextCounter(tally.count, 10_000);
    for (let index = 0; index < 5000; index++) texts.count("ok");
    expect(tally.calls).toBeGreaterThan(2);
    expect(tally.calls).toBeLessThan(20);
  });

  it("does not keep a text beyond its size", () => {
    const tally = createTally();
    const { count } = createTextCounter(tally.count, 1000);
    count("x".repeat(1001));
    count("x".repeat(1001));
    expect(tally.calls).toBe(2);
  });
});

describe("the arguments cache", () => {
  it("counts arguments once, whatever object holds them", () => {
    const tally = createTally();
    const { count } = createArgumentsCounter(tally.count);
    const flat = { path: "a.ts", line: 3, all: true, filter: null };
    const nested = { edits: [{ old: "x", new: ["y", { z: 1 }] }] };
    for (const args of [flat, nested, flat, nested, flat]) {
      expect(count(structuredClone(args), "")).toBe(JSON.stringify(args).length);
    }
    expect(tally.calls).toBe(2);
  });

  it("notices that the owner changed the object", () => {
    const { count } = createArgumentsCounter((text) => text.split("y").length - 1);
    const args = { edits: [{ text: "x".repeat(100) }] };
    expect(count(args, "")).toBe(0);
    for (let at = 0; at < 100; at++) {
      args.edits[0] = { text: `${"x".repeat(at)}y${"x".repeat(99 - at)}` };
      expect(count(args, "")).toBe(1);
    }
  });

  it("counts any arguments as their JSON, twice the same", () => {
    const odd = fc.oneof(fc.double(), fc.constant(undefined), fc.date());
    const value = fc.oneof(fc.jsonValue(), odd, fc.array(odd));
    const flat = fc.dictionary(fc.constantFrom("a", "b", "c"), value);
    const { count } = createArgumentsCounter(createTally().count);
    const check = (args: unknown) => {
      const expected = JSON.stringify(args).length;
      expect([count(args, ""), count(structuredClone(args), "")]).toEqual([expected, expected]);
    };
    fc.assert(fc.property(fc.oneof(flat, fc.jsonValue()), check), { numRuns: deep ? 10_000 : 500 });
    check(new Date(0));
    check([1, 2]);
  });

  it("counts what JSON leaves out as nothing", () => {
    const { count } = createArgumentsCounter((text) => text.length);
    expect([count(() => 1, ""), count(undefined, ""), count(() => 1, "")]).toEqual([0, 0, 0]);
  });
});

const input_schema = { type: "object", properties: { path: { type: "string" } } };
const read = { name: "read", description: "Reads a file.", input_schema };

describe("countTools", () => {
  it("counts a definition's JSON and the tool prompt of the model", () => {
    const json = JSON.stringify(read).length;
    const count = (model: string | undefined, toolChoice?: ToolChoice) =>
      countTools([read], characterCounter(), { model, toolChoice });
    expect(count("claude-opus-4-8")).toBe(290 + json);
    expect(count("claude-opus-4-8", "any")).toBe(410 + json);
    expect(count("anthropic/claude-sonnet-4.5")).toBe(496 + json);
    expect(count("claude-opus-4-1-20250805")).toBe(313 + json);
    expect(count("claude-sonnet-4-20250514")).toBe(313 + json);
    expect(count("claude-sonnet-5-20260630")).toBe(354 + json);
    expect(count("claude-sonnet-5-5")).toBe(675 + json);
    expect(count("claude-opus-4-9")).toBe(675 + json);
    expect(count("claude-next")).toBe(675 + json);
    expect(count(undefined, "any")).toBe(804 + json);
    expect(count("claude-opus-4-8", "tool")).toBe(410 + json);
    expect(count("claude-opus-4-8", "none")).toBe(290 + json);
  });

  it.each(["required", "", "constructor", { type: "any" }])("refuses %j as a tool choice", (toolChoice) => {
    const options = { toolChoice: toolChoice as ToolChoice };
    for (const format of ["anthropic", "rfc"] as const) {
      expect(() => countTools([read], characterCounter(), { ...options, format })).toThrow(
        expect.objectContaining({
          code: "invalid_argument",
          hint: "Tool choices are auto, any, tool, none.",
        }),
      );
    }
  });

  it("counts the provider's own tools by their fixed size and their JSON", () => {
    const bash = { type: "bash_20250124", name: "bash" };
    const search = { type: "web_search_20250305", name: "web_search" };
    const json = JSON.stringify(bash).length + JSON.stringify(search).length;
    const cached = { ...search, cache_control: { type: "ephemeral" } };
    expect(countTools([bash, cached], characterCounter(), { model: "claude-opus-4-8" })).toBe(290 + 245 + 700 + json);
  });

  it("counts RFC tools as name, description and schema, plus a fifth, plus 8 each", () => {
    const chars = "read".length + "Reads a file.".length + JSON.stringify(input_schema).length;
    const tokens = countTools([read, { name: "ls" }], characterCounter(), { format: "rfc" });
    expect(tokens).toBe(Math.ceil(chars * 1.2) + 8 + Math.ceil(2 * 1.2) + 8);
  });

  it("is 0 only for no tools", () => {
    expect(countTools([], characterCounter())).toBe(0);
    expect(countTools([{ name: "" }], characterCounter())).toBeGreaterThan(290);
  });

  it("counts a definition once, and again when anything in it was changed", () => {
    const counter = callCounter();
    const tool: Record<string, unknown> = { ...read };
    const first = countTools([tool], counter);
    expect(countTools([tool], counter)).toBe(first);
    expect(counter.calls).toBe(1);
    tool.description = "Reads a file quickly.";
    expect(countTools([tool], counter)).toBe(first + " quickly".length);
    tool.name = "read_quickly";
    expect(countTools([tool], counter)).toBe(first + " quickly".length + "_quickly".length);
    tool.input_schema = { type: "object", properties: {} };
    const emptied = countTools([tool], counter);
    expect(emptied).toBeLessThan(first);
    Object.assign(tool.input_schema as object, { properties: { path: {} } });
    expect(countTools([tool], counter)).toBe(emptied + '"path":{}'.length);
  });

  it("names the path of what is malformed", () => {
    const count = (tools: unknown) => () => countTools(tools as object[], characterCounter());
    expect(count([read, 7])).toThrow("tools[1] must be an object, not a number");
    expect(count([{ description: "x" }])).toThrow("tools[0].name must be a string, not undefined");
    expect(count("x")).toThrow("tools must be an array, not a string");
  });
});

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 20_000 : 300;

describe("a snapshot", () => {
  it("matches exactly the values that JSON writes like the original", () => {
    const check = (left: unknown, right: unknown) => {
      expect(takeSnapshot(left)(structuredClone(left))).toBe(true);
      expect(takeSnapshot(left)(right)).toBe(JSON.stringify(left) === JSON.stringify(right));
    };
    // Few letters and numbers, so that values are often equal.
    const value = fc.letrec((tie) => ({
      any: fc.oneof({ maxDepth: 3 }, fc.constantFrom("a", "b", 0, 1, null), tie("list"), tie("fields")),
      list: fc.array(tie("any"), { maxLength: 2 }),
      fields: fc.dictionary(fc.constantFrom("a", "b"), tie("any"), { maxKeys: 2, noNullPrototype: true }),
    })).any;
    fc.assert(fc.property(value, value, check), { numRuns });
  });

  it.each([
    ["a longer value", { a: { b: ["x", "y"] } }],
    ["a shorter one", { a: { b: [] } }],
    ["another name", { a: { c: ["x"] } }],
    ["a list for an object", { a: [["x"]] }],
    ["a further field", { a: { b: ["x"] }, c: 1 }],
    ["another value of the same length", { a: { b: ["y"] } }],
  ])("does not fit %s", (_, changed) => {
    expect(takeSnapshot({ a: { b: ["x"] } })(changed)).toBe(false);
  });

  it("compares bytes by identity", () => {
    const image = new Uint8Array(4_000_000);
    const message = { role: "user", content: [{ type: "image", image }] };
    const isUnchanged = takeSnapshot(message);
    expect(isUnchanged(message)).toBe(true);
    image[0] = 1;
    expect(isUnchanged(message)).toBe(true);
    expect(isUnchanged({ role: "user", content: [{ type: "image", image: image.slice() }] })).toBe(false);
  });

  it("compares very deep values by identity, and ends at cycles", () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    expect(takeSnapshot(cyclic)(cyclic)).toBe(true);
    expect(takeSnapshot(cyclic)({ ...cyclic })).toBe(true);
    const nest = () => JSON.parse(`${"[".repeat(100)}${"]".repeat(100)}`) as unknown;
    const nested = nest();
    expect(takeSnapshot(nested)(nested)).toBe(true);
    expect(takeSnapshot(nested)(nest())).toBe(false);
    expect(isSameJson(nest(), nest())).toBe(false);
  });
});

describe("isSameJson", () => {
  it("is true only if JSON writes the same", () => {
    const plain = fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom<unknown>("x", 0, 1, null, [], ["x"], {}));
    const odd = fc.constantFrom<unknown>(undefined, Number.NaN, -0, new Date(0), Object("x"), () => 1, Array(2));
    const value = fc.dictionary(fc.constantFrom("a", "b"), fc.oneof(fc.constantFrom<unknown>("x", 0, null), odd));
    const check = (left: unknown, right: unknown) => {
      const parsed = JSON.parse(JSON.stringify(left));
      if (isSameJson(parsed, right)) expect(JSON.stringify(right)).toBe(JSON.stringify(left));
    };
    fc.assert(fc.property(plain, fc.oneof(plain, value), check), { numRuns });
  });

  it("is true for a copy", () => {
    const check = (json: string) => {
      expect(isSameJson(JSON.parse(json), JSON.parse(json))).toBe(true);
    };
    fc.assert(fc.property(fc.json({ maxDepth: 5 }), check), { numRuns });
  });
});
