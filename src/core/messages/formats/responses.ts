/** The format of OpenAI's responses API: a list of items, each of which is one message here. */

import type { Fields } from "../../text/index.ts";
import { failAt, fieldsAt, jsonAt, roleAt, stringAt, textOrListAt, typeName } from "../fields.ts";
import type { MessageFormat, Part, PartReplacement, Piece, Reading, Role } from "../message-format.ts";
import {
  base64OfUrl,
  hostedToolTokens,
  openAiOverheads,
  openAiToolPromptTokens,
  readDefinition,
  readOpenAiParts,
  readOpenAiResult,
  replaceOpenAiPart,
  trimmedArguments,
} from "./openai-parts.ts";

import { createPart, editContent, nameIn, refuseReplace, textPart, unknownPiece, withField } from "./part.ts";

export const responsesFormat: MessageFormat = {
  name: "responses",
  overheads: openAiOverheads,
  claims({ type, role, content }) {
    if (typeof type === "string")
      return /^(?:message|reasoning|compaction|item_reference|program|mcp_\w+)$|_(?:call|output)$/.test(type);
    if (role === "tool" || !Array.isArray(content)) return false;
    return content.some((part) => {
      const { type: partType } = Object(part) as Fields;
      return typeof partType === "string" && /^(?:input_(?:text|image|file)|output_text)$/.test(partType);
    });
  },
  read(item, path) {
    if (!isMessage(item)) return readItem(item, path);
    const given = roleAt(item, ["system", "developer", "user", "assistant"], path);
    const role = given === "developer" ? "system" : given;
    const content = textOrListAt(item.content, `${path}.content`);
    const isText = typeof content === "string";
    const parts = isText ? [textPart(content)] : readOpenAiParts(content, `${path}.content`);
    const separators = isText ? 0 : content.length;
    if (typeof item.id !== "string") return { role, parts, separators };
    // The API looks up a message with an id: "provided without its required 'reasoning' item".
    const bound = parts.map((part) => (part.kind === "text" ? { ...part, isBound: true } : part));
    return { role, parts: bound, separators };
  },
  edit(item, edits) {
    if (isMessage(item)) return editContent(item, edits, replaceOpenAiPart);
    const edit = edits.get(0);
    if (edit === undefined) return item;
    if (edit.action === "drop") return undefined;
    const known = callItems.get(String(item.type)) ?? resultItems.get(String(item.type));
    return known === undefined ? refuseReplace(item.type) : known.replace(item, edit);
  },
  detach(item) {
    if (!isMessage(item) || typeof item.id !== "string") return item;
    const { id: _stored, ...rest } = item;
    return rest;
  },
  // The API accepts any number of items of the same role in a row.
  merge: () => undefined,
  userText: (text) => ({ role: "user", content: text }),
  assistantText: (text) => ({ type: "message", role: "assistant", content: text }),
  toolResult({ callId, type }, text) {
    const own = `${String(type)}_output`;
    const known = resultItems.has(own) ? own : "function_call_output";
    return { type: known, ...resultItems.get(known)?.make(callId, text) };
  },
  /** A tool is a flat definition, or one that the provider holds. */
  readTool(tool, path) {
    if (tool.type === "function" || tool.type === "custom") return readDefinition(tool, path);
    return { text: jsonAt(tool, path), fixedTokens: hostedToolTokens };
  },
  toolPromptTokens: () => openAiToolPromptTokens,
};

/** A message may leave its type out. A reference has an id and nothing else. */
function isMessage({ type, id, role, content }: Fields): boolean {
  if (type === "message") return true;
  return (type ?? undefined) === undefined && (id === undefined || role !== undefined || content !== undefined);
}

function readItem(item: Fields, path: string): Reading {
  // A reference may leave its type out.
  const type = (item.type ?? undefined) === undefined ? "item_reference" : stringAt(item, "type", path);
  const call = callItems.get(type);
  if (call !== undefined) {
    const { name, pieces } = call.read(item, path);
    // The API looks up a call with an id: "provided without its required 'reasoning' item".
    const isBound = typeof item.id === "string" ? true : undefined;
    const callId = getCallId(item);
    return makeReading("assistant", { kind: "tool_call", pieces, value: item, callId, toolName: name, isBound });
  }
  const result = resultItems.get(type);
  if (result !== undefined) {
    const pieces = result.read(item, path);
    return makeReading("tool", { kind: "tool_result", pieces, value: item, callId: getCallId(item) });
  }
  return (readers.get(type) ?? readOther)(item, path);
}

function makeReading(role: Role, part: Part): Reading {
  return { role, parts: [createPart(part)], separators: 0 };
}

type ItemReader = (item: Fields, path: string) => Reading;

const readers: ReadonlyMap<string, ItemReader> = new Map<string, ItemReader>([
  ["reasoning", readReasoning],
  [
    "image_generation_call",
    (item) => {
      const pieces: Piece[] = [{ kind: "image", data: base64OfUrl(item.result) }];
      return makeReading("assistant", { kind: "other", pieces, value: item, exchangeRole: "both" });
    },
  ],
  [
    // The API accepts only an image as its result, so neither the call nor the result can become a text.
    "computer_call",
    (item, path) =>
      makeReading("assistant", {
        kind: "other",
        pieces: [unknownPiece(item, path)],
        value: item,
        callId: getCallId(item),
        toolName: "computer",
        exchangeRole: "call",
      }),
  ],
  [
    "computer_call_output",
    (item, path) => {
      const screenshot = fieldsAt(item.output, `${path}.output`);
      const pieces: Piece[] = [{ kind: "image", data: base64OfUrl(screenshot.image_url) }];
      return makeReading("tool", {
        kind: "other",
        pieces,
        value: item,
        callId: getCallId(item),
        exchangeRole: "result",
      });
    },
  ],
]);

// The API requires a reasoning item together with the item that follows it: "provided without its required following
// item".
function readReasoning(item: Fields, path: string): Reading {
  const sealed = typeof item.encrypted_content === "string" ? item.encrypted_content : "";
  // Open models send their reasoning itself beside its summary.
  const field = Array.isArray(item.content) && item.content.length > 0 ? "content" : "summary";
  const texts = textOrListAt(item[field] ?? [], `${path}.${field}`);
  const list =
    typeof texts === "string"
      ? [texts]
      : texts.map((each, index) => {
          const textPath = `${path}.${field}[${index}]`;
          return stringAt(fieldsAt(each, textPath), "text", textPath);
        });
  const pieces: Piece[] = [{ kind: "sealed", text: list.join("\n"), sealed }];
  return makeReading("assistant", { kind: "thinking", pieces, value: item, isBound: true });
}

// Calls that the provider runs itself, references to stored items, and unknown types.
function readOther(item: Fields, path: string): Reading {
  const { encrypted_content: sealed, ...rest } = item;
  const pieces = [unknownPiece(rest, path)];
  if (typeof sealed === "string") pieces.push({ kind: "sealed", text: "", sealed });
  const role: Role = String(item.type).endsWith("_output") ? "tool" : "assistant";
  const exchangeRole = hostedCalls.has(item.type) ? "both" : undefined;
  const toolName = exchangeRole === undefined ? undefined : nameIn(item.name);
  return makeReading(role, { kind: "other", pieces, value: item, toolName, exchangeRole });
}

/** Each of these includes its result. Items that list tools are not among them, because later items need the list. */
const hostedCalls: ReadonlySet<unknown> = new Set([
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "mcp_call",
]);

/** Calls of tools that the client runs. Each type has its text in a different place (the SDK's types, 6.49,
 *  2026-11). */
interface CallItem {
  read(item: Fields, path: string): { readonly name: string; readonly pieces: readonly Piece[] };
  /** Returns the same item if it already has that text. */
  replace(item: Fields, replacement: PartReplacement): Fields;
}

interface ResultItem {
  read(item: Fields, path: string): readonly Piece[];
  replace(item: Fields, replacement: PartReplacement): Fields;
  /** Returns the fields other than the type. */
  make(callId: string, text: string): Fields;
}

const callItems: ReadonlyMap<string, CallItem> = new Map([
  ["function_call", namedCall("arguments")],
  ["custom_tool_call", namedCall("input")],
  ["shell_call", builtInCall({ name: "shell", holder: "action", field: () => "commands" })],
  ["local_shell_call", builtInCall({ name: "local_shell", holder: "action", field: () => "command" })],
  [
    "apply_patch_call",
    builtInCall({
      name: "apply_patch",
      holder: "operation",
      field: (operation) => (operation.diff === undefined ? "path" : "diff"),
    }),
  ],
]);

const output: ResultItem = {
  read(item, path) {
    // A patch that succeeded may have no output.
    const given = item.output ?? (item.type === "apply_patch_call_output" ? "" : undefined);
    return readOpenAiResult(textOrListAt(given, `${path}.output`), `${path}.output`);
  },
  replace: (item, { text }) => withField(item, "output", text),
  make: (callId, text) => ({ call_id: callId, output: text }),
};

const resultItems: ReadonlyMap<string, ResultItem> = new Map([
  ["function_call_output", output],
  ["custom_tool_call_output", output],
  ["local_shell_call_output", { ...output, make: (id, text) => ({ id, output: text }) }],
  [
    "apply_patch_call_output",
    { ...output, make: (callId, text) => ({ call_id: callId, status: "failed", output: text }) },
  ],
  [
    "shell_call_output",
    {
      read(item, path) {
        const chunks = textOrListAt(item.output, `${path}.output`);
        if (typeof chunks === "string") return [{ kind: "tool_result", text: chunks }];
        if (chunks.length === 0) return [{ kind: "tool_result", text: "" }];
        return chunks.map((each, index) => {
          const chunkPath = `${path}.output[${index}]`;
          const fields = fieldsAt(each, chunkPath);
          return {
            kind: "tool_result",
            text: stringAt(fields, "stdout", chunkPath) + stringAt(fields, "stderr", chunkPath),
          };
        });
      },
      replace(item, { text }) {
        const chunks = Array.isArray(item.output) ? item.output : [];
        const last = chunks.at(-1) as Fields | undefined;
        if (chunks.length === 1 && last?.stdout === text && last.stderr === "") return item;
        const { outcome = { type: "exit", exit_code: 0 }, ...rest } = last ?? {};
        return { ...item, output: [{ ...rest, stdout: text, stderr: "", outcome }] };
      },
      make: (callId, text) => ({
        call_id: callId,
        output: [{ stdout: text, stderr: "", outcome: { type: "timeout" } }],
      }),
    },
  ],
]);

/** The output of a local shell has the id of its call in `id`. */
function getCallId({ type, call_id: callId, id }: Fields): string | undefined {
  return nameIn(callId) ?? (type === "local_shell_call_output" ? nameIn(id) : undefined);
}

function namedCall(field: string): CallItem {
  return {
    read(item, path) {
      const name = stringAt(item, "name", path);
      const args = stringAt(item, field, path);
      return { name, pieces: [{ kind: "tool_call", name, args, path: `${path}.${field}` }] };
    },
    replace: (item, replacement) => withField(item, field, trimmedArguments(replacement)),
  };
}

// What is beside the commands or the diff stays if these are trimmed.
function builtInCall({
  name,
  holder,
  field,
}: {
  readonly name: string;
  readonly holder: string;
  field(holder: Fields): string;
}): CallItem {
  return {
    read(item, path) {
      const held = fieldsAt(item[holder], `${path}.${holder}`);
      const key = field(held);
      const { [key]: value, type: _type, ...rest } = held;
      const keyPath = `${path}.${holder}.${key}`;
      const texts = textOrListAt(value, keyPath);
      const lines = typeof texts === "string" ? [texts] : texts;
      const odd = lines.findIndex((line) => typeof line !== "string");
      if (odd >= 0) failAt(`${keyPath}[${odd}]`, `must be a string, not ${typeName(lines[odd])}`);
      const args = lines.join("\n");
      const call: Piece = { kind: "tool_call", name, args, path: keyPath };
      const beside = jsonAt(rest, `${path}.${holder}`);
      return { name, pieces: beside === "{}" ? [call] : [call, { kind: "text", text: beside }] };
    },
    replace(item, replacement) {
      const held = item[holder] as Fields;
      const key = field(held);
      const trimmed = trimmedArguments({ ...replacement, input: undefined });
      const value = held[key];
      if (!Array.isArray(value)) return withField(item, holder, withField(held, key, trimmed));
      const isTrimmed = value.length === 1 && value[0] === trimmed;
      return isTrimmed ? item : { ...item, [holder]: { ...held, [key]: [trimmed] } };
    },
  };
}
