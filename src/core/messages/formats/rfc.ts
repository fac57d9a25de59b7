/** The format of the context-engineering RFC: roles system, user, assistant, tool; text, tool calls with `args`, tool
 *  results and images. */

import type { Fields } from "../../text/index.ts";
import { fieldsAt, jsonAt, roleAt, stringAt, textOrListAt } from "../fields.ts";
import type { MessageFormat, Part, PartKind, Piece } from "../message-format.ts";
import {
  createPart,
  editContent,
  joinContent,
  nameIn,
  refuseReplace,
  textPart,
  trimmedInput,
  withField,
} from "./part.ts";

export const rfcFormat: MessageFormat = {
  name: "rfc",
  // Section 7.1 of the RFC, in tokens: its 30 bytes are ceil(30 / 3.5). The rfc policies add the RFC's 5 % of safety;
  // a count does not.
  overheads: {
    request: 0,
    message: 8,
    part: 3,
    toolCall: 9,
    toolResult: 9,
    tool: 8,
    toolFactor: 1.2,
  },
  claims(message) {
    if (message.role === "tool") return message.tool_call_id === undefined;
    if (!Array.isArray(message.content)) return false;
    return message.content.some((part) => {
      const { type, args } = Object(part) as Fields;
      return type === "tool_call" || (type === "tool_use" && args !== undefined);
    });
  },
  read(message, path) {
    const role = roleAt(message, ["system", "user", "assistant", "tool"], path);
    const content = textOrListAt(message.content, `${path}.content`);
    if (typeof content === "string") return { role, parts: [textPart(content)], separators: 0 };
    const parts = content.map((part, index) => readPart(part, `${path}.content[${index}]`));
    return { role, parts, separators: parts.length };
  },
  edit: (message, edits) =>
    editContent(message, edits, (part, replacement) => {
      const { text } = replacement;
      switch (partKinds.get(String(part.type))) {
        case "text":
          return withField(part, "text", text);
        case "tool_result":
          return withField(part, "content", text);
        case "tool_call": {
          const name = part.args === undefined && part.input !== undefined ? "input" : "args";
          return withField(part, name, trimmedInput(part[name], replacement));
        }
        default:
          return refuseReplace(part.type);
      }
    }),
  detach: (message) => message,
  merge: (first, second) => (first.role === second.role ? joinContent(first, second) : undefined),
  userText: (text) => ({ role: "user", content: [{ type: "text", text }] }),
  assistantText: (text) => ({ role: "assistant", content: text }),
  toolResult: ({ callId }, text) => ({
    role: "tool",
    content: [{ type: "tool_result", tool_use_id: callId, content: text }],
  }),
  readTool(tool, path) {
    const description = typeof tool.description === "string" ? tool.description : "";
    const schema = jsonAt(tool.input_schema, `${path}.input_schema`);
    return { text: stringAt(tool, "name", path) + description + schema, fixedTokens: 0 };
  },
  toolPromptTokens: () => 0,
};

function readPart(value: unknown, path: string): Part {
  const part = fieldsAt(value, path);
  const kind = partKinds.get(stringAt(part, "type", path)) ?? "other";
  const id = kind === "tool_call" ? part.id : kind === "tool_result" ? part.tool_use_id : undefined;
  const toolName = kind === "tool_call" ? stringAt(part, "name", path) : undefined;
  return createPart({
    kind,
    pieces: [readPiece(part, kind, path)],
    value: part,
    callId: nameIn(id),
    toolName,
  });
}

// The RFC names the part ToolCall; in JSON it is `tool_use` with `args`.
const partKinds: ReadonlyMap<string, PartKind> = new Map<string, PartKind>([
  ["text", "text"],
  ["tool_use", "tool_call"],
  ["tool_call", "tool_call"],
  ["tool_result", "tool_result"],
  ["image", "media"],
]);

function readPiece(part: Fields, kind: PartKind, path: string): Piece {
  switch (kind) {
    case "text":
      return { kind, text: stringAt(part, "text", path) };
    case "tool_call": {
      const name = stringAt(part, "name", path);
      return { kind, name, args: part.args ?? part.input ?? {}, path: `${path}.args` };
    }
    case "tool_result":
      return { kind, text: stringAt(part, "content", path) };
    case "media": {
      const { data } = fieldsAt(part.source, `${path}.source`);
      return { kind: "image", data: typeof data === "string" ? data : undefined };
    }
    default:
      return { kind: "text", text: jsonAt(part, path) };
  }
}
