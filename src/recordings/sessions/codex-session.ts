/** Reads sessions of Codex (`~/.codex/sessions/…/rollout-*.jsonl`): items of OpenAI's responses format. Since September
 *  2025 each is in an envelope `{ timestamp, type, payload }`; before that, bare items followed a head line. */

import { ContextError } from "../../core/errors.ts";
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

export const codexReader: SessionReader = {
  kind: "codex",
  isLine: isCodexLine,
  mayStartLater: true,
  read: readCodexSession,
};

interface CodexReading {
  readonly draft: SessionDraft;
  /** The index of each user message that started a turn in the current stretch. */
  turns: number[];
  /** Whether the last item is part of an answer. */
  isAnswering: boolean;
  /** The first model of the session, and the one that answers now. */
  model: string | undefined;
  answering: string | undefined;
  system: string | undefined;
  tools: readonly object[] | undefined;
}

/** Returns the items in file order. A compaction starts a new stretch with the history that it made, and a rollback
 *  one with what it kept. */
function readCodexSession(lines: readonly JsonLine[], file: string): RecordedSession {
  const reading: CodexReading = {
    draft: createSessionDraft(),
    ...{ turns: [], isAnswering: false, model: undefined, answering: undefined, system: undefined, tools: undefined },
  };
  for (const { value, line } of lines) {
    if (typeof value !== "object" || value === null) {
      throw new ContextError("invalid_message", "must be an object", { file, line });
    }
    readLine(value as Fields, reading, { file, line });
  }
  const { draft, model, system, tools } = reading;
  const facts = { ...(system && { system }), ...(tools && { tools }), ...(model && { model }) };
  return draft.finish({ file, source: "codex", format: "responses", ...facts });
}

/** Bare items alone do not identify Codex, because any program may write those. */
export function isCodexLine(value: unknown): boolean {
  const fields = Object(value) as Fields;
  return (typeof fields.payload === "object" && envelopes.has(fields.type)) || isBareHead(fields);
}

const envelopes: ReadonlySet<unknown> = new Set([
  "session_meta",
  "response_item",
  "event_msg",
  "turn_context",
  "compacted",
]);

function isBareHead({ type, role, id, timestamp, record_type: record }: Fields): boolean {
  if (record !== undefined) return true;
  return type === undefined && role === undefined && typeof id === "string" && typeof timestamp === "string";
}

/** A message of the responses format has a `type`, which no other format's message has. */
function isBareItem({ type, role, call_id: callId, summary }: Fields): boolean {
  if (type === "message") return typeof role === "string";
  return typeof callId === "string" || (type === "reasoning" && Array.isArray(summary));
}

function readLine(fields: Fields, reading: CodexReading, place: { file: string; line: number }): void {
  if (isBareHead(fields)) return;
  const time = timeOf(fields.timestamp);
  const payload = Object(fields.payload) as Fields;
  if (isBareItem(fields)) addItem(fields, reading, time);
  else if (fields.type === "response_item") addItem(checkItem(payload, place), reading, time);
  else if (fields.type === "compacted") addCompaction(payload, reading, time);
  else if (fields.type === "session_meta") readMeta(payload, reading);
  else if (fields.type === "turn_context") {
    reading.answering = stringOf(payload.model) ?? reading.answering;
    reading.model ??= reading.answering;
  } else if (fields.type === "event_msg") readEvent(payload, reading);
  else if (!ownTypes.has(fields.type)) reading.draft.leaveOut(...lineOfType(fields.type));
  const usage = codexUsage(fields);
  reading.draft.report(usage && { ...usage, model: reading.answering });
}

/** Lines that the program writes for itself. */
const ownTypes: ReadonlySet<unknown> = new Set(["token_usage_record", "world_state"]);

export function codexUsage(value: unknown): UsageRecord | undefined {
  const { type, payload, timestamp } = Object(value) as Fields;
  const { response_id: id, usage } = Object(payload) as Fields;
  if (type !== "token_usage_record" || typeof id !== "string") return undefined;
  const tokens = Object(usage) as Fields;
  return {
    id,
    time: timeOf(timestamp),
    usage: usageTogether({
      ...{ input: tokens.input_tokens, read: tokens.cached_input_tokens },
      ...{ write: tokens.cache_write_input_tokens, output: tokens.output_tokens },
    }),
  };
}

/** A fork names the session that it continues. That session's file has the rest of the history. */
function readMeta(payload: Fields, reading: CodexReading): void {
  const { base_instructions: instructions, dynamic_tools: tools, forked_from_id: origin, history_mode: mode } = payload;
  reading.system ??= textOf(instructions);
  if (Array.isArray(tools) && tools.length > 0) reading.tools ??= tools.map(toolOf);
  if (typeof origin !== "string" || mode !== "paginated") return;
  reading.draft.note(`this is a fork of ${origin}; the messages before the fork are in that session's file`);
}

function toolOf(tool: unknown): object {
  const { name, description, inputSchema, input_schema: schema } = Object(tool) as Fields;
  return { type: "function", name, description, parameters: inputSchema ?? schema };
}

/** The program's own events repeat what items say, except that a rollback removes the last turns. */
function readEvent(payload: Fields, reading: CodexReading): void {
  const { type, num_turns: turns } = payload;
  if (type !== "thread_rolled_back" || typeof turns !== "number" || turns < 1) return;
  const first = reading.turns.at(-turns) ?? 0;
  reading.draft.count("rewind");
  reading.draft.branch(first);
  reading.turns = reading.turns.slice(0, -turns);
}

function checkItem(item: Fields, place: { file: string; line: number }): Fields {
  if (typeof item.type === "string") return item;
  throw new ContextError("invalid_message", "payload.type must be a string", place);
}

function addItem(item: Fields, reading: CodexReading, time: number | undefined): void {
  const { type, role, id } = item;
  // The program's own backup of the working tree. It is never sent.
  if (type === "ghost_snapshot") {
    reading.draft.leaveOut("ghost_snapshot item");
    return;
  }
  if (role === "user" && !isContext(item)) reading.turns.push(reading.draft.length);
  const isAnswer = role === "assistant" || type === "reasoning" || String(type).endsWith("_call");
  // The first item of an answer names it.
  const answerId = isAnswer && !reading.isAnswering && typeof id === "string" ? id : undefined;
  reading.isAnswering = isAnswer;
  reading.draft.add(item, { time, answerId });
}

/** The program adds context as user messages. */
function isContext({ content }: Fields): boolean {
  const [first] = Array.isArray(content) ? content : [];
  return /^(<[a-z_]+>|# AGENTS\.md)/.test(textOf(first) ?? "");
}

/** Starts a stretch with the history that the compaction made. Older versions record only its summary. */
function addCompaction(payload: Fields, reading: CodexReading, time: number | undefined): void {
  const { message, replacement_history: replacement } = payload;
  const items = Array.isArray(replacement) ? replacement.map((item) => Object(item) as Fields) : [];
  reading.draft.count("compaction");
  reading.draft.branch(0);
  reading.turns = [];
  for (const item of items) addItem(item, reading, time);
  if (items.length === 0 && typeof message === "string" && message !== "") {
    addItem({ type: "message", role: "user", content: [{ type: "input_text", text: message }] }, reading, time);
  }
  reading.draft.skipAnswers();
}

function textOf(value: unknown): string | undefined {
  return stringOf((Object(value) as Fields).text);
}

function stringOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
