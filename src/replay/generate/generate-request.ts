/** A generated session as the request of one format, ready to be sent: system prompt and tools where the format has them. */
import type { FormatName } from "../../messages/index.ts";
import { convertMessages } from "./convert/convert-messages.ts";
import { generateSession, type SessionOptions } from "./generate-session.ts";
import type { SessionMessage } from "./session-message.ts";

export interface GeneratedRequest {
  /** The request's body; its list is `messages`. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly messages: readonly object[];
}

/** Ends with what the assistant is to answer. */
export function generateRequest(format: FormatName, options: SessionOptions): GeneratedRequest {
  const session = generateSession(options);
  const history = session.messages.slice(
    0,
    session.messages.findLastIndex(({ role }) => role === "user") + 1,
  );
  const messages = convertMessages(format === "anthropic" ? history.filter(isTurn) : history, format);
  const tools = session.tools.map((tool) => convertTool(tool as AnthropicTool, format));
  const fields = { model: session.model, tools };
  if (format === "responses") return { messages, request: { ...fields, input: messages } };
  if (format !== "anthropic") return { messages, request: { ...fields, messages } };
  const system = history.find(({ role }) => role === "system")?.content;
  return { messages, request: { ...fields, max_tokens: 8_000, ...(system && { system }), messages } };
}

function isTurn({ role }: SessionMessage): boolean {
  return role !== "system";
}

interface AnthropicTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: object;
}

function convertTool({ name, description, input_schema: schema }: AnthropicTool, format: FormatName): object {
  switch (format) {
    case "openai":
      return { type: "function", function: { name, description, parameters: schema } };
    case "responses":
      return { type: "function", name, description, parameters: schema, strict: false };
    case "ai-sdk":
      return { type: "function", name, description, inputSchema: schema };
    default:
      return { name, description, input_schema: schema };
  }
}
