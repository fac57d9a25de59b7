/** Reads sessions of gemini-cli (`~/.gemini/tmp/…/chats/session-*.jsonl`, and one JSON value before version 0.40). A
 *  later line with the same id replaces a message, `$set` replaces all of them, and `$rewindTo` removes the last ones.
 *  Messages are converted to Anthropic's format. */

import type { Fields } from "../../core/text/index.ts";
import { nameLine, readTime, type SessionDraft } from "./recorded-session.ts";
import { type UsageRecord, usageTogether } from "./recorded-usage.ts";
import { countChars, type FactsDraft, findFile, mainChain, type TextFact } from "./session-facts.ts";
import type { ClientReader } from "./session-scan.ts";

export const geminiReader: ClientReader = {
  agent: "gemini-cli",
  isLine(value) {
    const { sessionId, projectHash, type, id, $rewindTo: target, content } = Object(value) as Fields;
    if (typeof sessionId === "string" && typeof projectHash === "string") return true;
    if (typeof target === "string") return true;
    return type === "gemini" && typeof id === "string" && content !== undefined;
  },
  open(draft, requests) {
    const state: GeminiState = { calls: {}, seen: {}, live: [], ...draft.state.own };
    draft.state.own = state as unknown as Fields;
    const records: Fields[] = [];
    return {
      read(value) {
        const record = Object(value) as Fields;
        if (draft.isIgnored !== true) readRecord(record, draft, state);
        if (requests === undefined) return;
        requests.report(readUsage(record));
        records.push(record);
      },
      finish() {
        if (requests !== undefined) addRequests(records, requests);
        return {};
      },
    };
  },
};

function readUsage({ id, type, tokens, model, timestamp }: Fields): UsageRecord | undefined {
  if (type !== "gemini" || typeof id !== "string" || typeof tokens !== "object" || tokens === null) return undefined;
  const { input, cached, output, thoughts } = tokens as Fields;
  const answered = Number(output ?? 0) + Number(thoughts ?? 0);
  return {
    id,
    ...(typeof model === "string" && { model }),
    time: readTime(timestamp),
    usage: usageTogether({ input, read: cached, output: answered }),
  };
}

/** A resumed session gives the results of an answer the answer's id. */
function createKey({ type, id }: Fields): string {
  return `${type} ${id}`;
}

/** Returns the messages that a record puts in place of all earlier ones. */
function readReplacement({ $set: changed, projectHash, messages }: Fields): readonly Fields[] | undefined {
  const list = projectHash === undefined ? (Object(changed) as Fields).messages : messages;
  return Array.isArray(list) ? list.map((each) => Object(each) as Fields) : undefined;
}

/** What the facts of the next lines depend on. */
interface GeminiState {
  /** The call that answered each prompt. */
  readonly calls: Record<string, number>;
  /** The keys of messages and calls. */
  readonly seen: Record<string, true>;
  /** The ids of the messages that the history has. */
  live: string[];
  /** Whether the last line was a rewind. The program then writes the history that is left. */
  isRewound?: boolean;
}

/** Finds the facts of a line. */
function readRecord(value: Fields, draft: FactsDraft, state: GeminiState): void {
  const { sessionId, projectHash, $rewindTo: target } = value;
  if (typeof sessionId === "string") draft.facts.session ||= sessionId;
  if (typeof projectHash === "string") {
    draft.facts.project ||= projectHash;
    // Each process writes its own head.
    if (draft.last(mainChain) >= 0) draft.mark(mainChain, "resumed");
  }
  if (typeof target === "string") {
    const first = state.calls[target];
    if (first !== undefined) draft.mark(mainChain, "rewound", first - 1);
    state.isRewound = true;
    return;
  }
  const history = readReplacement(value);
  if (history === undefined) readMessage(value, draft, state);
  else readHistory(history, draft, state);
}

/** The program replaces the history. After a compaction, messages are gone and a new one stands for them. A resumed
 *  session only adds messages: it repeats the results of each answer. */
function readHistory(history: readonly Fields[], draft: FactsDraft, state: GeminiState): void {
  if (draft.last(mainChain) < 0 && !state.isRewound) {
    for (const message of history) readRecord(message, draft, state);
    return;
  }
  const ids = new Set(history.map(({ id }) => String(id)));
  const isNew = history.some((message) => state.seen[createKey(message)] !== true);
  const isShorter = state.live.some((id) => !ids.has(id));
  if (isNew && isShorter && !state.isRewound) draft.mark(mainChain, "compaction", -1);
  state.live = [...ids];
  state.isRewound = false;
}

/** An answer has its tool calls with their results. These are a message of their own, too, and count once. */
function readMessage(value: Fields, draft: FactsDraft, { calls, seen, live }: GeminiState): void {
  const { type, id, content } = value;
  const time = readTime(value.timestamp);
  const key = createKey(value);
  const isNew = seen[key] !== true;
  seen[key] = true;
  if (type !== "user" && type !== "gemini") return;
  if (isNew) live.push(String(id));
  if (isNew && type === "user") calls[String(id)] = draft.last(mainChain) + 1;
  const usage = readUsage(value);
  if (usage !== undefined) draft.answer(mainChain, { ...usage, time });
  if (isNew && type === "gemini") draft.input(mainChain, { chars: countChars(content) });
  const texts = isNew || type === "gemini" ? listTexts(value) : [];
  for (const { call = "", text } of texts) {
    if (seen[call] !== true) draft.input(mainChain, { ...text, time });
    if (call !== "") seen[call] = true;
  }
}

/** Returns the texts of a prompt, or the results of an answer's calls, with a key for each call. */
function listTexts({ type, content, toolCalls }: Fields): { call?: string; text: TextFact }[] {
  if (type === "gemini") {
    const done = readList(toolCalls).filter(({ result }) => result !== undefined);
    return done.map(({ id, name, args, result }) => {
      return { call: `call ${id}`, text: { chars: countChars(result), tool: String(name), file: findFile(args) } };
    });
  }
  const parts: readonly unknown[] = Array.isArray(content) ? content : [content];
  return parts.map((part) => {
    const { functionResponse: response } = Object(part) as Fields;
    const { id, name } = Object(response) as Fields;
    const chars = countChars(part);
    return response === undefined ? { text: { chars } } : { call: `call ${id}`, text: { chars, tool: String(name) } };
  });
}

interface History {
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
  isRewound: boolean;
  readonly messages: ReadonlyMap<string, readonly object[]>;
}

function addRequests(records: readonly Fields[], requests: SessionDraft): void {
  const history: History = {
    keys: [],
    known: new Set(),
    sent: [],
    isGrowing: true,
    answered: 0,
    isRewound: false,
    messages: convertMessages(records),
  };
  const replace = (keys: string[]): void => {
    history.keys = keys;
    history.known = new Set(keys);
    history.isGrowing = false;
    history.sent = keys.flatMap((key) => history.messages.get(key) ?? []);
  };
  for (const record of records) {
    const { type, $rewindTo: target, $set: changed, projectHash } = record;
    const replacement = readReplacement(record)?.map(createKey);
    if (typeof target === "string") {
      requests.count("rewind");
      history.isRewound = true;
      const first = history.keys.findIndex((each) => each.endsWith(` ${target}`));
      replace(history.keys.slice(0, Math.max(0, first)));
    } else if (replacement !== undefined) {
      history.replaced ??= history.keys.slice(0, history.answered);
      replace(replacement);
    } else if (history.messages.has(createKey(record))) addMessage(record, history, requests);
    // The head line, changes of other fields, and what is only shown to the person.
    else if (changed === undefined && projectHash === undefined && !ownTypes.has(type)) {
      requests.leaveOut(...nameLine(type));
    }
  }
}

const ownTypes: ReadonlySet<unknown> = new Set(["info", "error", "warning"]);

/** A resumed session writes its first message, and then all of them. So only a request shows a compaction. */
function addMessage(record: Fields, history: History, requests: SessionDraft): void {
  const { keys, known, sent, replaced = [], isRewound } = history;
  const key = createKey(record);
  if (known.has(key)) return;
  const converted = history.messages.get(key) ?? [];
  if (record.type === "gemini") {
    if (!isRewound && replaced.some((each) => !known.has(each))) requests.count("compaction");
    history.isRewound = false;
    history.replaced = undefined;
    requests.request(sent, { known: history.isGrowing ? requests.length : 0 });
    history.isGrowing = true;
    history.answered = keys.length + 1;
    const [answer] = converted;
    const answerId = String(record.id);
    if (answer !== undefined) requests.add(answer, { time: readTime(record.timestamp), answerId });
  }
  keys.push(key);
  known.add(key);
  for (const message of converted) sent.push(message);
}

/** Converts the last version of each message, by its key. A call whose result has no message of its own is followed by
 *  one. */
function convertMessages(records: readonly Fields[]): ReadonlyMap<string, readonly object[]> {
  const latest = new Map<string, Fields>();
  for (const record of records) {
    for (const message of readReplacement(record) ?? [record]) {
      if (message.type === "user" || message.type === "gemini") latest.set(createKey(message), message);
    }
  }
  /** The message that answers each call. */
  const answers = new Map<unknown, string>();
  for (const [key, { content }] of latest) {
    for (const { functionResponse: response } of readParts(content)) {
      const { id } = Object(response) as Fields;
      if (response !== undefined && !answers.has(id)) answers.set(id, key);
    }
  }
  return new Map([...latest].map(([key, message]) => [key, convertMessage(message, key, answers)]));
}

function convertMessage(message: Fields, key: string, answers: ReadonlyMap<unknown, string>): readonly object[] {
  const parts = readParts(message.content);
  const blocks = parts.flatMap((part) => {
    const { functionResponse: response } = part;
    const converted = convertPart(part);
    // A resumed session sends the results of each answer twice. Other providers refuse a second result of a call, so it
    // becomes a text.
    const isRepeated = response !== undefined && answers.get((Object(response) as Fields).id) !== key;
    return isRepeated ? converted.map((block) => ({ type: "text", text: (block as Fields).content })) : converted;
  });
  if (message.type === "user") return [{ role: "user", content: blocks }];
  const calls = readList(message.toolCalls);
  // A resumed session has the calls in the content, too.
  const hasCalls = parts.some(({ functionCall }) => functionCall !== undefined);
  const uses = hasCalls ? [] : calls.map(convertCall);
  const answer = { role: "assistant", content: [...blocks, ...uses] };
  const open = calls.filter(({ id }) => !answers.has(id));
  const results = open.flatMap(({ result }) => readParts(result).flatMap(convertPart));
  return results.length === 0 ? [answer] : [answer, { role: "user", content: results }];
}

export function readList(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map((each) => Object(each) as Fields) : [];
}

/** A content may be a text, a part, or a list of both. */
function readParts(content: unknown): readonly Fields[] {
  const list = Array.isArray(content) ? content : content === undefined || content === null ? [] : [content];
  return list.map((part) => (typeof part === "string" ? { text: part } : (Object(part) as Fields)));
}

export function convertPart({ text, functionResponse, functionCall, inlineData }: Fields): readonly object[] {
  if (typeof text === "string") return [{ type: "text", text }];
  if (functionResponse !== undefined) {
    const { id, response } = Object(functionResponse) as Fields;
    const { output, error } = Object(response) as Fields;
    const result = output ?? error ?? response;
    const content = typeof result === "string" ? result : JSON.stringify(result ?? null);
    const isError = output === undefined && error !== undefined;
    return [{ type: "tool_result", tool_use_id: id, content, ...(isError && { is_error: true }) }];
  }
  if (functionCall !== undefined) return [convertCall(Object(functionCall) as Fields)];
  const { mimeType, data } = Object(inlineData) as Fields;
  if (typeof data !== "string" || !String(mimeType).startsWith("image/")) return [];
  return [{ type: "image", source: { type: "base64", media_type: mimeType, data } }];
}

function convertCall({ id, name, args }: Fields): object {
  return { type: "tool_use", id, name, input: Object(args) };
}
