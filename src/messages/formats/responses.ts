/** OpenAI's responses shape: a list of items, each of which is one message here. */
import { type Fields, fieldsAt, roleAt, stringAt, textOrListAt } from "../fields.ts";
import type { MessageFormat, Part, PartEdits, Piece, Reading, Role } from "../message-format.ts";
import { createPart, nameIn, textPart } from "./create-part.ts";
import { editContent, refuseReplace } from "./edit-content.ts";
import { base64OfUrl, readOpenAiParts, replaceOpenAiPart, unknownPiece } from "./openai-parts.ts";
import { openAiOverheads, openAiToolPromptTokens, readResponsesTool } from "./openai-tools.ts";
import { answerItem, callIdOf, callItems, resultItems } from "./responses-calls.ts";

export const responsesFormat: MessageFormat = {
  name: "responses",
  overheads: openAiOverheads,
  claims({ type, role, content }) {
    if (typeof type === "string") return ownItems.test(type);
    return role !== "tool" && Array.isArray(content) && content.some(isOwnPart);
  },
  read(item, path) {
    return isMessage(item) ? readMessage(item, path) : readItem(item, path);
  },
  edit(item, edits) {
    return isMessage(item) ? editContent(item, edits, replaceOpenAiPart) : editItem(item, edits);
  },
  detach: withoutId,
  // The API takes any number of items of one role in a row.
  merge: () => undefined,
  assistantText: (text) => ({ type: "message", role: "assistant", content: text }),
  toolResult: answerItem,
  readTool: readResponsesTool,
  toolPromptTokens: () => openAiToolPromptTokens,
};

const ownItems = /^(?:message|reasoning|compaction|item_reference|program|mcp_\w+)$|_(?:call|output)$/;

function isOwnPart(part: unknown): boolean {
  const { type } = Object(part);
  return typeof type === "string" && /^(?:input_(?:text|image|file)|output_text)$/.test(type);
}

/** A message may leave its type out too; a reference has an id and nothing else. */
function isMessage({ type, id, role, content }: Fields): boolean {
  if (type === "message") return true;
  return (
    (type ?? undefined) === undefined && (id === undefined || role !== undefined || content !== undefined)
  );
}

const roles = ["system", "developer", "user", "assistant"] as const;

function readMessage(message: Fields, path: string): Reading {
  const named = roleAt(message, roles, path);
  const role = named === "developer" ? "system" : named;
  const content = textOrListAt(message.content, `${path}.content`);
  if (typeof content !== "string") {
    const parts = readOpenAiParts(content, `${path}.content`);
    return { role, parts: boundTexts(parts, message), separators: content.length };
  }
  return { role, parts: boundTexts([textPart(content)], message), separators: 0 };
}

// A message that the API gave an id is looked up there: "provided without its required 'reasoning' item".
function boundTexts(parts: readonly Part[], { id }: Fields): readonly Part[] {
  if (typeof id !== "string") return parts;
  return parts.map((part) => (part.kind === "text" ? { ...part, isBound: true } : part));
}

function withoutId(item: Fields): Fields {
  if (!isMessage(item) || typeof item.id !== "string") return item;
  const { id: _stored, ...rest } = item;
  return rest;
}

function readItem(item: Fields, path: string): Reading {
  // A reference may leave its type out.
  const type = (item.type ?? undefined) === undefined ? "item_reference" : stringAt(item, "type", path);
  const call = callItems.get(type);
  if (call !== undefined) return readCall(item, call.read(item, path));
  const result = resultItems.get(type);
  if (result !== undefined) {
    const pieces = result.read(item, path);
    return reading("tool", { kind: "tool_result", pieces, value: item, callId: callIdOf(item) });
  }
  return (readers.get(type) ?? readOther)(item, path);
}

function reading(role: Role, part: Part): Reading {
  return { role, parts: [createPart(part)], separators: 0 };
}

// A call that the API gave an id is looked up there: "provided without its required 'reasoning' item".
function readCall(item: Fields, { name, pieces }: { name: string; pieces: readonly Piece[] }): Reading {
  const isBound = typeof item.id === "string" ? true : undefined;
  const callId = callIdOf(item);
  return reading("assistant", { kind: "tool_call", pieces, value: item, callId, toolName: name, isBound });
}

type ItemReader = (item: Fields, path: string) => Reading;

const readers: ReadonlyMap<string, ItemReader> = new Map<string, ItemReader>([
  ["reasoning", readReasoning],
  ["image_generation_call", readImage],
  ["computer_call", readComputerCall],
  ["computer_call_output", readScreenshot],
]);

// The API wants a reasoning item together with the item that follows it: "provided without its required following item".
function readReasoning(item: Fields, path: string): Reading {
  const sealed = typeof item.encrypted_content === "string" ? item.encrypted_content : "";
  // Open models send their reasoning itself beside its summary.
  const field = Array.isArray(item.content) && item.content.length > 0 ? "content" : "summary";
  const texts = textOrListAt(item[field] ?? [], `${path}.${field}`);
  const text = typeof texts === "string" ? texts : readOpenAiTexts(texts, `${path}.${field}`);
  const pieces: Piece[] = [{ kind: "sealed", text, sealed }];
  return reading("assistant", { kind: "thinking", pieces, value: item, isBound: true });
}

function readOpenAiTexts(texts: readonly unknown[], path: string): string {
  return texts
    .map((each, index) => stringAt(fieldsAt(each, `${path}[${index}]`), "text", `${path}[${index}]`))
    .join("\n");
}

function readImage(item: Fields): Reading {
  const pieces: Piece[] = [{ kind: "image", data: base64OfUrl(item.result) }];
  return reading("assistant", { kind: "other", pieces, value: item, exchangeRole: "both" });
}

// The API takes a picture and nothing else as its result, so that neither of the two can become a text.
function readComputerCall(item: Fields, path: string): Reading {
  return reading("assistant", {
    kind: "other",
    pieces: [unknownPiece(item, path)],
    value: item,
    callId: callIdOf(item),
    toolName: "computer",
    exchangeRole: "call",
  });
}

function readScreenshot(item: Fields, path: string): Reading {
  const screenshot = fieldsAt(item.output, `${path}.output`);
  const pieces: Piece[] = [{ kind: "image", data: base64OfUrl(screenshot.image_url) }];
  return reading("tool", {
    kind: "other",
    pieces,
    value: item,
    callId: callIdOf(item),
    exchangeRole: "result",
  });
}

// Calls that the provider runs itself, items that stand for stored ones, and what the API grows.
function readOther(item: Fields, path: string): Reading {
  const { encrypted_content: sealed, ...rest } = item;
  const pieces = [unknownPiece(rest, path)];
  if (typeof sealed === "string") pieces.push({ kind: "sealed", text: "", sealed });
  const role: Role = String(item.type).endsWith("_output") ? "tool" : "assistant";
  const exchangeRole = hostedCalls.has(item.type) ? "both" : undefined;
  const toolName = exchangeRole === undefined ? undefined : nameIn(item.name);
  return reading(role, { kind: "other", pieces, value: item, toolName, exchangeRole });
}

/** Each holds what it brought. Items that list tools are none of these: what comes later needs them. */
const hostedCalls: ReadonlySet<unknown> = new Set([
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "mcp_call",
]);

function editItem(item: Fields, edits: PartEdits): Fields | undefined {
  const edit = edits.get(0);
  if (edit === undefined) return item;
  if (edit.action === "drop") return undefined;
  const known = callItems.get(String(item.type)) ?? resultItems.get(String(item.type));
  return known === undefined ? refuseReplace(item.type) : known.replace(item, edit.text);
}
