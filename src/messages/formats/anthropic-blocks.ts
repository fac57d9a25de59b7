/** The block types of the Anthropic shape: what kind of part each is, and what it is billed for. A freshly parsed session is counted on
 *  each turn, so paths are only put together where something is malformed. */
import { withoutCacheMarkers } from "../cache-markers.ts";
import { type Fields, failAt, fieldsAt, jsonAt, stringAt, typeName } from "../fields.ts";
import type { PartKind, Piece } from "../message-format.ts";

export interface BlockType {
  readonly kind: PartKind;
  readonly read: BlockReader;
}

/** The block stands at `${list}[${index}]`; `depth` is that of a list of blocks inside it. */
type BlockReader = (block: Fields, list: string, index: number, depth: number) => Piece | Piece[];

/** What the provider's own tools did, what it compacted, and types that are not known yet are `other`. */
export function blockTypeOf(block: unknown, list: string, index: number): BlockType {
  const type = (block as Fields | null | undefined)?.type;
  const known = blockTypes.get(type);
  if (known !== undefined) return known;
  if (typeof type !== "string" || Array.isArray(block)) {
    const path = `${list}[${index}]`;
    stringAt(fieldsAt(block, path), "type", path);
  }
  return unknownType;
}

const blockTypes: ReadonlyMap<unknown, BlockType> = new Map<unknown, BlockType>([
  ["text", { kind: "text", read: readText }],
  ["thinking", { kind: "thinking", read: readThinking }],
  ["redacted_thinking", { kind: "thinking", read: readRedactedThinking }],
  ["tool_use", { kind: "tool_call", read: readToolCall }],
  ["tool_result", { kind: "tool_result", read: readToolResult }],
  ["image", { kind: "media", read: readImage }],
  ["document", { kind: "media", read: readDocument }],
  ["server_tool_use", { kind: "other", read: readToolCall }],
  ["mcp_tool_use", { kind: "other", read: readToolCall }],
  ["mcp_tool_result", { kind: "other", read: readToolResult }],
  ["web_search_tool_result", { kind: "other", read: readSearchResult }],
  ["web_fetch_tool_result", { kind: "other", read: readFetchResult }],
]);
const unknownType: BlockType = { kind: "other", read: readUnknown };

function textAt(block: Fields, name: string, list: string, index: number): string {
  const text = block[name];
  return typeof text === "string" ? text : stringAt(block, name, `${list}[${index}]`);
}

// Citations sent back are not billed (Anthropic, Citations, 2026), nor is cache_control.
function readText(block: Fields, list: string, index: number): Piece {
  return { kind: "text", text: textAt(block, "text", list, index) };
}

function readThinking(block: Fields, list: string, index: number): Piece {
  const sealed = typeof block.signature === "string" ? block.signature : "";
  return { kind: "sealed", text: textAt(block, "thinking", list, index), sealed };
}

function readRedactedThinking(block: Fields, list: string, index: number): Piece {
  return { kind: "sealed", text: "", sealed: textAt(block, "data", list, index) };
}

// The id is not counted: it serves the API's pairing, and the wrapper's constant covers a short form of it.
function readToolCall(block: Fields, list: string, index: number): Piece {
  const name = textAt(block, "name", list, index);
  return { kind: "tool_call", name, args: block.input ?? {}, path: `${list}[${index}].input` };
}

function readToolResult(block: Fields, list: string, index: number, depth: number): Piece | Piece[] {
  const content = block.content ?? "";
  if (typeof content === "string") return { kind: "tool_result", text: content };
  const pieces: Piece[] = [{ kind: "tool_result", text: "" }];
  return addContent(pieces, content, `${list}[${index}].content`, depth);
}

// The API takes a document of blocks in a tool result and nothing deeper; without a limit a cycle would never end.
const maxDepth = 8;

function addContent(pieces: Piece[], content: unknown, path: string, depth: number): Piece[] {
  if (!Array.isArray(content)) return failAt(path, `must be a string or an array, not ${typeName(content)}`);
  if (depth > maxDepth) return failAt(path, `is nested more than ${maxDepth} levels deep`);
  for (let index = 0; index < content.length; index++) {
    const block = content[index];
    const found = blockTypeOf(block, path, index).read(block, path, index, depth + 1);
    if (Array.isArray(found)) for (const piece of found) pieces.push(piece);
    else pieces.push(found);
  }
  return pieces;
}

function readSearchResult(block: Fields, list: string, index: number): Piece | Piece[] {
  if (!Array.isArray(block.content)) return readUnknown(block, list, index);
  const results = block.content.flatMap((result: unknown, at): Piece[] => {
    const path = `${list}[${index}].content[${at}]`;
    const { encrypted_content: sealed, ...rest } = fieldsAt(result, path);
    const shown: Piece = { kind: "text", text: jsonAt(rest, path) };
    return typeof sealed === "string" ? [shown, { kind: "sealed", text: "", sealed }] : [shown];
  });
  return [{ kind: "tool_result", text: "" }, ...results];
}

function readFetchResult(block: Fields, list: string, index: number, depth: number): Piece | Piece[] {
  const { content: document, ...rest } = Object(block.content) as Fields;
  if (Object(document).type !== "document") return readUnknown(block, list, index);
  const path = `${list}[${index}].content`;
  const shown: Piece = { kind: "tool_result", text: jsonAt(rest, path) };
  return [shown, ...documentPieces(document as Fields, `${path}.content`, depth)];
}

function readImage(block: Fields, list: string, index: number): Piece {
  return { kind: "image", data: base64Of(fieldsAt(block.source, `${list}[${index}].source`)) };
}

function readDocument(block: Fields, list: string, index: number, depth: number): Piece[] {
  return documentPieces(block, `${list}[${index}]`, depth);
}

function documentPieces(document: Fields, path: string, depth: number): Piece[] {
  const labels = [document.title, document.context].filter((label) => typeof label === "string");
  const pieces: Piece[] = labels.map((text) => ({ kind: "text", text }));
  const source = fieldsAt(document.source, `${path}.source`);
  if (source.type === "text") pieces.push({ kind: "text", text: stringAt(source, "data", `${path}.source`) });
  else if (source.type !== "content") pieces.push({ kind: "document", data: base64Of(source) });
  else if (typeof source.content === "string") pieces.push({ kind: "text", text: source.content });
  else addContent(pieces, source.content, `${path}.source.content`, depth);
  return pieces;
}

function base64Of(source: Fields): string | undefined {
  return typeof source.data === "string" ? source.data : undefined;
}

// The API grows new block types; counting their JSON is too much rather than nothing.
function readUnknown(block: Fields, list: string, index: number): Piece {
  return { kind: "text", text: jsonAt(withoutCacheMarkers(block), `${list}[${index}]`) };
}
