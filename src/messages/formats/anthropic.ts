/** The Anthropic Messages shape: tool results live in user messages, block types are open-ended. */
import { type Fields, failAt, roleAt, textOrListAt } from "../fields.ts";
import type { MessageFormat, Overheads, Part, PartKind } from "../message-format.ts";
import { blockTypeOf } from "./anthropic-blocks.ts";
import { anthropicToolPromptTokens, readAnthropicTool } from "./anthropic-tools.ts";
import { nameIn, textPart } from "./create-part.ts";
import { editContent, joinContent, refuseReplace, trimmedInput, withField } from "./edit-content.ts";

const overheads: Overheads = {
  request: 3, // with `message`: the frame of 6–7 tokens around one text message (count_tokens probes, 2026-08)
  message: 4,
  part: 0, // a list of one text block is billed like the plain string (count_tokens, 2026)
  toolCall: 9, // not published; the context-engineering RFC's 30 bytes
  toolResult: 9, // likewise
  tool: 0, // the documented example (403 tokens with one tool) leaves nothing beyond the definition's JSON
  toolFactor: 1,
};

export const anthropicFormat: MessageFormat = {
  name: "anthropic",
  overheads,
  claims(message) {
    if (message.role === "tool" || !Array.isArray(message.content)) return false;
    return message.content.some(isOwnBlock);
  },
  read(message, path) {
    const role = roleAt(message, roles, path);
    // Another provider's calls would be billed and not counted.
    if (message.tool_calls !== undefined) failAt(`${path}.tool_calls`, "is no field of this format");
    const content = textOrListAt(message.content, `${path}.content`);
    if (typeof content === "string") return { role, parts: [textPart(content)], separators: 0 };
    return { role, parts: readParts(content, `${path}.content`), separators: content.length };
  },
  edit: (message, edits) => editContent(message, edits, replaceBlock),
  detach: detachTexts,
  merge: (first, second) => (first.role === second.role ? joinContent(first, second) : undefined),
  assistantText: (text) => ({ role: "assistant", content: [{ type: "text", text }] }),
  toolResult: ({ callId }, text) => ({
    role: "user",
    content: [{ type: "tool_result", tool_use_id: callId, content: text }],
  }),
  readTool: readAnthropicTool,
  toolPromptTokens: anthropicToolPromptTokens,
};

const roles = ["user", "assistant", "system"] as const;
const ownTypes: ReadonlySet<unknown> = new Set(["tool_result", "thinking", "redacted_thinking", "document"]);

function isOwnBlock(block: unknown): boolean {
  const { type, input } = Object(block) as Fields;
  return ownTypes.has(type) || (type === "tool_use" && input !== undefined);
}

// A plain loop, and every part with the same fields in the same order: a freshly parsed session is counted on each turn.
function readParts(blocks: readonly unknown[], path: string): readonly Part[] {
  const parts: Part[] = [];
  for (let index = 0; index < blocks.length; index++) {
    const block = blocks[index] as Fields;
    const { kind, read } = blockTypeOf(block, path, index);
    const found = read(block, path, index, 1);
    const exchangeRole = kind === "other" ? exchangeRoleOf(block) : undefined;
    parts.push({
      kind,
      pieces: Array.isArray(found) ? found : [found],
      value: block,
      callId: callIdOf(block, exchangeRole ?? kind),
      toolName: kind === "tool_call" || exchangeRole === "call" ? (block.name as string) : undefined,
      isBound: kind === "text" && hasCitations(block) ? true : undefined,
      exchangeRole,
    });
  }
  return parts;
}

/** What the provider's own tools did comes as calls and results within the assistant's message. */
function exchangeRoleOf({ type }: Fields): "call" | "result" | undefined {
  if (type === "server_tool_use" || type === "mcp_tool_use") return "call";
  return String(type).endsWith("_tool_result") ? "result" : undefined;
}

function callIdOf(block: Fields, kind: PartKind | Part["exchangeRole"]): string | undefined {
  if (kind === "tool_call" || kind === "call") return nameIn(block.id);
  return kind === "tool_result" || kind === "result" ? nameIn(block.tool_use_id) : undefined;
}

// What a citation points at may be a search result that is gone.
function hasCitations({ citations }: Fields): boolean {
  return Array.isArray(citations) && citations.length > 0;
}

function detachTexts(message: Fields): Fields {
  const { content } = message;
  if (!Array.isArray(content) || !content.some((block) => hasCitations(block as Fields))) return message;
  return { ...message, content: content.map(withoutCitations) };
}

function withoutCitations(block: Fields): Fields {
  if (!hasCitations(block)) return block;
  const { citations: _gone, ...rest } = block;
  return rest;
}

function replaceBlock(block: Fields, text: string): Fields {
  switch (block.type) {
    case "text":
      return withField(block, "text", text);
    case "tool_use":
      return withField(block, "input", trimmedInput(block.input, text));
    case "tool_result":
      return withField(block, "content", text);
    default:
      return refuseReplace(block.type);
  }
}
