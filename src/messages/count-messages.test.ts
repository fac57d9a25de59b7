import { describe, expect, it } from "vitest";
import { countMessage, countMessages, countSystem } from "./count-messages.ts";
import { callCounter, characterCounter, generateSession } from "./formats/message-format.contract.ts";

describe("countMessages", () => {
  it("is 0 for no messages and the sum of its messages plus one frame otherwise", () => {
    expect(countMessages([], characterCounter())).toBe(0);
    const session = generateSession(5);
    const counter = characterCounter();
    const sum = session.reduce(
      (total, message) => total + countMessage(message, counter, { format: "anthropic" }),
      0,
    );
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
    expect(countMessage(message, counter, { format: "anthropic", model: "claude-opus-4-8" })).toBe(
      4 + 69 * 69,
    );
    expect(countMessage(message, counter, { format: "anthropic", model: "claude-opus-4-5" })).toBe(
      4 + 39 * 39,
    );
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
    const gif = (edge: number) =>
      Buffer.from(`GIF89a${String.fromCharCode(edge, 0, edge, 0)}\0\0\0`, "latin1");
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

  it("counts a result that was put into a placeholder's place and taken out again", () => {
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

  it("asks the counter for nothing when a session is parsed anew, trimmed or continued, save for what is new", () => {
    const counter = callCounter();
    const session = JSON.stringify(generateSession(50));
    countMessages(JSON.parse(session), counter);
    const calls = counter.calls;
    countMessages(JSON.parse(session), counter);
    countMessages(JSON.parse(session).slice(0, 60), counter);
    expect(counter.calls).toBe(calls);
    const trimmed = JSON.parse(session) as { role: string; content: { content?: string }[] }[];
    for (const { role, content } of trimmed.slice(1, 41))
      if (role === "user") content[0]!.content = "[trimmed]";
    countMessages([...trimmed, { role: "user", content: "And now?" }], counter);
    expect(counter.calls).toBe(calls + 2);
  });

  it("refuses results nested without end", () => {
    let nested: object = { type: "tool_result", tool_use_id: "t", content: "x" };
    const count = () => () => countMessages([{ role: "user", content: [nested] }], characterCounter());
    for (let depth = 0; depth < 8; depth++)
      nested = { type: "tool_result", tool_use_id: "t", content: [nested] };
    expect(count()()).toBe(3 + 4 + 9 * 9 + 1);
    for (let depth = 0; depth < 20_000; depth++)
      nested = { type: "tool_result", tool_use_id: "t", content: [nested] };
    expect(count()).toThrow(expect.objectContaining({ code: "invalid_message" }));
    expect(count()).toThrow("is nested more than 8 levels deep");
    const cyclic: { type: string; content: object[] } = { type: "tool_result", content: [] };
    cyclic.content.push(cyclic);
    nested = cyclic;
    expect(count()).toThrow("is nested more than 8 levels deep");
  });

  it("takes empty texts, lone surrogates and byte order marks as they are", () => {
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

  it("refuses what is no list and a format that does not exist", () => {
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
