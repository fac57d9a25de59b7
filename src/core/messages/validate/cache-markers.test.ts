import { describe, expect, it } from "vitest";
import { ask, assistant, call, find, text, thinking, user } from "./sample-messages.contract.ts";

describe("cache markers", () => {
  const marked = (block: object, ttl?: "5m" | "1h") => ({
    ...block,
    cache_control: { type: "ephemeral", ttl },
  });

  it("must not be on thinking or empty text, or in strict mode inside a block", () => {
    expect(find([ask, assistant(marked(thinking), text("x")), ask])).toEqual([
      "messages[1].content[0].cache_control cache-marker-place",
    ]);
    expect(find([user(marked(text(" ")), text("x"))])).toEqual([
      "messages[0].content[0].text empty-text",
      "messages[0].content[0].cache_control cache-marker-place",
    ]);
    const inner = { type: "tool_result", tool_use_id: "a", content: [marked(text("x"))] };
    const nested = [ask, assistant(call("a")), user(inner)];
    expect(find(nested)).toEqual([]);
    expect(find(nested, true)).toEqual(["messages[2].content[0].content[0].cache_control cache-marker-place"]);
  });

  it("are at most four, counted over tools, system and messages", () => {
    const tools = [marked({ name: "ls", input_schema: {} })];
    const full = {
      tools,
      system: [marked(text("s"))],
      messages: [user(marked(text("a")), marked(text("b")))],
    };
    expect(find(full)).toEqual([]);
    expect(find({ ...full, messages: [...full.messages, user(marked(text("c")))] })).toEqual([
      "messages[1].content[0].cache_control cache-marker-count",
    ]);
    const none = { ...text("c"), cache_control: null };
    expect(find({ ...full, messages: [...full.messages, user(none)] })).toEqual([]);
  });

  it("of an hour must come before those of 5 minutes", () => {
    expect(find([user(marked(text("a"), "1h"), marked(text("b")))])).toEqual([]);
    expect(find([user(marked(text("a")), marked(text("b"), "1h"))])).toEqual([
      "messages[0].content[1].cache_control.ttl cache-marker-order",
    ]);
  });

  it("of the request itself need a slot, and must agree with a marker at the same place", () => {
    const automatic = { cache_control: { type: "ephemeral" } };
    expect(find({ ...automatic, messages: [user(marked(text("a"), "5m"))] })).toEqual([]);
    expect(find({ ...automatic, messages: [user(marked(text("a"), "1h"))] })).toEqual([
      "cache_control cache-marker-conflict",
    ]);
    const four = user(...["a", "b", "c", "d"].map((each) => marked(text(each))), text("e"));
    expect(find({ ...automatic, messages: [four] })).toEqual(["cache_control cache-marker-count"]);
    expect(find({ messages: [four] })).toEqual([]);
  });
});
