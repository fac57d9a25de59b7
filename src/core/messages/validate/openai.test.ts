import { describe, expect, it } from "vitest";
import { validateRequest } from "./index.ts";

const user = { role: "user", content: "list" };
const call = (id: string, args = "{}") => ({
  id,
  type: "function",
  function: { name: "ls", arguments: args },
});
const calls = (...tool_calls: object[]) => ({ role: "assistant", content: null, tool_calls });
const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "a.ts" });

function find(request: object, strict = false): string[] {
  return validateRequest(request, { provider: "openai", format: "openai", strict }).map(
    ({ path, rule }) => `${path} ${rule}`,
  );
}

describe("calls of chat completions", () => {
  it("must be answered by tool messages that follow directly, in any order", () => {
    expect(find([user, calls(call("a"), call("b")), result("b"), result("a"), user])).toEqual([]);
    expect(find([user, calls(call("a"), call("b")), result("a"), user])).toEqual([
      "messages[1].tool_calls[1].id unanswered-call",
    ]);
    expect(find([user, calls(call("a")), user, result("a")])).toEqual([
      "messages[1].tool_calls[0].id unanswered-call",
      "messages[3].tool_call_id orphan-result",
    ]);
  });

  it("may be open at the end of a history, but not of a request", () => {
    const messages = [user, calls(call("a"))];
    expect(find(messages)).toEqual([]);
    expect(find({ messages })).toEqual(["messages[1].tool_calls[0].id unanswered-call"]);
    expect(find([user, calls(call("a"), call("b")), result("a")])).toEqual([
      "messages[1].tool_calls[1].id unanswered-call",
    ]);
  });

  it("must have one result each, and results a call", () => {
    expect(find([user, calls(call("a")), result("a"), result("a"), result("z")])).toEqual([
      "messages[3].tool_call_id duplicate-result",
      "messages[4].tool_call_id orphan-result",
    ]);
    expect(find([user, result("a")])).toEqual(["messages[1].tool_call_id orphan-result"]);
  });

  it("must have ids that are unique in their turn; strict mode warns of reuse in later turns", () => {
    expect(find([user, calls(call("a"), call("a")), result("a")])).toEqual([
      "messages[1].tool_calls[1].id duplicate-call-id",
    ]);
    const again = [user, calls(call("a")), result("a"), calls(call("a")), result("a")];
    expect(find(again)).toEqual([]);
    expect(validateRequest(again, { strict: true })).toMatchObject([
      { path: "messages[3].tool_calls[0].id", rule: "reused-call-id", severity: "warning" },
    ]);
  });

  it("must have ids of 1 to 40 characters", () => {
    expect(find([user, calls(call("a".repeat(40))), result("a".repeat(40))])).toEqual([]);
    expect(find([user, calls(call("a".repeat(41))), result("a".repeat(41))])).toEqual([
      "messages[1].tool_calls[0].id tool-id",
      "messages[2].tool_call_id tool-id",
    ]);
    expect(find([user, calls(call("a")), result("a"), { role: "tool", content: "x" }])).toEqual([
      "messages[3].tool_call_id tool-id",
    ]);
  });

  it("must have JSON arguments", () => {
    const withArguments = (args: string) => find([user, calls(call("a", args)), result("a")]);
    expect(withArguments('{"path":"."}')).toEqual([]);
    for (const args of ["", " ", '{"path":']) {
      expect(withArguments(args)).toEqual(["messages[1].tool_calls[0].function.arguments call-arguments"]);
    }
    const custom = { id: "a", type: "custom", custom: { name: "shell", input: "ls -l" } };
    expect(find([user, calls(custom), result("a")])).toEqual([]);
  });

  it("must not be an empty list", () => {
    expect(find([user, { role: "assistant", content: "x", tool_calls: [] }])).toEqual([
      "messages[1].tool_calls empty-tool-calls",
    ]);
  });
});

describe("messages of chat completions", () => {
  it("may repeat a role, and have system messages anywhere", () => {
    const system = { role: "developer", content: "be brief" };
    expect(find([system, user, user, system, user], true)).toEqual([]);
  });

  it("of the assistant must have content, unless they call or refuse", () => {
    expect(find([user, { role: "assistant", content: null }])).toEqual(["messages[1].content empty-message"]);
    expect(find([user, { role: "assistant", content: null, refusal: "no" }])).toEqual([]);
    expect(find([user, { role: "assistant", content: "" }])).toEqual([]);
    expect(find([{ role: "user", content: [] }])).toEqual(["messages[0].content empty-message"]);
  });

  it("may have images only from the user", () => {
    const image = { type: "image_url", image_url: { url: "https://example.com/a.png" } };
    expect(find([{ role: "user", content: [image] }])).toEqual([]);
    expect(find([user, calls(call("a")), { role: "tool", tool_call_id: "a", content: [image] }])).toEqual([
      "messages[2].content[0].type block-role",
    ]);
  });
});
