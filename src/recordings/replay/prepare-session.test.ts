import { expect, test } from "vitest";
import { createCounter } from "../../core/tokens/index.ts";
import type { RecordedSession } from "../sessions/recorded-session.ts";
import { prepareSession } from "./prepare-session.ts";

const counter = await createCounter("bytes/4");

const prepared = (messages: readonly object[], more: Partial<RecordedSession> = {}) =>
  prepareSession({ file: "a.jsonl", source: "messages", messages, notes: [], ...more }, { counter });

test("each assistant turn is a call, and its request is the messages before it", () => {
  const { calls, messages } = prepared([
    { role: "user", content: "one" },
    { role: "assistant", content: "two" },
    { role: "user", content: "three" },
    { role: "assistant", content: "four" },
  ]);
  expect(calls).toEqual([1, 3]);
  expect(messages).toHaveLength(4);
});

test("the items of one turn are one call, even if each is its own message", () => {
  const { calls } = prepared(
    [
      { role: "user", content: "go" },
      { type: "reasoning", id: "r", summary: [] },
      { type: "function_call", call_id: "a", name: "read", arguments: "{}" },
      { type: "function_call", call_id: "b", name: "read", arguments: "{}" },
      { type: "function_call_output", call_id: "a", output: "A" },
      { type: "function_call_output", call_id: "b", output: "B" },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "done" }] },
    ],
    { format: "responses" },
  );
  expect(calls).toEqual([1, 6]);
});

test("a recording that begins with the assistant still has a request before its first answer", () => {
  const { calls } = prepared([
    { role: "assistant", content: "hello" },
    { role: "user", content: "hi" },
    { role: "assistant", content: "bye" },
  ]);
  expect(calls).toEqual([1, 3]);
});

test("a recording without an assistant, or without anything, has no calls", () => {
  expect(prepared([{ role: "user", content: "anyone?" }]).calls).toEqual([]);
  expect(prepared([])).toMatchObject({ calls: [], messages: [], title: "" });
});

test("the title is the beginning of the first user text, on one line", () => {
  const title = (content: unknown) => prepared([{ role: "user", content }]).title;
  expect(title("  Fix\n\tthe   bug ")).toBe("Fix the bug");
  expect(title("<script>alert(1)</script>")).toBe("<script>alert(1)</script>");
  expect([...title("🚢".repeat(400))]).toHaveLength(160);
  expect(title("🚢".repeat(400)).endsWith("🚢…")).toBe(true);
});

test("a malformed message is named by its path", () => {
  expect(() => prepared([{ role: "user", content: "hi" }, { role: "nobody" }])).toThrow("messages[1]");
});

test("thinking that the provider would refuse is left out and counted", () => {
  const thinking = (signature?: string) => ({ type: "thinking", thinking: "hm", ...(signature && { signature }) });
  const said = { type: "text", text: "yes" };
  const { messages, mendedThinking } = prepared([
    { role: "user", content: "one" },
    { role: "assistant", content: [thinking(), said] },
    { role: "user", content: "two" },
    { role: "assistant", content: [thinking("s"), said, thinking("s")] },
    { role: "user", content: "three" },
    { role: "assistant", content: [thinking()] },
    { role: "user", content: "four" },
  ]);
  const contents = messages.flatMap((message) => {
    const { role, content } = message as { role: string; content: object[] };
    return role === "assistant" ? [content] : [];
  });
  expect(contents).toEqual([[said], [thinking("s"), said], [{ type: "text", text: "(empty)" }]]);
  expect(mendedThinking).toBe(3);
});
