/** Makes the messages of requests from the lines that Claude Code records. From version 2.1.3 on it records each request
 *  (`api-request`): a request names an earlier one, how many of its messages it keeps, and the hashes of the messages that
 *  follow. A hash refers to an `api-request-blob`, or to neighbouring lines of the conversation. */

import { createHash, type Hash } from "../../core/crypto.ts";
import { type Fields, isFields, isPlainObject } from "../../core/text/index.ts";
import { type JsonLine, readTime, type SessionDraft } from "./recorded-session.ts";

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
  const findMessage = indexMessages(records);
  const shapes = new Map<unknown, Fields>();
  for (const record of records) {
    if (record.type === "api-request-shape") shapes.set(record.shapeHash, Object(record.shape) as Fields);
    if (record.type !== "api-request") continue;
    const request = readRequest(record, { requests, findMessage, shapes });
    if (request !== undefined) requests.set(record.id, request);
  }
  return {
    get: (id) => (id === undefined ? undefined : requests.get(id)),
    known: (message) => (isFields(message) ? findMessage(hashMessage(message)) : undefined) ?? message,
  };
}

function readRequest(
  record: Fields,
  {
    requests,
    findMessage,
    shapes,
  }: {
    readonly requests: ReadonlyMap<unknown, RecordedRequest>;
    readonly findMessage: FindMessage;
    readonly shapes: ReadonlyMap<unknown, Fields>;
  },
): RecordedRequest | undefined {
  const { base, keep, tail, shapeHash, timestamp } = record;
  const before = base === undefined ? [] : requests.get(base)?.messages;
  if (before === undefined || !Array.isArray(tail)) return undefined;
  const added = tail.map(findMessage);
  if (added.some((message) => message === undefined)) return undefined;
  const { system, tools } = shapes.get(shapeHash) ?? {};
  return {
    messages: [...before.slice(0, Number(keep)), ...(added as object[])],
    ...(system !== undefined && { system }),
    ...(Array.isArray(tools) && { tools }),
    time: readTime(timestamp),
  };
}

type FindMessage = (hash: unknown) => object | undefined;

/** Neighbouring lines of one role are one message: those of the user, and those of one answer. Each beginning of such
 *  a run has a hash, because a request may be sent before the run is complete. A run may have thousands of lines, so a
 *  line adds to the hash, and only a beginning that was sent becomes a message. */
function indexMessages(records: readonly Fields[]): FindMessage {
  const messages = new Map<unknown, object>();
  const beginnings = new Map<unknown, { readonly run: MessageRun; readonly length: number }>();
  let run: MessageRun | undefined;
  for (const { type, hash, message } of records) {
    if (type === "api-request-blob" && isFields(message)) messages.set(hash, message);
    if ((type !== "user" && type !== "assistant") || !isFields(message)) continue;
    const { role, id } = message;
    const isSame = run !== undefined && run.role === role && (role === "user" || run.id === id);
    if (!isSame || run === undefined)
      run = { role, id, content: [], hash: createHash("sha256").update('{"content":[') };
    const key = extendRun(run, readBlocks(message.content));
    if (!beginnings.has(key)) beginnings.set(key, { run, length: run.content.length });
  }
  return (hash) => {
    const found = beginnings.get(hash);
    if (found !== undefined && !messages.has(hash)) {
      messages.set(hash, { role: found.run.role, content: found.run.content.slice(0, found.length) });
    }
    return messages.get(hash);
  };
}

interface MessageRun {
  readonly role: unknown;
  readonly id: unknown;
  readonly content: Fields[];
  /** Of the JSON so far: `content` comes before `role`. */
  readonly hash: Hash;
}

/** Adds blocks to a run. Returns the hash of the message that it is now, as `hashMessage` does. */
function extendRun({ role, content, hash }: MessageRun, blocks: readonly Fields[]): string {
  for (const block of blocks) {
    hash.update(`${content.length === 0 ? "" : ","}${sortedJson(block)}`);
    content.push(block);
  }
  const end = role === undefined ? "]}" : `],"role":${sortedJson(role)}}`;
  return hash.copy().update(end).digest("hex");
}

function readBlocks(content: unknown): readonly Fields[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

function hashMessage(message: Fields): string {
  const text = sortedJson({ ...message, content: readBlocks(message.content) });
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
  const join = createJoin(counter);
  for (const line of lines) {
    const fresh = withoutRepeatedResults(line, answered, counter);
    if (fresh === undefined) continue;
    const target = findOpenMessage(messages, fresh);
    if (target === undefined) messages.push({ ...fresh });
    else join(target, fresh);
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

/** Returns the message that a line continues. A tool may answer while the rest of the turn is still being written, so
 *  results can be between the lines of one answer. Results that answer one turn are one message, and so are an attachment
 *  and what it follows. */
function findOpenMessage(messages: readonly JoinedMessage[], line: ContentLine): JoinedMessage | undefined {
  if (line.role === "assistant") {
    const last = messages.findLast((message) => !isResults(message));
    const isSame = last?.role === "assistant" && line.messageId !== undefined && last.messageId === line.messageId;
    return isSame ? last : undefined;
  }
  const last = messages.at(-1);
  if (last === undefined || last.role !== "user") return undefined;
  return line.isAttachment || (isResults(last) && isResults(line)) ? last : undefined;
}

/** An answer may have thousands of lines, so each adds to the blocks and the calls of those before. */
function createJoin(counter: LeftOutCounter): (target: JoinedMessage, line: ContentLine) => void {
  const joined = new Map<JoinedMessage, { readonly blocks: Fields[]; readonly ids: Set<unknown> }>();
  return (target, line) => {
    const known = joined.get(target) ?? {
      blocks: [...readBlocks(target.content)],
      ids: listCallIds(readBlocks(target.content)),
    };
    joined.set(target, known);
    const added = readBlocks(line.content).filter((block) => {
      const isCopy = isCall(block) && known.ids.has(block.id);
      if (isCopy) counter.leaveOut("repeated call");
      return !isCopy;
    });
    for (const block of added) known.blocks.push(block);
    for (const id of listCallIds(added)) known.ids.add(id);
    target.content = known.blocks;
    if (target.role === "user") target.time = line.time ?? target.time;
  };
}

function listCallIds(blocks: readonly Fields[]): Set<unknown> {
  return new Set(blocks.filter(isCall).map((block) => block.id));
}

function isCall(block: Fields): boolean {
  return block.type === "tool_use";
}

export function isResults({ role, content }: Pick<LineContent, "role" | "content">): boolean {
  if (role !== "user" || typeof content === "string") return false;
  return content.length > 0 && content.every((block) => block.type === "tool_result");
}
