/** A message as the cache sees it: one block a part, with a key that tells its content, and its tokens by kind. */
import type { BillableBlock } from "../billing/index.ts";
import { type CountedPart, hashMessage, type MessageLens, type Role } from "../messages/index.ts";

export interface MessageBlocks {
  readonly role: Role;
  readonly blocks: readonly BillableBlock[];
  readonly tokens: KindTokens;
}

/** What tokens of a request can be. System text that is a message counts as the user's; `prefix` is what is in no message. */
export const sentKinds = [
  "prefix",
  "user",
  "assistant",
  "thinking",
  "calls",
  "results",
  "placeholders",
] as const;
export type SentKind = (typeof sentKinds)[number];
export type KindTokens = Readonly<Record<SentKind, number>>;

/** Reads messages of one session into blocks, each object once. A part that is not one of the `recorded` messages' was rewritten. */
export function createBlockReader(
  recorded: readonly object[],
  lens: MessageLens,
): (message: object) => MessageBlocks {
  const known = new WeakMap<object, MessageBlocks>();
  const recordedKeys = new Set<string>();
  for (const [index, message] of recorded.entries()) {
    const blocks = blocksOf(message, { lens, index });
    for (const { key } of blocks.blocks) recordedKeys.add(String(key));
    known.set(message, blocks);
  }
  return (message) => {
    const found = known.get(message);
    if (found !== undefined) return found;
    // Not index 0: to the counter's cache that is the beginning of a conversation.
    const blocks = blocksOf(message, { lens, index: 1, recordedKeys });
    known.set(message, blocks);
    return blocks;
  };
}

interface BlockContext {
  readonly lens: MessageLens;
  readonly index: number;
  readonly recordedKeys?: ReadonlySet<string>;
}

function blocksOf(message: object, { lens, index, recordedKeys }: BlockContext): MessageBlocks {
  const { role, parts, tokens } = lens.read(message, index);
  const blocks: BillableBlock[] = [];
  const byKind = noTokens();
  // Frame and separators are billed with the first part.
  let frame = parts.reduce((rest, part) => rest - part.tokens, tokens);
  for (const part of parts) {
    const block = { key: keyOf(part, role), tokens: part.tokens + frame, kind: part.kind };
    const isRewritten = recordedKeys !== undefined && !recordedKeys.has(block.key);
    byKind[isRewritten && isPlaceholder(part, role) ? "placeholders" : kindOf(part, role)] += block.tokens;
    blocks.push(block);
    frame = 0;
  }
  if (frame > 0) {
    blocks.push({ key: `${role} without parts`, tokens: frame, kind: "other" });
    byKind[role === "assistant" ? "assistant" : "user"] += frame;
  }
  return { role, blocks, tokens: byKind };
}

export function noTokens(): Record<SentKind, number> {
  return { prefix: 0, user: 0, assistant: 0, thinking: 0, calls: 0, results: 0, placeholders: 0 };
}

/** A plain text is the text block that merging makes of it. */
function keyOf({ value }: CountedPart, role: Role): string {
  return hashMessage({ role, part: typeof value === "string" ? { type: "text", text: value } : value });
}

/** Shortened content keeps more than this, a placeholder has less. */
const mostPlaceholderTokens = 200;

function isPlaceholder({ kind, tokens }: CountedPart, role: Role): boolean {
  return tokens < mostPlaceholderTokens && (role === "assistant" || kind === "tool_result");
}

function kindOf({ kind }: CountedPart, role: Role): SentKind {
  if (kind === "tool_result") return "results";
  if (kind === "tool_call") return "calls";
  if (kind === "thinking") return "thinking";
  return role === "assistant" ? "assistant" : "user";
}
