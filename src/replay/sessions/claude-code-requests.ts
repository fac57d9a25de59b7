/** Makes the messages of requests from the lines that Claude Code records. From version 2.1.3 on it records each request
 *  (`api-request`): a request names an earlier one, how many of its messages it keeps, and the hashes of the messages that
 *  follow. A hash refers to an `api-request-blob`, or to neighbouring lines of the conversation. */

import { createHash } from "node:crypto";
import { type Fields, isFields, isPlainObject } from "../../text/index.ts";
import { type JsonLine, type SessionDraft, timeOf } from "./recorded-session.ts";

export interface RecordedRequest {
  /** A message that several requests have is one object. */
  readonly messages: readonly object[];
  readonly system?: unknown;
  readonly tools?: readonly object[] | undefined;
  readonly time: number | undefined;
}

export interface RequestIndex {
  /** Returns a request by its id. Undefined if it was not recorded, or not completely. */
  get(id: string | undefined): RecordedRequest | undefined;
  /** Returns the object that requests have for an equal message, or the message itself. */
  known(message: object): object;
}

export function createRequestIndex(lines: readonly JsonLine[]): RequestIndex {
  const requests = new Map<unknown, RecordedRequest>();
  const records = lines.map(({ value }) => Object(value) as Fields);
  if (!records.some(({ type }) => type === "api-request")) {
    return { get: () => undefined, known: (message) => message };
  }
  const messages = messagesByHash(records);
  const shapes = new Map<unknown, Fields>();
  for (const record of records) {
    if (record.type === "api-request-shape") shapes.set(record.shapeHash, Object(record.shape) as Fields);
    if (record.type !== "api-request") continue;
    const request = readRequest(record, { requests, messages, shapes });
    if (request !== undefined) requests.set(record.id, request);
  }
  return {
    get: (id) => (id === undefined ? undefined : requests.get(id)),
    known: (message) => (isFields(message) ? messages.get(hashOf(message)) : undefined) ?? message,
  };
}

interface Recorded {
  readonly requests: ReadonlyMap<unknown, RecordedRequest>;
  readonly messages: ReadonlyMap<unknown, object>;
  readonly shapes: ReadonlyMap<unknown, Fields>;
}

function readRequest(record: Fields, { requests, messages, shapes }: Recorded): RecordedRequest | undefined {
  const { base, keep, tail, shapeHash, timestamp } = record;
  const before = base === undefined ? [] : requests.get(base)?.messages;
  if (before === undefined || !Array.isArray(tail)) return undefined;
  const added = tail.map((hash) => messages.get(hash));
  if (added.some((message) => message === undefined)) return undefined;
  const { system, tools } = shapes.get(shapeHash) ?? {};
  return {
    messages: [...before.slice(0, Number(keep)), ...(added as object[])],
    ...(system !== undefined && { system }),
    ...(Array.isArray(tools) && { tools }),
    time: timeOf(timestamp),
  };
}

/** Neighbouring lines of one role are one message: those of the user, and those of one answer. Each beginning of such
 *  a run has a hash, because a request may be sent before the run is complete. */
function messagesByHash(records: readonly Fields[]): Map<unknown, object> {
  const messages = new Map<unknown, object>();
  let run: { readonly role: unknown; readonly id: unknown; readonly content: readonly unknown[] } | undefined;
  for (const { type, hash, message } of records) {
    if (type === "api-request-blob" && isFields(message)) messages.set(hash, message);
    if ((type !== "user" && type !== "assistant") || !isFields(message)) continue;
    const { role, id, content } = message;
    const isSame = run !== undefined && run.role === role && (role === "user" || run.id === id);
    run = { role, id, content: [...(isSame && run ? run.content : []), ...blocksOf(content)] };
    const joined = { role, content: run.content };
    const key = hashOf(joined);
    if (!messages.has(key)) messages.set(key, joined);
  }
  return messages;
}

function blocksOf(content: unknown): readonly Fields[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

function hashOf(message: Fields): string {
  const text = sortedJson({ ...message, content: blocksOf(message.content) });
  return createHash("sha256").update(text).digest("hex");
}

/** JSON with sorted keys, without cache markers, as the program hashes it. */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (!isPlainObject(value)) return JSON.stringify(value) ?? "null";
  const names = Object.keys(value).filter((name) => name !== "cache_control" && value[name] !== undefined);
  return `{${names
    .sort()
    .map((name) => `${JSON.stringify(name)}:${sortedJson(value[name])}`)
    .join(",")}}`;
}

/** What a line of the conversation says. */
export interface LineContent {
  readonly role: "user" | "assistant";
  readonly content: string | readonly Fields[];
  /** Added by the program, such as a reminder. */
  readonly isAttachment: boolean;
}

type ContentLine = LineContent & Pick<JoinedMessage, "messageId" | "time">;

export interface JoinedMessage {
  readonly role: "user" | "assistant";
  content: string | readonly Fields[];
  readonly messageId?: string | undefined;
  /** The time of an answer's first line, or of the last result. The next request starts then. */
  time: number | undefined;
}

type LeftOutCounter = Pick<SessionDraft, "leaveOut">;

/** Joins lines to messages: the blocks of one answer, and the results that answer one turn. */
export function joinRequestLines(lines: readonly ContentLine[], counter: LeftOutCounter): readonly JoinedMessage[] {
  const messages: JoinedMessage[] = [];
  const answered = new Map<unknown, unknown>();
  for (const line of lines) {
    const fresh = withoutRepeatedResults(line, answered, counter);
    if (fresh === undefined) continue;
    const target = fresh.role === "assistant" ? sameAnswer(messages, fresh) : openResults(messages, fresh);
    if (target === undefined) messages.push({ ...fresh });
    else join(target, fresh, counter);
  }
  return messages;
}

/** An equal result is a copy that the program kept. A different one is kept as it was recorded. */
function withoutRepeatedResults(
  line: ContentLine,
  answered: Map<unknown, unknown>,
  counter: LeftOutCounter,
): ContentLine | undefined {
  if (!isResults(line)) return line;
  const content = (line.content as readonly Fields[]).filter((block) => {
    const { tool_use_id: id, content: result } = block;
    const isCopy = answered.has(id) && JSON.stringify(answered.get(id)) === JSON.stringify(result);
    answered.set(id, result);
    if (isCopy) counter.leaveOut("repeated result");
    return !isCopy;
  });
  if (content.length === line.content.length) return line;
  return content.length === 0 ? undefined : { ...line, content };
}

/** A tool may answer while the rest of the turn is still being written, so results can be between the lines of one
 *  answer. */
function sameAnswer(messages: readonly JoinedMessage[], line: ContentLine): JoinedMessage | undefined {
  const last = messages.findLast((message) => !isResults(message));
  const isSame = last?.role === "assistant" && line.messageId !== undefined && last.messageId === line.messageId;
  return isSame ? last : undefined;
}

/** Results that answer one turn are one message, and so are an attachment and what it follows. */
function openResults(messages: readonly JoinedMessage[], line: ContentLine): JoinedMessage | undefined {
  const last = messages.at(-1);
  if (last === undefined || last.role !== "user") return undefined;
  return line.isAttachment || (isResults(last) && isResults(line)) ? last : undefined;
}

function join(target: JoinedMessage, line: ContentLine, counter: LeftOutCounter): void {
  const blocks = blocksOf(target.content);
  const ids = new Set<unknown>(blocks.filter(isCall).map((block) => block.id));
  const added = blocksOf(line.content).filter((block) => {
    const isCopy = isCall(block) && ids.has(block.id);
    if (isCopy) counter.leaveOut("repeated call");
    return !isCopy;
  });
  target.content = [...blocks, ...added];
  if (target.role === "user") target.time = line.time ?? target.time;
}

function isCall(block: Fields): boolean {
  return block.type === "tool_use";
}

export function isResults({ role, content }: Pick<LineContent, "role" | "content">): boolean {
  if (role !== "user" || typeof content === "string") return false;
  return content.length > 0 && content.every((block) => block.type === "tool_result");
}
