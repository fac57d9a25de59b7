import { describe, expect, it } from "vitest";
import { generateSession } from "./generate-session.ts";
import { type Quirk, quirks } from "./quirks.ts";
import { isCall, isResult } from "./read-blocks.ts";
import type { SessionMessage } from "./session-message.ts";

const generate = (quirk?: Quirk, turns = 60) =>
  generateSession({ seed: 7, turns, quirks: quirk === undefined ? [] : [quirk] });

/** What is there in a history that a provider would not take. */
const signs: Record<Quirk, (messages: readonly SessionMessage[]) => boolean> = {
  "unanswered-calls": (messages) => countOf(messages, isCall) > countOf(messages, isResult),
  "reused-ids": (messages) => {
    const ids = messages.flatMap(({ content }) => content.filter(isCall).map(({ id }) => id));
    return new Set(ids).size < ids.length;
  },
  "consecutive-users": (messages) =>
    messages.some(({ role }, index) => role === "user" && messages[index + 1]?.role === "user"),
  "results-out-of-order": (messages) =>
    messages.some(({ content }, index) => {
      const calls = messages[index - 1]?.content.filter(isCall).map(({ id }) => id) ?? [];
      const results = content.filter(isResult).map((each) => each.tool_use_id);
      return results.length > 1 && calls[0] !== results[0];
    }),
  "late-results": (messages) =>
    messages.some(
      ({ content }, index) => content.some(isResult) && messages[index - 1]?.content.every((block) => !isCall(block)),
    ),
  "repeated-results": (messages) =>
    messages.some(({ content }) => {
      const ids = content.filter(isResult).map((each) => each.tool_use_id);
      return new Set(ids).size < ids.length;
    }),
  "starts-with-assistant": (messages) => messages[0]?.role === "assistant",
};

describe("a quirk", () => {
  it.each(quirks)("is in a session that was asked to have it, and in no other: %s", (quirk) => {
    expect(signs[quirk](generate(quirk).messages)).toBe(true);
    expect(signs[quirk](generate().messages)).toBe(false);
  });

  it("leaves a time for each message", () => {
    const { messages, times } = generateSession({ seed: 7, turns: 60, quirks });
    expect(times.length).toBe(messages.length);
  });

  it("does not depend on the order in which quirks are named", () => {
    const forwards = generateSession({ seed: 3, turns: 40, quirks });
    const backwards = generateSession({ seed: 3, turns: 40, quirks: quirks.toReversed() });
    expect(backwards).toEqual(forwards);
  });
});

function countOf(
  messages: readonly SessionMessage[],
  is: (block: SessionMessage["content"][number]) => boolean,
): number {
  return messages.reduce((sum, { content }) => sum + content.filter(is).length, 0);
}
