import { describe, expect, it } from "vitest";
import { validateRequest } from "./index.ts";
import { ask, assistant, call, find, result, text, user } from "./sample-messages.contract.ts";

describe("settings", () => {
  it("of a compaction cannot be combined with an edit or a turn in progress", () => {
    const compaction = { type: "summarize" };
    const messages = [ask, assistant(text("x")), ask];
    expect(find({ compaction, messages })).toEqual([]);
    const context_management = { edits: [null, { type: "compact_20260112" }] };
    expect(find({ compaction, context_management, messages })).toEqual(["compaction compaction-edit"]);
    const open = [ask, assistant(call("a")), user(result("a"))];
    expect(find({ compaction, messages: open })).toEqual(["compaction compaction-mid-turn"]);
    const failed = (content: unknown) => [assistant({ type: "compaction", content }, text("x")), ask];
    expect(find(failed(null))).toEqual([]);
    expect(find(failed(""))).toEqual(["messages[0].content[0].content compaction-content"]);
  });

  it("should include tools if there are calls, as a warning in strict mode", () => {
    const messages = [ask, assistant(call("a")), user(result("a"))];
    expect(find({ messages })).toEqual([]);
    expect(validateRequest({ messages }, { strict: true })).toMatchObject([
      { path: "tools", rule: "tools-missing", severity: "warning" },
    ]);
    expect(find({ messages, tools: [{ name: "ls", input_schema: {} }] }, true)).toEqual([]);
  });
});
