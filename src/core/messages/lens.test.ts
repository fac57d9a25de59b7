import { describe, expect, it } from "vitest";
import { countMessages } from "./count-messages.ts";
import { callCounter, characterCounter, generateSession } from "./formats/message-format.contract.ts";
import { createMessageLens } from "./lens.ts";

const seal = (bytes: number) => "A".repeat(((bytes + 174) * 4) / 3);

describe("a message lens", () => {
  it("counts a conversation as countMessages does, part by part", () => {
    const session = generateSession(20);
    const lens = createMessageLens(session, { counter: characterCounter() });
    const messages = session.map((message, index) => lens.read(message, index));
    const sum = messages.reduce((total, { tokens }) => total + tokens, lens.requestTokens);
    expect(sum).toBe(countMessages(session, characterCounter()));
    expect(messages[1]?.parts.map(({ kind }) => kind)).toEqual(["thinking", "text", "tool_call"]);
    expect(messages[2]).toMatchObject({
      role: "user",
      parts: [{ kind: "tool_result", callId: "toolu_1_0" }],
    });
  });

  it("recognises the format from the messages it is made for, and reads others of it", () => {
    const counter = characterCounter();
    const tool = { role: "tool", tool_call_id: "c", content: "x" };
    expect(createMessageLens([tool], { counter }).format).toBe("openai");
    expect(createMessageLens([], { counter }).format).toBe("anthropic");
    expect(createMessageLens([], { counter, format: "rfc" }).read({ role: "tool", content: "x" }, 0).tokens).toBe(
      8 + 1,
    );
  });

  it("counts sealed content by its readable text if asked", () => {
    const sealed = [
      { type: "thinking", thinking: "x".repeat(60), signature: seal(180) },
      { type: "thinking", thinking: "", signature: seal(300) },
      { type: "redacted_thinking", data: seal(300) },
      {
        type: "web_search_tool_result",
        tool_use_id: "s",
        content: [{ url: "u", encrypted_content: seal(300) }],
      },
    ];
    const message = { role: "assistant", content: sealed };
    const read = (options: object) =>
      createMessageLens([message], { counter: characterCounter(), ...options }).read(message, 0);
    const shown = 9 + '{"url":"u"}'.length;
    expect(read({}).parts.map(({ tokens }) => tokens)).toEqual([180, 100, 100, shown + 100]);
    expect(read({ sealed: "billed" })).toEqual(read({}));
    expect(read({ sealed: "readable" }).parts.map(({ tokens }) => tokens)).toEqual([60, 0, 0, shown]);
    expect(() => read({ sealed: "open" })).toThrow(expect.objectContaining({ code: "invalid_argument" }));
  });

  it("counts nothing when the messages are parsed again", () => {
    const counter = callCounter();
    const json = JSON.stringify(generateSession(30));
    const read = () => {
      const session: object[] = JSON.parse(json);
      const lens = createMessageLens(session, { counter });
      return session.map((message, index) => lens.read(message, index).tokens);
    };
    const tokens = read();
    const { calls } = counter;
    expect(read()).toEqual(tokens);
    expect(counter.calls).toBe(calls);
  });

  it("names the index of a message that is malformed", () => {
    const lens = createMessageLens([], { counter: characterCounter() });
    const read = (message: unknown) => () => lens.read(message as object, 7);
    expect(read(null)).toThrow("messages[7] must be an object, not null");
    expect(read({ role: "user", content: [{ type: "text" }] })).toThrow("messages[7].content[0].text");
    const none = undefined as unknown as object[];
    expect(() => createMessageLens(none, { counter: characterCounter() })).toThrow("messages must be an array");
  });

  it("edits, merges and makes messages of its format", () => {
    const lens = createMessageLens([], { counter: characterCounter(), format: "anthropic" });
    const hello = { role: "user", content: "hello" };
    expect(lens.edit(hello, new Map([[0, { action: "replace", text: "bye" }]]))).toEqual({
      role: "user",
      content: "bye",
    });
    const result = lens.toolResult({ callId: "c", toolName: undefined }, "x");
    expect(lens.read(lens.merge(result, hello) as object, 0).parts.map(({ kind }) => kind)).toEqual([
      "tool_result",
      "text",
    ]);
    expect(lens.merge(hello, lens.assistantText("hi"))).toBe(undefined);
  });
});
