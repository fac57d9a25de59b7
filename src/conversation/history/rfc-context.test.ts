/** The RFC's own cases: threshold, estimate before and after, boundary and what is trimmed, exact to the token. */

import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { headroomTarget } from "./policies/rfc.ts";
import { advanceBoundary, type BoundaryInput, budgetThreshold } from "./rfc-boundary.ts";
import { reduceContextWithBudget } from "./rfc-context.ts";
import { countTokens, estimateTokens, estimateToolOverhead, finalEstimate, type RfcMessage } from "./rfc-message.ts";
import { reduceContext, removeXmlTag } from "./rfc-repairs.ts";

type BudgetOptions = Parameters<typeof reduceContextWithBudget>[1];

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

/** The numbers of a reduction. */
function facts(messages: readonly object[], options: BudgetOptions): object {
  const { messages: reduced, metadata, overflow } = reduceContextWithBudget(messages, options);
  const threshold = budgetThreshold(options.contextWindow, options.contextBudgetThreshold ?? 0.8);
  const overhead = estimateToolOverhead(options.tools);
  const after = estimateTokens(reduced);
  expect(overflow).toEqual(after + overhead > threshold ? { tokens: after + overhead, threshold } : undefined);
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
  it("leaves a history that fits, and its metadata, unchanged", () => {
    const messages = [user("Hello"), assistant("Hi there")];
    const reduced = reduceContextWithBudget(messages, { contextWindow: 200_000 });
    expect(reduced).toEqual({ messages, metadata: undefined });
    expect("overflow" in reduced).toBe(false);
    const metadata = { other: 1 };
    expect(reduceContextWithBudget(messages, { contextWindow: 200_000, metadata }).metadata).toBe(metadata);
  });

  it("accepts a history of exactly the threshold", () => {
    const messages = [user("Hello"), assistant("World")];
    const atThreshold = { contextWindow: 21, contextBudgetThreshold: 1, keepLastNAssistantMessages: 0 };
    expect(reduceContextWithBudget(messages, atThreshold).metadata).toBeUndefined();
    expect(reduceContextWithBudget(messages, { ...atThreshold, contextWindow: 20 }).metadata).toEqual(indexAt(2));
  });

  it("trims every answer and reports an overflow if the users' messages alone are too large", () => {
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

  it("keeps the last answer, or none if asked", () => {
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

  it("keeps the boundary while the trimmed history fits", () => {
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

  it("trims only what is needed if there are fewer answers than to keep", () => {
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

  it("trims answers that should be kept if they alone are too large", () => {
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

  it("keeps other keys of the metadata, and the same object if nothing moved", () => {
    const metadata = { ...indexAt(2), session: "s1" };
    const messages = turns(2, (index) => [user(`u${index}`), assistant(long("y", 300))]);
    expect(reduceContextWithBudget(messages, options(100_000, 1, { metadata })).metadata).toBe(metadata);
    expect(reduceContextWithBudget(messages, options(100, 0, { metadata })).metadata).toEqual({
      ...indexAt(4),
      session: "s1",
    });
    expect(metadata).toEqual({ ...indexAt(2), session: "s1" });
  });

  it("returns the same object for a message that is already trimmed", () => {
    const messages = [assistant("[trimmed]"), result("c1", "[trimmed]"), call("c2"), result("c2", "x")];
    const reduced = reduceContextWithBudget(messages, options(0, 0)).messages;
    expect(reduced.map((message, index) => message === messages[index])).toEqual([true, true, false, false]);
  });

  it("trims nothing in an empty history", () => {
    expect(reduceContextWithBudget([], { contextWindow: 0 })).toEqual({ messages: [], metadata: undefined });
    const tools = [{ name: "ls" }];
    const overflow = { tokens: 9, threshold: 0 };
    expect(reduceContextWithBudget([], { contextWindow: 0, tools })).toEqual({
      messages: [],
      metadata: indexAt(0),
      overflow,
    });
  });

  it("keeps 10 answers and 0.8 of the window by default", () => {
    const messages = turns(12, (index) => [user(`q${index}`), assistant(long("y", 300))]);
    const explicit = options(1500, 10, { contextBudgetThreshold: 0.8 });
    expect(reduceContextWithBudget(messages, { contextWindow: 1500 })).toEqual(
      reduceContextWithBudget(messages, explicit),
    );
    expect(facts(messages, explicit)).toMatchObject({ index: 5 });
  });
});

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 20_000 : 300;

/** A literal implementation of the RFC's section 5, with a new sum at every step. */
function byTheWord(input: BoundaryInput): { boundary: number; tokens: number } {
  const { roles, full, trimmed, previous, keep, estimate, threshold, target } = input;
  const current = [...full];
  const trim = (index: number) => {
    if (roles[index] === "assistant" || roles[index] === "tool") current[index] = trimmed[index]!;
  };
  const effective = () => estimate(current.reduce((sum, each) => sum + each, 0));
  for (let index = 0; index < Math.min(previous, roles.length); index++) trim(index);
  if (effective() <= threshold) return { boundary: previous, tokens: effective() };
  const assistants = roles.flatMap((role, index) => (role === "assistant" ? [index] : []));
  const kept = keep === 0 ? roles.length : (assistants.at(-keep) ?? 0);
  for (let index = Math.min(previous, roles.length); index < kept; index++) trim(index);
  let candidate = kept > 0 ? kept : previous;
  for (let index = candidate; index < roles.length && effective() > target; index++) {
    if (roles[index] !== "assistant" && roles[index] !== "tool") continue;
    trim(index);
    candidate = index + 1;
  }
  return { boundary: Math.max(candidate, previous), tokens: effective() };
}

const input: fc.Arbitrary<BoundaryInput> = fc
  .record({
    messages: fc.array(
      fc.tuple(
        fc.constantFrom("system" as const, "user" as const, "assistant" as const, "tool" as const),
        fc.nat({ max: 40 }),
        fc.nat({ max: 12 }),
      ),
      { maxLength: 14 },
    ),
    previous: fc.nat({ max: 16 }),
    keep: fc.nat({ max: 6 }),
    threshold: fc.nat({ max: 400 }),
    overhead: fc.nat({ max: 50 }),
    headroom: fc.boolean(),
  })
  .map(({ messages, previous, keep, threshold, overhead, headroom }) => ({
    roles: messages.map(([role]) => role),
    full: messages.map(([, full]) => full),
    trimmed: messages.map(([, , trimmed]) => trimmed),
    previous,
    keep,
    estimate: (rawTokens) => finalEstimate(rawTokens) + overhead,
    threshold,
    target: headroom ? headroomTarget(threshold) : threshold,
  }));

describe("the boundary", () => {
  it("is where the RFC's literal steps put it", () => {
    fc.assert(
      fc.property(input, (each) => {
        expect(advanceBoundary(each)).toEqual(byTheWord(each));
      }),
      { numRuns },
    );
  });

  it("stops when the target is met exactly", () => {
    const input = {
      full: [10, 10, 10],
      trimmed: [5, 5, 5],
      previous: 0,
      keep: 9,
      estimate: (raw: number) => raw,
    };
    const roles = ["assistant", "tool", "assistant"] as const;
    expect(advanceBoundary({ ...input, roles, threshold: 25, target: 25 })).toEqual({
      boundary: 1,
      tokens: 25,
    });
    expect(advanceBoundary({ ...input, roles, threshold: 25, target: 20 })).toEqual({
      boundary: 2,
      tokens: 20,
    });
    expect(advanceBoundary({ ...input, roles, threshold: 30, target: 20 })).toEqual({
      boundary: 0,
      tokens: 30,
    });
  });

  it("costs one pass over the history", () => {
    const length = 2_000;
    let reads = 0;
    const counted = (numbers: number[]) =>
      new Proxy(numbers, {
        get(target, key) {
          reads++;
          return Reflect.get(target, key);
        },
      });
    const { boundary } = advanceBoundary({
      roles: Array.from({ length }, (_, index) => (index % 2 === 0 ? "user" : "assistant")),
      full: counted(new Array(length).fill(100)),
      trimmed: counted(new Array(length).fill(11)),
      previous: 100,
      keep: 1_000_000,
      estimate: finalEstimate,
      threshold: 0,
      target: 0,
    });
    expect(boundary).toBe(length);
    expect(reads).toBeLessThanOrEqual(3 * length);
  });

  it("stays for several turns if trimming leaves headroom", () => {
    const threshold = budgetThreshold(600 - 32, 0.8);
    expect([threshold, headroomTarget(threshold)]).toEqual([454, 340]);
    const messages: RfcMessage[] = [];
    const say = (user: string, assistant: string) =>
      messages.push({ role: "user", content: user }, { role: "assistant", content: assistant });
    const reduce = (previous: number) => {
      const tokens = messages.map(countTokens);
      return advanceBoundary({
        roles: messages.map(({ role }) => role),
        full: tokens.map(({ full }) => full),
        trimmed: tokens.map(({ trimmed }) => trimmed),
        previous,
        keep: 2,
        estimate: finalEstimate,
        threshold,
        target: headroomTarget(threshold),
      });
    };
    for (let turn = 0; turn < 10; turn++) say(`user-${turn}`, `assistant-${turn}-${"Z".repeat(200)}`);
    expect(reduce(0)).toEqual({ boundary: 18, tokens: 282 });
    say("new question", "short answer");
    expect(reduce(18).boundary).toBe(18);
    say("another question", "another short answer");
    expect(reduce(18).boundary).toBe(18);
  });
});

describe("the threshold", () => {
  it.each([
    [100, 0.8, 80],
    [312, 0.8, 249],
    [800, 0.3, 240],
    [0, 0.8, 0],
    [200_000, 1, 200_000],
    [200_000, 0, 0],
    // As 32-bit floats, 0.65 and 0.7 are slightly less; only the second product rounds up again.
    [180, 0.65, 116],
    [10, 0.7, 7],
    // Above 2²⁴, 32-bit floats have no odd numbers.
    [16_777_217, 1, 16_777_216],
  ])("of %d at %d is %d", (contextWindow, share, threshold) => {
    expect(budgetThreshold(contextWindow, share)).toBe(threshold);
  });
});

test.each([
  ["<checkpoint_id>abc-123</checkpoint_id>\nHello, world!", "Hello, world!"],
  ["Hello, world!\n<checkpoint_id>abc\n123</checkpoint_id>\n", "Hello, world!"],
  ["a<checkpoint_id>1</checkpoint_id>b<checkpoint_id>2</checkpoint_id>c", "abc"],
  ["a <checkpoint_id>1</checkpoint_id> b", "a  b"],
  ["\n a<checkpoint_id>1</checkpoint_id>b \n", "\n ab \n"],
  ["<checkpoint_id>1</checkpoint_id>\n\n<checkpoint_id>2</checkpoint_id>\n  hi", "hi"],
  ["\n<checkpoint_id>1</checkpoint_id>hi\n", "hi\n"],
  ["<checkpoint_id>1</checkpoint_id>", ""],
  ["<checkpoint_id>1<checkpoint_id>2</checkpoint_id>3</checkpoint_id>", "3</checkpoint_id>"],
])("%j becomes %j", (text, expected) => {
  expect(removeXmlTag("checkpoint_id", text)).toBe(expected);
});

test.each([
  "",
  "  hi\n",
  "<checkpoint_id>open",
  "closed</checkpoint_id>",
  "</checkpoint_id><checkpoint_id>",
  "<other>1</other>",
])("%j has no such tag and stays, outer white space included", (text) => {
  expect(removeXmlTag("checkpoint_id", text)).toBe(text);
});

test("a tag name is not a regular expression", () => {
  expect(removeXmlTag("a.c", "<abc>1</abc><a.c>2</a.c>!")).toBe("<abc>1</abc>!");
  expect(() => removeXmlTag("", "<>1</>")).toThrow("a tag must have a name");
});

test("a megabyte of start tags without an end costs one pass", () => {
  const text = "<checkpoint_id>".repeat(70_000);
  const before = process.cpuUsage();
  expect(removeXmlTag("checkpoint_id", text)).toBe(text);
  // One pass for each start tag would read 35 GB of text.
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
});
