import { expect, it } from "vitest";
import { validateRequest } from "./index.ts";

const user = { role: "user", content: "list" };
const call = (id: unknown, type = "tool_use") => ({ type, id, name: "ls", args: {} });
const calls = (...content: object[]) => ({ role: "assistant", content });
const result = (id: unknown) => ({ type: "tool_result", tool_use_id: id, content: "a.ts" });
const results = (...content: object[]) => ({ role: "tool", content });

function find(messages: object[], strict = false): string[] {
  return validateRequest(messages, { format: "rfc", strict }).map(({ path, rule }) => `${path} ${rule}`);
}

it("calls must be answered by tool messages directly after them", () => {
  expect(find([user, calls(call("a"), call("b", "tool_call")), results(result("b"), result("a"))])).toEqual([]);
  expect(find([user, calls(call("a")), calls(call("b")), results(result("a")), results(result("b"))])).toEqual([]);
  expect(find([user, calls(call("a")), user, results(result("a"))])).toEqual([
    "messages[1].content[0].id unanswered-call",
    "messages[3].content[0].tool_use_id orphan-result",
  ]);
});

it("roles need not alternate, and a history may end with a call", () => {
  expect(find([user, user, calls(call("a"))], true)).toEqual([]);
});

it("a call must have one result, and an id that is unique in its turn", () => {
  expect(find([user, calls(call("a"), call("a")), results(result("a"), result("a"))])).toEqual([
    "messages[1].content[1].id duplicate-call-id",
    "messages[2].content[1].tool_use_id duplicate-result",
  ]);
  const again = [user, calls(call("a")), results(result("a")), calls(call("a")), results(result("a"))];
  expect(find(again)).toEqual([]);
  expect(find(again, true)).toEqual(["messages[3].content[0].id reused-call-id"]);
});

it("calls belong to the assistant, results to role tool, and both must have ids", () => {
  expect(find([{ role: "user", content: [call("a")] }])).toEqual(["messages[0].content[0].type block-role"]);
  expect(find([user, calls(call("a")), { role: "user", content: [result("a")] }])).toEqual([
    "messages[2].content[0].type block-role",
  ]);
  expect(find([user, calls(call(7)), results(result(""))])).toEqual([
    "messages[1].content[0].id tool-id",
    "messages[2].content[0].tool_use_id tool-id",
  ]);
});
