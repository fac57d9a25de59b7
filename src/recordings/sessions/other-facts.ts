/** The facts of sessions of pi, gemini-cli and opencode. */

import type { Fields } from "../../core/text/index.ts";
import { geminiUsage, isGeminiLine } from "./gemini-session.ts";
import { usageOfMessage } from "./opencode-session.ts";
import { isPiLine, piUsage } from "./pi-session.ts";
import {
  charsOf,
  createFacts,
  createFactsDraft,
  type FactsDraft,
  type FactsReader,
  fileOfInput,
  type SessionFacts,
} from "./session-facts.ts";

const main = "main";

export const piFacts: FactsReader = { agent: "pi", isLine: isPiLine, readLine: readPiLine };
export const geminiFacts: FactsReader = { agent: "gemini-cli", isLine: isGeminiLine, readLine: readGeminiLine };

/** pi: entries form a tree, and the last one names the branch. */
function readPiLine(value: Fields, draft: FactsDraft): void {
  const own = draft.state.own as { nodes?: Record<string, number> };
  own.nodes ??= {};
  const { nodes } = own;
  const { type, id, parentId, message } = value;
  const time = Date.parse(String(value.timestamp)) || undefined;
  if (type === "session") {
    draft.facts.session ||= String(id);
    draft.facts.project ||= String(value.cwd);
    return;
  }
  const before = typeof parentId === "string" ? nodes[parentId] : undefined;
  if (before !== undefined && before !== draft.last(main) && before !== compacted) draft.mark(main, "rewound", before);
  nodes[String(id)] = before ?? draft.last(main);
  if (type === "compaction") {
    draft.mark(main, "compaction", -1);
    draft.input(main, { chars: charsOf(value.summary), time });
    nodes[String(id)] = compacted;
  }
  if (type === "thinking_level_change" && draft.last(main) >= 0) draft.mark(main, "shape");
  if (type === "message") nodes[String(id)] = readPiMessage(value, Object(message) as Fields, { draft, time });
}

/** The branch starts with a summary. */
const compacted = -2;

function readPiMessage(value: Fields, message: Fields, place: { draft: FactsDraft; time: number | undefined }): number {
  const { draft, time } = place;
  const { role, content, toolName, toolCallId } = message;
  if (role !== "assistant") {
    const use = draft.state.tools[String(toolCallId)];
    const tool = role === "toolResult" ? String(toolName) : undefined;
    draft.input(main, { chars: charsOf(content ?? message), time, tool, file: use?.file });
    return draft.last(main);
  }
  const usage = piUsage(value);
  if (usage !== undefined) draft.answer(main, { ...usage, time, model: usage.model });
  draft.input(main, { chars: charsOf(content) });
  for (const block of Array.isArray(content) ? (content as readonly Fields[]) : []) {
    if (block.type === "toolCall")
      draft.state.tools[String(block.id)] = { name: "", file: fileOfInput(block.arguments) };
  }
  return draft.last(main);
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

/** gemini-cli: a later line with the same id replaces a message. An answer has its tool calls with their results. */
function readGeminiLine(value: Fields, draft: FactsDraft): void {
  const own = draft.state.own as GeminiState;
  const { sessionId, projectHash } = value;
  if (typeof sessionId === "string") draft.facts.session ||= sessionId;
  if (typeof projectHash === "string") {
    draft.facts.project ||= projectHash;
    // Each process writes its own head.
    if (draft.last(main) >= 0) draft.mark(main, "resumed");
  }
  if (typeof value.$rewindTo === "string") {
    const first = own.calls?.[value.$rewindTo];
    if (first !== undefined) draft.mark(main, "rewound", first - 1);
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
    own.calls[String(id)] = draft.last(main) + 1;
    readGeminiPrompt(content, { draft, seen: own.seen, time });
  }
  if (type !== "gemini") return;
  const usage = geminiUsage(value);
  if (usage !== undefined) draft.answer(main, { ...usage, time, model: usage.model });
  if (!isKnown) draft.input(main, { chars: charsOf(content) });
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
    draft.input(main, { chars: charsOf(call.result), time, tool: String(call.name), file: fileOfInput(call.args) });
  }
}

/** The results of calls are a message of their own, and the calls have them too. */
function readGeminiPrompt(content: unknown, { draft, seen, time }: GeminiPlace): void {
  for (const part of Array.isArray(content) ? (content as readonly unknown[]) : [content]) {
    const { functionResponse } = Object(part) as Fields;
    const { id, name } = Object(functionResponse) as Fields;
    if (functionResponse !== undefined && seen[`call ${id}`] === true) continue;
    if (functionResponse !== undefined) seen[`call ${id}`] = true;
    draft.input(main, { chars: charsOf(part), time, tool: functionResponse === undefined ? undefined : String(name) });
  }
}

/** The program replaces the history. After a compaction, messages are gone and a new one stands for them. A resumed
 *  session only adds messages: it repeats the results of each answer. */
function readGeminiHistory(messages: readonly Fields[], draft: FactsDraft, isRewound: boolean): void {
  const own = draft.state.own as GeminiState;
  if (draft.last(main) < 0 && !isRewound) {
    for (const message of messages) readGeminiLine(message, draft);
    return;
  }
  const { seen = {}, live = [] } = own;
  const ids = new Set(messages.map(({ id }) => String(id)));
  const isNew = messages.some(({ type, id }) => seen[`${type} ${id}`] !== true);
  if (isNew && !isRewound && live.some((id) => !ids.has(id))) draft.mark(main, "compaction", -1);
  own.live = [...ids];
}

/** A session of opencode, as `opencode export` writes it. */
export interface OpencodeExport {
  readonly info: Fields;
  readonly messages: readonly { readonly info: Fields; readonly parts: readonly Fields[] }[];
}

export function readOpencodeFacts({ info, messages }: OpencodeExport): SessionFacts {
  const facts = factsOfInfo(info);
  const draft = createFactsDraft(facts);
  let agent: unknown;
  for (const { info: message, parts } of messages) {
    const { cwd } = Object(message.path) as Fields;
    if (typeof cwd === "string") facts.project ||= cwd;
    if (message.role === "user") {
      draft.input(main, { chars: charsOf(parts), time: timeOf(message, "created") });
      continue;
    }
    // The client asks for a summary with another prompt. That request is not a call of the conversation.
    const isSummary = message.summary === true;
    const by = isSummary ? agent : message.agent;
    if (isSummary) draft.mark(main, "compaction", -1);
    if (by !== (agent ?? by)) draft.mark(main, "shape");
    agent = by;
    addOpencodeAnswer({ message, parts, chain: isSummary ? "summary" : main }, draft);
  }
  return facts;
}

function factsOfInfo({ id, directory, parentID }: Fields): SessionFacts {
  return {
    ...{ ...createFacts("opencode"), session: String(id) },
    ...(typeof directory === "string" && { project: directory }),
    ...(typeof parentID === "string" && { subAgent: "sub-agent" }),
  };
}

interface OpencodeAnswer {
  readonly message: Fields;
  readonly parts: readonly Fields[];
  readonly chain: string;
}

function addOpencodeAnswer({ message, parts, chain }: OpencodeAnswer, draft: FactsDraft): void {
  const record = usageOfMessage(message);
  draft.input(chain, { chars: 0, time: timeOf(message, "created") });
  if (record !== undefined) {
    draft.answer(chain, {
      id: record.id,
      model: record.model,
      time: timeOf(message, "completed"),
      usage: record.usage,
    });
  }
  for (const part of parts) {
    const { input, output, error } = Object(part.state) as Fields;
    const isTool = part.type === "tool";
    draft.input(main, { chars: isTool ? charsOf(input) : charsOf(part) });
    if (!isTool) continue;
    const chars = charsOf(output ?? error);
    draft.input(main, { chars, tool: String(part.tool), file: fileOfInput(input) });
  }
}

function timeOf({ time }: Fields, name: "created" | "completed"): number | undefined {
  const value = (Object(time) as Fields)[name];
  return typeof value === "number" ? value : undefined;
}
