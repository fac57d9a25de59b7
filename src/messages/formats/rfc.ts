/** The shape of the context-engineering RFC: roles system, user, assistant, tool; text, tool calls with `args`, tool results, images. */
import { type Fields, fieldsAt, jsonAt, roleAt, stringAt, textOrListAt } from "../fields.ts";
import type { MessageFormat, Overheads, Piece } from "../message-format.ts";

// Section 7.1 of the RFC, in tokens: its 30 bytes are ceil(30 / 3.5). Its 5 % of safety is the business of its policy, not of a count.
const overheads: Overheads = {
  request: 0,
  message: 8,
  part: 3,
  toolCall: 9,
  toolResult: 9,
  tool: 8,
  toolFactor: 1.2,
};

export const rfcFormat: MessageFormat = {
  name: "rfc",
  overheads,
  claims(message) {
    if (message.role === "tool") return message.tool_call_id === undefined;
    return Array.isArray(message.content) && message.content.some(isOwnPart);
  },
  read(message, path) {
    roleAt(message, ["system", "user", "assistant", "tool"], path);
    const content = textOrListAt(message.content, `${path}.content`);
    if (typeof content === "string") return { pieces: [{ kind: "text", text: content }], parts: 0 };
    const pieces = content.map((part, index) => readPart(part, `${path}.content[${index}]`));
    return { pieces, parts: pieces.length };
  },
  readTool(tool, path) {
    const description = typeof tool.description === "string" ? tool.description : "";
    const schema = jsonAt(tool.input_schema, `${path}.input_schema`);
    return { text: stringAt(tool, "name", path) + description + schema, fixedTokens: 0 };
  },
  toolPromptTokens: () => 0,
};

function isOwnPart(part: unknown): boolean {
  const { type, args } = Object(part) as Fields;
  return type === "tool_call" || (type === "tool_use" && args !== undefined);
}

// The RFC names the part ToolCall; on the wire it is `tool_use` with `args`.
function readPart(value: unknown, path: string): Piece {
  const part = fieldsAt(value, path);
  switch (stringAt(part, "type", path)) {
    case "text":
      return { kind: "text", text: stringAt(part, "text", path) };
    case "tool_use":
    case "tool_call": {
      const name = stringAt(part, "name", path);
      return { kind: "tool_call", name, args: part.args ?? part.input ?? {}, path: `${path}.args` };
    }
    case "tool_result":
      return { kind: "tool_result", text: stringAt(part, "content", path) };
    case "image": {
      const { data } = fieldsAt(part.source, `${path}.source`);
      return { kind: "image", data: typeof data === "string" ? data : undefined };
    }
    default:
      return { kind: "text", text: jsonAt(part, path) };
  }
}
