import { describe, expect, test } from "vitest";
import { validateRequest } from "./index.ts";

const model = "claude-opus-5-5";
const thought = (name: string) => ({ type: "thinking", thinking: name, signature: `sig-${name}` });
const says = (...content: object[]) => ({ role: "assistant", content });
const call = (id: string) => ({ type: "tool_use", id, name: "read", input: {} });
const gives = (id: string, text: string) => ({
  role: "user",
  content: [{ type: "tool_result", tool_use_id: id, content: text }],
});
const tools = [{ name: "read", input_schema: { type: "object" } }];
const go = { role: "user", content: "go" };
const first = [go, says(thought("a"), call("1")), gives("1", "long text")];
const second = [...first, says(thought("b"), call("2")), gives("2", "more")];
const third = [...second, says(thought("c"), call("3")), gives("3", "end")];
const trimmed = (messages: readonly object[]) =>
  messages.map((each) => (each === first[2] ? gives("1", "[trimmed]") : each));

function find(histories: readonly (readonly object[])[], more: readonly object[] = []): string[] {
  const requests = histories.map((messages, index) => ({ model, max_tokens: 9, tools, messages, ...more[index] }));
  return validateRequest(requests)
    .filter(({ rule }) => rule === "thinking-bound")
    .map(({ path, message, severity }) => `${severity} ${path} ${message}`);
}

const without = (messages: readonly object[], ...names: string[]) =>
  messages.map((each) => {
    const { content } = each as { content: object[] };
    const isKept = (block: object) => !names.some((name) => JSON.stringify(block).includes(`sig-${name}`));
    return Array.isArray(content) ? { ...each, content: content.filter(isKept) } : each;
  });

describe("thinking in requests that follow each other", () => {
  test("is fine while what comes before it stays", () => {
    const marked = [{ role: "user", content: [{ type: "text", text: "go ", cache_control: { type: "ephemeral" } }] }];
    expect(find([[go], first, second, third])).toEqual([]);
    expect(find([[go], first, second, [...marked, ...third.slice(1)]])).toEqual([]);
  });

  test("is refused after an edit, and the message names the edit", () => {
    expect(find([[go], first, second, trimmed(third)])).toEqual([
      "error [3].messages[3].content[0] is bound to other text: messages[2] is not what it was when the model wrote the block; remove it and all later thinking",
    ]);
  });

  test("is refused on the first request with the edit, also if it is new there", () => {
    const [found] = find([[go], first, trimmed(second)]);
    expect(found).toContain("[2].messages[3].content[0] is bound to other text: messages[2]");
  });

  test("that was made after the edit is fine, and so is one that went from the front or the end", () => {
    const edited = without(trimmed(second), "a", "b");
    const next = [...edited, ...third.slice(5)];
    expect(find([[go], first, second, edited, next])).toEqual([]);
    expect(find([[go], first, second, without(third, "a")])).toEqual([]);
    expect(find([[go], first, second, without(third, "c")])).toEqual([]);
  });

  test("must not have gaps", () => {
    expect(find([[go], first, second, without(third, "b")])).toEqual([
      "error [3].messages[5].content[0] is bound to other text: thinking between it and an earlier block is missing; remove it and all later thinking",
    ]);
  });

  test("is bound to system text and tools", () => {
    const more = [{}, {}, { system: "Today is Monday.", tools: [...tools, { name: "run", input_schema: {} }] }];
    expect(find([[go], first, second], more)).toEqual([
      "error [2].messages[1].content[0] is bound to other text: the system text changed at character 0, and the tools changed: added run; remove it and all later thinking",
    ]);
  });

  test("that the API may drop is a warning, and older models bind none", () => {
    const drops = { thinking: { type: "adaptive", block_binding: { prefix_mismatch_behavior: "drop_block" } } };
    expect(find([[go], first, second, trimmed(third)], [{}, {}, {}, drops])).toEqual([
      expect.stringMatching(/^warning .*; the API drops it$/),
    ]);
    const older = { model: "claude-opus-5" };
    expect(find([[go], first, second, trimmed(third)], [older, older, older, older])).toEqual([]);
  });

  test("of another conversation between the two does not matter", () => {
    const other = [{ role: "user", content: "title?" }];
    expect(find([[go], other, first, other, second])).toEqual([]);
  });
});
