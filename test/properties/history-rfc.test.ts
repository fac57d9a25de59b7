/** The policies `rfc` and `rfc-headroom` over the RFC's own shape, beside the RFC's function. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ContextMetadata,
  createTrimmer,
  reduceContextWithBudget,
  type TrimmerOptions,
} from "../../src/history/index.ts";
import { createCounter } from "../../src/tokens/index.ts";
import { asRecorded, drawnSession } from "./drawn-sessions.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 3_000 : 100;
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
  const check = async (
    messages: readonly object[],
    { contextWindow, keep, threshold }: Budget,
    grow: number[],
  ) => {
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
