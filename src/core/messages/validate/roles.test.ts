import { describe, expect, it } from "vitest";
import { ask, assistant, call, find, result, text, thinking, user } from "./sample-messages.contract.ts";

const system = { role: "system", content: "be brief" };

describe("roles", () => {
  it("must start with the user, or with a summary", () => {
    expect(find([assistant(text("hi")), ask])).toEqual(["messages[0].role first-message"]);
    expect(find([system, assistant(text("hi")), ask])).toEqual(["messages[1].role first-message"]);
    const summary = { type: "compaction", content: "so far", encrypted_content: "x" };
    expect(find([assistant(summary), ask])).toEqual([]);
  });

  it("need not alternate, except in strict mode", () => {
    const messages = [ask, ask, assistant(text("a")), assistant(text("b")), ask];
    expect(find(messages)).toEqual([]);
    expect(find(messages, true)).toEqual(["messages[1].role alternation", "messages[3].role alternation"]);
  });

  it("must end with the user in a strict request; a history may end with the assistant", () => {
    const messages = [ask, assistant(text("done"))];
    expect(find(messages, true)).toEqual([]);
    expect(find({ messages })).toEqual([]);
    expect(find({ messages }, true)).toEqual(["messages[1].role last-message"]);
    const paused = [ask, assistant({ type: "server_tool_use", id: "s1", name: "web_search", input: {} })];
    expect(find({ messages: paused }, true)).toEqual([]);
  });

  it("of system messages must follow the user's and precede the assistant's", () => {
    expect(find({ messages: [ask, system] })).toEqual([]);
    expect(find({ messages: [ask, system, assistant(text("a")), ask] })).toEqual([]);
    expect(find({ messages: [system, ask] })).toEqual(["messages[0].role system-position"]);
    expect(find({ messages: [ask, system, ask] })).toEqual(["messages[1].role system-position"]);
    expect(find({ messages: [ask, assistant(text("a")), system, ask] })).toEqual(["messages[2].role system-position"]);
    const search = assistant({ type: "server_tool_use", id: "s1", name: "web_search", input: {} });
    expect(find({ messages: [ask, search, system] })).toEqual([]);
    const image = { role: "system", content: [{ type: "image", source: { type: "url", url: "u" } }] };
    expect(find({ messages: [ask, image] })).toEqual(["messages[1].content[0].type block-role"]);
  });

  it("of a bare history may start with the system prompt, but not have it in the middle", () => {
    expect(find([system, system, ask])).toEqual([]);
    expect(find([system])).toEqual([]);
    expect(find([system, ask, assistant(text("a")), system, ask])).toEqual(["messages[3].role system-position"]);
  });

  it("allow only their own blocks", () => {
    expect(find([user(call("a")), assistant(result("a"), text("b"))])).toEqual([
      "messages[0].content[0].type block-role",
      "messages[1].content[0].type block-role",
    ]);
    expect(find([user(thinking, text("x"))])).toEqual(["messages[0].content[0].type block-role"]);
  });

  it("are limited to 100,000 messages", { tags: ["deep"] }, () => {
    const messages = new Array(100_001).fill(ask);
    expect(find(messages)).toEqual(["messages[100000] too-many-messages"]);
    expect(find(messages.slice(1))).toEqual([]);
  });
});
