/** The facts of Codex's sessions. Since version 0.15x a `token_usage_record` follows each answer; before that,
 *  `token_count` events repeat the sum so far. */

import type { Fields } from "../../core/text/index.ts";
import { codexUsage, isCodexLine } from "./codex-session.ts";
import { charsOf, type FactsDraft, type FactsReader, fileOfInput } from "./session-facts.ts";

interface OwnState {
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

const main = "main";

export const codexFacts: FactsReader = { agent: "codex", isLine: isCodexLine, readLine: readCodexLine };

function readCodexLine(value: Fields, draft: FactsDraft): void {
  const own = ownState(draft);
  const payload = Object(value.payload) as Fields;
  const time = Date.parse(String(value.timestamp)) || undefined;
  if (value.type === "session_meta") readMeta(payload, draft, own);
  else if (value.type === "turn_context") readContext(payload, draft, own);
  else if (value.type === "response_item") readItem(payload, { draft, own, time });
  else if (value.type === "compacted") draft.mark(main, "compaction", -1);
  else if (value.type === "event_msg") readEvent(payload, { draft, own, time });
  else if (value.type === "token_usage_record") {
    own.hasRecords = true;
    const record = codexUsage(value);
    if (record !== undefined) addCall(record.id, record.usage, { draft, own, time });
  } else if (value.type === undefined && typeof value.id === "string") draft.facts.session ||= value.id;
  else if (typeof value.call_id === "string" || value.type === "message") readItem(value, { draft, own, time });
}

function ownState({ state }: FactsDraft): OwnState {
  const own = state.own as Partial<OwnState>;
  own.metas ??= 0;
  own.total ??= 0;
  own.turns ??= [];
  own.isAnswering ??= false;
  own.later ??= [];
  return own as OwnState;
}

interface Place {
  readonly draft: FactsDraft;
  readonly own: OwnState;
  readonly time: number | undefined;
}

/** Each start of the program writes its own head. A sub-agent's names the session that started it. */
function readMeta(payload: Fields, draft: FactsDraft, own: OwnState): void {
  const { facts } = draft;
  if (typeof payload.id === "string") facts.session ||= payload.id;
  if (typeof payload.cwd === "string") facts.project ||= payload.cwd;
  const { subagent } = Object(payload.source) as Fields;
  if (subagent !== undefined) facts.subAgent ??= typeof subagent === "string" ? subagent : "sub-agent";
  if (own.metas++ > 0) draft.mark(main, "resumed");
  noticeShape(`${charsOf(payload.base_instructions)} ${JSON.stringify(payload.dynamic_tools ?? null)}`, draft, own);
}

function readContext(payload: Fields, draft: FactsDraft, own: OwnState): void {
  if (typeof payload.model === "string") own.model = payload.model;
  if (typeof payload.cwd === "string") draft.facts.project ||= payload.cwd;
}

function noticeShape(shape: string, draft: FactsDraft, own: OwnState): void {
  if (own.shape !== undefined && own.shape !== shape) draft.mark(main, "shape");
  own.shape = shape;
}

function readItem(item: Fields, { draft, own, time }: Place): void {
  const { type, role } = item;
  if (type === "ghost_snapshot") return;
  const name = String(type);
  const chars = charsOf(item);
  if (role === "assistant" || name === "reasoning" || name.endsWith("_call")) {
    own.isAnswering = true;
    own.later.push({ chars });
    if (typeof item.call_id === "string") draft.state.tools[item.call_id] = toolOf(item);
    return;
  }
  if (role === "user" && !isContext(item)) own.turns.push(draft.last(main));
  const use = typeof item.call_id === "string" ? draft.state.tools[item.call_id] : undefined;
  if (use !== undefined) delete draft.state.tools[String(item.call_id)];
  const input = { chars, time, tool: use?.name, file: use?.file };
  if (own.isAnswering) own.later.push(input);
  else draft.input(main, input);
}

/** The program adds context as user messages. */
function isContext({ content }: Fields): boolean {
  const [first] = Array.isArray(content) ? content : [];
  return /^(<[a-z_]+>|# AGENTS\.md)/.test(String((Object(first) as Fields).text));
}

function toolOf({ name, namespace, arguments: input, type }: Fields): { name: string; file?: string | undefined } {
  const tool = typeof name === "string" ? name : String(type).replace(/_call$/, "");
  const full = typeof namespace === "string" ? `${namespace}__${tool}` : tool;
  if (typeof input !== "string" || input.length > 10_000) return { name: full };
  try {
    return { name: full, file: fileOfInput(JSON.parse(input)) };
  } catch {
    return { name: full };
  }
}

function readEvent(payload: Fields, place: Place): void {
  const { draft, own } = place;
  const turns = Number(payload.num_turns);
  if (payload.type === "thread_rolled_back" && turns > 0) {
    draft.mark(main, "rewound", own.turns.at(-turns) ?? -1);
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

function addCall(id: string, usage: object, { draft, own, time }: Place): void {
  draft.answer(main, { id, model: own.model, time, usage });
  for (const input of own.later) draft.input(main, input);
  own.later = [];
  own.isAnswering = false;
}
