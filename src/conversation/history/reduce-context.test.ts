import { expect, test } from "vitest";
import { createContextManager } from "./rfc-context.ts";
import { reduceContext } from "./rfc-repairs.ts";

const tag = "<checkpoint_id>abc-123</checkpoint_id>";
const call = (id: string) => ({ type: "tool_use", id, name: "ls", args: { note: tag } });
const result = (id: string, content: string) => ({
  role: "tool",
  content: [{ type: "tool_result", tool_use_id: id, content }],
});

test("checkpoint tags are removed from texts and results, never from a call", () => {
  const messages = [
    { role: "user", content: `${tag}\nHello, world!` },
    { role: "assistant", content: [{ type: "text", text: `hi\n${tag}` }, call("c1")] },
    result("c1", `${tag}a`),
  ];
  const before = structuredClone(messages);
  expect(reduceContext(messages)).toEqual([
    { role: "user", content: "Hello, world!" },
    { role: "assistant", content: [{ type: "text", text: "hi" }, call("c1")] },
    result("c1", "a"),
  ]);
  expect(messages).toEqual(before);
});

test("two results after two calls become one message with both in order", () => {
  const assistant = { role: "assistant", content: [call("c1"), call("c2")] };
  const reduced = reduceContext([assistant, result("c1", "Result 1"), result("c2", "Result 2")]);
  expect(reduced).toEqual([
    assistant,
    { role: "tool", content: [...result("c1", "Result 1").content, ...result("c2", "Result 2").content] },
  ]);
  expect(reduced[0]).toBe(assistant);
});

test("the last of two results of one call stays", () => {
  const messages = [{ role: "assistant", content: [call("c1")] }, result("c1", "old"), result("c1", "new")];
  expect(reduceContext(messages).slice(1)).toEqual([result("c1", "new")]);
});

test("a message that needs no change is the same object, with its outer white space", () => {
  const messages = [
    { role: "system", content: " be brief\n" },
    { role: "user", content: [{ type: "text", text: " hi " }] },
    { role: "assistant", content: [call("c1")] },
    result("c1", ""),
  ];
  const reduced = reduceContext(messages);
  expect(reduced).toHaveLength(messages.length);
  for (const [index, message] of messages.entries()) expect(reduced[index]).toBe(message);
  expect(reduceContext([])).toEqual([]);
});

test("a manager reduces in the same way", () => {
  const messages = [
    { role: "user", content: `${tag} a` },
    { role: "user", content: "b" },
  ];
  expect(createContextManager().reduceContext(messages)).toEqual(reduceContext(messages));
});
