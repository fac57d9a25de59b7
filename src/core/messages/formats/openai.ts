/** The format of OpenAI's chat completions: calls beside the content, arguments as JSON text, and one message for each
 *  result. */

import type { Fields } from "../../text/index.ts";
import { failAt, fieldsAt, jsonAt, roleAt, stringAt, textOrListAt, typeName } from "../fields.ts";
import type { MessageFormat, Part, PartEdits, PartReplacement, Reading, Role } from "../message-format.ts";
import {
  openAiOverheads,
  openAiToolPromptTokens,
  readDefinition,
  readOpenAiParts,
  readOpenAiResult,
  replaceOpenAiPart,
  trimmedArguments,
} from "./openai-parts.ts";
import { createPart, editBlocks, joinContent, nameIn, refuseReplace, textPart, withField } from "./part.ts";

export const openAiFormat: MessageFormat = {
  name: "openai",
  overheads: openAiOverheads,
  claims(message) {
    if (message.type !== undefined) return false;
    const { role, content } = message;
    if (role === "tool") return message.tool_call_id !== undefined;
    if (role === "function") return true;
    const hasOwnPart =
      Array.isArray(content) &&
      content.some((part) => {
        const { type, file } = Object(part) as Fields;
        return ownTypes.has(type) || (type === "file" && file !== undefined);
      });
    if (hasOwnPart || role !== "assistant") return hasOwnPart;
    return content === null || partFields.some((field) => field !== "content" && field in message);
  },
  read(message, path) {
    const role = roleAt(message, ["system", "developer", "user", "assistant", "tool", "function"], path);
    if (role !== "tool" && role !== "function") {
      return readFields(message, role === "developer" ? "system" : role, path);
    }
    const content = textOrListAt(message.content ?? "", `${path}.content`);
    const part = createPart({
      kind: role === "tool" ? "tool_result" : "other",
      pieces: readOpenAiResult(content, `${path}.content`),
      value: message,
      callId: role === "tool" ? nameIn(message.tool_call_id) : undefined,
      toolName: role === "tool" ? nameIn(message.name) : undefined,
    });
    return { role: "tool", parts: [part], separators: 0 };
  },
  edit(message, edits) {
    if (edits.size === 0) return message;
    if (!isResult(message)) return editFields(message, edits);
    const edit = edits.get(0);
    if (edit === undefined) return message;
    if (edit.action === "drop") return undefined;
    return message.role === "tool" ? withField(message, "content", edit.text) : refuseReplace("function");
  },
  detach: (message) => message,
  merge(first, second) {
    // A tool message answers one call.
    if (first.role !== second.role || isResult(first)) return undefined;
    const messages = [first, second];
    // A message has at most one of each, so two messages stay separate if one of them has such a field.
    const single = ["name", ...plainThinking, ...signedThinking, "refusal", "audio", "function_call"];
    if (messages.some((message) => single.some((field) => countParts(message, field) > 0))) return undefined;
    const texts = messages.filter((message) => countParts(message, "content") > 0);
    // The second text would come before the first message's calls.
    if (texts.includes(second) && countParts(first, "tool_calls") > 0) return undefined;
    const content = texts.length === 2 ? joinContent(first, second).content : (texts[0] ?? first).content;
    const calls = messages.flatMap((message) => message.tool_calls ?? []);
    const merged = { ...second, ...first, content };
    return calls.length === 0 ? merged : { ...merged, tool_calls: calls };
  },
  userText: (text) => ({ role: "user", content: [{ type: "text", text }] }),
  assistantText: (text) => ({ role: "assistant", content: text }),
  toolResult: ({ callId }, text) => ({ role: "tool", tool_call_id: callId, content: text }),
  /** A definition is nested under `function` or `custom`. */
  readTool(tool, path) {
    const key = tool.type === "custom" ? "custom" : "function";
    return readDefinition(fieldsAt(tool[key], `${path}.${key}`), `${path}.${key}`);
  },
  toolPromptTokens: () => openAiToolPromptTokens,
};

/** Thinking as text: DeepSeek, Kimi and other servers with this format; `reasoning` is OpenRouter's. */
const plainThinking: readonly string[] = ["reasoning_content", "reasoning"];
/** Lists of signed thinking: LiteLLM's (docs.litellm.ai/docs/reasoning_content, 2026-10) and OpenRouter's. Both pass the
 *  blocks on to Claude models, which may bind them to the messages before. */
const signedThinking: readonly string[] = ["thinking_blocks", "reasoning_details"];
// In reading order.
const partFields = [...plainThinking, ...signedThinking, "content", "refusal", "audio", "function_call", "tool_calls"];

const ownTypes: ReadonlySet<unknown> = new Set(["image_url", "input_audio", "refusal"]);

function isResult({ role }: Fields): boolean {
  return role === "tool" || role === "function";
}

function readFields(message: Fields, role: Role, path: string): Reading {
  const parts: Part[] = [];
  for (const field of partFields) {
    if (countParts(message, field) > 0) parts.push(...readField(message, field, `${path}.${field}`));
  }
  if (role !== "assistant") textOrListAt(message.content, `${path}.content`);
  const { content, name } = message;
  const [first] = parts;
  // A speaker's name costs one token more (cookbook). It is not a separate part, because it cannot be removed alone.
  if (typeof name === "string" && first !== undefined) {
    parts[0] = { ...first, pieces: [{ kind: "text", text: `${name}\n` }, ...first.pieces] };
  }
  return { role, parts, separators: Array.isArray(content) ? content.length : 0 };
}

/** Counts the parts in a field. */
function countParts(message: Fields, field: string): number {
  const value = message[field];
  if (value === undefined || value === null) return 0;
  return Array.isArray(value) ? value.length : 1;
}

function readField(message: Fields, field: string, path: string): Part[] {
  const value = message[field];
  if (field === "content") {
    const content = textOrListAt(value, path);
    if (typeof content !== "string") return readOpenAiParts(content, path);
    return [textPart(content)];
  }
  if (field === "tool_calls") {
    if (!Array.isArray(value)) return failAt(path, `must be an array, not ${typeName(value)}`);
    return value.map((call: unknown, index) => readCall(call, `${path}[${index}]`));
  }
  if (signedThinking.includes(field)) {
    if (!Array.isArray(value)) return failAt(path, `must be an array, not ${typeName(value)}`);
    return value.map((block: unknown, index) => readSignedThinking(fieldsAt(block, `${path}[${index}]`)));
  }
  const text = typeof value === "string" ? value : jsonAt(value, path);
  if (!plainThinking.includes(field)) return [createPart({ kind: "other", pieces: [{ kind: "text", text }], value })];
  // Beside signed thinking it is a copy for people, which no model reads.
  const isCopy = signedThinking.some((name) => countParts(message, name) > 0);
  return [createPart({ kind: "thinking", pieces: isCopy ? [] : [{ kind: "text", text }], value })];
}

function readSignedThinking(block: Fields): Part {
  const [text = ""] = [block.thinking, block.text, block.summary].filter((each) => typeof each === "string");
  const [sealed = ""] = [block.signature, block.data].filter((each) => typeof each === "string");
  return createPart({ kind: "thinking", pieces: [{ kind: "sealed", text, sealed }], value: block });
}

function readCall(value: unknown, path: string): Part {
  const call = fieldsAt(value, path);
  const [key, field] = callKeys(call);
  const called = fieldsAt(call[key], `${path}.${key}`);
  const name = stringAt(called, "name", `${path}.${key}`);
  const args = stringAt(called, field, `${path}.${key}`);
  return createPart({
    kind: "tool_call",
    pieces: [{ kind: "tool_call", name, args, path: `${path}.${key}.${field}` }],
    value: call,
    callId: nameIn(call.id),
    toolName: name,
  });
}

function callKeys(call: Fields): readonly [string, string] {
  return call.type === "custom" ? ["custom", "input"] : ["function", "arguments"];
}

function editFields(message: Fields, edits: PartEdits): Fields | undefined {
  let edited = message;
  let left = 0;
  let at = 0;
  for (const field of partFields) {
    const count = countParts(message, field);
    const value = count === 0 ? message[field] : editField(message, field, selectEdits(edits, at, count));
    left += Array.isArray(value) ? value.length : Number(count > 0 && value !== undefined);
    if (value !== message[field]) edited = withOrWithout(edited, field, value);
    at += count;
  }
  return edited !== message && left === 0 ? undefined : edited;
}

/** Returns the field after its edits: undefined or an empty list if nothing is left. */
function editField(message: Fields, field: string, edits: PartEdits): unknown {
  const value = message[field];
  if (Array.isArray(value)) return editBlocks(value, edits, replaceIn(field));
  const edit = edits.get(0);
  if (edit === undefined) return value;
  if (edit.action === "drop") return undefined;
  return field === "content" ? edit.text : refuseReplace(field);
}

function replaceIn(field: string): Parameters<typeof editBlocks>[2] {
  if (signedThinking.includes(field)) return () => refuseReplace(field);
  return field === "tool_calls" ? replaceCall : replaceOpenAiPart;
}

function replaceCall(call: Fields, replacement: PartReplacement): Fields {
  const [key, field] = callKeys(call);
  return withField(call, key, withField(call[key] as Fields, field, trimmedArguments(replacement)));
}

/** Returns the edits of `count` parts from the part `at` on, numbered from 0. */
function selectEdits(edits: PartEdits, at: number, count: number): PartEdits {
  const own = new Map([...edits].map(([index, edit]) => [index - at, edit]));
  for (const index of own.keys()) if (index < 0 || index >= count) own.delete(index);
  return own;
}

// The API refuses an empty list of calls, and requires `content` to be null if there is none.
function withOrWithout(message: Fields, field: string, value: unknown): Fields {
  const isEmpty = value === undefined || (Array.isArray(value) && value.length === 0);
  if (!isEmpty) return { ...message, [field]: value };
  if (field === "content") return { ...message, content: null };
  const { [field]: _gone, ...rest } = message;
  return rest;
}
