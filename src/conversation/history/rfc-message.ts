/** The message shape of the context-engineering RFC, its check and its estimator (section 7.1). A malformed message
 *  throws with its JSON path before anything is estimated or changed. Unknown fields are kept. */
import { Buffer } from "../../core/bytes.ts";
import { failAt, fieldsAt, jsonAt, stringAt, typeName } from "../../core/messages/index.ts";
import type { Fields } from "../../core/text/index.ts";
import { plainPlaceholder } from "./placeholders.ts";

/** A message of the context-engineering RFC. It may have other fields; they are kept. */
export interface RfcMessage {
  readonly role: RfcRole;
  readonly content: string | readonly RfcPart[];
}

const rfcRoles = ["system", "user", "assistant", "tool"] as const;
export type RfcRole = (typeof rfcRoles)[number];

/** A call is `tool_use` in JSON and `tool_call` in the RFC's text. Its arguments are in `args` or `input`. */
export type RfcPart =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "tool_use" | "tool_call";
      readonly id?: string;
      readonly name: string;
      readonly args?: unknown;
      readonly input?: unknown;
    }
  | { readonly type: "tool_result"; readonly tool_use_id?: string; readonly content: string }
  | { readonly type: "image"; readonly source?: unknown };

/** Returns the messages after checking that they have the RFC's shape. Messages of OpenAI's chat, whose calls and
 *  results are fields of the message, become messages with parts. All others stay the same objects. */
export function readMessages(messages: unknown): readonly RfcMessage[] {
  if (!Array.isArray(messages)) return failAt("messages", `must be an array, not ${typeName(messages)}`);
  return messages.map((message, index) => readMessage(message, `messages[${index}]`));
}

function readMessage(value: unknown, path: string): RfcMessage {
  const message = fieldsAt(value, path);
  const { role } = message;
  if (!rfcRoles.includes(role as RfcRole)) {
    const given = typeof role === "string" ? `"${role}"` : typeName(role);
    failAt(`${path}.role`, `must be one of ${rfcRoles.join(", ")}, not ${given}`);
  }
  const { content, ...others } = withParts(message, path);
  if (typeof content === "string") return message as unknown as RfcMessage;
  if (!Array.isArray(content)) {
    failAt(`${path}.content`, `must be a string or an array, not ${typeName(content)}`);
  }
  for (let index = 0; index < content.length; index++) checkPart(content[index], `${path}.content[${index}]`);
  return (content === message.content ? message : { ...others, content }) as unknown as RfcMessage;
}

/** Moves the calls and the call's id of a chat message into its content (section 7.1). */
function withParts(message: Fields, path: string): Fields {
  const { tool_calls: calls, tool_call_id: callId, ...others } = message;
  if (message.role === "tool" && typeof callId === "string") {
    const content = typeof message.content === "string" ? message.content : jsonAt(message.content, `${path}.content`);
    return { ...others, content: [{ type: "tool_result", tool_use_id: callId, content }] };
  }
  if (message.role !== "assistant" || calls === undefined || calls === null) return message;
  if (!Array.isArray(calls)) failAt(`${path}.tool_calls`, `must be an array, not ${typeName(calls)}`);
  const { content } = message;
  const texts = typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : (content ?? []);
  const parts = calls.map((call, index) => callPart(call, `${path}.tool_calls[${index}]`));
  return { ...others, content: Array.isArray(texts) ? [...texts, ...parts] : parts };
}

function callPart(value: unknown, path: string): Fields {
  const { id, function: called, custom } = fieldsAt(value, path);
  const key = called === undefined ? "custom" : "function";
  const { name, arguments: args, input } = fieldsAt(called ?? custom, `${path}.${key}`);
  return { type: "tool_use", id, name, args: typeof args === "string" ? parsed(args) : (args ?? input) };
}

/** Models sometimes write arguments that are not JSON. They stay text. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A part of an unknown kind counts as its JSON and is never changed. */
function checkPart(value: unknown, path: string): void {
  const part = fieldsAt(value, path);
  switch (stringAt(part, "type", path)) {
    case "text":
      stringAt(part, "text", path);
      return;
    case "tool_use":
    case "tool_call":
      optionalString(part, "id", path);
      stringAt(part, "name", path);
      jsonAt(readArguments(part), `${path}.${part.args === undefined ? "input" : "args"}`);
      return;
    case "tool_result":
      optionalString(part, "tool_use_id", path);
      stringAt(part, "content", path);
      return;
    case "image":
      return;
    default:
      jsonAt(part, path);
  }
}

function optionalString(fields: Readonly<Record<string, unknown>>, key: string, path: string): string | undefined {
  return fields[key] === undefined || fields[key] === null ? undefined : stringAt(fields, key, path);
}

function readArguments(call: { readonly args?: unknown; readonly input?: unknown }): unknown {
  return call.args ?? call.input ?? {};
}

/**
 * Estimates the tokens of messages as the context-engineering RFC does: by bytes, plus 5 % of safety. The estimate is
 * deliberately high. Returns 0 for an empty list.
 *
 * @example
 * ```ts
 * import { estimateTokens } from "plimsoll/history";
 *
 * console.log(estimateTokens([{ role: "user", content: "Why is the build slow?" }]));
 * ```
 */
export function estimateTokens(messages: readonly object[]): number {
  let rawTokens = 0;
  for (const message of readMessages(messages)) rawTokens += countTokens(message).full;
  return finalEstimate(rawTokens);
}

/**
 * Estimates the tokens of tool definitions as the context-engineering RFC does, without the 5 % of safety. Returns 0
 * without tools.
 *
 * @example
 * ```ts
 * import { estimateToolOverhead } from "plimsoll/history";
 *
 * const tools = [{ name: "read_file", description: "Reads a file.", input_schema: { type: "object" } }];
 * console.log(estimateToolOverhead(tools));
 * ```
 */
export function estimateToolOverhead(tools?: readonly object[] | null): number {
  if (tools === undefined || tools === null) return 0;
  if (!Array.isArray(tools)) return failAt("tools", `must be an array, not ${typeName(tools)}`);
  let tokens = 0;
  for (let index = 0; index < tools.length; index++) tokens += toolTokens(tools[index], `tools[${index}]`);
  return tokens;
}

/** Adds the 5 % of safety to a sum of `countTokens`. The result is compared with the threshold. */
export function finalEstimate(rawTokens: number): number {
  return Math.ceil(rawTokens * 1.05);
}

/** Returns the tokens of a message before the 5 % of safety, as it is and after trimming. */
export function countTokens({ content }: RfcMessage): { full: number; trimmed: number } {
  if (typeof content === "string") {
    return { full: rfcCosts.message + textTokens(content), trimmed: rfcCosts.message + placeholderTokens };
  }
  let full = rfcCosts.message + rfcCosts.part * content.length;
  let trimmed = full;
  for (const part of content) {
    const tokens = partTokens(part);
    full += tokens;
    trimmed += trimmedPartTokens(part) ?? tokens;
  }
  return { full, trimmed };
}

/** The RFC's costs of what is not text. */
export const rfcCosts = {
  message: 8,
  part: 3,
  image: 2000,
  /** The bytes of the ids and type fields around a call or a result. */
  wrapperBytes: 30,
  ofBytes: (bytes: number): number => Math.ceil(bytes / 3.5),
} as const;

const placeholderTokens = textTokens(plainPlaceholder);
const placeholderResultTokens = rfcCosts.ofBytes(Buffer.byteLength(plainPlaceholder) + rfcCosts.wrapperBytes);

function partTokens(part: RfcPart): number {
  switch (part.type) {
    case "text":
      return textTokens(part.text);
    case "tool_use":
    case "tool_call":
      return rfcCosts.ofBytes(
        Buffer.byteLength(part.name) + Buffer.byteLength(jsonAt(readArguments(part), "args")) + rfcCosts.wrapperBytes,
      );
    case "tool_result":
      return rfcCosts.ofBytes(Buffer.byteLength(part.content) + rfcCosts.wrapperBytes);
    case "image":
      return rfcCosts.image;
    default:
      return textTokens(jsonAt(part, "part"));
  }
}

/** Returns undefined for a part that trimming does not change. */
function trimmedPartTokens(part: RfcPart): number | undefined {
  if (part.type === "text") return placeholderTokens;
  return part.type === "tool_result" ? placeholderResultTokens : undefined;
}

function toolTokens(tool: unknown, path: string): number {
  const outer = fieldsAt(tool, path);
  // OpenAI's chat wraps a definition. The others differ in the name of the schema.
  const fields = outer.function === undefined ? outer : fieldsAt(outer.function, `${path}.function`);
  const name = stringAt(fields, "name", path);
  const description = optionalString(fields, "description", path) ?? "";
  const schema = jsonAt(fields.input_schema ?? fields.inputSchema ?? fields.parameters, `${path}.input_schema`);
  const bytes = Buffer.byteLength(name) + Buffer.byteLength(description) + Buffer.byteLength(schema);
  // The factor covers the JSON around a definition: property names, wrappers and lists of required fields.
  return rfcCosts.ofBytes(Math.ceil(bytes * 1.2)) + 8;
}

function textTokens(text: string): number {
  return rfcCosts.ofBytes(Buffer.byteLength(text));
}
