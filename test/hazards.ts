/** Histories that break trimmers, in every message format. All are frozen: who changes a caller's object fails at once. */
import type { FormatName } from "../src/core/messages/index.ts";
import { convertMessages } from "./generate/convert/convert-messages.ts";
import type { SessionMessage } from "./generate/session-message.ts";
import { brokenHistories, type NamedHistory, said, session, validHistories } from "./hazard-histories.ts";

export interface Hazard {
  readonly name: string;
  readonly messages: readonly object[];
  /** The provider surely takes this history as it is. Of the others some are refused, some are taken by a few. */
  readonly isValid: boolean;
}

/** A client that changes its own history between two calls: what it sends, call by call. */
export interface ClientHazard {
  readonly name: string;
  readonly calls: readonly (readonly object[])[];
}

export function hazards(format: FormatName): readonly Hazard[] {
  const converted =
    (isValid: boolean) =>
    ([name, messages]: NamedHistory) => ({
      name,
      messages: deepFreeze(convertMessages(messages, format)),
      isValid,
    });
  return [
    ...validHistories().map(converted(true)),
    ...brokenHistories().map(converted(false)),
    { name: "fields and parts of tomorrow", messages: deepFreeze(strangers(format)), isValid: false },
  ];
}

export function clientHazards(format: FormatName): readonly ClientHazard[] {
  const messages = session(80);
  const upTo = (count: number) => messages.slice(0, count);
  const summary = said("user", "Summary of what happened so far: the berth is narrow and the tests pass.");
  const prompt = messages.findIndex(
    ({ content }, index) => index > 20 && content[0]?.type === "text" && index % 2 === 0,
  );
  const fork = [...upTo(prompt), said("user", "No, do it the other way round.")];
  const edited = [said("user", "Another task altogether."), ...messages.slice(1)];
  const compacted = (end: number) => [summary, ...messages.slice(41, end)];
  const histories: [string, (readonly SessionMessage[])[]][] = [
    ["a client that compacts its history", [upTo(21), upTo(41), compacted(51), compacted(61)]],
    ["a client that rewinds its history", [upTo(41), upTo(61), upTo(11), upTo(21)]],
    ["a client that forks its history", [upTo(61), fork, [...fork, ...messages.slice(prompt + 1, prompt + 21)]]],
    ["a client that edits its first message", [upTo(41), edited.slice(0, 43), edited.slice(0, 61)]],
    ["a client that sends the same again", [upTo(61), upTo(61), upTo(61)]],
  ];
  return histories.map(([name, calls]) => ({
    name,
    calls: calls.map((call) => deepFreeze(convertMessages(call, format))),
  }));
}

/** A list with something in it that is no message, and the start of the path that an error has to name. */
export function malformed(format: FormatName): readonly { name: string; messages: readonly object[]; path: string }[] {
  const before = convertMessages(session(4), format);
  const strange: [string, unknown][] = [
    ["null", null],
    ["a text", "hello"],
    ["a number", 7],
    ["a list", []],
    ["an empty object", {}],
    ["an unknown role", { role: "nobody", content: "hello" }],
    ["content that is a number", { role: "user", content: 7 }],
    ["a part that is null", { role: "user", content: [null] }],
    ["a part without a type", { role: "user", content: [{ text: "hello" }] }],
    [
      "text that is a number",
      { role: "user", content: [{ type: format === "responses" ? "input_text" : "text", text: 7 }] },
    ],
  ];
  return strange.map(([name, value]) => ({
    name,
    messages: [...before, value as object, ...before],
    path: `messages[${before.length}]`,
  }));
}

/** What a format may hold one day, and what clients add for themselves. */
function strangers(format: FormatName): object[] {
  const messages = convertMessages(session(12), format).map((message) => ({
    ...message,
    client_note: { seen: true },
  }));
  const stranger = { type: "hologram", beam: "blue", client_note: 1 };
  if (format === "responses") return [...messages, stranger];
  if (format === "gemini") return [...messages, { role: "user", parts: [{ hologram: stranger }, { text: "look" }] }];
  return [...messages, { role: "user", content: [stranger, { type: "text", text: "look" }] }];
}

function deepFreeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const each of Object.values(value)) deepFreeze(each);
  return value;
}
