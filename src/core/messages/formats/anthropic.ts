/** The format of Anthropic's Messages API. Tool results are in user messages; there may be unknown block types. */

import type { Fields } from "../../text/index.ts";
import { failAt, fieldsAt, jsonAt, roleAt, stringAt, textOrListAt, typeName, withoutCacheMarkers } from "../fields.ts";
import type { MessageFormat, Part, PartKind, Piece } from "../message-format.ts";
import { editContent, joinContent, nameIn, refuseReplace, textPart, trimmedInput, withField } from "./part.ts";

export const anthropicFormat: MessageFormat = {
  name: "anthropic",
  overheads: {
    request: 3, // with `message`: the frame of 6–7 tokens around one text message (count_tokens probes, 2026-08)
    message: 4,
    part: 0, // a list of one text block costs the same as the string (count_tokens, 2026)
    toolCall: 9, // not published; 30 bytes, as in the context-engineering RFC
    toolResult: 9, // the same
    tool: 0, // the documented example (403 tokens with one tool) leaves nothing beyond the definition's JSON
    toolFactor: 1,
  },
  claims(message) {
    if (message.role === "tool" || !Array.isArray(message.content)) return false;
    return message.content.some((block) => {
      const { type, input } = Object(block) as Fields;
      return ownTypes.has(type) || (type === "tool_use" && input !== undefined);
    });
  },
  read(message, path) {
    const role = roleAt(message, ["user", "assistant", "system"], path);
    // Another provider's calls would be billed but not counted.
    if (message.tool_calls !== undefined) failAt(`${path}.tool_calls`, "is not a field of this format");
    const content = textOrListAt(message.content, `${path}.content`);
    if (typeof content === "string") return { role, parts: [textPart(content)], separators: 0 };
    return { role, parts: readParts(content, `${path}.content`), separators: content.length };
  },
  edit: (message, edits) =>
    editContent(message, edits, (block, replacement) => {
      const { text } = replacement;
      switch (block.type) {
        case "text":
          return withField(block, "text", text);
        case "tool_use":
          return withField(block, "input", trimmedInput(block.input, replacement));
        case "tool_result":
          return withField(block, "content", text);
        default:
          return refuseReplace(block.type);
      }
    }),
  detach(message) {
    const { content } = message;
    if (!Array.isArray(content) || !content.some((block) => hasCitations(block as Fields))) return message;
    const detached = content.map((block: Fields) => {
      const { citations: _gone, ...rest } = block;
      return hasCitations(block) ? rest : block;
    });
    return { ...message, content: detached };
  },
  merge: (first, second) => (first.role === second.role ? joinContent(first, second) : undefined),
  userText: (text) => ({ role: "user", content: [{ type: "text", text }] }),
  assistantText: (text) => ({ role: "assistant", content: [{ type: "text", text }] }),
  toolResult: ({ callId }, text) => ({
    role: "user",
    content: [{ type: "tool_result", tool_use_id: callId, content: text }],
  }),
  /** The model does not read `defer_loading`, `cache_control` and similar fields. */
  readTool(tool, path) {
    const type = tool.type;
    if (tool.function !== undefined) failAt(`${path}.function`, "is not a field of this format");
    if (typeof type === "string" && type !== "custom") {
      // 700 is our choice: no figure is published for search, fetch and others.
      const fixed = providerTools.find(([prefix]) => type.startsWith(prefix))?.[1] ?? 700;
      return { text: jsonAt(withoutCacheMarkers(tool), path), fixedTokens: fixed };
    }
    const { description, input_schema, input_examples } = tool;
    const name = stringAt(tool, "name", path);
    return { text: jsonAt({ name, description, input_schema, input_examples }, path), fixedTokens: 0 };
  },
  toolPromptTokens(model, toolChoice) {
    const known = toolPrompts.find(([pattern]) => model !== undefined && pattern.test(model.toLowerCase()));
    const tokens = (known ?? largestToolPrompt)[1];
    return toolChoice === "any" || toolChoice === "tool" ? tokens.any : tokens.auto;
  },
};

const ownTypes: ReadonlySet<unknown> = new Set(["tool_result", "thinking", "redacted_thinking", "document"]);

// A plain loop, and the same fields in the same order for every part: a parsed session is counted on each turn.
function readParts(blocks: readonly unknown[], path: string): readonly Part[] {
  const parts: Part[] = [];
  for (let index = 0; index < blocks.length; index++) {
    const block = blocks[index] as Fields;
    const { kind, read } = findBlockType(block, path, index);
    const found = read(block, path, index, 1);
    const exchangeRole = kind === "other" ? getExchangeRole(block) : undefined;
    parts.push({
      kind,
      pieces: Array.isArray(found) ? found : [found],
      value: block,
      callId: getCallId(block, exchangeRole ?? kind),
      toolName: kind === "tool_call" || exchangeRole === "call" ? (block.name as string) : undefined,
      isBound: kind === "text" && hasCitations(block) ? true : undefined,
      exchangeRole,
    });
  }
  return parts;
}

/** The provider's own tools have their calls and results in the assistant's message. */
function getExchangeRole({ type }: Fields): "call" | "result" | undefined {
  if (type === "server_tool_use" || type === "mcp_tool_use") return "call";
  return String(type).endsWith("_tool_result") ? "result" : undefined;
}

function getCallId(block: Fields, kind: PartKind | Part["exchangeRole"]): string | undefined {
  if (kind === "tool_call" || kind === "call") return nameIn(block.id);
  return kind === "tool_result" || kind === "result" ? nameIn(block.tool_use_id) : undefined;
}

// A citation may refer to a search result that was removed.
function hasCitations({ citations }: Fields): boolean {
  return Array.isArray(citations) && citations.length > 0;
}

/** A block type: the kind of part, and how to read what is billed. */
interface BlockType {
  readonly kind: PartKind;
  /** The block is at `${list}[${index}]`. The path is built only for errors, because a parsed session is counted on
   *  each turn. `depth` is the depth of a list of blocks inside it. */
  readonly read: (block: Fields, list: string, index: number, depth: number) => Piece | Piece[];
}

/** The provider's own tools, its compactions and unknown types are `other`. */
function findBlockType(block: unknown, list: string, index: number): BlockType {
  const type = (block as Fields | null | undefined)?.type;
  const known = blockTypes.get(type);
  if (known !== undefined) return known;
  if (typeof type !== "string" || Array.isArray(block)) {
    const path = `${list}[${index}]`;
    stringAt(fieldsAt(block, path), "type", path);
  }
  return { kind: "other", read: readUnknown };
}

const blockTypes: ReadonlyMap<unknown, BlockType> = new Map<unknown, BlockType>([
  // Neither citations that are sent back (Anthropic, Citations, 2026) nor cache_control are billed.
  [
    "text",
    { kind: "text", read: (block, list, index) => ({ kind: "text", text: readBlockText(block, "text", list, index) }) },
  ],
  [
    "thinking",
    {
      kind: "thinking",
      read(block, list, index) {
        const sealed = typeof block.signature === "string" ? block.signature : "";
        return { kind: "sealed", text: readBlockText(block, "thinking", list, index), sealed };
      },
    },
  ],
  [
    "redacted_thinking",
    {
      kind: "thinking",
      read: (block, list, index) => ({ kind: "sealed", text: "", sealed: readBlockText(block, "data", list, index) }),
    },
  ],
  ["tool_use", { kind: "tool_call", read: readToolCall }],
  ["tool_result", { kind: "tool_result", read: readToolResult }],
  [
    "image",
    {
      kind: "media",
      read: (block, list, index) => ({
        kind: "image",
        data: readBase64(fieldsAt(block.source, `${list}[${index}].source`)),
      }),
    },
  ],
  ["document", { kind: "media", read: (block, list, index, depth) => readDocument(block, `${list}[${index}]`, depth) }],
  ["server_tool_use", { kind: "other", read: readToolCall }],
  ["mcp_tool_use", { kind: "other", read: readToolCall }],
  ["mcp_tool_result", { kind: "other", read: readToolResult }],
  [
    "web_search_tool_result",
    {
      kind: "other",
      read(block, list, index) {
        if (!Array.isArray(block.content)) return readUnknown(block, list, index);
        const results = block.content.flatMap((result: unknown, at): Piece[] => {
          const path = `${list}[${index}].content[${at}]`;
          const { encrypted_content: sealed, ...rest } = fieldsAt(result, path);
          const readable: Piece = { kind: "text", text: jsonAt(rest, path) };
          return typeof sealed === "string" ? [readable, { kind: "sealed", text: "", sealed }] : [readable];
        });
        return [{ kind: "tool_result", text: "" }, ...results];
      },
    },
  ],
  [
    "web_fetch_tool_result",
    {
      kind: "other",
      read(block, list, index, depth) {
        const { content: document, ...rest } = Object(block.content) as Fields;
        if (Object(document).type !== "document") return readUnknown(block, list, index);
        const path = `${list}[${index}].content`;
        const readable: Piece = { kind: "tool_result", text: jsonAt(rest, path) };
        return [readable, ...readDocument(document as Fields, `${path}.content`, depth)];
      },
    },
  ],
]);

function readBlockText(block: Fields, name: string, list: string, index: number): string {
  const text = block[name];
  return typeof text === "string" ? text : stringAt(block, name, `${list}[${index}]`);
}

// The id is not counted separately: the constant for the wrapper includes it.
function readToolCall(block: Fields, list: string, index: number): Piece {
  const name = readBlockText(block, "name", list, index);
  return { kind: "tool_call", name, args: block.input ?? {}, path: `${list}[${index}].input` };
}

function readToolResult(block: Fields, list: string, index: number, depth: number): Piece | Piece[] {
  const content = block.content ?? "";
  if (typeof content === "string") return { kind: "tool_result", text: content };
  const pieces: Piece[] = [{ kind: "tool_result", text: "" }];
  return addContent(pieces, content, `${list}[${index}].content`, depth);
}

// The API accepts a document of blocks in a tool result and nothing deeper. Without a limit, a cycle would never
// end.
const maxBlockDepth = 8;

function addContent(pieces: Piece[], content: unknown, path: string, depth: number): Piece[] {
  if (!Array.isArray(content)) return failAt(path, `must be a string or an array, not ${typeName(content)}`);
  if (depth > maxBlockDepth) return failAt(path, `is nested more than ${maxBlockDepth} levels deep`);
  for (let index = 0; index < content.length; index++) {
    const block = content[index];
    const found = findBlockType(block, path, index).read(block, path, index, depth + 1);
    if (Array.isArray(found)) for (const piece of found) pieces.push(piece);
    else pieces.push(found);
  }
  return pieces;
}

function readDocument(document: Fields, path: string, depth: number): Piece[] {
  const labels = [document.title, document.context].filter((label) => typeof label === "string");
  const pieces: Piece[] = labels.map((text) => ({ kind: "text", text }));
  const source = fieldsAt(document.source, `${path}.source`);
  if (source.type === "text") pieces.push({ kind: "text", text: stringAt(source, "data", `${path}.source`) });
  else if (source.type !== "content") pieces.push({ kind: "document", data: readBase64(source) });
  else if (typeof source.content === "string") pieces.push({ kind: "text", text: source.content });
  else addContent(pieces, source.content, `${path}.source.content`, depth);
  return pieces;
}

function readBase64(source: Fields): string | undefined {
  return typeof source.data === "string" ? source.data : undefined;
}

// The API adds block types. Counting their JSON is rather too much than too little.
function readUnknown(block: Fields, list: string, index: number): Piece {
  return { kind: "text", text: jsonAt(withoutCacheMarkers(block), `${list}[${index}]`) };
}

// What Anthropic bills for tools: the definitions, a system prompt, and fixed sizes for the tools that it defines.

/** `any` also applies to `tool`. `auto` also applies to `none`, which keeps the prompt if there are tools. */
type ToolPrompt = readonly [RegExp, Readonly<Record<"auto" | "any", number>>];

const largestToolPrompt: ToolPrompt = [/opus-4[-.]7/, { auto: 675, any: 804 }];

// "Tool use system prompt token count" by model (platform.claude.com, Tool use, 2026). The first match wins. A model
// that is not listed costs as much as the most expensive one.
const toolPrompts: readonly ToolPrompt[] = [
  largestToolPrompt,
  [/opus-4[-.]8/, { auto: 290, any: 410 }],
  [/sonnet-5(?![-.]\d\d?(?!\d))/, { auto: 354, any: 474 }],
  [/(?:opus|sonnet)-4[-.]6/, { auto: 497, any: 589 }],
  [/(?:opus|sonnet|haiku)-4[-.]5/, { auto: 496, any: 588 }],
  [/(?:opus|sonnet)-4(?:[-.][01])?(?![-.]\d\d?(?!\d))/, { auto: 313, any: 315 }],
  [/3[-.][57]-sonnet|sonnet-3[-.][57]/, { auto: 346, any: 313 }],
  [/3[-.]5-haiku|haiku-3/, { auto: 264, any: 340 }],
];

// Input tokens of Anthropic-defined tools (Pricing, 2026): bash 245, text editor 700, computer 735 plus up to 499 of
// system prompt.
const providerTools: readonly (readonly [string, number])[] = [
  ["bash_", 245],
  ["text_editor_", 700],
  ["computer_", 1234],
];
