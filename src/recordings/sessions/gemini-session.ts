/** Reads sessions of gemini-cli (`~/.gemini/tmp/…/chats/session-*.jsonl`, and one JSON value before version 0.40). A
 *  later line with the same id replaces a message, `$set` replaces all of them, and `$rewindTo` removes the last ones.
 *  Messages are converted to Anthropic's format. */

import type { Fields } from "../../core/text/index.ts";
import {
  createSessionDraft,
  type JsonLine,
  lineOfType,
  type RecordedSession,
  type SessionDraft,
  type SessionReader,
  timeOf,
} from "./recorded-session.ts";
import { type UsageRecord, usageTogether } from "./recorded-usage.ts";
import { charsOf, type FactsDraft, type FactsReader, fileOfInput, mainChain } from "./session-facts.ts";

export const geminiReader: SessionReader = {
  kind: "gemini-cli",
  isLine: isGeminiLine,
  read: readGeminiSession,
};
export const geminiFacts: FactsReader = { agent: "gemini-cli", isLine: isGeminiLine, readLine: readGeminiLine };

function readGeminiSession(lines: readonly JsonLine[], file: string): RecordedSession {
  const records = lines.map(({ value }) => Object(value) as Fields);
  const draft = createSessionDraft();
  const messages = convertMessages(records);
  const reading: GeminiReading = {
    ...{ keys: [], known: new Set(), sent: [], isGrowing: true, answered: 0 },
    ...{ messages, draft },
  };
  for (const record of records) {
    draft.report(geminiUsage(record));
    readRecord(record, reading);
  }
  return draft.finish({ file, source: "gemini-cli", format: "anthropic" });
}

interface GeminiReading {
  /** The keys of the messages so far, in order and as a set, and these messages. All three only grow until the history
   *  is replaced: a line of a long session must not read the history again. */
  keys: string[];
  known: Set<string>;
  sent: object[];
  /** Whether the messages of the draft are the first of these. */
  isGrowing: boolean;
  /** The number of keys up to the last answer. */
  answered: number;
  /** The keys up to the last answer, if the program has written another history since. */
  replaced?: readonly string[] | undefined;
  /** Whether there was a rewind since the last answer. The program then writes the history that is left. */
  isRewound?: boolean;
  readonly messages: ReadonlyMap<string, readonly object[]>;
  readonly draft: SessionDraft;
}

function readRecord(record: Fields, reading: GeminiReading): void {
  const { keys, answered, messages, draft } = reading;
  const { type, $rewindTo: target } = record;
  const replacement = replacementOf(record)?.map(keyOf);
  if (typeof target === "string") {
    draft.count("rewind");
    reading.isRewound = true;
    const first = keys.findIndex((each) => each.endsWith(` ${target}`));
    setHistory(reading, keys.slice(0, Math.max(0, first)));
  } else if (replacement !== undefined) {
    reading.replaced ??= keys.slice(0, answered);
    setHistory(reading, replacement);
  } else if (messages.has(keyOf(record))) addMessage(record, reading);
  else if (!isOwnLine(record)) draft.leaveOut(...lineOfType(type));
}

function setHistory(reading: GeminiReading, keys: string[]): void {
  reading.keys = keys;
  reading.known = new Set(keys);
  reading.isGrowing = false;
  reading.sent = keys.flatMap((key) => reading.messages.get(key) ?? []);
}

function addMessage(record: Fields, reading: GeminiReading): void {
  const key = keyOf(record);
  if (reading.known.has(key)) return;
  if (record.type === "gemini") addAnswer(record, reading);
  reading.keys.push(key);
  reading.known.add(key);
  for (const message of reading.messages.get(key) ?? []) reading.sent.push(message);
  if (record.type === "gemini") reading.answered = reading.keys.length;
}

/** A resumed session gives the results of an answer the answer's id. */
function keyOf({ type, id }: Fields): string {
  return `${type} ${id}`;
}

/** A resumed session writes its first message, and then all of them. So only a request shows a compaction. */
function addAnswer(record: Fields, reading: GeminiReading): void {
  const { known, replaced = [], isRewound = false, sent, messages, draft } = reading;
  if (!isRewound && replaced.some((each) => !known.has(each))) draft.count("compaction");
  reading.isRewound = false;
  reading.replaced = undefined;
  draft.request(sent, { known: reading.isGrowing ? draft.length : 0 });
  reading.isGrowing = true;
  const [answer] = messages.get(keyOf(record)) ?? [];
  if (answer !== undefined) draft.add(answer, { time: timeOf(record.timestamp), answerId: String(record.id) });
}

function isGeminiLine(value: unknown): boolean {
  const { sessionId, projectHash, type, id, $rewindTo: target, content } = Object(value) as Fields;
  if (typeof sessionId === "string" && typeof projectHash === "string") return true;
  if (typeof target === "string") return true;
  return type === "gemini" && typeof id === "string" && content !== undefined;
}

/** The head line, changes of other fields, and what is only shown to the person. */
function isOwnLine({ $set: changed, projectHash, type }: Fields): boolean {
  return (
    changed !== undefined || projectHash !== undefined || type === "info" || type === "error" || type === "warning"
  );
}

/** The messages that a record puts in place of all earlier ones. */
function replacementOf({ $set: changed, projectHash, messages }: Fields): readonly Fields[] | undefined {
  const list = projectHash === undefined ? (Object(changed) as Fields).messages : messages;
  return Array.isArray(list) ? list.map((each) => Object(each) as Fields) : undefined;
}

function geminiUsage(value: unknown): UsageRecord | undefined {
  const { id, type, tokens, model, timestamp } = Object(value) as Fields;
  if (type !== "gemini" || typeof id !== "string" || typeof tokens !== "object" || tokens === null) return undefined;
  const { input, cached, output, thoughts } = tokens as Fields;
  const answered = Number(output ?? 0) + Number(thoughts ?? 0);
  return {
    id,
    ...(typeof model === "string" && { model }),
    time: timeOf(timestamp),
    usage: usageTogether({ input, read: cached, output: answered }),
  };
}

/** Converts the last version of each message, by its id. A call whose result has no message of its own is followed by
 *  one. */
function convertMessages(records: readonly Fields[]): ReadonlyMap<string, readonly object[]> {
  const latest = new Map<string, Fields>();
  for (const record of records) {
    for (const message of replacementOf(record) ?? [record]) {
      if (message.type === "user" || message.type === "gemini") latest.set(keyOf(message), message);
    }
  }
  const answeredBy = new Map<unknown, string>();
  for (const [key, { content }] of latest) {
    for (const id of partsOf(content).flatMap(resultIdOf)) if (!answeredBy.has(id)) answeredBy.set(id, key);
  }
  const converted = new Map<string, readonly object[]>();
  for (const [key, message] of latest) converted.set(key, convert(message, answeredBy));
  return converted;
}

function resultIdOf({ functionResponse }: Fields): readonly unknown[] {
  return functionResponse === undefined ? [] : [(Object(functionResponse) as Fields).id];
}

/** A resumed session sends the results of each answer twice. Other providers refuse a second result of a call, so it
 *  becomes a text. */
function convert(message: Fields, answeredBy: ReadonlyMap<unknown, string>): readonly object[] {
  const { type, content, toolCalls } = message;
  const isRepeated = (part: Fields): boolean => resultIdOf(part).some((id) => answeredBy.get(id) !== keyOf(message));
  const blocks = partsOf(content).flatMap((part) => (isRepeated(part) ? blockOf(part).map(asText) : blockOf(part)));
  if (type === "user") return [{ role: "user", content: blocks }];
  const calls = Array.isArray(toolCalls) ? toolCalls.map((call) => Object(call) as Fields) : [];
  // A resumed session has the calls in the content, too.
  const hasCalls = partsOf(content).some(({ functionCall }) => functionCall !== undefined);
  const uses = hasCalls ? [] : calls.map(({ id, name, args }) => toolUse(id, name, args));
  const answer = { role: "assistant", content: [...blocks, ...uses] };
  const open = calls.filter(({ id }) => !answeredBy.has(id));
  if (open.length === 0) return [answer];
  const results = open.flatMap(({ result }) => partsOf(result).flatMap(blockOf));
  return results.length === 0 ? [answer] : [answer, { role: "user", content: results }];
}

/** A content may be a text, a part, or a list of both. */
function partsOf(content: unknown): readonly Fields[] {
  const list = Array.isArray(content) ? content : content === undefined || content === null ? [] : [content];
  return list.map((part) => (typeof part === "string" ? { text: part } : (Object(part) as Fields)));
}

function blockOf({ text, functionResponse, functionCall, inlineData }: Fields): readonly object[] {
  if (typeof text === "string") return [{ type: "text", text }];
  if (functionResponse !== undefined) {
    const { id, response } = Object(functionResponse) as Fields;
    const { output, error } = Object(response) as Fields;
    const said = output ?? error ?? response;
    const content = typeof said === "string" ? said : JSON.stringify(said ?? null);
    const isError = output === undefined && error !== undefined;
    return [{ type: "tool_result", tool_use_id: id, content, ...(isError && { is_error: true }) }];
  }
  if (functionCall !== undefined) {
    const { id, name, args } = Object(functionCall) as Fields;
    return [toolUse(id, name, args)];
  }
  const { mimeType, data } = Object(inlineData) as Fields;
  if (typeof data !== "string" || !String(mimeType).startsWith("image/")) return [];
  return [{ type: "image", source: { type: "base64", media_type: mimeType, data } }];
}

function asText(block: object): object {
  return { type: "text", text: (block as Fields).content };
}

function toolUse(id: unknown, name: unknown, args: unknown): object {
  return { type: "tool_use", id, name, input: Object(args) };
}

interface GeminiState {
  /** The call that answered each prompt. */
  calls?: Record<string, number>;
  seen?: Record<string, true>;
  /** The ids of the messages that the history has. */
  live?: string[];
  /** Whether the last line was a rewind. The program then writes the history that is left. */
  isRewound?: boolean;
}

/** An answer has its tool calls with their results. */
function readGeminiLine(value: Fields, draft: FactsDraft): void {
  const own = draft.state.own as GeminiState;
  const { sessionId, projectHash } = value;
  if (typeof sessionId === "string") draft.facts.session ||= sessionId;
  if (typeof projectHash === "string") {
    draft.facts.project ||= projectHash;
    // Each process writes its own head.
    if (draft.last(mainChain) >= 0) draft.mark(mainChain, "resumed");
  }
  if (typeof value.$rewindTo === "string") {
    const first = own.calls?.[value.$rewindTo];
    if (first !== undefined) draft.mark(mainChain, "rewound", first - 1);
    own.isRewound = true;
    return;
  }
  const { messages } = Object(value.$set ?? (projectHash === undefined ? {} : value)) as Fields;
  if (Array.isArray(messages)) {
    readGeminiHistory(messages as readonly Fields[], draft, own.isRewound === true);
    own.isRewound = false;
    return;
  }
  readGeminiMessage(value, draft, own);
}

function readGeminiMessage(value: Fields, draft: FactsDraft, own: GeminiState): void {
  const { type, id, content, toolCalls } = value;
  own.calls ??= {};
  own.seen ??= {};
  const time = Date.parse(String(value.timestamp)) || undefined;
  const isKnown = own.seen[`${type} ${id}`] === true;
  own.seen[`${type} ${id}`] = true;
  own.live ??= [];
  if (!isKnown && (type === "user" || type === "gemini")) own.live.push(String(id));
  if (type === "user" && !isKnown) {
    own.calls[String(id)] = draft.last(mainChain) + 1;
    readGeminiPrompt(content, { draft, seen: own.seen, time });
  }
  if (type !== "gemini") return;
  const usage = geminiUsage(value);
  if (usage !== undefined) draft.answer(mainChain, { ...usage, time, model: usage.model });
  if (!isKnown) draft.input(mainChain, { chars: charsOf(content) });
  readGeminiCalls(toolCalls, { draft, seen: own.seen, time });
}

interface GeminiPlace {
  readonly draft: FactsDraft;
  readonly seen: Record<string, true>;
  readonly time: number | undefined;
}

function readGeminiCalls(calls: unknown, { draft, seen, time }: GeminiPlace): void {
  for (const call of Array.isArray(calls) ? (calls as readonly Fields[]) : []) {
    if (call.result === undefined || seen[`call ${call.id}`] === true) continue;
    seen[`call ${call.id}`] = true;
    draft.input(mainChain, {
      chars: charsOf(call.result),
      time,
      tool: String(call.name),
      file: fileOfInput(call.args),
    });
  }
}

/** The results of calls are a message of their own, and the calls have them too. */
function readGeminiPrompt(content: unknown, { draft, seen, time }: GeminiPlace): void {
  for (const part of Array.isArray(content) ? (content as readonly unknown[]) : [content]) {
    const { functionResponse } = Object(part) as Fields;
    const { id, name } = Object(functionResponse) as Fields;
    if (functionResponse !== undefined && seen[`call ${id}`] === true) continue;
    if (functionResponse !== undefined) seen[`call ${id}`] = true;
    draft.input(mainChain, {
      chars: charsOf(part),
      time,
      tool: functionResponse === undefined ? undefined : String(name),
    });
  }
}

/** The program replaces the history. After a compaction, messages are gone and a new one stands for them. A resumed
 *  session only adds messages: it repeats the results of each answer. */
function readGeminiHistory(messages: readonly Fields[], draft: FactsDraft, isRewound: boolean): void {
  const own = draft.state.own as GeminiState;
  if (draft.last(mainChain) < 0 && !isRewound) {
    for (const message of messages) readGeminiLine(message, draft);
    return;
  }
  const { seen = {}, live = [] } = own;
  const ids = new Set(messages.map(({ id }) => String(id)));
  const isNew = messages.some(({ type, id }) => seen[`${type} ${id}`] !== true);
  if (isNew && !isRewound && live.some((id) => !ids.has(id))) draft.mark(mainChain, "compaction", -1);
  own.live = [...ids];
}
