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
import { charsOf, type FactsDraft, type FactsReader, fileOfInput, mainChain } from "./session-facts.ts";

export const codexReader: SessionReader = {
  kind: "codex",
  isLine: isCodexLine,
  mayStartLater: true,
  read: readCodexSession,
};

export const codexFacts: FactsReader = { agent: "codex", isLine: isCodexLine, readLine: readCodexLine };

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
function isCodexLine(value: unknown): boolean {
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

function codexUsage(value: unknown): UsageRecord | undefined {
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

/** What the facts of the next lines depend on. Since version 0.15x a `token_usage_record` follows each answer; before that,
 *  `token_count` events repeat the sum so far. */
interface FactsState {
  model?: string | undefined;
  /** What a change of would be a change of tools or system text. */
  shape?: string | undefined;
  metas: number;
  hasRecords?: boolean;
  /** The sum of all tokens at the last `token_count`. */
  total: number;
  /** The call before each turn that a person started. */
  turns: number[];
  /** An answer has begun whose usage is not recorded yet. What follows it is for the next request. */
  isAnswering: boolean;
  later: Parameters<FactsDraft["input"]>[1][];
}

function readCodexLine(value: Fields, draft: FactsDraft): void {
  const own = factsState(draft);
  const payload = Object(value.payload) as Fields;
  const time = Date.parse(String(value.timestamp)) || undefined;
  if (value.type === "session_meta") readMetaFacts(payload, draft, own);
  else if (value.type === "turn_context") readContext(payload, draft, own);
  else if (value.type === "response_item") readItemFacts(payload, { draft, own, time });
  else if (value.type === "compacted") draft.mark(mainChain, "compaction", -1);
  else if (value.type === "event_msg") readEventFacts(payload, { draft, own, time });
  else if (value.type === "token_usage_record") {
    own.hasRecords = true;
    const record = codexUsage(value);
    if (record !== undefined) addCall(record.id, record.usage, { draft, own, time });
  } else if (value.type === undefined && typeof value.id === "string") draft.facts.session ||= value.id;
  else if (typeof value.call_id === "string" || value.type === "message") readItemFacts(value, { draft, own, time });
}

function factsState({ state }: FactsDraft): FactsState {
  const own = state.own as Partial<FactsState>;
  own.metas ??= 0;
  own.total ??= 0;
  own.turns ??= [];
  own.isAnswering ??= false;
  own.later ??= [];
  return own as FactsState;
}

interface FactsPlace {
  readonly draft: FactsDraft;
  readonly own: FactsState;
  readonly time: number | undefined;
}

/** Each start of the program writes its own head. A sub-agent's names the session that started it. */
function readMetaFacts(payload: Fields, draft: FactsDraft, own: FactsState): void {
  const { facts } = draft;
  if (typeof payload.id === "string") facts.session ||= payload.id;
  if (typeof payload.cwd === "string") facts.project ||= payload.cwd;
  const { subagent } = Object(payload.source) as Fields;
  if (subagent !== undefined) facts.subAgent ??= typeof subagent === "string" ? subagent : "sub-agent";
  if (own.metas++ > 0) draft.mark(mainChain, "resumed");
  noticeShape(`${charsOf(payload.base_instructions)} ${JSON.stringify(payload.dynamic_tools ?? null)}`, draft, own);
}

function readContext(payload: Fields, draft: FactsDraft, own: FactsState): void {
  if (typeof payload.model === "string") own.model = payload.model;
  if (typeof payload.cwd === "string") draft.facts.project ||= payload.cwd;
}

function noticeShape(shape: string, draft: FactsDraft, own: FactsState): void {
  if (own.shape !== undefined && own.shape !== shape) draft.mark(mainChain, "shape");
  own.shape = shape;
}

function readItemFacts(item: Fields, { draft, own, time }: FactsPlace): void {
  const { type, role } = item;
  if (type === "ghost_snapshot") return;
  const name = String(type);
  const chars = charsOf(item);
  if (role === "assistant" || name === "reasoning" || name.endsWith("_call")) {
    own.isAnswering = true;
    own.later.push({ chars });
    if (typeof item.call_id === "string") draft.state.tools[item.call_id] = describeUse(item);
    return;
  }
  if (role === "user" && !isContext(item)) own.turns.push(draft.last(mainChain));
  const use = typeof item.call_id === "string" ? draft.state.tools[item.call_id] : undefined;
  if (use !== undefined) delete draft.state.tools[String(item.call_id)];
  const input = { chars, time, tool: use?.name, file: use?.file };
  if (own.isAnswering) own.later.push(input);
  else draft.input(mainChain, input);
}

function describeUse({ name, namespace, arguments: input, type }: Fields): { name: string; file?: string | undefined } {
  const tool = typeof name === "string" ? name : String(type).replace(/_call$/, "");
  const full = typeof namespace === "string" ? `${namespace}__${tool}` : tool;
  if (typeof input !== "string" || input.length > 10_000) return { name: full };
  try {
    return { name: full, file: fileOfInput(JSON.parse(input)) };
  } catch {
    return { name: full };
  }
}

function readEventFacts(payload: Fields, place: FactsPlace): void {
  const { draft, own } = place;
  const turns = Number(payload.num_turns);
  if (payload.type === "thread_rolled_back" && turns > 0) {
    draft.mark(mainChain, "rewound", own.turns.at(-turns) ?? -1);
    own.turns = own.turns.slice(0, -turns);
  }
  if (payload.type !== "token_count" || own.hasRecords === true) return;
  const { total_token_usage: sum, last_token_usage: last } = Object(payload.info) as Fields;
  const total = Number((Object(sum) as Fields).total_tokens);
  if (!(total > 0) || total === own.total) return;
  own.total = total;
  const {
    input_tokens: input,
    cached_input_tokens: read,
    cache_write_input_tokens: write,
    output_tokens: output,
  } = Object(last) as Fields;
  const details = { cached_tokens: read, cache_write_tokens: write };
  const id = `${draft.facts.session} ${total}`;
  addCall(id, { input_tokens: input, input_tokens_details: details, output_tokens: output }, place);
}

function addCall(id: string, usage: object, { draft, own, time }: FactsPlace): void {
  draft.answer(mainChain, { id, model: own.model, time, usage });
  for (const input of own.later) draft.input(mainChain, input);
  own.later = [];
  own.isAnswering = false;
}
