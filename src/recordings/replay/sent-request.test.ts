import { expect, test } from "vitest";
import { createMessageLens } from "../../core/messages/index.ts";
import { createBlockReader, sentKinds } from "./prepare-session.ts";
import { createSentRequest } from "./replay-session.ts";

const counter = { name: "characters", count: (text: string) => text.length };

const call = { type: "tool_use", id: "a", name: "read", input: { path: "a.ts" } };
const result = { type: "tool_result", tool_use_id: "a", content: "y".repeat(300) };
const recorded = [
  { role: "user", content: "Read a.ts" },
  { role: "assistant", content: [{ type: "thinking", thinking: "hm", signature: "s" }, call] },
  { role: "user", content: [result, { type: "text", text: "and hurry" }] },
  { role: "assistant", content: "Done" },
];
const lens = createMessageLens(recorded, { counter, sealed: "readable" });
const blocksOf = createBlockReader(recorded, lens);

test("tokens are counted by kind, and each message with its frame", () => {
  const request = createSentRequest({ prefixTokens: 100, blocksOf });
  request.update(recorded);
  const total = recorded.reduce((sum, message, index) => sum + lens.read(message, index).tokens, 100);
  expect(sentKinds.reduce((sum, kind) => sum + request.tokens[kind], 0)).toBe(total);
  expect(request.tokens).toMatchObject({ prefix: 100, placeholders: 0 });
  expect(request.tokens.results).toBeGreaterThan(300);
  expect(request.tokens.user).toBe(4 + "Read a.ts".length + "and hurry".length);
  expect(request.blocks.map(({ kind }) => kind)).toEqual([
    "prefix",
    "text",
    "thinking",
    "tool_call",
    "tool_result",
    "text",
    "text",
  ]);
});

test("a rewritten part is a placeholder, and its neighbours keep kind and key", () => {
  const request = createSentRequest({ prefixTokens: 0, blocksOf });
  request.update(recorded);
  const before = [...request.blocks];
  const trimmed = { role: "user", content: [{ ...result, content: "[trimmed]" }, recorded[2]?.content[1]] };
  expect(request.update(recorded.with(2, trimmed as never))).toBe(2);
  expect(request.tokens).toMatchObject({
    results: 0,
    user: 4 - 4 + "Read a.ts".length + "and hurry".length + 4,
  });
  expect(request.tokens.placeholders).toBeGreaterThan(0);
  expect(request.blocks[4]?.key).not.toBe(before[4]?.key);
  expect(request.blocks[5]?.key).toBe(before[5]?.key);
});

test("shortened content keeps its kind", () => {
  const request = createSentRequest({ prefixTokens: 0, blocksOf });
  const shortened = { role: "user", content: [{ ...result, content: `${"y".repeat(250)}[trimmed]` }] };
  request.update([shortened]);
  expect(request.tokens).toMatchObject({ placeholders: 0 });
  expect(request.tokens.results).toBeGreaterThan(250);
});

test("user text is never a placeholder, even if it was merged", () => {
  const request = createSentRequest({ prefixTokens: 0, blocksOf });
  request.update([
    {
      role: "user",
      content: [
        { type: "text", text: "Read a.ts" },
        { type: "text", text: "now" },
      ],
    },
  ]);
  expect(request.tokens).toMatchObject({ placeholders: 0, user: 4 + "Read a.ts".length + "now".length });
});

test("after any change the request equals a new one", () => {
  const request = createSentRequest({ prefixTokens: 10, blocksOf });
  const stub = { role: "assistant", content: "[trimmed]" };
  const requests = [recorded.slice(0, 1), recorded, recorded.with(1, stub), [stub], [], recorded.slice(0, 3)];
  for (const messages of requests) {
    const fresh = createSentRequest({ prefixTokens: 10, blocksOf });
    expect(fresh.update(messages)).toBe(0);
    request.update(messages);
    expect(request.blocks).toEqual(fresh.blocks);
    expect(request.tokens).toEqual(fresh.tokens);
    for (const index of messages.keys()) expect(request.findLastBlock(index)).toBe(fresh.findLastBlock(index));
  }
});
