/** The format of Gemini's `generateContent`: contents with parts. A part has no type: the name of its field says what it
 *  is. Calls and responses often have no id; then they are paired by name and order. */
import type { Fields } from "../../text/index.ts";
import { failAt, fieldsAt, jsonAt, roleAt, stringAt, typeName } from "../fields.ts";
import type { MessageFormat, PartKind, Piece } from "../message-format.ts";
import { anthropicFormat } from "./anthropic.ts";
import { hostedToolTokens } from "./openai-parts.ts";
import { createPart, editBlocks, nameIn, refuseReplace, trimmedInput, withField } from "./part.ts";

export const geminiFormat: MessageFormat = {
  name: "gemini",
  // Not published. The same as for Anthropic, which is rather too much than too little.
  overheads: anthropicFormat.overheads,
  claims({ role, parts, content }) {
    if (!Array.isArray(parts) || content !== undefined) return false;
    // The AI SDK has UI messages with parts, which have a type.
    return role === "model" || parts.some((part) => Object(part).type === undefined);
  },
  read(message, path) {
    // `function` is the role of responses in older clients.
    const role = message.role === undefined ? "user" : roleAt(message, ["user", "model", "function"], path);
    const { parts } = message;
    if (!Array.isArray(parts)) return failAt(`${path}.parts`, `must be an array, not ${typeName(parts)}`);
    // A call without an id is named by its function and its place among the calls of this function in the same
    // message. The response to it has the same place.
    const counts = new Map<string, number>();
    const nameCall = (name: string) => {
      const count = counts.get(name) ?? 0;
      counts.set(name, count + 1);
      return `${unnamedPrefix}${count} ${name}`;
    };
    const read = parts.map((value, index) => {
      const partPath = `${path}.parts[${index}]`;
      const part = fieldsAt(value, partPath);
      const kind = getKind(part);
      if (kind !== "tool_call" && kind !== "tool_result") {
        return createPart({ kind, pieces: [...readContent(part, partPath), ...sealedIn(part)], value: part });
      }
      const key = kind === "tool_call" ? "functionCall" : "functionResponse";
      const fields = fieldsAt(part[key], `${partPath}.${key}`);
      const name = stringAt(fields, "name", `${partPath}.${key}`);
      const pieces: Piece[] =
        kind === "tool_call"
          ? [{ kind, name, args: fields.args ?? {}, path: `${partPath}.${key}.args` }]
          : readResponse(fields, `${partPath}.${key}`);
      const callId = nameIn(fields.id) ?? nameCall(name);
      return createPart({ kind, pieces: [...pieces, ...sealedIn(part)], value: part, callId, toolName: name });
    });
    return { role: role === "model" ? "assistant" : "user", parts: read, separators: parts.length };
  },
  edit(message, edits) {
    if (edits.size === 0) return message;
    const parts = editBlocks(message.parts as readonly unknown[], edits, (part, replacement) => {
      const { text } = replacement;
      // Everything beside the content stays, the signature of a call included: Gemini 3 refuses calls without theirs.
      switch (getKind(part)) {
        case "text":
          return withField(part, "text", text);
        case "tool_call": {
          const call = part.functionCall as Fields;
          return withField(part, "functionCall", withField(call, "args", trimmedInput(call.args, replacement)));
        }
        case "tool_result": {
          const { parts: media, ...response } = part.functionResponse as Fields;
          const { output, ...others } = Object(response.response) as Fields;
          if (output === text && Object.keys(others).length === 0 && media === undefined) return part;
          return { ...part, functionResponse: { ...response, response: { output: text } } };
        }
        default:
          return refuseReplace(Object.keys(part)[0]);
      }
    });
    if (parts === message.parts) return message;
    return parts.length === 0 ? undefined : { ...message, parts };
  },
  detach: (message) => message,
  merge(first, second) {
    if ((first.role ?? "user") !== (second.role ?? "user")) return undefined;
    return { ...second, ...first, parts: [...(first.parts as unknown[]), ...(second.parts as unknown[])] };
  },
  userText: (text) => ({ role: "user", parts: [{ text }] }),
  assistantText: (text) => ({ role: "model", parts: [{ text }] }),
  toolResult({ callId, toolName = "unknown" }, text) {
    const id = isUnnamed(callId) ? {} : { id: callId };
    return { role: "user", parts: [{ functionResponse: { ...id, name: toolName, response: { output: text } } }] };
  },
  /** One entry of `tools` is a list of functions, or a tool that the provider runs. */
  readTool(tool, path) {
    const { functionDeclarations: functions } = tool;
    if (!Array.isArray(functions)) return { text: jsonAt(tool, path), fixedTokens: hostedToolTokens };
    for (const [index, each] of functions.entries()) {
      const functionPath = `${path}.functionDeclarations[${index}]`;
      stringAt(fieldsAt(each, functionPath), "name", functionPath);
    }
    return { text: jsonAt(functions, path), fixedTokens: 0 };
  },
  toolPromptTokens: () => 0,
};

const unnamedPrefix = "without id ";

/** Whether a provider gave a call this id. */
export function isGivenId(callId: string): boolean {
  return callId !== "" && !isUnnamed(callId);
}

/** Whether the id was made here, because the call has none. */
export function isUnnamed(callId: string): boolean {
  return callId.startsWith(unnamedPrefix);
}

function getKind(part: Fields): PartKind {
  if (part.functionCall !== undefined) return "tool_call";
  if (part.functionResponse !== undefined) return "tool_result";
  if (part.inlineData !== undefined || part.fileData !== undefined) return "media";
  if (part.text === undefined) return "other";
  return part.thought === true ? "thinking" : "text";
}

/** A signature is the encrypted reasoning before the part. */
function sealedIn({ thoughtSignature: sealed }: Fields): Piece[] {
  return typeof sealed === "string" ? [{ kind: "sealed", text: "", sealed }] : [];
}

function readContent(part: Fields, path: string): Piece[] {
  if (part.text !== undefined) return [{ kind: "text", text: stringAt(part, "text", path) }];
  if (part.inlineData !== undefined || part.fileData !== undefined) return [readMedia(part, path)];
  const { thoughtSignature: _sealed, ...rest } = part;
  return [{ kind: "text", text: jsonAt(rest, path) }];
}

function readMedia(part: Fields, path: string): Piece {
  const key = part.inlineData === undefined ? "fileData" : "inlineData";
  const { mimeType, data } = fieldsAt(part[key], `${path}.${key}`);
  const base64 = typeof data === "string" ? data : undefined;
  // There is no rule for sound and video, so they cost as much as an unknown image.
  const isDocument = /pdf|^text\//.test(String(mimeType));
  if (isDocument) return { kind: "document", data: base64 };
  return { kind: "image", data: String(mimeType).startsWith("image/") ? base64 : undefined };
}

/** A response is an object. A single text in it, such as `{ output }`, is read as that text. */
function readResponse({ response, parts }: Fields, path: string): Piece[] {
  const values = Object.values(Object(response));
  const [only] = values;
  const text = values.length === 1 && typeof only === "string" ? only : jsonAt(response ?? {}, `${path}.response`);
  const media = (Array.isArray(parts) ? parts : []).map((part, index): Piece => {
    const partPath = `${path}.parts[${index}]`;
    const fields = fieldsAt(part, partPath);
    const isMedia = fields.inlineData !== undefined || fields.fileData !== undefined;
    return isMedia ? readMedia(fields, partPath) : { kind: "text", text: jsonAt(fields, partPath) };
  });
  return [{ kind: "tool_result", text }, ...media];
}

/** Returns the text of a request's `systemInstruction`, which is a text or a content. */
export function geminiSystemText(instruction: unknown): string | undefined {
  if (typeof instruction === "string") return instruction;
  const { parts } = Object(instruction) as Fields;
  if (!Array.isArray(parts)) return undefined;
  return parts.map((part) => nameIn(Object(part).text) ?? "").join("\n");
}
