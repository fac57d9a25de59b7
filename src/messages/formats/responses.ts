/** OpenAI's responses shape: a list of items, each of which is one message here. */
import { type Fields, fieldsAt, roleAt, stringAt, textOrListAt } from "../fields.ts";
import type { MessageFormat, Part, PartEdits, Piece, Reading, Role } from "../message-format.ts";
import { editContent, refuseReplace, withField } from "./edit-content.ts";
import {
  base64OfUrl,
  openAiPart,
  readOpenAiParts,
  readOpenAiResult,
  replaceOpenAiPart,
  trimmedArguments,
  unknownPiece,
} from "./openai-parts.ts";
import { openAiOverheads, openAiToolPromptTokens, readResponsesTool } from "./openai-tools.ts";

export const responsesFormat: MessageFormat = {
  name: "responses",
  overheads: openAiOverheads,
  claims({ type, role, content }) {
    if (typeof type === "string") return ownItems.test(type);
    return role !== "tool" && Array.isArray(content) && content.some(isOwnPart);
  },
  read(item, path) {
    if (isMessage(item)) return readMessage(item, path);
    // A reference may leave its type out.
    const type = (item.type ?? undefined) === undefined ? "item_reference" : stringAt(item, "type", path);
    return (readers.get(type) ?? readOther)(item, path);
  },
  edit(item, edits) {
    return isMessage(item) ? editContent(item, edits, replaceOpenAiPart) : editItem(item, edits);
  },
  // The API takes any number of items of one role in a row.
  merge: () => undefined,
  assistantText: (text) => ({ type: "message", role: "assistant", content: text }),
  toolResult: ({ callId }, text) => ({ type: "function_call_output", call_id: callId, output: text }),
  readTool: readResponsesTool,
  toolPromptTokens: () => openAiToolPromptTokens,
};

const ownItems = /^(?:message|reasoning|compaction|item_reference|program|mcp_\w+)$|_(?:call|output)$/;

function isOwnPart(part: unknown): boolean {
  return /^(?:input_(?:text|image|file)|output_text)$/.test(String(Object(part).type));
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
    return { role, parts: readOpenAiParts(content, `${path}.content`), separators: content.length };
  }
  return { role, parts: [openAiPart("text", content, [{ kind: "text", text: content }])], separators: 0 };
}

type ItemReader = (item: Fields, path: string) => Reading;

const readers: ReadonlyMap<string, ItemReader> = new Map<string, ItemReader>([
  ["function_call", (item, path) => readCall(item, "arguments", path)],
  ["custom_tool_call", (item, path) => readCall(item, "input", path)],
  ["function_call_output", readResult],
  ["custom_tool_call_output", readResult],
  ["reasoning", readReasoning],
  ["image_generation_call", (item) => other(item, { kind: "image", data: base64OfUrl(item.result) })],
  ["computer_call_output", readScreenshot],
]);

function readCall(item: Fields, field: string, path: string): Reading {
  const name = stringAt(item, "name", path);
  const args = stringAt(item, field, path);
  const piece: Piece = { kind: "tool_call", name, args, path: `${path}.${field}` };
  const part: Part = { ...openAiPart("tool_call", item, [piece]), callId: callIdOf(item), toolName: name };
  return { role: "assistant", parts: [part], separators: 0 };
}

function readResult(item: Fields, path: string): Reading {
  const output = textOrListAt(item.output, `${path}.output`);
  const part = openAiPart("tool_result", item, readOpenAiResult(output, `${path}.output`));
  return { role: "tool", parts: [{ ...part, callId: callIdOf(item) }], separators: 0 };
}

function callIdOf(item: Fields): string | undefined {
  return typeof item.call_id === "string" ? item.call_id : undefined;
}

// The API wants a reasoning item together with the item that follows it: "provided without its required following item".
function readReasoning(item: Fields, path: string): Reading {
  const sealed = typeof item.encrypted_content === "string" ? item.encrypted_content : "";
  // Open models send their reasoning itself beside its summary.
  const field = Array.isArray(item.content) && item.content.length > 0 ? "content" : "summary";
  const texts = textOrListAt(item[field] ?? [], `${path}.${field}`);
  const text = typeof texts === "string" ? texts : readOpenAiTexts(texts, `${path}.${field}`);
  const part: Part = { ...openAiPart("thinking", item, [{ kind: "sealed", text, sealed }]), isBound: true };
  return { role: "assistant", parts: [part], separators: 0 };
}

function readOpenAiTexts(texts: readonly unknown[], path: string): string {
  return texts
    .map((each, index) => stringAt(fieldsAt(each, `${path}[${index}]`), "text", `${path}[${index}]`))
    .join("\n");
}

function readScreenshot(item: Fields, path: string): Reading {
  const screenshot = fieldsAt(item.output, `${path}.output`);
  return other(item, { kind: "image", data: base64OfUrl(screenshot.image_url) });
}

// Calls that the provider runs itself, items that stand for stored ones, and what the API grows.
function readOther(item: Fields, path: string): Reading {
  const { encrypted_content: sealed, ...rest } = item;
  const shown = unknownPiece(rest, path);
  return typeof sealed === "string"
    ? other(item, shown, { kind: "sealed", text: "", sealed })
    : other(item, shown);
}

function other(item: Fields, ...pieces: Piece[]): Reading {
  const role: Role = String(item.type).endsWith("_output") ? "tool" : "assistant";
  return { role, parts: [openAiPart("other", item, pieces)], separators: 0 };
}

function editItem(item: Fields, edits: PartEdits): Fields | undefined {
  const edit = edits.get(0);
  if (edit === undefined) return item;
  if (edit.action === "drop") return undefined;
  switch (item.type) {
    case "function_call":
      return withField(item, "arguments", trimmedArguments(edit.text));
    case "custom_tool_call":
      return withField(item, "input", trimmedArguments(edit.text));
    case "function_call_output":
    case "custom_tool_call_output":
      return withField(item, "output", edit.text);
    default:
      return refuseReplace(item.type);
  }
}
