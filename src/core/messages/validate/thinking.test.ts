import { describe, expect, it } from "vitest";
import { ask, assistant, call, find, result, text, thinking, user } from "./sample-messages.contract.ts";

describe("thinking", () => {
  it("must be signed and must not end a message", () => {
    const unsigned = { type: "thinking", thinking: "so", signature: "" };
    expect(find([ask, assistant(thinking, text("x")), ask])).toEqual([]);
    expect(find([ask, assistant(unsigned, text("x")), ask])).toEqual([
      "messages[1].content[0].signature thinking-signature",
    ]);
    expect(find([ask, assistant(text("x"), thinking), ask])).toEqual(["messages[1].content[1] thinking-last"]);
    expect(find([ask, assistant(thinking), assistant(text("x")), ask])).toEqual([]);
  });

  it("must begin a turn whose tools are in progress, if it is enabled with a budget", () => {
    const turn = [ask, assistant(call("a")), user(result("a"))];
    const enabled = { type: "enabled", budget_tokens: 2000 };
    expect(find({ thinking: enabled, messages: turn })).toEqual(["messages[1].content thinking-missing"]);
    expect(find({ thinking: { type: "adaptive" }, messages: turn })).toEqual([]);
    const begun = [ask, assistant(thinking, call("a")), user(result("a")), assistant(call("b")), user(result("b"))];
    expect(find({ thinking: enabled, messages: begun })).toEqual([]);
    expect(find({ thinking: enabled, messages: [...turn, assistant(text("x")), ask] })).toEqual([]);
  });
});
