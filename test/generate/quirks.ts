/** What recordings have and no provider takes: histories that were interrupted, replayed or put together by hand. */
import type { Random } from "./content/random.ts";
import { isCall, isResult } from "./read-blocks.ts";
import type { CallBlock, SessionMessage } from "./session-message.ts";

export const quirks = [
  "unanswered-calls",
  "reused-ids",
  "consecutive-users",
  "results-out-of-order",
  "late-results",
  "repeated-results",
  "starts-with-assistant",
] as const;
export type Quirk = (typeof quirks)[number];

export interface TimedMessages {
  readonly messages: readonly SessionMessage[];
  readonly times: readonly number[];
}

/** The history with each quirk in some places, and in at least one where it has a place at all. */
export function applyQuirks(history: TimedMessages, chosen: readonly Quirk[], random: Random): TimedMessages {
  // In the table's order, whatever the caller's: the same choice gives the same history.
  const ordered = quirks.filter((quirk) => chosen.includes(quirk));
  return ordered.reduce((current, quirk) => applyQuirk(current, quirk, random), history);
}

/** Of the places where a quirk could be. */
const share = 0.04;

function applyQuirk({ messages, times }: TimedMessages, quirk: Quirk, random: Random): TimedMessages {
  const written = messages.map((message, index) => writers[quirk](message, { messages, index }));
  const places = written.flatMap((each, index) => (each === undefined ? [] : [index]));
  const chosen = new Set(places.filter(() => random.chance(share)));
  if (chosen.size === 0 && places.length > 0) chosen.add(random.pick(places));
  const changed = messages.map((message, index) => (chosen.has(index) ? written[index]! : [message]));
  return { messages: changed.flat(), times: changed.flatMap((each, index) => each.map(() => times[index]!)) };
}

interface Place {
  readonly messages: readonly SessionMessage[];
  readonly index: number;
}
/** The messages that stand for one; undefined where the quirk has no place. */
type QuirkWriter = (message: SessionMessage, place: Place) => readonly SessionMessage[] | undefined;

const writers: Readonly<Record<Quirk, QuirkWriter>> = {
  "unanswered-calls"(message) {
    const [first, ...rest] = message.content;
    if (first === undefined || !isResult(first)) return undefined;
    return [{ ...message, content: [...rest, { type: "text", text: "[stopped by the person]" }] }];
  },
  // The same call once more, under the id of the session's first one: programs that number calls anew do that.
  "reused-ids"(message, { messages, index }) {
    const id = firstCall(messages)?.id;
    const call = messages[index - 1]?.content.find(isCall);
    const result = message.content.find(isResult);
    if (id === undefined || call === undefined || result === undefined || call.id === id) return undefined;
    const again: SessionMessage = { role: "assistant", content: [{ ...call, id }] };
    return [message, again, { role: "user", content: [{ ...result, tool_use_id: id }] }];
  },
  "consecutive-users"(message) {
    return message.role === "user" ? [message, said("user", "One more thing: keep it short.")] : undefined;
  },
  "results-out-of-order"(message) {
    const results = message.content.filter(isResult);
    return results.length < 2 ? undefined : [{ ...message, content: message.content.toReversed() }];
  },
  "late-results"(message) {
    if (!message.content.some(isResult)) return undefined;
    return [said("user", "Still running."), said("assistant", "I will wait for it."), message];
  },
  "repeated-results"(message) {
    const result = message.content.find(isResult);
    if (result === undefined) return undefined;
    return [{ ...message, content: [...message.content, { ...result, content: "The same once more." }] }];
  },
  "starts-with-assistant"(_message, { messages, index }) {
    const start = messages.findIndex(({ role }) => role !== "system");
    return start === index && messages[index + 1]?.role === "assistant" ? [] : undefined;
  },
};

function firstCall(messages: readonly SessionMessage[]): CallBlock | undefined {
  for (const { content } of messages) {
    const call = content.find(isCall);
    if (call !== undefined) return call;
  }
  return undefined;
}

function said(role: "user" | "assistant", text: string): SessionMessage {
  return { role, content: [{ type: "text", text }] };
}
