/** Reads sessions of Codex (`~/.codex/sessions/…/rollout-*.jsonl`): items of OpenAI's responses format. Since September
 *  2025 each is in an envelope `{ timestamp, type, payload }`; before that, bare items followed a head line. */

import { ContextError } from "../../core/errors.ts";
import type { Fields } from "../../core/text/index.ts";
import { nameLine, readTime, type SessionDraft } from "./recorded-session.ts";
import { type UsageRecord, usageTogether } from "./recorded-usage.ts";
import { countChars, type FactsDraft, findFile, mainChain, type TextFact } from "./session-facts.ts";
import type { ClientReader, LineReader } from "./session-scan.ts";

export const codexReader: ClientReader = {
  agent: "codex",
  mayStartLater: true,
  /** Bare items alone do not identify Codex, because any program may write those. */
  isLine(value) {
    const fields = Object(value) as Fields;
    return (typeof fields.payload === "object" && envelopes.has(fields.type)) || isBareHead(fields);
  },
  open: openCodex,
};

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

interface Reading {
  readonly draft: FactsDraft;
  readonly own: CodexState;
  readonly requests?: SessionDraft | undefined;
  /** The index of each user message that started a turn in the current stretch. */
  turns: number[];
  /** Whether the last item of the request is part of an answer. */
  isAnswering: boolean;
  /** The first model of the session. */
  model?: string | undefined;
  system?: string | undefined;
  tools?: readonly object[] | undefined;
}

/** What the facts of the next lines depend on. Since version 0.15x a `token_usage_record` follows each answer; before that,
 *  `token_count` events repeat the sum so far. */
interface CodexState {
  /** The model that answers now. */
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
  later: TextFact[];
}

function openCodex(draft: FactsDraft, requests?: SessionDraft): LineReader {
  const own: CodexState = { metas: 0, total: 0, turns: [], isAnswering: false, later: [], ...draft.state.own };
  draft.state.own = own as unknown as Fields;
  const reading: Reading = { draft, own, requests, turns: [], isAnswering: false };
  return {
    read(value, place) {
      if (typeof value !== "object" || value === null) {
        throw new ContextError("invalid_message", "must be an object", place);
      }
      const { type, payload } = value as Fields;
      if (requests !== undefined && type === "response_item" && typeof Object(payload).type !== "string") {
        throw new ContextError("invalid_message", "payload.type must be a string", place);
      }
      readLine(value as Fields, reading);
    },
    finish() {
      const { model, system, tools } = reading;
      return { ...(system && { system }), ...(tools && { tools }), ...(model && { model }) };
    },
  };
}

function readLine(fields: Fields, reading: Reading): void {
  const { draft, own, requests } = reading;
  const { type, id } = fields;
  const payload = Object(fields.payload) as Fields;
  const time = readTime(fields.timestamp);
  if (isBareHead(fields)) {
    if (typeof id === "string") draft.facts.session ||= id;
    return;
  }
  if (isBareItem(fields)) {
    readItem(fields, reading, time);
    return;
  }
  switch (type) {
    case "response_item":
      readItem(payload, reading, time);
      break;
    case "compacted":
      readCompaction(payload, reading, time);
      break;
    case "session_meta":
      readMeta(payload, reading);
      break;
    case "turn_context":
      if (typeof payload.model === "string") own.model = payload.model;
      if (typeof payload.cwd === "string") draft.facts.project ||= payload.cwd;
      reading.model ??= own.model;
      break;
    case "event_msg":
      readEvent(payload, reading, time);
      break;
    case "token_usage_record":
      readRecord(payload, reading, time);
      break;
    case "world_state":
      break;
    default:
      requests?.leaveOut(...nameLine(type));
  }
}

/** A message of the responses format has a `type`, which no other format's message has. */
function isBareItem({ type, role, call_id: callId, summary }: Fields): boolean {
  if (type === "message") return typeof role === "string";
  return typeof callId === "string" || (type === "reasoning" && Array.isArray(summary));
}

function readRecord(payload: Fields, reading: Reading, time: number | undefined): void {
  const { response_id: id, usage } = payload;
  reading.own.hasRecords = true;
  if (typeof id !== "string") return;
  const record = { id, model: reading.own.model, time, usage: readUsage(usage) };
  reading.requests?.report(record);
  addCall(record, reading);
}

function readUsage(usage: unknown): object {
  const {
    input_tokens: input,
    cached_input_tokens: read,
    cache_write_input_tokens: write,
    output_tokens: output,
  } = Object(usage) as Fields;
  return usageTogether({ input, read, write, output });
}

/** Each start of the program writes its own head. A sub-agent's names the session that started it. A fork names the
 *  session that it continues. That session's file has the rest of the history. */
function readMeta(payload: Fields, reading: Reading): void {
  const { draft, own, requests } = reading;
  const { facts } = draft;
  const { id, cwd, source, base_instructions: instructions, dynamic_tools: tools } = payload;
  if (typeof id === "string") facts.session ||= id;
  if (typeof cwd === "string") facts.project ||= cwd;
  const { subagent } = Object(source) as Fields;
  if (subagent !== undefined) facts.subAgent ??= typeof subagent === "string" ? subagent : "sub-agent";
  if (own.metas++ > 0) draft.mark(mainChain, "resumed");
  const shape = `${countChars(instructions)} ${JSON.stringify(tools ?? null)}`;
  if (own.shape !== undefined && own.shape !== shape) draft.mark(mainChain, "shape");
  own.shape = shape;
  if (requests === undefined) return;
  reading.system ??= readText(instructions);
  if (Array.isArray(tools) && tools.length > 0) {
    reading.tools ??= tools.map((tool) => {
      const { name, description, inputSchema, input_schema: schema } = Object(tool) as Fields;
      return { type: "function", name, description, parameters: inputSchema ?? schema };
    });
  }
  const { forked_from_id: origin, history_mode: mode } = payload;
  if (typeof origin !== "string" || mode !== "paginated") return;
  requests.note(`this is a fork of ${origin}; the messages before the fork are in that session's file`);
}

/** Starts a stretch with the history that the compaction made. Older versions record only its summary. */
function readCompaction(payload: Fields, reading: Reading, time: number | undefined): void {
  const { draft, requests } = reading;
  draft.mark(mainChain, "compaction", -1);
  if (requests === undefined) return;
  const { message, replacement_history: replacement } = payload;
  const items = Array.isArray(replacement) ? replacement.map((item) => Object(item) as Fields) : [];
  requests.count("compaction");
  requests.branch(0);
  reading.turns = [];
  for (const item of items) addToRequest(item, reading, time);
  if (items.length === 0 && typeof message === "string" && message !== "") {
    addToRequest({ type: "message", role: "user", content: [{ type: "input_text", text: message }] }, reading, time);
  }
  requests.skipAnswers();
}

/** The program's own events repeat what items say, except that a rollback removes the last turns, and that older versions
 *  report usage only here. */
function readEvent(payload: Fields, reading: Reading, time: number | undefined): void {
  const { draft, own, requests } = reading;
  const turns = Number(payload.num_turns);
  if (payload.type === "thread_rolled_back" && turns > 0) {
    draft.mark(mainChain, "rewound", own.turns.at(-turns) ?? -1);
    own.turns = own.turns.slice(0, -turns);
    requests?.count("rewind");
    requests?.branch(reading.turns.at(-turns) ?? 0);
    reading.turns = reading.turns.slice(0, -turns);
  }
  if (payload.type !== "token_count" || own.hasRecords === true) return;
  const { total_token_usage: sum, last_token_usage: last } = Object(payload.info) as Fields;
  const total = Number((Object(sum) as Fields).total_tokens);
  if (!(total > 0) || total === own.total) return;
  own.total = total;
  addCall({ id: `${draft.facts.session} ${total}`, model: own.model, time, usage: readUsage(last) }, reading);
}

function addCall(record: UsageRecord, { draft, own }: Reading): void {
  draft.answer(mainChain, record);
  for (const input of own.later) draft.input(mainChain, input);
  own.later = [];
  own.isAnswering = false;
}

function readItem(item: Fields, reading: Reading, time: number | undefined): void {
  addToRequest(item, reading, time);
  const { draft, own } = reading;
  if (item.type === "ghost_snapshot" || draft.isIgnored === true) return;
  const { tools } = draft.state;
  const chars = countChars(item);
  const callId = typeof item.call_id === "string" ? item.call_id : undefined;
  if (isAnswer(item)) {
    own.isAnswering = true;
    own.later.push({ chars });
    if (callId !== undefined) tools[callId] = describeUse(item);
    return;
  }
  if (item.role === "user" && !isContext(item)) own.turns.push(draft.last(mainChain));
  const use = callId === undefined ? undefined : tools[callId];
  if (callId !== undefined) delete tools[callId];
  const input = { chars, time, tool: use?.name, file: use?.file };
  if (own.isAnswering) own.later.push(input);
  else draft.input(mainChain, input);
}

function addToRequest(item: Fields, reading: Reading, time: number | undefined): void {
  const { requests } = reading;
  if (requests === undefined) return;
  // The program's own backup of the working tree. It is never sent.
  if (item.type === "ghost_snapshot") {
    requests.leaveOut("ghost_snapshot item");
    return;
  }
  if (item.role === "user" && !isContext(item)) reading.turns.push(requests.length);
  const isPart = isAnswer(item);
  // The first item of an answer names it.
  const answerId = isPart && !reading.isAnswering && typeof item.id === "string" ? item.id : undefined;
  reading.isAnswering = isPart;
  requests.add(item, { time, answerId });
}

function isAnswer({ type, role }: Fields): boolean {
  return role === "assistant" || type === "reasoning" || String(type).endsWith("_call");
}

/** The program adds context as user messages. */
function isContext({ content }: Fields): boolean {
  const [first] = Array.isArray(content) ? content : [];
  return /^(<[a-z_]+>|# AGENTS\.md)/.test(readText(first) ?? "");
}

function readText(value: unknown): string | undefined {
  const { text } = Object(value) as Fields;
  return typeof text === "string" ? text : undefined;
}

function describeUse({ name, namespace, arguments: input, type }: Fields): { name: string; file?: string | undefined } {
  const tool = typeof name === "string" ? name : String(type).replace(/_call$/, "");
  const full = typeof namespace === "string" ? `${namespace}__${tool}` : tool;
  if (typeof input !== "string" || input.length > 10_000) return { name: full };
  try {
    return { name: full, file: findFile(JSON.parse(input)) };
  } catch {
    return { name: full };
  }
}
