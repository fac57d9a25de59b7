/** What every message format promises, and generated sessions that the tests of this folder share. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { caseCount } from "../../../../test/case-count.ts";
import type { Fields } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";
import { countMessage, countMessages } from "../count-messages.ts";
import { createMessageLens } from "../lens.ts";
import type { MessageFormat } from "../message-format.ts";
import { testFormatEdits } from "./format-edits.contract.ts";

const runs = caseCount({ few: 80, deep: 2_000, long: 10_000 });

export interface FormatContract {
  readonly format: MessageFormat;
  /** Messages of every kind that the format has. */
  readonly message: fc.Arbitrary<object>;
  /** A message that can only be of this format. */
  readonly sample: object;
  /** Malformed messages, each with the start of its error at `messages[1]`. By default those of a content list. */
  readonly malformed?: readonly (readonly [unknown, string])[] | undefined;
  /** A message with one part of an unknown type, and what of it is billed. By default a block of a user message. */
  readonly unknown?: { readonly message: object; readonly part: object } | undefined;
}

/** Counts one token per character, so that expected numbers are easy to check. A new one has an empty cache. */
export function characterCounter(): Counter {
  return { name: "test:characters", count: (text) => text.length };
}

/** A counter that counts its calls. */
export function callCounter(): Counter & { calls: number } {
  return {
    name: "test:calls",
    calls: 0,
    count(text) {
      this.calls++;
      return text.length;
    },
  };
}

export function testMessageFormat({ format, message, sample, ...given }: FormatContract): void {
  const { malformed = malformedBlocks, unknown = unknownBlock } = given;
  const options = { format: format.name };
  const list = fc.array(message, { minLength: 1, maxLength: 6 });

  describe(`the ${format.name} format`, () => {
    it("claims a message of its own and no plain text", () => {
      expect(format.claims(sample as Record<string, unknown>)).toBe(true);
      expect(format.claims({ role: "user", content: "hello" })).toBe(false);
    });

    it("counts a concatenation as the sum of its parts minus one frame", () => {
      const check = (left: object[], right: object[]) => {
        const count = (messages: object[]) => countMessages(messages, characterCounter(), options);
        expect(count([...left, ...right])).toBe(count(left) + count(right) - format.overheads.request);
      };
      fc.assert(fc.property(list, list, check), { numRuns: runs });
    });

    it("counts a message as the sum of its parts and its frame, and no call, result or media as 0", () => {
      const check = (each: object) => {
        const counter = characterCounter();
        const { tokens, parts } = createMessageLens([each], { counter, ...options }).read(each, 0);
        const { separators } = format.read(each as Fields, "message");
        const frame = format.overheads.message + format.overheads.part * separators;
        expect(tokens).toBe(parts.reduce((sum, part) => sum + part.tokens, frame));
        expect(tokens).toBe(countMessage(each, counter, options));
        for (const part of parts) {
          if (part.kind !== "text" && part.kind !== "thinking") expect(part.tokens).toBeGreaterThan(0);
        }
      };
      fc.assert(fc.property(message, check), { numRuns: runs });
    });

    it("counts the same from the cache, from a copy and without any cache", () => {
      const check = (messages: object[]) => {
        const counter = characterCounter();
        const first = countMessages(messages, counter, options);
        expect(countMessages(messages, counter, options)).toBe(first);
        expect(countMessages(copyOf(messages), counter, options)).toBe(first);
        expect(countMessages(messages, characterCounter(), options)).toBe(first);
      };
      fc.assert(fc.property(list, check), { numRuns: runs });
    });

    it("names the path of what is malformed", () => {
      for (const [value, problem] of [...noMessages, ...malformed]) {
        const count = () => countMessages([sample, value as object], characterCounter(), options);
        expect(count).toThrow(expect.objectContaining({ code: "invalid_message" }));
        expect(count).toThrow(problem);
      }
    });

    it("counts an unknown part by its JSON, and never edits it", () => {
      const { separators, parts } = format.read(unknown.message as Fields, "message");
      expect(parts).toMatchObject([{ kind: "other", callId: undefined }]);
      const { message: frame, part: separator } = format.overheads;
      const counted = countMessage(unknown.message, characterCounter(), options);
      expect(counted).toBe(frame + separator * separators + JSON.stringify(unknown.part).length);
    });

    testFormatEdits(format, message);
  });
}

const noMessages: readonly (readonly [unknown, string])[] = [
  [null, "messages[1] must be an object, not null"],
  ["hello", "messages[1] must be an object, not a string"],
];

const malformedBlocks: readonly (readonly [unknown, string])[] = [
  [{ role: "nobody", content: "x" }, 'messages[1].role "nobody" is not a role'],
  [{ content: "x" }, "messages[1].role must be a string, not undefined"],
  [{ role: "user" }, "messages[1].content must be a string or an array, not undefined"],
  [{ role: "user", content: [7] }, "messages[1].content[0] must be an object, not a number"],
  [{ role: "user", content: [{}] }, "messages[1].content[0].type must be a string"],
  [{ role: "user", content: [{ type: "text", text: 7 }] }, "messages[1].content[0].text must be a string"],
];

const hologram = { type: "hologram", beam: "blue" };
const unknownBlock = { message: { role: "user", content: [hologram] }, part: hologram };

/** A session like those of coding agents, in Anthropic's format: thinking, a call, its result. The seed determines
 *  it. */
export function generateSession(turns: number, seed = 1): object[] {
  const random = createRandom(seed);
  const messages: object[] = [{ role: "user", content: sentences(random, 400) }];
  for (let turn = 0; turn < turns; turn++) {
    const id = `toolu_${seed}_${turn}`;
    const input = { path: `src/part-${turn}/file.ts`, old_text: sentences(random, 200), limit: turn };
    messages.push({
      role: "assistant",
      content: [
        { type: "thinking", thinking: sentences(random, 300), signature: "A".repeat(640) },
        { type: "text", text: sentences(random, 120) },
        { type: "tool_use", id, name: "edit_file", input },
      ],
    });
    const size = random() < 0.1 ? 20_000 : 2_500;
    messages.push({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: id, content: sentences(random, size) }],
    });
  }
  return messages;
}

const words = "the budget const return function 42 of error: line => { } import value if (count > 0) src/a.ts\n".split(
  " ",
);

function sentences(random: () => number, chars: number): string {
  let text = "";
  while (text.length < chars) text += `${words[Math.floor(random() * words.length)]} `;
  return text.slice(0, chars);
}

// mulberry32: a small generator that is the same everywhere.
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** A copy that keeps URLs. `structuredClone` empties them in Node 20 and refuses them later. */
function copyOf<Value>(value: Value): Value {
  if (value instanceof URL) return new URL(value) as Value;
  if (Array.isArray(value)) return value.map(copyOf) as Value;
  if (value === null || typeof value !== "object") return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return structuredClone(value);
  const fields = Object.entries(value).map(([name, field]) => [name, copyOf(field)]);
  return Object.fromEntries(fields) as Value;
}
