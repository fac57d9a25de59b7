import { expect, it } from "vitest";
import type { FormatName } from "../../core/messages/index.ts";
import { createCounter } from "../../core/tokens/index.ts";
import { exchange, exchanges } from "./exchanges.contract.ts";
import { createTrimmer } from "./trimmer.ts";

const counter = await createCounter("bytes/4");
const reparse = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;
const text = (characters: number) => "x".repeat(characters);

async function overflowOf(messages: readonly object[], format: FormatName, excludeTools = ["read"]) {
  const trimmer = await createTrimmer({ contextWindow: 3_000, reserve: 0, counter, format, excludeTools });
  const first = trimmer.reduce({ messages });
  // The same paths if the messages come as other objects.
  expect(trimmer.reduce({ messages: reparse(messages) }).overflow).toEqual(first.overflow);
  return first.overflow;
}

it("an overflow names the largest parts by their paths", async () => {
  const overflow = await overflowOf(
    [
      {
        role: "user",
        content: [
          { type: "text", text: text(400) },
          { type: "text", text: text(4_000) },
        ],
      },
      { role: "assistant", content: [{ type: "tool_use", id: "a", name: "read", input: {} }] },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "a", content: text(16_000) },
          { type: "text", text: "go on" },
        ],
      },
      { role: "assistant", content: "Done." },
      { role: "user", content: text(8_000) },
    ],
    "anthropic",
  );
  expect(overflow?.largest).toEqual([
    { path: "messages[2].content[0]", role: "user", kind: "tool_result", tokens: 4_009 },
    { path: "messages[4]", role: "user", kind: "text", tokens: 2_000 },
    { path: "messages[0].content[1]", role: "user", kind: "text", tokens: 1_000 },
  ]);
  expect(overflow?.limit).toBe(3_000);
  expect(overflow?.tokens).toBeGreaterThan(7_000);
});

it("an overflow describes a part in the terms of its format", async () => {
  const args = JSON.stringify({ path: text(16_000) });
  const chat = await overflowOf(
    [
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: "Reading.",
        tool_calls: [{ id: "a", type: "function", function: { name: "read", arguments: args } }],
      },
      { role: "tool", tool_call_id: "a", content: text(12_000) },
    ],
    "openai",
  );
  expect(chat?.largest.slice(0, 2).map(({ path }) => path)).toEqual(["messages[1].tool_calls[0]", "messages[2]"]);
  const items = await overflowOf(
    [
      { role: "user", content: [{ type: "input_text", text: text(8_000) }] },
      { type: "function_call", call_id: "a", name: "read", arguments: args },
      { type: "function_call_output", call_id: "a", output: text(12_000) },
    ],
    "responses",
  );
  expect(items?.largest.map(({ path }) => path)).toEqual(["messages[1]", "messages[2]", "messages[0].content[0]"]);
});

it("an overflow does not name removed messages", async () => {
  const [question, call, result] = [
    { role: "user", content: text(6_000) },
    ...exchange(0, { input: 40_000, said: text(9_000) }),
  ];
  const messages = [question!, call!, result!, ...exchanges(6)];
  const overflow = await overflowOf(messages, "anthropic", []);
  expect(overflow?.largest.slice(0, 2).map(({ path }) => path)).toEqual(["messages[2].content[1]", "messages[0]"]);
});

it("pressure is reported while the history is trimmed on more than a quarter of the last turns", async () => {
  const reported: unknown[] = [];
  const settings = { contextWindow: 4_000, reserve: 0, counter, format: "anthropic" } as const;
  const trimmer = await createTrimmer({ ...settings, onPressure: (pressure) => reported.push(pressure) });
  const plan = { role: "user", content: text(10_000) };
  const messages: object[] = [plan, ...exchanges(40, { result: 1_600 })];
  let reduction = trimmer.reduce({ messages: messages.slice(0, 1) });
  for (let length = 3; length <= messages.length; length += 2) {
    reduction = trimmer.reduce({ messages: messages.slice(0, length) });
    if (!reduction.isEpoch) expect(reduction.pressure).toBeUndefined();
    if (length < 40) expect(reported).toEqual([]);
  }
  expect(reported.length).toBeGreaterThan(3);
  expect(reported[0]).toMatchObject({
    turns: 20,
    largest: [{ path: "messages[0]", role: "user", tokens: 2_500 }, {}, {}],
  });
  const calm = await createTrimmer({ ...settings, contextWindow: 40_000, onPressure: () => expect.unreachable() });
  for (let length = 3; length <= messages.length; length += 2) calm.reduce({ messages: messages.slice(0, length) });
});
