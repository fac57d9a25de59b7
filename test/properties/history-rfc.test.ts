/** The policies `rfc` and `rfc-headroom` over the RFC's own shape, beside the RFC's function. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ContextMetadata,
  createTrimmer,
  reduceContextWithBudget,
  type TrimmerOptions,
} from "../../src/conversation/history/index.ts";
import { type FormatName, validateRequest } from "../../src/core/messages/index.ts";
import { createCounter } from "../../src/core/tokens/index.ts";
import { type AgentState, createContextHook } from "../../src/plans/agent/index.ts";
import { asRecorded, asSent, drawnSession } from "./drawn-sessions.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 3_000 : 40;
const counter = await createCounter("bytes/4");

const tag = "<checkpoint_id>3f2a</checkpoint_id>";
const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "binary", maxLength: 20 }) },
  { weight: 2, arbitrary: fc.nat({ max: 600 }).map((length) => "x".repeat(length)) },
  { weight: 1, arbitrary: fc.constantFrom("[trimmed]", "", " ", tag, `${tag}\nhi`, `hi ${tag} ho`) },
);
const id = fc.constantFrom("c1", "c2", "c3");
const textPart = fc.record({ type: fc.constant("text"), text });
const callPart = fc.record({
  type: fc.constantFrom("tool_use", "tool_call"),
  id,
  name: fc.constantFrom("ls", "read_file"),
  args: fc.dictionary(fc.string({ maxLength: 3 }), text, { maxKeys: 2 }),
});
const resultPart = fc.record({ type: fc.constant("tool_result"), tool_use_id: id, content: text });
const imagePart = fc.constant({ type: "image", source: { type: "base64", data: "AAAA" } });
const stranger = fc.record({ type: fc.constant("hologram"), beam: text });

const parts: Readonly<Record<string, fc.Arbitrary<object>>> = {
  system: textPart,
  user: fc.oneof(textPart, imagePart),
  assistant: fc.oneof(textPart, callPart, stranger),
  tool: resultPart,
};
const message = fc.constantFrom("system", "user", "user", "assistant", "assistant", "tool").chain((role) =>
  fc.record({
    role: fc.constant(role),
    content: fc.oneof(text, fc.constant(""), fc.array(parts[role]!, { minLength: 1, maxLength: 3 })),
  }),
);

/** Any order of messages, and sessions like those of agents. */
const history = fc.oneof(
  fc.array(message, { maxLength: 14 }),
  drawnSession.map((session) => asRecorded(session, "rfc")),
);
const budget = {
  contextWindow: fc.oneof(...[400, 6_000, 100_000].map((max) => fc.integer({ min: 1, max }))),
  keep: fc.nat({ max: 6 }),
  threshold: fc.oneof(fc.constant(0.8), fc.double({ min: 0, max: 1, noNaN: true })),
};
const steps = fc.array(fc.nat({ max: 8 }), { minLength: 1, maxLength: 6 });

test("rfc sends what reduceContextWithBudget sends, with the same index, call by call", {
  timeout: 120_000,
}, async () => {
  const check = async (messages: readonly object[], { contextWindow, keep, threshold }: Budget, grow: number[]) => {
    const trimmer = await createTrimmer({ ...base, policy: "rfc", contextWindow, keep, threshold });
    let metadata: ContextMetadata | undefined;
    for (const length of lengths(messages, grow)) {
      const input = messages.slice(0, length);
      const reduction = trimmer.reduce({ messages: input });
      const reference = reduceContextWithBudget(input, {
        contextWindow,
        metadata,
        keepLastNAssistantMessages: keep,
        contextBudgetThreshold: threshold,
      });
      metadata = reference.metadata;
      expect(reduction.messages).toEqual(reference.messages);
      expect(indexOf(reduction)).toBe(indexOf(reference));
      expect(reduction.stats.threshold).toBe(
        Math.floor(Math.fround(Math.fround(contextWindow) * Math.fround(threshold))),
      );
      const { overflow } = reference;
      if (overflow === undefined) expect(reduction.overflow).toBeUndefined();
      else expect(reduction.overflow).toMatchObject({ tokens: overflow.tokens, limit: overflow.threshold });
    }
  };
  await fc.assert(fc.asyncProperty(history, fc.record(budget), steps, check), { numRuns });
});

test("rfc puts the boundary where the RFC's hook does, with system text and tools, and continues from its metadata", {
  timeout: 120_000,
}, async () => {
  const systemPrompt = fc.string({ unit: "binary", minLength: 1, maxLength: 4_000 });
  const tools = fc.array(
    fc.record({ name: fc.constant("ls"), input_schema: fc.dictionary(text, text, { maxKeys: 4 }) }),
  );
  const context = fc.integer({ min: 17_000, max: 40_000 });
  const check = async (messages: readonly object[], fixed: Fixed, grow: number[]) => {
    const { systemPrompt, tools, context } = fixed;
    const hook = createContextHook({ keepLastNAssistantMessages: 3 });
    const settings = { ...base, policy: "rfc" as const, reserve: 16_000, contextWindow: context, keep: 3 };
    const trimmer = await createTrimmer(settings);
    const state: AgentState = { messages: [], systemPrompt, tools };
    for (const length of lengths(messages, grow)) {
      state.messages = messages.slice(0, length);
      const { metadata } = state;
      await hook({ model: { limit: { context } }, state }, "before_inference");
      const request = { messages: state.messages, system: systemPrompt, tools };
      const sent = state.llmInput!.messages.slice(1);
      expect(trimmer.reduce(request).messages).toEqual(sent);
      const resumed = await createTrimmer({ ...settings, metadata });
      expect(resumed.reduce(request).messages).toEqual(sent);
      const told = (await createTrimmer(settings)).reduce({ ...request, metadata });
      expect([told.messages, indexOf(told)]).toEqual([sent, indexOf({ metadata: state.metadata ?? undefined })]);
    }
  };
  await fc.assert(fc.asyncProperty(history, fc.record({ systemPrompt, tools, context }), steps, check), { numRuns });
});

interface Fixed {
  readonly systemPrompt: string;
  readonly tools: readonly object[];
  readonly context: number;
}

test("a valid history stays valid wherever a text is only a checkpoint tag", { timeout: 120_000 }, async () => {
  const policy = fc.constantFrom("rfc" as const, "rfc-headroom" as const);
  const format = fc.constantFrom("anthropic" as const, "openai" as const, "responses" as const, "ai-sdk" as const);
  const places = fc.infiniteStream(fc.boolean());
  const check = async (
    session: Session,
    settings: { policy: "rfc" | "rfc-headroom"; format: FormatName },
    tagged: Stream,
  ) => {
    const messages = asSent(session, settings.format).map((message) => withTags(message, tagged));
    fc.pre(validateRequest(messages, settings).length === 0);
    const trimmer = await createTrimmer({ ...settings, counter, reserve: 0, contextWindow: 4_000 });
    const { messages: sent } = trimmer.reduce({ messages });
    expect(validateRequest(sent, settings)).toEqual([]);
  };
  await fc.assert(fc.asyncProperty(drawnSession, fc.record({ policy, format }), places, check), { numRuns });
});

type Session = Parameters<typeof asSent>[0];
type Stream = fc.Stream<boolean>;

/** Replaces some of the message's texts with a tag. */
function withTags(message: object, tagged: Stream): object {
  const { content } = message as { content?: unknown };
  const replaced = <Value>(value: Value, other: Value): Value => (tagged.next().value === true ? other : value);
  if (typeof content === "string") return { ...message, content: replaced(content, tag) };
  if (!Array.isArray(content)) return message;
  const isText = (part: { type?: unknown }): boolean => part.type === "text";
  return { ...message, content: content.map((part) => (isText(part) ? replaced(part, { ...part, text: tag }) : part)) };
}

interface Budget {
  readonly contextWindow: number;
  readonly keep: number;
  readonly threshold: number;
}

const base: Omit<TrimmerOptions, "contextWindow"> = { format: "rfc", counter, reserve: 0 };

/** A call ends where another role speaks next: the RFC joins neighbours of one role, and a message that is joined to the last one of a call
 *  makes another history of it, on which the trimmer decides anew. */
function lengths(messages: readonly object[], grow: readonly number[]): number[] {
  let length = 0;
  const roleAt = (index: number) => (messages[index] as { role: string } | undefined)?.role;
  const each = grow.map((more) => {
    length = Math.min(messages.length, length + more);
    while (length > 0 && roleAt(length) === roleAt(length - 1)) length++;
    return length;
  });
  return [...each, messages.length];
}

function indexOf({ metadata }: { metadata?: ContextMetadata | undefined }): number {
  return metadata?.trimmed_up_to_message_index ?? 0;
}
