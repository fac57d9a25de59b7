/** The Anthropic Messages shape: tool results live in user messages, block types are open-ended. */
import { type Fields, fail, fieldsAt, jsonAt, roleAt, stringAt, textOrListAt } from "../fields.ts";
import type { MessageFormat, Overheads, Piece, Reading } from "../message-format.ts";
import { anthropicToolPromptTokens, readAnthropicTool } from "./anthropic-tools.ts";

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
    roleAt(message, ["user", "assistant", "system"], path);
    // Another provider's calls would be billed and not counted.
    if (message.tool_calls !== undefined) fail(`${path}.tool_calls`, "is no field of this format");
    return readContent(message.content, `${path}.content`, 0);
  },
  readTool: readAnthropicTool,
  toolPromptTokens: anthropicToolPromptTokens,
};

const ownTypes: ReadonlySet<unknown> = new Set(["tool_result", "thinking", "redacted_thinking", "document"]);

function isOwnBlock(block: unknown): boolean {
  const { type, input } = Object(block) as Fields;
  return ownTypes.has(type) || (type === "tool_use" && input !== undefined);
}

function readContent(value: unknown, path: string, depth: number): Reading {
  const content = textOrListAt(value, path);
  if (typeof content === "string") return { pieces: [{ kind: "text", text: content }], parts: 0 };
  if (depth > maxDepth) return fail(path, `is nested more than ${maxDepth} levels deep`);
  return { pieces: readBlocks(content, path, depth), parts: content.length };
}

// The API takes a document of blocks in a tool result and nothing deeper; without a limit a cycle would never end.
const maxDepth = 8;

// A plain loop: flatMap takes a third of the time of counting a freshly parsed session.
function readBlocks(blocks: readonly unknown[], path: string, depth: number): Piece[] {
  const pieces: Piece[] = [];
  for (let index = 0; index < blocks.length; index++) {
    const blockPath = `${path}[${index}]`;
    const block = fieldsAt(blocks[index], blockPath);
    const read = readers.get(stringAt(block, "type", blockPath)) ?? readUnknown;
    const found = read(block, blockPath, depth + 1);
    if (Array.isArray(found)) for (const piece of found) pieces.push(piece);
    else pieces.push(found);
  }
  return pieces;
}

/** `depth` is that of a list of blocks inside this one. */
type BlockReader = (block: Fields, path: string, depth: number) => Piece | Piece[];

const readers: ReadonlyMap<string, BlockReader> = new Map<string, BlockReader>([
  ["text", readText],
  ["thinking", readThinking],
  ["redacted_thinking", readRedactedThinking],
  ["tool_use", readToolCall],
  ["server_tool_use", readToolCall],
  ["mcp_tool_use", readToolCall],
  ["tool_result", readToolResult],
  ["mcp_tool_result", readToolResult],
  ["web_search_tool_result", readSearchResult],
  ["web_fetch_tool_result", readFetchResult],
  ["image", readImage],
  ["document", readDocument],
]);

// Citations sent back are not billed (Anthropic, Citations, 2026), nor is cache_control.
function readText(block: Fields, path: string): Piece {
  return { kind: "text", text: stringAt(block, "text", path) };
}

function readThinking(block: Fields, path: string): Piece {
  const sealed = typeof block.signature === "string" ? block.signature : "";
  return { kind: "sealed", text: stringAt(block, "thinking", path), sealed };
}

function readRedactedThinking(block: Fields, path: string): Piece {
  return { kind: "sealed", text: "", sealed: stringAt(block, "data", path) };
}

// The id is not counted: it serves the API's pairing, and the wrapper's constant covers a short form of it.
function readToolCall(block: Fields, path: string): Piece {
  const name = stringAt(block, "name", path);
  return { kind: "tool_call", name, args: block.input ?? {}, path: `${path}.input` };
}

function readToolResult(block: Fields, path: string, depth: number): Piece | Piece[] {
  const content = block.content ?? "";
  if (typeof content === "string") return { kind: "tool_result", text: content };
  return [{ kind: "tool_result", text: "" }, ...readContent(content, `${path}.content`, depth).pieces];
}

function readSearchResult(block: Fields, path: string): Piece | Piece[] {
  if (!Array.isArray(block.content)) return readUnknown(block, path);
  const results = block.content.flatMap((result: unknown, index): Piece[] => {
    const resultPath = `${path}.content[${index}]`;
    const { encrypted_content: sealed, ...rest } = fieldsAt(result, resultPath);
    const shown: Piece = { kind: "text", text: jsonAt(rest, resultPath) };
    return typeof sealed === "string" ? [shown, { kind: "sealed", text: "", sealed }] : [shown];
  });
  return [{ kind: "tool_result", text: "" }, ...results];
}

function readFetchResult(block: Fields, path: string, depth: number): Piece | Piece[] {
  const { content: document, ...rest } = Object(block.content) as Fields;
  if (Object(document).type !== "document") return readUnknown(block, path);
  const shown: Piece = { kind: "tool_result", text: jsonAt(rest, `${path}.content`) };
  return [shown, ...readDocument(document as Fields, `${path}.content.content`, depth)];
}

function readImage(block: Fields, path: string): Piece {
  return { kind: "image", data: base64Of(fieldsAt(block.source, `${path}.source`)) };
}

function readDocument(block: Fields, path: string, depth: number): Piece[] {
  const labels = [block.title, block.context].filter((label) => typeof label === "string");
  const pieces: Piece[] = labels.map((text) => ({ kind: "text", text }));
  return pieces.concat(readSource(fieldsAt(block.source, `${path}.source`), `${path}.source`, depth));
}

function readSource(source: Fields, path: string, depth: number): Piece | readonly Piece[] {
  if (source.type === "text") return { kind: "text", text: stringAt(source, "data", path) };
  if (source.type === "content") return readContent(source.content, `${path}.content`, depth).pieces;
  return { kind: "document", data: base64Of(source) };
}

function base64Of(source: Fields): string | undefined {
  return typeof source.data === "string" ? source.data : undefined;
}

// The API grows new block types; counting their JSON is too much rather than nothing.
function readUnknown(block: Fields, path: string): Piece {
  const { cache_control: _unbilled, ...rest } = block;
  return { kind: "text", text: jsonAt(rest, path) };
}
