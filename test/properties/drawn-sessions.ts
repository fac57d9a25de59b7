/** Sessions for the properties of trimming: short ones of any shape, which shrink, and some like those of real agents. */
import fc from "fast-check";
import { type FormatName, normaliseMessages } from "../../src/core/messages/index.ts";
import { convertMessages } from "../generate/convert/convert-messages.ts";
import { generateSession } from "../generate/generate-session.ts";
import { quirks } from "../generate/quirks.ts";
import type { SessionBlock, SessionMessage } from "../generate/session-message.ts";

/** In Anthropic's shape, as they are recorded: not yet what a provider takes. */
export const drawnSession: fc.Arbitrary<readonly SessionMessage[]> = fc.oneof(
  { weight: 4, arbitrary: fc.array(drawTurn(), { minLength: 1, maxLength: 24 }).map(messagesOf) },
  { weight: 1, arbitrary: drawRealistic() },
);

/** The session as a provider takes it, frozen: who changes a caller's object fails at once. */
export function asSent(session: readonly SessionMessage[], format: FormatName): readonly object[] {
  return deepFreeze(normaliseMessages(convertMessages(session, format), { format }));
}

/** The session as careless clients send it: calls without results, users who speak twice. */
export function asRecorded(session: readonly SessionMessage[], format: FormatName): readonly object[] {
  return deepFreeze(convertMessages(session, format));
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const each of Object.values(value)) deepFreeze(each);
  return value;
}

interface Turn {
  /** What the person says before it, in words. */
  readonly asked: number | null;
  readonly thinking: number | null;
  readonly text: number | null;
  readonly calls: readonly Call[];
}

interface Call {
  readonly tool: string;
  readonly input: number;
  readonly result: number;
  readonly hasImage: boolean;
}

/** Words, most often few: sizes on both sides of what is worth a placeholder. */
function drawSize(): fc.Arbitrary<number> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 40 }) },
    { weight: 2, arbitrary: fc.integer({ min: 40, max: 400 }) },
    { weight: 1, arbitrary: fc.integer({ min: 400, max: 3_000 }) },
  );
}

function drawTurn(): fc.Arbitrary<Turn> {
  const call = fc.record({
    tool: fc.constantFrom("read_file", "run_command", "edit_file"),
    input: fc.oneof({ weight: 3, arbitrary: fc.constant(2) }, { weight: 1, arbitrary: drawSize() }),
    result: drawSize(),
    hasImage: fc.integer({ min: 0, max: 9 }).map((drawn) => drawn === 9),
  });
  return fc.record({
    asked: fc.option(fc.integer({ min: 1, max: 60 }), { freq: 2 }),
    thinking: fc.option(fc.integer({ min: 1, max: 120 }), { freq: 1 }),
    text: fc.option(drawSize(), { freq: 1 }),
    calls: fc.array(call, { maxLength: 3 }),
  });
}

/** Recorded sessions have everything that `normaliseMessages` mends. */
function drawRealistic(): fc.Arbitrary<readonly SessionMessage[]> {
  return fc
    .record({
      seed: fc.nat({ max: 1_000_000 }),
      turns: fc.integer({ min: 2, max: 40 }),
      profile: fc.constantFrom("coding", "search", "chat"),
      quirks: fc.subarray([...quirks]),
    })
    .map((options) => generateSession(options).messages);
}

function messagesOf(turns: readonly Turn[]): readonly SessionMessage[] {
  const messages: SessionMessage[] = [said("user", words(8, "start"))];
  for (const [index, { asked, thinking, text, calls }] of turns.entries()) {
    if (asked !== null) messages.push(said("user", words(asked, `ask${index}`)));
    const content: SessionBlock[] = [];
    if (thinking !== null) content.push(thought(words(thinking, `think${index}`)));
    if (text !== null || calls.length === 0) content.push({ type: "text", text: words(text ?? 3, `say${index}`) });
    const ids = calls.map((_call, at) => `call_${index}_${at}`);
    for (const [at, call] of calls.entries()) content.push(callBlock(ids[at] as string, call));
    messages.push({ role: "assistant", content });
    const results = calls.map((call, at) => resultBlock(ids[at] as string, call));
    if (results.length > 0) messages.push({ role: "user", content: results });
  }
  return messages;
}

function said(role: "user" | "assistant", text: string): SessionMessage {
  return { role, content: [{ type: "text", text }] };
}

function thought(text: string): SessionBlock {
  return { type: "thinking", thinking: text, signature: `sealed${text}` };
}

function callBlock(id: string, { tool, input }: Call): SessionBlock {
  return { type: "tool_use", id, name: tool, input: { path: `src/${id}.ts`, content: words(input, id) } };
}

function resultBlock(id: string, { result, hasImage }: Call): SessionBlock {
  const text = words(result, `result of ${id}`);
  if (!hasImage) return { type: "tool_result", tool_use_id: id, content: text };
  return { type: "tool_result", tool_use_id: id, content: [{ type: "text", text }, image] };
}

const image = {
  type: "image",
  source: {
    type: "base64",
    media_type: "image/png",
    data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  },
} as const;

function words(count: number, name: string): string {
  return Array.from({ length: count }, (_each, index) => `${name}.${index}`).join(" ");
}
