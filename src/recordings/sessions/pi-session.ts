/** Reads sessions of pi (`~/.pi/agent/sessions/…/*.jsonl`, version 3). Entries form a tree, so that a person can go back
 *  and continue elsewhere. A request has the entries from the root to the leaf. Messages are converted to Anthropic's
 *  format. */

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
import { type UsageRecord, usageApart } from "./recorded-usage.ts";
import { charsOf, type FactsDraft, type FactsReader, fileOfInput, mainChain } from "./session-facts.ts";

export const piReader: SessionReader = { kind: "pi", isLine: isPiLine, read: readPiSession };
export const piFacts: FactsReader = { agent: "pi", isLine: isPiLine, readLine: readPiLine };

function readPiSession(lines: readonly JsonLine[], file: string): RecordedSession {
  const draft = createSessionDraft();
  const entries = new Map<unknown, PiEntry>();
  let last: PiEntry | undefined;
  let answer: LastAnswer | undefined;
  for (const { value } of lines) {
    const fields = Object(value) as Fields;
    draft.report(piUsage(fields));
    if (fields.type === "session") continue;
    const entry = entryOf(fields, entries);
    if (entry === undefined) {
      draft.leaveOut(...lineOfType(fields.type));
      continue;
    }
    entries.set(entry.id, entry);
    if (entry.isCompaction) draft.count("compaction");
    if (entry.parent !== last) draft.count("rewind");
    last = entry;
    if (entry.message?.role === "assistant") answer = addAnswer(entry, answer, draft);
  }
  return draft.finish({ file, source: "pi", format: "anthropic" });
}

function isPiLine(value: unknown): boolean {
  const { type, version, cwd, message, parentId } = Object(value) as Fields;
  if (type === "session") return typeof version === "number" && typeof cwd === "string";
  return type === "message" && typeof message === "object" && parentId !== undefined;
}

function piUsage(value: unknown): UsageRecord | undefined {
  const { id, message } = Object(value) as Fields;
  const { role, usage, responseId, model, timestamp } = Object(message) as Fields;
  if (role !== "assistant" || typeof usage !== "object" || usage === null) return undefined;
  const { input, cacheRead, cacheWrite, output } = usage as Fields;
  return {
    id: String(responseId ?? id),
    ...(typeof model === "string" && { model }),
    time: timeOf(timestamp),
    usage: usageApart({ input, read: cacheRead, write: cacheWrite, output }),
  };
}

interface PiEntry {
  readonly id: unknown;
  readonly parent: PiEntry | undefined;
  /** What it adds to a request. */
  readonly message: ConvertedMessage | undefined;
  /** A compaction: the first entry that stays after its summary. */
  readonly firstKept?: unknown;
  readonly isCompaction: boolean;
  readonly answerId?: string | undefined;
  readonly time: number | undefined;
}

interface ConvertedMessage {
  readonly role: "user" | "assistant";
  readonly content: readonly object[];
}

const ownTypes: ReadonlySet<unknown> = new Set([
  ...["message", "custom_message", "compaction", "branch_summary"],
  ...["model_change", "thinking_level_change", "session_info", "label", "custom"],
]);

function entryOf(fields: Fields, entries: ReadonlyMap<unknown, PiEntry>): PiEntry | undefined {
  const { type, id, parentId, message, firstKeptEntryId, timestamp } = fields;
  if (!ownTypes.has(type)) return undefined;
  const { responseId } = Object(message) as Fields;
  return {
    id,
    parent: entries.get(parentId),
    message: messageOf(fields),
    firstKept: firstKeptEntryId,
    isCompaction: type === "compaction",
    answerId: String(responseId ?? id),
    time: timeOf(timestamp),
  };
}

function messageOf(fields: Fields): ConvertedMessage | undefined {
  const { type, summary, content } = fields;
  if (type === "message") return convert(Object(fields.message) as Fields);
  if (type === "custom_message") return { role: "user", content: userBlocks(content) };
  const isSummary = (type === "compaction" || type === "branch_summary") && typeof summary === "string";
  return isSummary ? { role: "user", content: [{ type: "text", text: summary }] } : undefined;
}

function convert(message: Fields): ConvertedMessage | undefined {
  const { role, content, toolCallId, isError, stopReason } = message;
  if (role === "user") return { role, content: userBlocks(content) };
  if (role === "toolResult") {
    const result = { type: "tool_result", tool_use_id: toolCallId, content: userBlocks(content) };
    return { role: "user", content: [isError === true ? { ...result, is_error: true } : result] };
  }
  if (role === "bashExecution") return convertCommand(message);
  // The program does not send an answer that failed.
  if (role !== "assistant" || stopReason === "error" || stopReason === "aborted") return undefined;
  return { role, content: listOf(content).flatMap(answerBlock) };
}

/** A command that the person ran. */
function convertCommand({ command, output, excludeFromContext }: Fields): ConvertedMessage | undefined {
  if (excludeFromContext === true) return undefined;
  return { role: "user", content: [{ type: "text", text: `Ran \`${command}\`\n\`\`\`\n${output}\n\`\`\`` }] };
}

function listOf(content: unknown): readonly Fields[] {
  return Array.isArray(content) ? content.map((block) => Object(block) as Fields) : [];
}

function userBlocks(content: unknown): readonly object[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return listOf(content).map((block) => {
    if (block.type !== "image") return { type: "text", text: String(block.text ?? "") };
    return { type: "image", source: { type: "base64", media_type: block.mimeType, data: block.data } };
  });
}

function answerBlock(block: Fields): readonly object[] {
  const { type, text, thinking, thinkingSignature, id, name } = block;
  if (type === "text") return [{ type, text }];
  if (type === "toolCall") return [{ type: "tool_use", id, name, input: Object(block.arguments) }];
  return type === "thinking" ? [{ type, thinking, signature: thinkingSignature }] : [];
}

interface LastAnswer {
  readonly entry: PiEntry;
  /** The messages up to the answer. */
  readonly context: object[];
}

/** An answer that follows the last one adds only what is between them. */
function addAnswer(entry: PiEntry, last: LastAnswer | undefined, draft: SessionDraft): LastAnswer {
  const added: PiEntry[] = [];
  let before = entry.parent;
  for (; before !== undefined && before !== last?.entry && !before.isCompaction; before = before.parent)
    added.push(before);
  const isGrowing = last !== undefined && before === last.entry;
  const context = isGrowing ? last.context : contextOf(entry.parent);
  if (isGrowing) for (const message of messagesOf(added.reverse())) context.push(message);
  draft.request(context, { known: isGrowing ? draft.length : 0, time: entry.parent?.time });
  draft.add(entry.message as object, { time: entry.time, answerId: entry.answerId });
  context.push(entry.message as object);
  return { entry, context };
}

/** The messages from the root to an entry. The last compaction replaces what is before its first kept entry. */
function contextOf(leaf: PiEntry | undefined): object[] {
  const path: PiEntry[] = [];
  for (let entry = leaf; entry !== undefined; entry = entry.parent) path.push(entry);
  path.reverse();
  const at = path.findLastIndex(({ isCompaction }) => isCompaction);
  const compaction = path[at];
  if (compaction === undefined) return messagesOf(path);
  const kept = path.slice(0, at).findIndex(({ id }) => id === compaction.firstKept);
  const before = kept < 0 ? [] : path.slice(kept, at);
  return messagesOf([compaction, ...before.filter(({ isCompaction }) => !isCompaction), ...path.slice(at + 1)]);
}

function messagesOf(path: readonly PiEntry[]): object[] {
  return path.flatMap(({ message }) => message ?? []);
}

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
  if (before !== undefined && before !== draft.last(mainChain) && before !== compacted)
    draft.mark(mainChain, "rewound", before);
  nodes[String(id)] = before ?? draft.last(mainChain);
  if (type === "compaction") {
    draft.mark(mainChain, "compaction", -1);
    draft.input(mainChain, { chars: charsOf(value.summary), time });
    nodes[String(id)] = compacted;
  }
  if (type === "thinking_level_change" && draft.last(mainChain) >= 0) draft.mark(mainChain, "shape");
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
    draft.input(mainChain, { chars: charsOf(content ?? message), time, tool, file: use?.file });
    return draft.last(mainChain);
  }
  const usage = piUsage(value);
  if (usage !== undefined) draft.answer(mainChain, { ...usage, time, model: usage.model });
  draft.input(mainChain, { chars: charsOf(content) });
  for (const block of Array.isArray(content) ? (content as readonly Fields[]) : []) {
    if (block.type === "toolCall")
      draft.state.tools[String(block.id)] = { name: "", file: fileOfInput(block.arguments) };
  }
  return draft.last(mainChain);
}
