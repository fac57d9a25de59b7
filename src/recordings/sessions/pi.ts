/** Reads sessions of pi (`~/.pi/agent/sessions/…/*.jsonl`, version 3). Entries form a tree, so that a person can go back
 *  and continue elsewhere. A request has the entries from the root to the leaf. Messages are converted to Anthropic's
 *  format. */

import type { Fields } from "../../core/text/index.ts";
import { nameLine, readTime, type SessionDraft } from "./recorded-session.ts";
import { type UsageRecord, usageApart } from "./recorded-usage.ts";
import { countChars, type FactsDraft, findFile, mainChain } from "./session-facts.ts";
import type { ClientReader } from "./session-scan.ts";

export const piReader: ClientReader = {
  agent: "pi",
  isLine(value) {
    const { type, version, cwd, message, parentId } = Object(value) as Fields;
    if (type === "session") return typeof version === "number" && typeof cwd === "string";
    return type === "message" && typeof message === "object" && parentId !== undefined;
  },
  open(draft, requests) {
    const addToRequest = requests && createTree(requests);
    return {
      read(value) {
        const fields = Object(value) as Fields;
        const usage = readUsage(fields);
        if (draft.isIgnored !== true) readEntry(fields, draft, usage);
        requests?.report(usage);
        addToRequest?.(fields);
      },
    };
  },
};

function readUsage({ id, message }: Fields): UsageRecord | undefined {
  const { role, usage, responseId, model, timestamp } = Object(message) as Fields;
  if (role !== "assistant" || typeof usage !== "object" || usage === null) return undefined;
  const { input, cacheRead, cacheWrite, output } = usage as Fields;
  return {
    id: String(responseId ?? id),
    ...(typeof model === "string" && { model }),
    time: readTime(timestamp),
    usage: usageApart({ input, read: cacheRead, write: cacheWrite, output }),
  };
}

/** Finds the facts of an entry. */
function readEntry(value: Fields, draft: FactsDraft, usage: UsageRecord | undefined): void {
  const own = draft.state.own as { nodes?: Record<string, number> };
  own.nodes ??= {};
  const { nodes } = own;
  const { type, id, parentId } = value;
  const time = readTime(value.timestamp);
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
    draft.input(mainChain, { chars: countChars(value.summary), time });
    nodes[String(id)] = compacted;
  }
  if (type === "thinking_level_change" && draft.last(mainChain) >= 0) draft.mark(mainChain, "shape");
  if (type === "message") {
    readMessage(value, draft, usage);
    nodes[String(id)] = draft.last(mainChain);
  }
}

function readMessage({ message, timestamp }: Fields, draft: FactsDraft, usage: UsageRecord | undefined): void {
  const { role, content, toolName, toolCallId } = Object(message) as Fields;
  const { tools } = draft.state;
  const time = readTime(timestamp);
  if (role !== "assistant") {
    const tool = role === "toolResult" ? String(toolName) : undefined;
    const { file } = tools[String(toolCallId)] ?? {};
    draft.input(mainChain, { chars: countChars(content ?? message), time, tool, file });
    return;
  }
  if (usage !== undefined) draft.answer(mainChain, { ...usage, time });
  draft.input(mainChain, { chars: countChars(content) });
  for (const block of readBlocks(content)) {
    if (block.type === "toolCall") tools[String(block.id)] = { name: "", file: findFile(block.arguments) };
  }
}

/** The branch starts with a summary. */
const compacted = -2;

/** What an entry adds to requests. */
interface TreeEntry {
  readonly id: unknown;
  readonly parent: TreeEntry | undefined;
  readonly message: { readonly role: "user" | "assistant"; readonly content: readonly object[] } | undefined;
  /** A compaction: the first entry that stays after its summary. */
  readonly firstKept: unknown;
  readonly isCompaction: boolean;
  readonly answerId: string;
  readonly time: number | undefined;
}

const entryTypes: ReadonlySet<unknown> = new Set([
  "message",
  "custom_message",
  "compaction",
  "branch_summary",
  "model_change",
  "thinking_level_change",
  "session_info",
  "label",
  "custom",
]);

/** Returns a function that adds the request of each entry that is an answer. */
function createTree(requests: SessionDraft): (fields: Fields) => void {
  const entries = new Map<unknown, TreeEntry>();
  let last: TreeEntry | undefined;
  /** The last answer, and the messages up to it. */
  let answered: TreeEntry | undefined;
  let context: object[] = [];
  const addAnswer = (entry: TreeEntry, message: object): void => {
    // An answer that follows the last one adds only what is between them.
    const added: object[] = [];
    let before = entry.parent;
    for (; before !== undefined && before !== answered && !before.isCompaction; before = before.parent)
      if (before.message !== undefined) added.push(before.message);
    const isGrowing = answered !== undefined && before === answered;
    if (isGrowing) for (const each of added.reverse()) context.push(each);
    else context = collectContext(entry.parent);
    requests.request(context, { known: isGrowing ? requests.length : 0, time: entry.parent?.time });
    requests.add(message, { time: entry.time, answerId: entry.answerId });
    context.push(message);
    answered = entry;
  };
  return (fields) => {
    if (fields.type === "session") return;
    if (!entryTypes.has(fields.type)) {
      requests.leaveOut(...nameLine(fields.type));
      return;
    }
    const entry = createEntry(fields, entries.get(fields.parentId));
    entries.set(entry.id, entry);
    if (entry.isCompaction) requests.count("compaction");
    if (entry.parent !== last) requests.count("rewind");
    last = entry;
    if (entry.message?.role === "assistant") addAnswer(entry, entry.message);
  };
}

function createEntry(fields: Fields, parent: TreeEntry | undefined): TreeEntry {
  const { type, id, firstKeptEntryId, timestamp } = fields;
  const { responseId } = Object(fields.message) as Fields;
  return {
    id,
    parent,
    message: convertEntry(fields),
    firstKept: firstKeptEntryId,
    isCompaction: type === "compaction",
    answerId: String(responseId ?? id),
    time: readTime(timestamp),
  };
}

/** Returns the messages from the root to an entry. The last compaction replaces what is before its first kept entry. */
function collectContext(leaf: TreeEntry | undefined): object[] {
  const path: TreeEntry[] = [];
  for (let entry = leaf; entry !== undefined; entry = entry.parent) path.push(entry);
  path.reverse();
  const at = path.findLastIndex(({ isCompaction }) => isCompaction);
  const compaction = path[at];
  const kept = path.findIndex(({ id }, index) => index < at && id === compaction?.firstKept);
  const before = kept < 0 ? [] : path.slice(kept, at).filter(({ isCompaction }) => !isCompaction);
  const sent = compaction === undefined ? path : [compaction, ...before, ...path.slice(at + 1)];
  return sent.flatMap(({ message }) => message ?? []);
}

function convertEntry(fields: Fields): TreeEntry["message"] {
  const { type, summary, content } = fields;
  if (type === "message") return convertMessage(Object(fields.message) as Fields);
  if (type === "custom_message") return { role: "user", content: convertBlocks(content) };
  const isSummary = (type === "compaction" || type === "branch_summary") && typeof summary === "string";
  return isSummary ? { role: "user", content: [{ type: "text", text: summary }] } : undefined;
}

function convertMessage(message: Fields): TreeEntry["message"] {
  const { role, content, toolCallId, isError, stopReason } = message;
  if (role === "user") return { role, content: convertBlocks(content) };
  if (role === "toolResult") {
    const result = { type: "tool_result", tool_use_id: toolCallId, content: convertBlocks(content) };
    return { role: "user", content: [isError === true ? { ...result, is_error: true } : result] };
  }
  // A command that the person ran.
  if (role === "bashExecution") {
    const { command, output, excludeFromContext } = message;
    if (excludeFromContext === true) return undefined;
    return { role: "user", content: [{ type: "text", text: `Ran \`${command}\`\n\`\`\`\n${output}\n\`\`\`` }] };
  }
  // The program does not send an answer that failed.
  if (role !== "assistant" || stopReason === "error" || stopReason === "aborted") return undefined;
  const blocks = readBlocks(content).flatMap((block): object[] => {
    const { type, text, thinking, thinkingSignature, id, name } = block;
    if (type === "text") return [{ type, text }];
    if (type === "toolCall") return [{ type: "tool_use", id, name, input: Object(block.arguments) }];
    return type === "thinking" ? [{ type, thinking, signature: thinkingSignature }] : [];
  });
  return { role, content: blocks };
}

function convertBlocks(content: unknown): readonly object[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return readBlocks(content).map((block) => {
    if (block.type !== "image") return { type: "text", text: String(block.text ?? "") };
    return { type: "image", source: { type: "base64", media_type: block.mimeType, data: block.data } };
  });
}

function readBlocks(content: unknown): readonly Fields[] {
  return Array.isArray(content) ? content.map((block) => Object(block) as Fields) : [];
}
