/** The format of the AI SDK (versions 6 and 7): `ModelMessage`, and the prompt of a middleware, which differs only in
 *  its files. */

import { Buffer } from "../../bytes.ts";
import type { Fields } from "../../text/index.ts";
import { familyOfModel } from "../../tokens/index.ts";
import { fieldsAt, jsonAt, roleAt, stringAt, textOrListAt } from "../fields.ts";
import type { MessageFormat, Part, PartKind, PartReplacement, Piece, Role } from "../message-format.ts";
import { anthropicFormat } from "./anthropic.ts";
import { base64OfUrl, hostedToolTokens, openAiToolPromptTokens } from "./openai-parts.ts";

import { editContent, joinContent, nameIn, refuseReplace, textPart, trimmedInput } from "./part.ts";

export const aiSdkFormat: MessageFormat = {
  name: "ai-sdk",
  // The provider is not known, so take the more expensive of Anthropic and OpenAI.
  overheads: anthropicFormat.overheads,
  claims({ providerOptions, content }) {
    if (providerOptions !== undefined) return true;
    if (!Array.isArray(content)) return false;
    return content.some((part) => {
      const { type, image, mediaType, providerOptions: ofPart } = Object(part) as Fields;
      if (ofPart !== undefined) return true;
      if (type === "image") return image !== undefined;
      if (type === "file") return mediaType !== undefined;
      return typeof type === "string" && /^(?:tool-(?:call|result|approval-\w+)|reasoning(?:-file)?)$/.test(type);
    });
  },
  read(message, path) {
    const role = roleAt(message, ["system", "user", "assistant", "tool"], path);
    const content = textOrListAt(message.content, `${path}.content`);
    if (typeof content !== "string") {
      return { role, parts: readParts(content, role, `${path}.content`), separators: content.length };
    }
    return { role, parts: [textPart(content)], separators: 0 };
  },
  edit: (message, edits) =>
    editContent(message, edits, (part, replacement) => replacePart(part, replacement, message.role)),
  detach(message) {
    const { content } = message;
    if (!Array.isArray(content)) return message;
    const detached = content.map((part) => (getKind(part, message.role) === "text" ? withoutItemId(part) : part));
    return detached.every((part, index) => part === content[index]) ? message : { ...message, content: detached };
  },
  merge(first, second) {
    // The SDK requires a system message to be one string. Provider options must apply to both messages.
    if (first.role !== second.role || first.role === "system") return undefined;
    return first.providerOptions === second.providerOptions ? joinContent(first, second) : undefined;
  },
  userText: (text) => ({ role: "user", content: [{ type: "text", text }] }),
  assistantText: (text) => ({ role: "assistant", content: [{ type: "text", text }] }),
  toolResult: ({ callId, toolName = "unknown" }, text) => ({
    role: "tool",
    content: [{ type: "tool-result", toolCallId: callId, toolName, output: { type: "text", value: text } }],
  }),
  readTool(tool, path) {
    if (tool.type === "provider") return { text: jsonAt(tool, path), fixedTokens: hostedToolTokens };
    const { description, inputSchema, inputExamples } = tool;
    const name = stringAt(tool, "name", path);
    return { text: jsonAt({ name, description, inputSchema, inputExamples }, path), fixedTokens: 0 };
  },
  toolPromptTokens(model, toolChoice) {
    const isOpenAi = model !== undefined && ["o200k", "cl100k"].includes(familyOfModel(model) ?? "");
    return isOpenAi ? openAiToolPromptTokens : anthropicFormat.toolPromptTokens(model, toolChoice);
  },
};

function readParts(content: readonly unknown[], role: Role, path: string): Part[] {
  const parts: Part[] = [];
  for (let index = 0; index < content.length; index++) {
    const partPath = `${path}[${index}]`;
    const part = fieldsAt(content[index], partPath);
    const type = stringAt(part, "type", partPath);
    const kind = getKind(part, role);
    const isPaired = type === "tool-call" || type === "tool-result";
    parts.push({
      kind,
      pieces: readPieces(part, type, partPath),
      value: part,
      callId: isPaired ? nameIn(part.toolCallId) : undefined,
      toolName: isPaired ? nameIn(part.toolName) : undefined,
      isBound: isBound(part, kind) ? true : undefined,
      exchangeRole: kind === "other" && isPaired ? (type === "tool-call" ? "call" : "result") : undefined,
    });
  }
  return parts;
}

/** What the provider ran itself is never edited: a marked call, and a result in an assistant message. */
function getKind(part: Fields, role: unknown): PartKind {
  if (part.providerExecuted === true || (part.type === "tool-result" && role !== "tool")) return "other";
  return partKinds.get(part.type) ?? "other";
}

const partKinds: ReadonlyMap<unknown, PartKind> = new Map<string, PartKind>([
  ["text", "text"],
  ["reasoning", "thinking"],
  ["tool-call", "tool_call"],
  ["tool-result", "tool_result"],
  ["image", "media"],
  ["file", "media"],
]);

function readPieces(part: Fields, type: string, path: string): readonly Piece[] {
  switch (type) {
    case "text":
      return [{ kind: "text", text: stringAt(part, "text", path) }];
    case "reasoning":
      return [readReasoning(part, path)];
    case "tool-call": {
      const name = stringAt(part, "toolName", path);
      return [{ kind: "tool_call", name, args: part.input ?? {}, path: `${path}.input` }];
    }
    case "tool-result":
      return readOutput(part, path);
    case "image":
    case "file":
    case "reasoning-file":
      return [readMedia(part, path)];
    default:
      return [unknownPiece(part, path)];
  }
}

// An item id belongs to OpenAI's responses API, which requires a reasoning item together with the item that follows
// it.
function isBound(part: Fields, kind: PartKind): boolean {
  if (kind !== "thinking" && kind !== "text") return false;
  return listProviderOptions(part).some(({ itemId, reasoningEncryptedContent: sealed }) => {
    return (itemId ?? (kind === "thinking" ? sealed : null) ?? null) !== null;
  });
}

function replacePart(part: Fields, replacement: PartReplacement, role: unknown): Fields {
  const { text } = replacement;
  switch (getKind(part, role)) {
    case "text":
      return part.text === text ? part : withoutItemId({ ...part, text });
    case "tool_call": {
      const input = trimmedInput(part.input, replacement);
      return part.input === input ? part : withoutItemId({ ...part, input });
    }
    case "tool_result": {
      const { type, value, ...rest } = Object(part.output) as Fields;
      const isSame = type === "text" && value === text && Object.keys(rest).length === 0;
      return isSame ? part : { ...part, output: { type: "text", value: text } };
    }
    default:
      return refuseReplace(part.type);
  }
}

// The SDK sends a text or a call with an item id as a reference to what OpenAI stored, so a changed one would never
// be sent.
function withoutItemId(part: Fields): Fields {
  if (!listProviderOptions(part).some((options) => "itemId" in options)) return part;
  const cleaned = ["providerOptions", "providerMetadata"].flatMap((name) => {
    if (part[name] === undefined) return [];
    const entries = Object.entries(Object(part[name]) as Record<string, unknown>);
    const unstored = entries.map(([provider, options]) => {
      if (typeof options !== "object" || options === null) return [provider, options];
      const { itemId: _stored, ...rest } = options as Fields;
      return [provider, rest];
    });
    return [[name, Object.fromEntries(unstored)]];
  });
  return { ...part, ...Object.fromEntries(cleaned) };
}

/** Providers put encrypted content into the part's options, under different names. */
function readReasoning(part: Fields, path: string): Piece {
  const text = stringAt(part, "text", path);
  for (const options of listProviderOptions(part)) {
    const sealed = options.signature ?? options.redactedData ?? options.reasoningEncryptedContent;
    if (typeof sealed === "string") return { kind: "sealed", text, sealed };
  }
  return { kind: "sealed", text, sealed: "" };
}

/** Returns the options of each provider. Parts of a stream call them metadata. */
function listProviderOptions({ providerOptions, providerMetadata }: Fields): readonly Fields[] {
  if (providerOptions === undefined && providerMetadata === undefined) return [];
  return [...Object.values(Object(providerOptions)), ...Object.values(Object(providerMetadata))].map(Object);
}

function readOutput(part: Fields, path: string): Piece[] {
  const outputPath = `${path}.output`;
  const output = fieldsAt(part.output, outputPath);
  switch (stringAt(output, "type", outputPath)) {
    case "text":
    case "error-text":
      return [{ kind: "tool_result", text: stringAt(output, "value", outputPath) }];
    case "json":
    case "error-json":
      return [{ kind: "tool_result", text: jsonAt(output.value, `${outputPath}.value`) }];
    case "content":
      return readOutputList(output.value, `${outputPath}.value`);
    case "execution-denied":
      return [{ kind: "tool_result", text: typeof output.reason === "string" ? output.reason : "" }];
    default:
      return [{ kind: "tool_result", text: jsonAt(output, outputPath) }];
  }
}

function readOutputList(value: unknown, path: string): Piece[] {
  const list = textOrListAt(value, path);
  if (typeof list === "string") return [{ kind: "tool_result", text: list }];
  const pieces = list.map((each, index) => {
    const partPath = `${path}[${index}]`;
    const part = fieldsAt(each, partPath);
    const type = stringAt(part, "type", partPath);
    if (type === "text") return { kind: "text", text: stringAt(part, "text", partPath) } as const;
    return /^(?:media$|file|image)/.test(type) ? readMedia(part, partPath) : unknownPiece(part, partPath);
  });
  return [{ kind: "tool_result", text: "" }, ...pieces];
}

/** Reads a file or an image, in a message or in a result. */
function readMedia(part: Fields, path: string): Piece {
  // The size of an image is near its start, after the metadata of a camera.
  const imageHeadBytes = 196_608;
  const mediaType = typeof part.mediaType === "string" ? part.mediaType : String(part.type);
  const data = Object(part.image ?? part.data ?? part.url);
  if (data.type === "text") return { kind: "text", text: stringAt(data, "text", `${path}.data`) };
  if (mediaType.startsWith("image")) return { kind: "image", data: base64Of(data, imageHeadBytes) };
  // There is no rule for sound and video, so they cost as much as an unknown image.
  if (/^(?:audio|video)/.test(mediaType)) return { kind: "image", data: undefined };
  return { kind: "document", data: base64Of(data, Number.POSITIVE_INFINITY) };
}

/** `data` is boxed: a string, a URL, bytes, one of these in a wrapper with a type, or a provider's reference. */
function base64Of(data: object, maxBytes: number): string | undefined {
  if (data instanceof String || data instanceof URL) return base64OfUrl(String(data));
  if (data instanceof ArrayBuffer) return base64Of(new Uint8Array(data), maxBytes);
  if (ArrayBuffer.isView(data)) {
    const length = Math.min(data.byteLength, maxBytes);
    return Buffer.from(data.buffer, data.byteOffset, length).toString("base64");
  }
  const { type, data: inner, url } = data as Fields;
  return type === "data" || type === "url" ? base64Of(Object(inner ?? url), maxBytes) : undefined;
}

/** Counts unknown content by its JSON, which is rather too much than too little. Provider options are not content. */
function unknownPiece(part: Fields, path: string): Piece {
  const { providerOptions: _options, providerMetadata: _metadata, ...rest } = part;
  return { kind: "text", text: jsonAt(rest, path) };
}
