import { describe, expect, it } from "vitest";
import { validateRequest } from "./index.ts";
import { ask, assistant, call, find, result, text, user } from "./sample-messages.contract.ts";

describe("calls", () => {
  it("must all be answered in the next message", () => {
    expect(find([ask, assistant(call("a"), call("b")), user(result("b"), result("a"), text("ok"))])).toEqual([]);
    expect(find([ask, assistant(call("a"), call("b")), user(result("b"))])).toEqual([
      "messages[1].content[0].id unanswered-call",
    ]);
    expect(find([ask, assistant(call("a")), ask])).toEqual(["messages[1].content[0].id unanswered-call"]);
    const late = [ask, assistant(call("a")), ask, assistant(text("x")), user(result("a"))];
    expect(find(late)).toEqual([
      "messages[1].content[0].id unanswered-call",
      "messages[4].content[0].tool_use_id orphan-result",
    ]);
    expect(validateRequest(late)[1]?.message).toBe(
      'answers no call of the previous turn: "a" was called earlier, in messages[1].content[0].id',
    );
  });

  it("may be open at the end of a history, but not of a request", () => {
    const messages = [ask, assistant(text("x"), call("a"))];
    expect(find(messages, true)).toEqual([]);
    expect(find({ messages })).toEqual(["messages[1].content[1].id unanswered-call"]);
  });

  it("and results of neighbours of the same role count as one turn, because the API merges them", () => {
    expect(find([ask, assistant(call("a")), assistant(call("b")), user(result("a")), user(result("b"))])).toEqual([]);
    expect(find([ask, assistant(call("a")), user(result("a")), user(text("x")), user(result("a"))])).toEqual([
      "messages[4].content[0].tool_use_id duplicate-result",
      "messages[4].content[0] results-first",
    ]);
  });

  it("must exist for each result, and have one result each", () => {
    expect(find([user(result("z"))])).toEqual(["messages[0].content[0].tool_use_id orphan-result"]);
    expect(find([ask, assistant(call("a")), user(result("a"), result("a"))])).toEqual([
      "messages[2].content[1].tool_use_id duplicate-result",
    ]);
  });

  it("must have unique ids in a request", () => {
    const turns = [ask, assistant(call("a")), user(result("a")), assistant(call("a")), user(result("a"))];
    expect(find(turns)).toEqual(["messages[3].content[0].id duplicate-call-id"]);
    expect(find([ask, assistant(call("a"), call("a")), user(result("a"))])).toEqual([
      "messages[1].content[1].id duplicate-call-id",
    ]);
  });

  it("must have ids of letters, digits, _ and -, and a wrong id is reported once", () => {
    expect(find([ask, assistant(call("a~2")), user(result("a~2"))])).toEqual([
      "messages[1].content[0].id tool-id",
      "messages[2].content[0].tool_use_id tool-id",
    ]);
    const nameless = { type: "tool_result", content: "x" };
    expect(find([ask, assistant(call("a")), user(result("a"), nameless)])).toEqual([
      "messages[2].content[1].tool_use_id tool-id",
    ]);
  });

  it("must have an object as input", () => {
    for (const input of [undefined, null, "{}", []]) {
      const block = { type: "tool_use", id: "a", name: "ls", input };
      expect(find([ask, assistant(block), user(result("a"))])).toEqual(["messages[1].content[0].input call-input"]);
    }
  });

  it("must have their results before other content of the user's turn", () => {
    const turn = [ask, assistant(call("a"), call("b"))];
    expect(find([...turn, user(text("x"), result("a"), result("b"))])).toEqual([
      "messages[2].content[1] results-first",
      "messages[2].content[2] results-first",
    ]);
    expect(find([...turn, { role: "user", content: "x" }, user(result("a"), result("b"))])).toEqual([
      "messages[3].content[0] results-first",
      "messages[3].content[1] results-first",
    ]);
  });

  it("of the provider's tools must have their results in the same message", () => {
    const search = { type: "server_tool_use", id: "s1", name: "web_search", input: {} };
    const found = { type: "web_search_tool_result", tool_use_id: "s1", content: [] };
    expect(find([ask, assistant(search, found, text("x")), ask])).toEqual([]);
    expect(find([ask, assistant(search)])).toEqual([]);
    expect(find([ask, assistant(search), ask, assistant(text("x"))])).toEqual([
      "messages[1].content[0].id unanswered-server-call",
    ]);
    expect(find([ask, assistant(found, text("x")), ask])).toEqual([
      "messages[1].content[0].tool_use_id orphan-server-result",
    ]);
    const code = { type: "server_tool_use", id: "s1", name: "code_execution", input: {} };
    const waiting = [ask, assistant(code, call("a")), user(result("a")), assistant(text("x"))];
    expect(find(waiting)).toEqual([]);
  });
});
