/** The parts of a request that a history is trimmed with: messages, system text, tools. */
import { relative, resolve } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { geminiSystemText } from "../../core/messages/index.ts";
import { type MessagesInput, parseJson } from "./messages-file.ts";
import { readTextFile } from "./read-text.ts";

/** Returns the system text of a request, in whichever field its provider keeps it. */
export function readSystem({ request = {}, key }: MessagesInput): unknown {
  if (key === "contents") return geminiSystemText(request.systemInstruction);
  return key === "input" ? request.instructions : request.system;
}

/** Returns the messages. In OpenAI's responses, a plain text is one message. */
export function readInputMessages({ messages, request, key, source: { file } }: MessagesInput): readonly object[] {
  if (messages !== undefined) return messages;
  const value = request?.[key!];
  if (key === "input" && typeof value === "string") return [{ role: "user", content: value }];
  throw new ContextError("invalid_message", `${key} must be an array, not ${describeType(value)}`, { file });
}

function describeType(value: unknown): string {
  if (value === null) return "null";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Reads a list of tools, or a request with one. The trimmer checks its content. */
export async function readToolsFile(name: string, cwd: string): Promise<unknown> {
  const path = resolve(cwd, name);
  const file = relative(cwd, path) || ".";
  const read = await readTextFile(path);
  if (!("text" in read)) throw new ContextError("unreadable_input", read.reason, { file });
  const value = parseJson(read.text.replace(/^\uFEFF/, ""), { file });
  const tools = Array.isArray(value) ? value : Object(value).tools;
  if (Array.isArray(tools)) return tools;
  throw new ContextError("unreadable_input", "holds no list of tools", {
    file,
    hint: "It should be a list of tool definitions, or a request with tools.",
  });
}
