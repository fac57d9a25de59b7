/** Prepares a recorded session: repaired so that a provider would accept it, counted once, split into calls. Every
 *  policy and window replays the same prepared session. */

import { createRecordingReader, type RecordingReader } from "../../conversation/history/index.ts";
import type { BillableBlock } from "../../core/billing/index.ts";
import {
  type CountedMessage,
  type CountedPart,
  countSystem,
  countTools,
  createMessageLens,
  type FormatName,
  formatOfRequest,
  hashMessage,
  type MessageLens,
  normaliseMessages,
  type Role,
  rememberReadings,
  textsOf,
  withFramedResults,
} from "../../core/messages/index.ts";
import type { Fields } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { RecordedSession } from "../sessions/recorded-session.ts";
import { findReferences, type SessionReferences } from "./references.ts";

export interface PreparedSession {
  readonly file: string;
  /** The first words of the first user message, on one line. */
  readonly title: string;
  readonly format: FormatName;
  readonly messages: readonly object[];
  /** For each call, the number of messages in its request. Each assistant turn is a call. */
  readonly calls: readonly number[];
  readonly system?: unknown;
  readonly tools?: readonly object[] | undefined;
  /** The tokens of the session's own system text and tools. */
  readonly prefixTokens: number;
  /** The tokens of a request that are not in a message. */
  readonly frameTokens: number;
  readonly counter: Counter;
  readonly model?: string | undefined;
  /** The number of thinking blocks that the provider would refuse. They were left out. */
  readonly mendedThinking: number;
  /** Reads its messages for trimmers. */
  readonly reader: RecordingReader;
  blocksOf(message: object): MessageBlocks;
  /** Returns what its turns refer to. Found on the first call. */
  references(): SessionReferences;
}

export interface PrepareOptions {
  readonly counter: Counter;
  /** The model to assume for image prices, thinking rules and token prices. */
  readonly model?: string | undefined;
}

/** Prepares each stretch of a session that has calls. */
export function prepareStretches(session: RecordedSession, options: PrepareOptions): readonly PreparedSession[] {
  const { earlier = [], ...last } = session;
  const stretches = [...earlier, last].map((stretch) => {
    const { system = session.system, tools = session.tools } = stretch;
    return prepareSession({ ...last, answersFrom: undefined, ...stretch, system, tools }, options);
  });
  return stretches.filter(({ calls }, index) => calls.length > 0 || stretches.length === index + 1);
}

/** Prepares the last stretch of a session. Throws `invalid_message` with the path of a malformed message. */
export function prepareSession(session: RecordedSession, { counter, model }: PrepareOptions): PreparedSession {
  const { file, system, tools, answersFrom = 0 } = session;
  const { messages: mended, count: mendedThinking } = mendThinking(session);
  const messages = normaliseMessages(mended, { format: session.format });
  // The beginning of a history is repaired the same way, however it continues.
  const from = answersFrom > 0 ? normaliseMessages(mended.slice(0, answersFrom), session).length : 0;
  // Encrypted content in a recording can only be counted by its readable text: its size says nothing about tokens.
  const lens = rememberReadings(
    createMessageLens(messages, { counter, model, format: session.format, sealed: "readable" }),
  );
  const blocksOf = createBlockReader(messages, lens);
  const roles = messages.map((message) => blocksOf(message).role);
  const calls: number[] = [];
  for (let length = Math.max(1, from); length < roles.length; length++)
    if (roles[length] === "assistant" && roles[length - 1] !== "assistant") calls.push(length);
  let references: SessionReferences | undefined;
  return {
    file,
    title: createTitle(messages, lens),
    format: lens.format,
    messages,
    calls,
    system,
    tools,
    prefixTokens:
      countSystem(system, counter) + (tools?.length ? countTools(tools, counter, { format: lens.format, model }) : 0),
    frameTokens: lens.requestTokens,
    counter,
    model,
    mendedThinking,
    reader: createRecordingReader(lens),
    blocksOf,
    references() {
      references ??= findReferences({ messages, calls, read: blocksOf });
      return references;
    },
  };
}

/** Leaves out thinking that Anthropic would refuse: without a signature, or at the end of a message. Some recordings
 *  have it, because programs drop it before they send a request. */
function mendThinking({ messages, format }: RecordedSession): { messages: readonly object[]; count: number } {
  if ((format ?? formatOfRequest(messages)) !== "anthropic") return { messages, count: 0 };
  let count = 0;
  const isAssistant = (index: number): boolean => (messages[index] as Fields | undefined)?.role === "assistant";
  const mended = messages.map((message, index) => {
    const { content } = message as Fields;
    if (!isAssistant(index) || !Array.isArray(content)) return message;
    const signed = content.filter((block) => {
      const { type, signature } = Object(block) as Fields;
      return type !== "thinking" || (typeof signature === "string" && signature !== "");
    });
    // Neighbours of one role are merged.
    while (!isAssistant(index + 1) && isThinking(signed.at(-1))) signed.pop();
    if (signed.length === content.length) return message;
    count += content.length - signed.length;
    // A turn without content becomes "(empty)" when it is normalised.
    return { ...message, content: signed };
  });
  return { messages: count > 0 ? mended : messages, count };
}

function isThinking(block: unknown): boolean {
  const { type } = Object(block) as Fields;
  return type === "thinking" || type === "redacted_thinking";
}

const titleCharacters = 160;

function createTitle(messages: readonly object[], lens: MessageLens): string {
  for (const [index, message] of messages.entries()) {
    const { role, parts } = lens.read(message, index);
    if (role !== "user") continue;
    const pieces = parts.filter(({ kind }) => kind === "text").flatMap((part) => part.pieces);
    const text = pieces.map((piece) => ("text" in piece ? piece.text : "")).join(" ");
    const words = text
      .slice(0, 10 * titleCharacters)
      .replace(/\s+/g, " ")
      .trim();
    const characters = [...words];
    if (characters.length > titleCharacters) return `${characters.slice(0, titleCharacters - 1).join("")}…`;
    if (words !== "") return words;
  }
  return "";
}

/** A message as the cache sees it: one block per part, with a key for its content, and the tokens by kind. */
export interface MessageBlocks {
  readonly role: Role;
  readonly blocks: readonly BillableBlock[];
  readonly tokens: KindTokens;
  readonly parts: readonly CountedPart[];
}

/** The kinds of tokens in a request. A system message counts as the user's; `prefix` is what is not in a message. */
export const sentKinds = ["prefix", "user", "assistant", "thinking", "calls", "results", "placeholders"] as const;
export type SentKind = (typeof sentKinds)[number];
export type KindTokens = Readonly<Record<SentKind, number>>;

/** Returns a function that reads messages into blocks, each object once. A part that is not in `recorded` was
 *  rewritten. */
export function createBlockReader(recorded: readonly object[], lens: MessageLens): (message: object) => MessageBlocks {
  const known = new WeakMap<object, MessageBlocks>();
  const recordedKeys = new Set<string>();
  let previous: CountedMessage | undefined;
  for (const [index, message] of recorded.entries()) {
    previous = withFramedResults(lens.read(message, index), previous);
    const blocks = splitBlocks(previous);
    for (const { key } of blocks.blocks) recordedKeys.add(String(key));
    known.set(message, blocks);
  }
  return (message) => {
    const found = known.get(message);
    if (found !== undefined) return found;
    // Not index 0: for the counter's cache that starts a conversation.
    const blocks = splitBlocks(lens.read(message, 1), recordedKeys);
    known.set(message, blocks);
    return blocks;
  };
}

function splitBlocks({ role, parts, tokens }: CountedMessage, recordedKeys?: ReadonlySet<string>): MessageBlocks {
  const blocks: BillableBlock[] = [];
  const byKind = noTokens();
  // The frame and separators are billed with the first part.
  let frame = parts.reduce((rest, part) => rest - part.tokens, tokens);
  for (const part of parts) {
    // A plain text has the key of the text block that merging makes of it.
    const value = typeof part.value === "string" ? { type: "text", text: part.value } : part.value;
    const block = { key: hashMessage({ role, part: value }), tokens: part.tokens + frame, kind: part.kind };
    const isRewritten = recordedKeys !== undefined && !recordedKeys.has(block.key);
    byKind[isRewritten && isPlaceholder(part, role) ? "placeholders" : chooseKind(part, role)] += block.tokens;
    blocks.push(block);
    frame = 0;
  }
  if (frame > 0) {
    blocks.push({ key: `${role} without parts`, tokens: frame, kind: "other" });
    byKind[role === "assistant" ? "assistant" : "user"] += frame;
  }
  return { role, blocks, tokens: byKind, parts };
}

export function noTokens(): Record<SentKind, number> {
  return { prefix: 0, user: 0, assistant: 0, thinking: 0, calls: 0, results: 0, placeholders: 0 };
}

/** Shortened content keeps more tokens than this, and a placeholder has fewer. */
const maxPlaceholderTokens = 200;

function isPlaceholder(part: CountedPart, role: Role): boolean {
  if (part.tokens >= maxPlaceholderTokens) return false;
  // Agents without tool calls have their results in user messages.
  return role === "assistant" || part.kind === "tool_result" || textsOf(part)[0]?.startsWith("[trimmed") === true;
}

function chooseKind({ kind }: CountedPart, role: Role): SentKind {
  if (kind === "tool_result") return "results";
  if (kind === "tool_call") return "calls";
  if (kind === "thinking") return "thinking";
  return role === "assistant" ? "assistant" : "user";
}
