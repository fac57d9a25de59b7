import { describe, expect, it } from "vitest";
import { validateRequest } from "./index.ts";

const user = { role: "user", content: "list" };
const said = { type: "message", role: "assistant", content: [{ type: "output_text", text: "ok" }] };
const call = (call_id: string, args = "{}") => ({
  type: "function_call",
  call_id,
  name: "ls",
  arguments: args,
});
const output = (call_id: string) => ({ type: "function_call_output", call_id, output: "a.ts" });
const reasoning = (id?: string) => ({ type: "reasoning", id, summary: [], encrypted_content: "x" });

function find(request: object, strict = false): string[] {
  const problems = validateRequest(request, { format: "responses", strict });
  return problems.map(({ path, rule }) => `${path} ${rule}`);
}

describe("calls among response items", () => {
  it("must be answered at some point after them", () => {
    expect(find([user, call("a"), call("b"), said, output("b"), output("a"), user])).toEqual([]);
    expect(find({ input: [user, call("a"), call("b"), output("b"), user] })).toEqual([
      "input[1].call_id unanswered-call",
    ]);
    expect(find([user, output("a"), call("a"), user])).toEqual([
      "messages[1].call_id orphan-result",
      "messages[2].call_id unanswered-call",
    ]);
  });

  it("may be open at the end of a history, but not of a request", () => {
    expect(find([user, reasoning("rs_1"), call("a"), call("b")])).toEqual([]);
    expect(find([user, call("a"), call("b"), output("a")])).toEqual(["messages[2].call_id unanswered-call"]);
    expect(find({ input: [user, call("a")] })).toEqual(["input[1].call_id unanswered-call"]);
  });

  it("must be answered once, and must not reuse the id of an open call", () => {
    expect(find([user, call("a"), output("a"), output("a")])).toEqual(["messages[3].call_id duplicate-result"]);
    expect(find([user, call("a"), output("a"), call("a"), output("a")])).toEqual([]);
    expect(find([user, call("a"), call("a"), output("a"), output("a")])).toEqual([
      "messages[2].call_id duplicate-call-id",
      "messages[4].call_id duplicate-result",
    ]);
  });

  it("may be held by the provider", () => {
    expect(find({ input: [output("a")] })).toEqual(["input[0].call_id orphan-result"]);
    expect(find({ input: [output("a")], previous_response_id: "resp_1" })).toEqual([]);
    expect(find({ input: [output("a")], conversation: { id: "conv_1" } })).toEqual([]);
    expect(find({ input: [{ type: "item_reference", id: "fc_1" }, output("a")] })).toEqual([]);
  });

  it("of other kinds are paired the same way", () => {
    const custom = { type: "custom_tool_call", call_id: "c", name: "sh", input: "ls" };
    expect(find([user, custom, { type: "custom_tool_call_output", call_id: "c", output: "x" }])).toEqual([]);
    expect(find([user, custom, user])).toEqual(["messages[1].call_id unanswered-call"]);
    const action = { type: "exec", command: ["ls"], env: {} };
    const shell = { type: "local_shell_call", id: "lsh_1", call_id: "s", action, status: "completed" };
    expect(find([user, shell, { type: "local_shell_call_output", id: "s", output: "x" }, user])).toEqual([]);
  });

  it("must have ids of 1 to 64 characters and JSON arguments", () => {
    const long = "a".repeat(65);
    expect(find([user, call(long), output(long)])).toEqual(["messages[1].call_id tool-id"]);
    expect(find([user, call("a", "{"), output("a")])).toEqual(["messages[1].arguments call-arguments"]);
    expect(find([user, call("a", ""), output("a")])).toEqual(["messages[1].arguments call-arguments"]);
  });
});

describe("reasoning items", () => {
  it("must come with the item that follows them", () => {
    expect(find([user, reasoning("rs_1"), said, user])).toEqual([]);
    expect(find([user, reasoning("rs_1"), reasoning("rs_2"), call("a"), output("a")])).toEqual([]);
    expect(find([user, reasoning("rs_1"), user])).toEqual(["messages[1] reasoning-alone"]);
    expect(find([user, reasoning("rs_1")])).toEqual(["messages[1] reasoning-alone"]);
    expect(find([user, call("a"), reasoning("rs_1"), output("a")])).toEqual(["messages[2] reasoning-alone"]);
  });

  it("without an id are reported only in strict mode", () => {
    expect(find([user, reasoning(), user])).toEqual([]);
    expect(find([user, reasoning(), user], true)).toEqual(["messages[1] reasoning-alone"]);
  });
});

describe("ids of items", () => {
  it("must be unique and begin with their type's prefix", () => {
    expect(find([user, { ...call("a"), id: "fc_1" }, output("a"), { ...call("b"), id: "fc_1" }])).toEqual([
      "messages[3].id duplicate-item-id",
    ]);
    expect(find([user, { ...call("a"), id: "call_1" }, output("a")])).toEqual(["messages[1].id item-id"]);
    expect(find([user, reasoning("msg_1"), said])).toEqual(["messages[1].id item-id"]);
  });
});

it("an approval must answer a request for it", () => {
  const request = {
    type: "mcp_approval_request",
    id: "mcpr_1",
    name: "ls",
    arguments: "{}",
    server_label: "s",
  };
  const response = { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true };
  expect(find([user, request, response])).toEqual([]);
  expect(find([user, response])).toEqual(["messages[1].approval_request_id orphan-approval"]);
  expect(find({ input: [response], previous_response_id: "resp_1" })).toEqual([]);
});
