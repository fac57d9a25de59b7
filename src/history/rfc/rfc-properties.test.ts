/** Section 9 of the RFC, and what this library promises of every reduction, over sessions that grow turn by turn. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { budgetThreshold } from "./advance-boundary.ts";
import type { BudgetOptions, ContextMetadata } from "./budget-options.ts";
import { estimateTokens, estimateToolOverhead } from "./estimate-tokens.ts";
import { reduceContext } from "./reduce-context.ts";
import { type ReducedContext, reduceContextWithBudget } from "./reduce-with-budget.ts";
import type { RfcMessage, RfcPart } from "./rfc-message.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 5_000 : 250;

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
/** Starts with a user message and ends with none, as the calls of an agent do. */
const turn = fc
  .tuple(
    fc.array(said("user", fc.oneof(textPart, image)), { minLength: 1, maxLength: 2 }),
    fc.array(
      fc.tuple(said("assistant", fc.oneof(textPart, callPart, image)), fc.array(results, { maxLength: 2 })),
      { minLength: 1, maxLength: 3 },
    ),
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
  /** The input without tags, merged and without repeats: what the boundary counts. */
  readonly normal: readonly RfcMessage[];
  readonly previous: number;
  readonly boundary: number;
  readonly threshold: number;
  readonly overhead: number;
  readonly options: BudgetOptions & { readonly keepLastNAssistantMessages: number };
}

/** Every call of a session, its metadata taken through JSON each time as a checkpoint does. */
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
  "what is kept gives way only as far as the budget demands",
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

holds(
  "a message that nothing had to change is the caller's own object",
  ({ input, messages, normal, boundary }) => {
    const own = new Set<object>(input);
    for (const [index, message] of messages.entries()) {
      if (index >= boundary || !isTrimmable(message)) expect(own.has(message)).toBe(own.has(normal[index]!));
    }
  },
);

holds("a checkpoint gives the same bytes again", ({ input, messages, metadata, options }) => {
  const stored = metadata && (JSON.parse(JSON.stringify(metadata)) as ContextMetadata);
  const reread = JSON.parse(JSON.stringify(input)) as object[];
  for (const history of [reread, messages]) {
    const again = reduceContextWithBudget(history, { ...options, metadata: stored });
    expect(JSON.stringify(again.messages)).toBe(JSON.stringify(messages));
    expect(JSON.stringify(again.metadata)).toBe(JSON.stringify(metadata));
  }
});

test("sessions as they are drawn do trim, rest, overflow, fit and reach into what is kept", () => {
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

/** The RFC's trimming, written down once more and without regard to cost. */
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

/** A message without its words. */
function structure({ role, content }: RfcMessage): object {
  if (typeof content === "string") return { role };
  return { role, parts: content.map((part) => ({ ...part, text: undefined, content: undefined })) };
}

/** A write to anything of the caller's would throw. */
function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const each of Object.values(value)) deepFreeze(each);
  return Object.freeze(value);
}
