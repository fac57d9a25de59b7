import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { caseCount } from "../../../test/case-count.ts";
import { ContextError } from "../../core/errors.ts";
import { budgetThreshold } from "./rfc-boundary.ts";
import { type ContextMetadata, type ReducedContext, reduceContextWithBudget } from "./rfc-context.ts";
import {
  countTokens,
  estimateTokens,
  estimateToolOverhead,
  finalEstimate,
  type RfcMessage,
  type RfcPart,
  readMessages,
} from "./rfc-message.ts";
import { dedupToolResults, mergeConsecutiveSameRole, reduceContext } from "./rfc-repairs.ts";

type BudgetOptions = Parameters<typeof reduceContextWithBudget>[1];

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
  [assistant({ type: "tool_use", id: 1, name: "ls" }), "messages[1].content[0].id must be a string, not a number"],
  [assistant({ type: "tool_use", id: "c1" }), "messages[1].content[0].name must be a string, not undefined"],
  [
    assistant({ type: "tool_call", name: "ls", args: circular }),
    "messages[1].content[0].args cannot be written as JSON",
  ],
  [assistant({ type: "tool_use", name: "ls", input: 1n }), "messages[1].content[0].input cannot be written as JSON"],
  [
    assistant({ type: "tool_result", tool_use_id: 7, content: "" }),
    "messages[1].content[0].tool_use_id must be a string, not a number",
  ],
  [assistant({ type: "tool_result", content: [] }), "messages[1].content[0].content must be a string, not an array"],
  [assistant({ type: "image" }, { type: "other", circular }), "messages[1].content[1] cannot be written as JSON"],
];

test.each([
  ["reduceContext", reduceContext],
  ["mergeConsecutiveSameRole", mergeConsecutiveSameRole],
  ["dedupToolResults", dedupToolResults],
  ["reduceContextWithBudget", (messages: readonly object[]) => reduceContextWithBudget(messages, { contextWindow: 0 })],
])("%s names what is malformed by its path", (_, reduce) => {
  for (const [messages, problem] of malformed) {
    expect(() => reduce(messages as object[])).toThrow(new ContextError("invalid_message", problem));
    expect(() => reduce(messages as object[])).toThrow(expect.objectContaining({ code: "invalid_message" }));
  }
});

test("well-formed messages are returned as they are, with unknown fields", () => {
  const messages = assistant(
    { type: "text", text: "", cache_control: {} },
    { type: "tool_use", id: "c1", name: "ls", args: null },
    { type: "thinking", thinking: "hm" },
  );
  const [first, second] = readMessages(messages);
  expect([first, second]).toEqual(messages);
  expect(first).toBe(messages[0]);
  expect(second).toBe(messages[1]);
});

test("messages of OpenAI's chat become messages with parts, and no result is lost", () => {
  const calls = [
    { id: "a", type: "function", function: { name: "ls", arguments: '{"path":"src"}' } },
    { id: "b", type: "function", function: { name: "cat", arguments: "{not JSON" } },
    { id: "c", type: "custom", custom: { name: "patch", input: "***" } },
  ];
  const chat = [
    { role: "user", content: "go" },
    { role: "assistant", content: null, tool_calls: calls, refusal: null },
    { role: "tool", tool_call_id: "a", content: "x" },
    { role: "tool", tool_call_id: "b", content: [{ type: "text", text: "y" }] },
  ];
  const results = [
    { type: "tool_result", tool_use_id: "a", content: "x" },
    { type: "tool_result", tool_use_id: "b", content: '[{"type":"text","text":"y"}]' },
  ];
  expect(reduceContext(chat)).toEqual([
    chat[0],
    {
      role: "assistant",
      refusal: null,
      content: [
        { type: "tool_use", id: "a", name: "ls", args: { path: "src" } },
        { type: "tool_use", id: "b", name: "cat", args: "{not JSON" },
        { type: "tool_use", id: "c", name: "patch", args: "***" },
      ],
    },
    { role: "tool", content: results },
  ]);
  const said = { role: "assistant", content: "So:", tool_calls: calls.slice(0, 1) };
  expect(reduceContext([said])[0]!.content).toMatchObject([{ type: "text", text: "So:" }, { type: "tool_use" }]);
  const wrong = { role: "assistant", content: null, tool_calls: [{ id: "a" }] };
  expect(() => reduceContext([wrong])).toThrow("messages[0].tool_calls[0].custom must be an object");
});

const user = (content: unknown) => ({ role: "user", content });
const call = { type: "tool_use", id: "c1", name: "test_tool", args: {} };

describe("the RFC's estimate of messages", () => {
  it.each([
    ["one line", [user("Hello world")], 13],
    ["two messages", [user("Hello"), { role: "assistant", content: "World" }], 21],
    [
      "a result of 400 bytes",
      [{ role: "tool", content: [{ type: "tool_result", tool_use_id: "c1", content: "A".repeat(400) }] }],
      141,
    ],
    ["nothing", [], 0],
    ["an empty message", [user("")], 9],
    ["an image", [user([{ type: "image", source: { type: "base64", data: "AAAA" } }])], 2112],
    ["the placeholder", [{ role: "assistant", content: "[trimmed]" }], 12],
    ["text beside a call", [{ role: "assistant", content: [{ type: "text", text: "Thinking..." }, call] }], 32],
  ])("is exact for %s", (_, messages, tokens) => {
    expect(estimateTokens(messages)).toBe(tokens);
  });

  it("counts bytes of UTF-8, not characters", () => {
    // 4 + 3 + 2 bytes, and 3 for a lone surrogate
    expect(estimateTokens([user("😀漢é")])).toBe(Math.ceil((8 + Math.ceil(9 / 3.5)) * 1.05));
    expect(estimateTokens([user("\ud800")])).toBe(estimateTokens([user("漢")]));
  });

  it("takes a call's arguments under either name", () => {
    const args = { path: "src/a.ts" };
    const estimate = (part: object) => estimateTokens([{ role: "assistant", content: [part] }]);
    const expected = Math.ceil((8 + 3 + Math.ceil((2 + JSON.stringify(args).length + 30) / 3.5)) * 1.05);
    expect(estimate({ type: "tool_use", name: "ls", args })).toBe(expected);
    expect(estimate({ type: "tool_call", name: "ls", input: args })).toBe(expected);
    expect(estimate({ type: "tool_use", name: "test_tool" })).toBe(estimate(call));
  });

  it("counts a part of an unknown kind as its JSON", () => {
    const part = { type: "audio", data: "x".repeat(100) };
    const expected = 8 + 3 + Math.ceil(JSON.stringify(part).length / 3.5);
    expect(countTokens(user([part]) as RfcMessage)).toEqual({ full: expected, trimmed: expected });
  });

  it("estimates a message after trimming", () => {
    const content = [
      { type: "text", text: "x".repeat(100) },
      call,
      { type: "tool_result", tool_use_id: "c1", content: "y".repeat(100) },
      { type: "image" },
    ];
    const placeholders = content.map((part) => {
      if (part.type === "text") return { ...part, text: "[trimmed]" };
      return part.type === "tool_result" ? { ...part, content: "[trimmed]" } : part;
    });
    const { trimmed } = countTokens({ role: "assistant", content } as RfcMessage);
    expect(trimmed).toBe(countTokens({ role: "assistant", content: placeholders } as RfcMessage).full);
  });

  it("rounds up once for the whole list", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary", maxLength: 40 }), { maxLength: 8 }), (texts) => {
        const raw = texts.reduce((sum, text) => sum + 8 + Math.ceil(new TextEncoder().encode(text).length / 3.5), 0);
        expect(estimateTokens(texts.map(user))).toBe(finalEstimate(raw));
        expect(finalEstimate(raw)).toBe(Math.ceil(raw * 1.05));
      }),
    );
  });
});

describe("the RFC's estimate of tool definitions", () => {
  it("adds a fifth for JSON and 8 per tool, without the 5 % of safety", () => {
    const tool = { name: "ls", description: "lists files", input_schema: { type: "object" } };
    const bytes = "ls".length + "lists files".length + '{"type":"object"}'.length;
    const tokens = Math.ceil(Math.ceil(bytes * 1.2) / 3.5) + 8;
    expect(estimateToolOverhead([tool])).toBe(tokens);
    expect(estimateToolOverhead([tool, tool])).toBe(2 * tokens);
    // 31.2 bytes round up to 32, one more than 9 tokens hold
    expect(estimateToolOverhead([{ name: "x".repeat(26) }])).toBe(10 + 8);
  });

  it("is 0 without tools, and accepts a tool without description or schema", () => {
    expect(estimateToolOverhead()).toBe(0);
    expect(estimateToolOverhead([])).toBe(0);
    expect(estimateToolOverhead([{ name: "ls" }])).toBe(Math.ceil(3 / 3.5) + 8);
  });

  it("counts a schema under each provider's name", () => {
    const schema = { type: "object", properties: { path: { type: "string" } } };
    const [name, description] = ["ls", "lists files"];
    const tokens = estimateToolOverhead([{ name, description, input_schema: schema }]);
    const others = [
      { name, description, inputSchema: schema },
      { name, description, parameters: schema },
      { type: "function", function: { name, description, parameters: schema } },
    ];
    for (const tool of others) expect(estimateToolOverhead([tool])).toBe(tokens);
  });

  it("names the path of what is malformed", () => {
    const circular: Record<string, unknown> = {};
    circular.self = circular;
    const estimate = (tools: unknown) => () => estimateToolOverhead(tools as object[]);
    expect(estimate({})).toThrow("tools must be an array, not an object");
    expect(estimate([{ name: "a" }, null])).toThrow("tools[1] must be an object, not null");
    expect(estimate([{}])).toThrow("tools[0].name must be a string, not undefined");
    expect(estimate([{ name: "a", description: 1 }])).toThrow("tools[0].description must be a string");
    expect(estimate([{ name: "a", input_schema: circular }])).toThrow("tools[0].input_schema cannot be written");
  });
});

/** Section 9 of the RFC, and what this library promises for every reduction, over sessions that grow turn by turn. */
const numRuns = caseCount({ few: 20, deep: 1_000, long: 5_000 });

const tag = "<checkpoint_id>3f2a</checkpoint_id>";
const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "binary", maxLength: 20 }) },
  { weight: 2, arbitrary: fc.nat({ max: 400 }).map((length) => "x".repeat(length)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("[trimmed]", "", " ", tag, `${tag}\nhi`, `hi ${tag} ho`, `\n${tag}`),
  },
);
const image = fc.constant({ type: "image", source: { type: "base64", data: "AAAA" } });
const textPart = fc.record({ type: fc.constant("text"), text });
const callPart = fc.record({
  type: fc.constantFrom("tool_use", "tool_call"),
  id: fc.constantFrom("c1", "c2", "c3"),
  name: fc.constantFrom("ls", "read_file"),
  args: fc.dictionary(fc.string({ maxLength: 3 }), fc.string({ maxLength: 9 }), { maxKeys: 2 }),
});
const resultPart = fc.record({
  type: fc.constant("tool_result"),
  tool_use_id: callPart.map(({ id }) => id),
  content: text,
});

const said = (role: string, part: fc.Arbitrary<object>) =>
  fc.record({ role: fc.constant(role), content: fc.oneof(text, fc.array(part, { maxLength: 3 })) });
const results = fc.record({
  role: fc.constant("tool"),
  content: fc.array(resultPart, { minLength: 1, maxLength: 4 }),
});
/** Starts with a user message and ends without one, like the calls of an agent. */
const turn = fc
  .tuple(
    fc.array(said("user", fc.oneof(textPart, image)), { minLength: 1, maxLength: 2 }),
    fc.array(fc.tuple(said("assistant", fc.oneof(textPart, callPart, image)), fc.array(results, { maxLength: 2 })), {
      minLength: 1,
      maxLength: 3,
    }),
  )
  .map(([asked, steps]) => [...asked, ...steps.flatMap(([answer, after]) => [answer, ...after])]);

interface Session {
  readonly system: object[];
  readonly turns: object[][];
  readonly keep: number;
  /** A window for each turn: models and tools change in the middle of a session. */
  readonly windows: number[];
  readonly tools: object[] | undefined;
}
const session: fc.Arbitrary<Session> = fc.record({
  system: fc.array(said("system", textPart), { maxLength: 1 }),
  turns: fc.array(turn, { minLength: 1, maxLength: 6 }),
  keep: fc.nat({ max: 5 }),
  windows: fc.array(fc.oneof(fc.nat({ max: 500 }), fc.nat({ max: 9_000 })), { minLength: 6, maxLength: 6 }),
  tools: fc.option(fc.constant([{ name: "ls", description: "x".repeat(80), input_schema: {} }]), {
    nil: undefined,
  }),
});

interface Step extends ReducedContext {
  readonly input: readonly object[];
  /** The input without tags, merged and without repeats. The boundary counts these messages. */
  readonly normal: readonly RfcMessage[];
  readonly previous: number;
  readonly boundary: number;
  readonly threshold: number;
  readonly overhead: number;
  readonly options: BudgetOptions & { readonly keepLastNAssistantMessages: number };
}

/** Every call of a session. The metadata goes through JSON each time, as in a checkpoint. */
function replay({ system, turns, keep, windows, tools }: Session): Step[] {
  const steps: Step[] = [];
  let input = system;
  let metadata: ContextMetadata | undefined;
  for (const [index, messages] of turns.entries()) {
    input = [...input, ...messages];
    const contextWindow = windows[index] ?? 0;
    const options = { contextWindow, metadata, tools, keepLastNAssistantMessages: keep };
    const reduced = reduceContextWithBudget(deepFreeze(input), deepFreeze(options));
    const previous = metadata?.trimmed_up_to_message_index ?? 0;
    const boundary = reduced.metadata?.trimmed_up_to_message_index ?? 0;
    const [threshold, overhead] = [budgetThreshold(contextWindow, 0.8), estimateToolOverhead(tools)];
    steps.push({
      ...reduced,
      input,
      normal: reduceContext(input),
      previous,
      boundary,
      threshold,
      overhead,
      options,
    });
    metadata = reduced.metadata && JSON.parse(JSON.stringify(reduced.metadata));
  }
  return steps;
}

function holds(name: string, check: (step: Step, before: Step | undefined) => void): void {
  test(name, () => {
    fc.assert(
      fc.property(session, (each) => {
        const steps = replay(each);
        for (const [index, step] of steps.entries()) check(step, steps[index - 1]);
      }),
      { numRuns },
    );
  });
}

holds("the boundary never moves back", ({ boundary, previous }) => {
  expect(boundary).toBeGreaterThanOrEqual(previous);
});

holds("within the budget the boundary rests", ({ normal, previous, boundary, threshold, overhead }) => {
  const effective = estimateTokens(trimmedTo(normal, previous)) + overhead;
  if (effective <= threshold) expect(boundary).toBe(previous);
  else if (normal.slice(previous).some(isTrimmable)) expect(boundary).toBeGreaterThan(previous);
});

holds("everything before the boundary is trimmed and nothing behind it", ({ messages, normal, boundary }) => {
  expect(messages).toEqual(trimmedTo(normal, boundary));
});

holds("the budget is hard: it is met, or everything is trimmed and the excess is told", (step) => {
  const { messages, normal, overflow, threshold, overhead } = step;
  const tokens = estimateTokens(messages) + overhead;
  expect(overflow).toEqual(tokens > threshold ? { tokens, threshold } : undefined);
  if (overflow !== undefined) expect(messages).toEqual(trimmedTo(normal, normal.length));
});

holds(
  "kept messages are trimmed only as far as the budget demands",
  ({ normal, previous, boundary, threshold, overhead, options }) => {
    const keep = options.keepLastNAssistantMessages;
    const assistants = normal.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
    const firstKept = keep === 0 ? normal.length : (assistants.at(-keep) ?? 0);
    if (boundary === previous) return;
    expect(boundary).toBeGreaterThanOrEqual(firstKept);
    if (boundary === firstKept) return;
    expect(isTrimmable(normal[boundary - 1]!)).toBe(true);
    expect(estimateTokens(trimmedTo(normal, boundary - 1)) + overhead).toBeGreaterThan(threshold);
  },
);

holds("user and system messages never change", ({ messages, normal }) => {
  expect(messages.filter((each) => !isTrimmable(each))).toEqual(normal.filter((each) => !isTrimmable(each)));
});

holds("roles, calls, images and the ids of results stay in their places", ({ messages, normal }) => {
  expect(messages.map(structure)).toEqual(normal.map(structure));
});

holds("a turn only appends while the boundary rests", ({ messages, boundary }, before) => {
  if (before?.boundary !== boundary) return;
  expect(JSON.stringify(messages.slice(0, before.messages.length))).toBe(JSON.stringify(before.messages));
});

holds("a message that nothing had to change is the caller's own object", ({ input, messages, normal, boundary }) => {
  const own = new Set<object>(input);
  for (const [index, message] of messages.entries()) {
    if (index >= boundary || !isTrimmable(message)) expect(own.has(message)).toBe(own.has(normal[index]!));
  }
});

holds("a checkpoint gives the same bytes again", ({ input, messages, metadata, options }) => {
  const stored = metadata && (JSON.parse(JSON.stringify(metadata)) as ContextMetadata);
  const reread = JSON.parse(JSON.stringify(input)) as object[];
  for (const history of [reread, messages]) {
    const again = reduceContextWithBudget(history, { ...options, metadata: stored });
    expect(JSON.stringify(again.messages)).toBe(JSON.stringify(messages));
    expect(JSON.stringify(again.metadata)).toBe(JSON.stringify(metadata));
  }
});

test("the generated sessions trim, rest, overflow, fit, and trim kept messages", () => {
  const steps = fc.sample(session, { numRuns: 200, seed: 1 }).flatMap(replay);
  const answersBehind = ({ normal, boundary }: Step) =>
    normal.slice(boundary).filter(({ role }) => role === "assistant").length;
  const kinds: readonly ((step: Step) => boolean)[] = [
    ({ metadata }) => metadata === undefined,
    ({ overflow }) => overflow !== undefined,
    ({ boundary, previous, overflow }) => boundary > previous && overflow === undefined,
    ({ boundary, previous }) => boundary > 0 && boundary === previous,
    (step) => step.boundary > step.previous && answersBehind(step) < step.options.keepLastNAssistantMessages,
  ];
  for (const kind of kinds) expect(steps.filter(kind).length, String(kind)).toBeGreaterThan(10);
});

/** A slow second implementation of the RFC's trimming. */
function trimmedTo(messages: readonly RfcMessage[], boundary: number): RfcMessage[] {
  return messages.map((message, index) => {
    if (index >= boundary || !isTrimmable(message)) return message;
    if (typeof message.content === "string") return { ...message, content: "[trimmed]" };
    const content = message.content.map((part): RfcPart => {
      if (part.type === "text") return { ...part, text: "[trimmed]" };
      return part.type === "tool_result" ? { ...part, content: "[trimmed]" } : part;
    });
    return { ...message, content };
  });
}

function isTrimmable({ role }: RfcMessage): boolean {
  return role === "assistant" || role === "tool";
}

/** A message without its text. */
function structure({ role, content }: RfcMessage): object {
  if (typeof content === "string") return { role };
  return { role, parts: content.map((part) => ({ ...part, text: undefined, content: undefined })) };
}

/** Freezes the value, so that a write to the caller's objects throws. */
function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const each of Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}
