import { expect, test } from "vitest";
import { ContextError } from "../../errors.ts";
import { dedupToolResults, mergeConsecutiveSameRole } from "./merge-messages.ts";
import { reduceContext } from "./reduce-context.ts";
import { reduceContextWithBudget } from "./reduce-with-budget.ts";
import { checkMessages } from "./rfc-message.ts";

const circular: Record<string, unknown> = {};
circular.self = circular;
const assistant = (...content: unknown[]) => [
  { role: "user", content: "hi" },
  { role: "assistant", content },
];

const malformed: readonly (readonly [unknown, string])[] = [
  ["text", "messages must be an array, not a string"],
  [[null], "messages[0] must be an object, not null"],
  [[{ role: "user", content: "" }, []], "messages[1] must be an object, not an array"],
  [
    [{ role: "developer", content: "" }],
    'messages[0].role must be one of system, user, assistant, tool, not "developer"',
  ],
  [[{ content: "" }], "messages[0].role must be one of system, user, assistant, tool, not undefined"],
  [[{ role: "user" }], "messages[0].content must be a string or an array, not undefined"],
  [[{ role: "user", content: {} }], "messages[0].content must be a string or an array, not an object"],
  [assistant("text"), "messages[1].content[0] must be an object, not a string"],
  [assistant({}), "messages[1].content[0].type must be a string, not undefined"],
  [assistant({ type: "text" }), "messages[1].content[0].text must be a string, not undefined"],
  [
    assistant({ type: "tool_use", id: 1, name: "ls" }),
    "messages[1].content[0].id must be a string, not a number",
  ],
  [assistant({ type: "tool_use", id: "c1" }), "messages[1].content[0].name must be a string, not undefined"],
  [
    assistant({ type: "tool_call", name: "ls", args: circular }),
    "messages[1].content[0].args cannot be written as JSON",
  ],
  [
    assistant({ type: "tool_use", name: "ls", input: 1n }),
    "messages[1].content[0].input cannot be written as JSON",
  ],
  [
    assistant({ type: "tool_result", tool_use_id: 7, content: "" }),
    "messages[1].content[0].tool_use_id must be a string, not a number",
  ],
  [
    assistant({ type: "tool_result", content: [] }),
    "messages[1].content[0].content must be a string, not an array",
  ],
  [
    assistant({ type: "image" }, { type: "other", circular }),
    "messages[1].content[1] cannot be written as JSON",
  ],
];

test.each([
  ["reduceContext", reduceContext],
  ["mergeConsecutiveSameRole", mergeConsecutiveSameRole],
  ["dedupToolResults", dedupToolResults],
  [
    "reduceContextWithBudget",
    (messages: readonly object[]) => reduceContextWithBudget(messages, { contextWindow: 0 }),
  ],
])("%s names what is malformed by its path", (_, reduce) => {
  for (const [messages, problem] of malformed) {
    expect(() => reduce(messages as object[])).toThrow(new ContextError("invalid_message", problem));
    expect(() => reduce(messages as object[])).toThrow(expect.objectContaining({ code: "invalid_message" }));
  }
});

test("well-formed messages are the caller's own, fields of others included", () => {
  const messages = assistant(
    { type: "text", text: "", cache_control: {} },
    { type: "tool_use", id: "c1", name: "ls", args: null },
    { type: "thinking", thinking: "hm" },
  );
  expect(checkMessages(messages)).toBe(messages);
});
