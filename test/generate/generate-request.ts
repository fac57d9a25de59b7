/** A generated session as the request of one format, ready to be sent: system prompt and tools where the format has them. */
import type { FormatName } from "../../src/core/messages/index.ts";
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
  const history = session.messages.slice(0, session.messages.findLastIndex(({ role }) => role === "user") + 1);
  const messages = convertMessages(hasSystemField(format) ? history.filter(isTurn) : history, format);
  const tools = session.tools.map((tool) => convertTool(tool as AnthropicTool, format));
  const fields = { model: session.model, tools };
  if (format === "responses") return { messages, request: { ...fields, input: messages } };
  if (!hasSystemField(format)) return { messages, request: { ...fields, messages } };
  const system = history.find(({ role }) => role === "system")?.content;
  if (format === "gemini") {
    const systemInstruction = system && { parts: system.map((block) => ({ text: Reflect.get(block, "text") })) };
    return { messages, request: { ...fields, ...(system && { systemInstruction }), contents: messages } };
  }
  return { messages, request: { ...fields, max_tokens: 8_000, ...(system && { system }), messages } };
}

/** A history in which the model has read these texts, one after the other, and the request with a tool `recall`. */
export function toolHistory(format: FormatName, texts: readonly string[]): GeneratedRequest {
  const session = texts.flatMap((text, index): SessionMessage[] => {
    const id = `toolu_${index}_9f3a`;
    return [
      { role: "assistant", content: [{ type: "tool_use", id, name: "read", input: { path: `src/${index}.ts` } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: text }] },
    ];
  });
  const start: SessionMessage = { role: "user", content: [{ type: "text", text: "Is this file safe?" }] };
  const tools = ["read", "recall"].map((name) => {
    return convertTool({ name, description: name, input_schema: { type: "object", properties: {} } }, format);
  });
  const messages = convertMessages([start, ...session], format);
  return { messages, request: { tools, ...(format === "anthropic" && { max_tokens: 1_000 }) } };
}

function hasSystemField(format: FormatName): boolean {
  return format === "anthropic" || format === "gemini";
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
    case "gemini":
      return { functionDeclarations: [{ name, description, parametersJsonSchema: schema }] };
    case "ai-sdk":
      return { type: "function", name, description, inputSchema: schema };
    default:
      return { name, description, input_schema: schema };
  }
}
