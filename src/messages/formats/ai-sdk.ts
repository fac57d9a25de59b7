/** The AI SDK's shape (versions 6 and 7): `ModelMessage`, and the prompt that a middleware sees, which differs in its files only. */
import { familyOfModel } from "../../tokens/index.ts";
import { type Fields, fieldsAt, jsonAt, roleAt, stringAt, textOrListAt } from "../fields.ts";
import type {
  MessageFormat,
  Overheads,
  Part,
  PartKind,
  Piece,
  Role,
  ToolReading,
} from "../message-format.ts";
import { providerOptionsOf, readFile, readOutput, readReasoning, unknownPiece } from "./ai-sdk-pieces.ts";
import { anthropicToolPromptTokens } from "./anthropic-tools.ts";
import { nameIn, textPart } from "./create-part.ts";
import { editContent, joinContent, refuseReplace, trimmedInput } from "./edit-content.ts";
import { hostedToolTokens, openAiToolPromptTokens } from "./openai-tools.ts";

// The provider behind is not known: the dearer of Anthropic and OpenAI.
const overheads: Overheads = {
  request: 3,
  message: 4,
  part: 0,
  toolCall: 9,
  toolResult: 9,
  tool: 0,
  toolFactor: 1,
};

export const aiSdkFormat: MessageFormat = {
  name: "ai-sdk",
  overheads,
  claims({ providerOptions, content }) {
    return providerOptions !== undefined || (Array.isArray(content) && content.some(isOwnPart));
  },
  read(message, path) {
    const role = roleAt(message, roles, path);
    const content = textOrListAt(message.content, `${path}.content`);
    if (typeof content !== "string") {
      return { role, parts: readParts(content, role, `${path}.content`), separators: content.length };
    }
    return { role, parts: [textPart(content)], separators: 0 };
  },
  edit: (message, edits) =>
    editContent(message, edits, (part, text) => replacePart(part, text, message.role)),
  detach: detachParts,
  merge: mergeMessages,
  assistantText: (text) => ({ role: "assistant", content: [{ type: "text", text }] }),
  toolResult: ({ callId, toolName = "unknown" }, text) => ({
    role: "tool",
    content: [{ type: "tool-result", toolCallId: callId, toolName, output: { type: "text", value: text } }],
  }),
  readTool,
  toolPromptTokens(model, toolChoice) {
    const isOpenAi = model !== undefined && openAiFamilies.has(familyOfModel(model));
    return isOpenAi ? openAiToolPromptTokens : anthropicToolPromptTokens(model, toolChoice);
  },
};

const roles = ["system", "user", "assistant", "tool"] as const;
const openAiFamilies: ReadonlySet<unknown> = new Set(["o200k", "cl100k"]);

const ownTypes = /^(?:tool-(?:call|result|approval-\w+)|reasoning(?:-file)?)$/;

function isOwnPart(part: unknown): boolean {
  const { type, image, mediaType, providerOptions } = Object(part) as Fields;
  if (providerOptions !== undefined || (typeof type === "string" && ownTypes.test(type))) return true;
  return (type === "image" && image !== undefined) || (type === "file" && mediaType !== undefined);
}

function readParts(content: readonly unknown[], role: Role, path: string): Part[] {
  const parts: Part[] = [];
  for (let index = 0; index < content.length; index++) {
    const partPath = `${path}[${index}]`;
    const part = fieldsAt(content[index], partPath);
    const type = stringAt(part, "type", partPath);
    const kind = kindOf(part, role);
    const exchangeRole = kind === "other" ? exchangeRoles.get(type) : undefined;
    const isPaired = kind === "tool_call" || kind === "tool_result" || exchangeRole !== undefined;
    parts.push({
      kind,
      pieces: readPieces(part, type, partPath),
      value: part,
      callId: isPaired ? nameIn(part.toolCallId) : undefined,
      toolName: isPaired ? nameIn(part.toolName) : undefined,
      isBound: isBound(part, kind) ? true : undefined,
      exchangeRole,
    });
  }
  return parts;
}

/** What the provider ran itself stays as it is: a call with its mark, a result in the assistant's own message. */
function kindOf(part: Fields, role: unknown): PartKind {
  if (part.providerExecuted === true || (part.type === "tool-result" && role !== "tool")) return "other";
  return kinds.get(part.type) ?? "other";
}

const kinds: ReadonlyMap<unknown, PartKind> = new Map<string, PartKind>([
  ["text", "text"],
  ["reasoning", "thinking"],
  ["tool-call", "tool_call"],
  ["tool-result", "tool_result"],
  ["image", "media"],
  ["file", "media"],
]);

const exchangeRoles: ReadonlyMap<string, "call" | "result"> = new Map([
  ["tool-call", "call"],
  ["tool-result", "result"],
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
      return [readFile(part, path)];
    default:
      return [unknownPiece(part, path)];
  }
}

// OpenAI's responses API, to which an item id belongs, wants a reasoning item together with the item that follows it.
function isBound(part: Fields, kind: PartKind): boolean {
  if (kind !== "thinking" && kind !== "text") return false;
  return providerOptionsOf(part).some(({ itemId, reasoningEncryptedContent: sealed }) => {
    return (itemId ?? (kind === "thinking" ? sealed : null) ?? null) !== null;
  });
}

function detachParts(message: Fields): Fields {
  const { content } = message;
  if (!Array.isArray(content)) return message;
  const detached = content.map((part) =>
    kindOf(part, message.role) === "text" ? withoutItemId(part) : part,
  );
  return detached.every((part, index) => part === content[index])
    ? message
    : { ...message, content: detached };
}

function replacePart(part: Fields, text: string, role: unknown): Fields {
  switch (kindOf(part, role)) {
    case "text":
      return part.text === text ? part : withoutItemId({ ...part, text });
    case "tool_call":
      return replaceInput(part, trimmedInput(part.input, text));
    case "tool_result":
      return isText(part.output, text) ? part : { ...part, output: { type: "text", value: text } };
    default:
      return refuseReplace(part.type);
  }
}

function isText(output: unknown, text: string): boolean {
  const { type, value, ...rest } = Object(output) as Fields;
  return type === "text" && value === text && Object.keys(rest).length === 0;
}

function replaceInput(part: Fields, input: unknown): Fields {
  return part.input === input ? part : withoutItemId({ ...part, input });
}

// The SDK sends a text or a call that has an item id as a reference to what OpenAI stored, so that another one would never be sent.
function withoutItemId(part: Fields): Fields {
  if (!providerOptionsOf(part).some((options) => "itemId" in options)) return part;
  const cleaned = ["providerOptions", "providerMetadata"].flatMap((name) => {
    if (part[name] === undefined) return [];
    const entries = Object.entries(Object(part[name]) as Record<string, unknown>);
    return [[name, Object.fromEntries(entries.map(([provider, options]) => [provider, unstored(options)]))]];
  });
  return { ...part, ...Object.fromEntries(cleaned) };
}

function unstored(options: unknown): unknown {
  if (typeof options !== "object" || options === null) return options;
  const { itemId: _stored, ...rest } = options as Fields;
  return rest;
}

// The SDK wants a system message to be one string; and what providers are told about a message must hold for both.
function mergeMessages(first: Fields, second: Fields): Fields | undefined {
  if (first.role !== second.role || first.role === "system") return undefined;
  return first.providerOptions === second.providerOptions ? joinContent(first, second) : undefined;
}

function readTool(tool: Fields, path: string): ToolReading {
  if (tool.type === "provider") return { text: jsonAt(tool, path), fixedTokens: hostedToolTokens };
  const { description, inputSchema, inputExamples } = tool;
  const name = stringAt(tool, "name", path);
  return { text: jsonAt({ name, description, inputSchema, inputExamples }, path), fixedTokens: 0 };
}
