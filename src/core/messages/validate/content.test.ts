import { describe, expect, it } from "vitest";
import { ask, assistant, call, find, text, user } from "./sample-messages.contract.ts";

describe("content", () => {
  it("must not be empty, except in a last assistant message", () => {
    expect(find([{ role: "user", content: "" }])).toEqual(["messages[0].content empty-message"]);
    expect(find([ask, assistant(), ask])).toEqual(["messages[1].content empty-message"]);
    expect(find([ask, assistant()])).toEqual([]);
  });

  it("must not have a text without a visible character", () => {
    expect(find([user(text("a"), text(""), text(" \n"))])).toEqual([
      "messages[0].content[1].text empty-text",
      "messages[0].content[2].text empty-text",
    ]);
    expect(find([{ role: "user", content: "  " }])).toEqual(["messages[0].content empty-text"]);
    expect(find({ system: [text("a"), text("")], messages: [ask] })).toEqual(["system[1].text empty-text"]);
    expect(find({ system: 7, messages: [ask] })).toEqual(["system shape"]);
    expect(find({ system: [{ type: "image" }], messages: [ask] })).toEqual(["system[0] shape"]);
  });

  it("of a result may be missing or empty, but must not hold an empty text", () => {
    const answered = (content: unknown) => [
      ask,
      assistant(call("a")),
      user({ type: "tool_result", tool_use_id: "a", content }),
    ];
    expect(find(answered(undefined))).toEqual([]);
    expect(find(answered(""))).toEqual([]);
    expect(find(answered([]))).toEqual([]);
    expect(find(answered([text("a"), text("")]))).toEqual(["messages[2].content[0].content[1].text empty-text"]);
  });

  it("of the last assistant message must not end with white space, in strict mode", () => {
    expect(find([ask, assistant(text("x ")), ask], true)).toEqual([]);
    expect(find([ask, assistant(text("x "))])).toEqual([]);
    expect(find([ask, assistant(text("x "))], true)).toEqual(["messages[1].content[0].text trailing-white-space"]);
    expect(find([ask, { role: "assistant", content: "x\n" }], true)).toEqual([
      "messages[1].content trailing-white-space",
    ]);
  });
});
