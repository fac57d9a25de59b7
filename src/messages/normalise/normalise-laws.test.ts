/** What holds for every history, however broken, in every format. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Fields } from "../fields.ts";
import { formats } from "../formats/index.ts";
import type { MessageFormat, Part, Role } from "../message-format.ts";
import { validateRequest } from "../validate/validate-request.ts";
import { createConversation, readParts, type Step } from "./conversation.contract.ts";
import { normaliseMessages } from "./normalise-messages.ts";

const numRuns = process.env.PLIMSOLL_DEEP === "1" ? 10_000 : 300;

// Few ids, so that they are reused, answered twice, late or never.
const id = fc.constantFrom("c1", "c2", "c1_2");
const ids = fc.array(id, { maxLength: 3 });
const text = fc.constantFrom("", " \n", "hello", "well then", "\ud800");
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("user"), text }),
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("assistant"), text, calls: ids }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("results"), calls: ids, text }) },
  fc.record({ kind: fc.constant("system"), text }),
);
const ownWords = /^(?:\(start\)$|\(empty\)$|\[late tool output\])/;

const each = formats.map((format) => [format.name, format] as const);

describe.each(each)("normalised %s messages", (name, format) => {
  const normalise = (messages: readonly object[]) => normaliseMessages(messages, { format: name });
  const checkAll = (check: (messages: object[]) => void) =>
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => check(createConversation(name, steps))),
      { numRuns },
    );

  it("stay as they are when normalised again, and change no message that is given", () => {
    checkAll((messages) => {
      const once = deepFreeze(normalise(deepFreeze(messages)));
      expect(normalise(once)).toBe(once);
    });
  });

  it("begin alike, however the history goes on after a turn", () => {
    checkAll((messages) => {
      const whole = normalise(messages);
      const roles = messages.map((message) => format.read(message as Fields, "message").role);
      for (let end = 0; end <= messages.length; end++) {
        const isTurn = roles[end] === "assistant" && roles[end - 1] !== "assistant";
        if (end < messages.length && !isTurn) continue;
        const begun = normalise(messages.slice(0, end));
        expect(whole.slice(0, begun.length)).toEqual(begun);
      }
    });
  });

  it("keep every word of the user and the system, in order", () => {
    const words = (messages: readonly object[], role: Role) =>
      readParts(messages, format)
        .filter((each) => each.role === role && each.part.kind === "text" && each.text.trim() !== "")
        .map((each) => each.text)
        .filter((said) => !ownWords.test(said));
    checkAll((messages) => {
      const normalised = normalise(messages);
      for (const role of ["user", "system"] as const) {
        expect(words(normalised, role)).toEqual(words(messages, role));
      }
    });
  });

  it("answer each call once, before anything else is said, and have no other results", () => {
    checkAll((messages) => {
      expect(pairingProblems(normalise(messages), format)).toEqual([]);
    });
  });

  it("are valid", () => {
    checkAll((messages) => {
      const normalised = normalise(messages);
      if (normalised.length > 0) expect(validateRequest(normalised, { format: name })).toEqual([]);
    });
  });

  it("begin with a user, have no blank text, and lose no output", () => {
    checkAll((messages) => {
      const normalised = readParts(normalise(messages), format);
      expect(normalised.find(({ role }) => role !== "system")?.role ?? "user").toBe("user");
      for (const { part, text } of normalised) if (part.kind === "text") expect(text.trim()).not.toBe("");
      const all = normalised.map(({ text }) => text).join("\n");
      const outputs = readParts(messages, format).filter(({ part }) => part.kind === "tool_result");
      // Of two results for one call the first may go.
      const last = new Map(outputs.map(({ part, text }) => [part.callId, text]));
      for (const output of last.values()) expect(all).toContain(output);
    });
  });
});

function pairingProblems(messages: readonly object[], format: MessageFormat): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  const open = new Set<string>();
  const expectAnswers = () => {
    if (open.size > 0) problems.push(`not answered at once: ${[...open]}`);
  };
  const visit = ({ kind, callId = "" }: Part, role: Role) => {
    if (kind === "tool_result") return open.delete(callId) || problems.push(`not open: ${callId}`);
    if (role !== "assistant") expectAnswers();
    if (kind !== "tool_call") return;
    if (seen.has(callId)) problems.push(`used again: ${callId}`);
    seen.add(callId);
    open.add(callId);
  };
  for (const message of messages) {
    const { role, parts } = format.read(message as Fields, "message");
    // Only in a list of items can a turn go on after a call.
    if (role === "assistant" && format.name !== "responses") expectAnswers();
    for (const part of parts) visit(part, role);
  }
  expectAnswers();
  return problems;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const field of Object.values(value)) deepFreeze(field);
    Object.freeze(value);
  }
  return value;
}
