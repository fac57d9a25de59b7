/** The RFC's own cases, rebuilt: threshold, estimate before and after, boundary and what is trimmed, equal to the token. */
import { describe, expect, it } from "vitest";
import { budgetThreshold } from "./advance-boundary.ts";
import type { BudgetOptions } from "./budget-options.ts";
import { estimateTokens, estimateToolOverhead } from "./estimate-tokens.ts";
import { reduceContext } from "./reduce-context.ts";
import { reduceContextWithBudget } from "./reduce-with-budget.ts";
import type { RfcMessage } from "./rfc-message.ts";

const user = (content: string) => ({ role: "user", content });
const assistant = (content: string) => ({ role: "assistant", content });
const turns = (count: number, turn: (index: number) => object[]) =>
  Array.from({ length: count }, (_, index) => turn(index)).flat();
const long = (letter: string, length = 100) => letter.repeat(length);
const indexAt = (index: number) => ({ trimmed_up_to_message_index: index });

function call(id: string): object {
  const parts = [
    { type: "text", text: "Thinking..." },
    { type: "tool_use", id, name: "test_tool", args: {} },
  ];
  return { role: "assistant", content: parts };
}

function result(id: string, content: string): object {
  return { role: "tool", content: [{ type: "tool_result", tool_use_id: id, content }] };
}

function isTrimmed({ content }: RfcMessage): boolean {
  return JSON.stringify(content).includes('"[trimmed]"');
}

/** A reduction in numbers. */
function facts(messages: readonly object[], options: BudgetOptions): object {
  const { messages: reduced, metadata, overflow } = reduceContextWithBudget(messages, options);
  const threshold = budgetThreshold(options.contextWindow, options.contextBudgetThreshold ?? 0.8);
  const overhead = estimateToolOverhead(options.tools);
  const after = estimateTokens(reduced);
  expect(overflow).toEqual(
    after + overhead > threshold ? { tokens: after + overhead, threshold } : undefined,
  );
  return {
    threshold,
    before: estimateTokens(reduceContext(messages)),
    after,
    index: metadata?.trimmed_up_to_message_index,
    trimmed: reduced.flatMap((message, index) => (isTrimmed(message) ? [index] : [])),
  };
}

const options = (contextWindow: number, keep = 2, rest: Partial<BudgetOptions> = {}): BudgetOptions => ({
  contextWindow,
  keepLastNAssistantMessages: keep,
  ...rest,
});
const odd = (below: number) => Array.from({ length: below / 2 }, (_, index) => 2 * index + 1);

describe("reducing under a budget", () => {
  it("leaves a history alone that fits, and metadata as it was given", () => {
    const messages = [user("Hello"), assistant("Hi there")];
    const reduced = reduceContextWithBudget(messages, { contextWindow: 200_000 });
    expect(reduced).toEqual({ messages, metadata: undefined });
    expect("overflow" in reduced).toBe(false);
    const metadata = { other: 1 };
    expect(reduceContextWithBudget(messages, { contextWindow: 200_000, metadata }).metadata).toBe(metadata);
  });

  it("takes a history of exactly the threshold for one that fits", () => {
    const messages = [user("Hello"), assistant("World")];
    const atThreshold = { contextWindow: 21, contextBudgetThreshold: 1, keepLastNAssistantMessages: 0 };
    expect(reduceContextWithBudget(messages, atThreshold).metadata).toBeUndefined();
    expect(reduceContextWithBudget(messages, { ...atThreshold, contextWindow: 20 }).metadata).toEqual(
      indexAt(2),
    );
  });

  it("trims every answer, and says so, where the users alone are too much", () => {
    const messages = turns(20, (index) => [
      user(`Message ${index}: ${long("x")}`),
      assistant(`Response ${index}: ${long("y")}`),
    ]);
    expect(facts(messages, options(100))).toEqual({
      threshold: 80,
      before: 1691,
      after: 1071,
      index: 40,
      trimmed: odd(40),
    });
    expect(reduceContextWithBudget(messages, options(100)).overflow).toEqual({ tokens: 1071, threshold: 80 });
  });

  it("trims up to the answers that are kept, from empty metadata too", () => {
    const messages = [
      user("u1"),
      assistant(long("y", 500)),
      user("u2"),
      assistant(long("w", 500)),
      user("recent"),
      assistant("response"),
    ];
    const expected = { threshold: 320, before: 359, after: 212, index: 3, trimmed: [1] };
    expect(facts(messages, options(400, 2, { metadata: {} }))).toEqual(expected);
    expect(facts(messages, options(400))).toEqual(expected);
  });

  it("counts the boundary in merged messages", () => {
    const answer = (index: number) => assistant(`a${index}${long("x", 300)}`);
    const messages = [user("u1"), answer(1), user("u2"), answer(2), user("u3"), user("u4"), answer(3)];
    expect(facts(messages, options(400))).toEqual({
      threshold: 320,
      before: 335,
      after: 247,
      index: 3,
      trimmed: [1],
    });
    expect(reduceContextWithBudget(messages, options(400)).messages).toHaveLength(6);
  });

  it("keeps the last answer, or none", () => {
    const answer = (name: string) => assistant(name + long("x", 300));
    const messages = [user("u1"), answer("a1"), user("u2"), answer("a2"), user("u3"), answer("a3_last")];
    expect(facts(messages, options(350, 1))).toEqual({
      threshold: 280,
      before: 329,
      after: 153,
      index: 5,
      trimmed: [1, 3],
    });
    expect(facts(messages, options(350, 0))).toEqual({
      threshold: 280,
      before: 329,
      after: 63,
      index: 6,
      trimmed: [1, 3, 5],
    });
  });

  it("trims short answers as well, even where the placeholder is longer", () => {
    const messages = turns(3, (index) => [user(long("x", 300)), assistant(`a${index + 1}`)]);
    expect(facts(messages, options(50, 10))).toEqual({
      threshold: 40,
      before: 325,
      after: 331,
      index: 6,
      trimmed: [1, 3, 5],
    });
  });

  it("keeps calls and their ids, and counts every assistant message for what is kept", () => {
    const messages = turns(5, (index) => [
      user(`user turn ${index}`),
      call(`tc_${index}`),
      result(`tc_${index}`, `result ${index}: ${long("r", 200)}`),
      assistant(`follow-up ${index}`),
    ]);
    const trimmed = [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14];
    expect(facts(messages, options(700, 3))).toEqual({
      threshold: 560,
      before: 704,
      after: 457,
      index: 15,
      trimmed,
    });
    const reduced = reduceContextWithBudget(messages, options(700, 3)).messages;
    expect(reduced.filter((message) => message.role === "assistant" && !isTrimmed(message))).toHaveLength(3);
    expect(reduced[1]).toEqual({
      role: "assistant",
      content: [
        { type: "text", text: "[trimmed]" },
        { type: "tool_use", id: "tc_0", name: "test_tool", args: {} },
      ],
    });
    expect(reduced[2]).toEqual(result("tc_0", "[trimmed]"));
  });

  it("rests while the trimmed history fits", () => {
    const messages = turns(5, (index) => [
      user(`User ${index}: ${long("x")}`),
      assistant(`Asst ${index}: ${long("y")}`),
    ]);
    expect(facts(messages, options(500))).toEqual({
      threshold: 400,
      before: 410,
      after: 322,
      index: 7,
      trimmed: [1, 3, 5],
    });
    const more = [...messages, user("short"), assistant("brief")];
    expect(facts(more, options(500, 2, { metadata: indexAt(7) }))).toMatchObject({
      after: 343,
      index: 7,
      trimmed: [1, 3, 5],
    });
  });

  it("trims no more than it has to where fewer answers than those to keep are there", () => {
    const rest = { contextBudgetThreshold: 0.3 };
    const messages = turns(5, (index) => [user(`q${index}`), assistant(long("y", 300))]);
    expect(facts(messages, options(800, 50, rest))).toEqual({
      threshold: 240,
      before: 541,
      after: 193,
      index: 8,
      trimmed: odd(8),
    });
    const metadata = indexAt(8);
    messages.push(user("small"), assistant("ok"));
    expect(facts(messages, options(800, 50, { ...rest, metadata }))).toMatchObject({ after: 213, index: 8 });
    messages.push(user("tiny"), assistant("k"));
    expect(facts(messages, options(800, 50, { ...rest, metadata }))).toMatchObject({ after: 233, index: 8 });
  });

  it("goes on into the answers to keep where they alone are too much", () => {
    const messages = turns(6, (index) => [user(`q${index}`), assistant(long("z", 1000))]);
    expect(facts(messages, options(600, 3))).toEqual({
      threshold: 480,
      before: 1909,
      after: 424,
      index: 10,
      trimmed: odd(10),
    });
  });

  it("keeps a trimmed prefix trimmed when the window grows", () => {
    const messages = turns(10, (index) => [
      user(`Msg ${index}: ${long("x")}`),
      assistant(`Resp ${index}: ${long("y")}`),
    ]);
    expect(facts(messages, options(100))).toMatchObject({ index: 20 });
    const metadata = indexAt(20);
    expect(facts(messages, options(200_000, 2, { metadata }))).toMatchObject({ index: 20, trimmed: odd(20) });
    messages.push(user(long("x", 200)), assistant(long("y", 200)));
    expect(facts(messages, options(100, 2, { metadata }))).toMatchObject({ index: 22, trimmed: odd(22) });
  });

  it("counts tool definitions", () => {
    const messages = turns(3, () => [user(long("x")), assistant(long("y"))]);
    expect(facts(messages, options(312))).toEqual({
      threshold: 249,
      before: 234,
      after: 234,
      index: undefined,
      trimmed: [],
    });
    const described = { type: "string", description: long("x", 200) };
    const tools = Array.from({ length: 50 }, (_, index) => ({
      name: `tool_${index}`,
      description: long("x", 200),
      input_schema: { type: "object", properties: { arg1: described, arg2: described } },
    }));
    expect(facts(messages, options(312, 2, { tools }))).toMatchObject({ index: 6, trimmed: [1, 3, 5] });
  });

  it("trims all of a history that ends before the boundary, and keeps the boundary", () => {
    const messages = turns(2, (index) => [user(`u${index}`), assistant(`a${index}`)]);
    expect(facts(messages, options(200_000, 2, { metadata: indexAt(99) }))).toMatchObject({
      index: 99,
      trimmed: [1, 3],
    });
  });

  it("leaves what others keep in the metadata, and the object where nothing moved", () => {
    const metadata = { ...indexAt(2), session: "s1" };
    const messages = turns(2, (index) => [user(`u${index}`), assistant(long("y", 300))]);
    expect(reduceContextWithBudget(messages, options(100_000, 1, { metadata })).metadata).toBe(metadata);
    expect(reduceContextWithBudget(messages, options(100, 0, { metadata })).metadata).toEqual({
      ...indexAt(4),
      session: "s1",
    });
    expect(metadata).toEqual({ ...indexAt(2), session: "s1" });
  });

  it("gives back the object of a message that is trimmed already", () => {
    const messages = [assistant("[trimmed]"), result("c1", "[trimmed]"), call("c2"), result("c2", "x")];
    const reduced = reduceContextWithBudget(messages, options(0, 0)).messages;
    expect(reduced.map((message, index) => message === messages[index])).toEqual([true, true, false, false]);
  });

  it("has nothing to trim in an empty history", () => {
    expect(reduceContextWithBudget([], { contextWindow: 0 })).toEqual({ messages: [], metadata: undefined });
    const tools = [{ name: "ls" }];
    const overflow = { tokens: 9, threshold: 0 };
    expect(reduceContextWithBudget([], { contextWindow: 0, tools })).toEqual({
      messages: [],
      metadata: indexAt(0),
      overflow,
    });
  });

  it("keeps 10 answers of 0.8 of the window where nothing else is said", () => {
    const messages = turns(12, (index) => [user(`q${index}`), assistant(long("y", 300))]);
    const explicit = options(1500, 10, { contextBudgetThreshold: 0.8 });
    expect(reduceContextWithBudget(messages, { contextWindow: 1500 })).toEqual(
      reduceContextWithBudget(messages, explicit),
    );
    expect(facts(messages, explicit)).toMatchObject({ index: 5 });
  });
});
