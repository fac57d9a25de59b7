/** A request as it was sent (the last one of a session holds all of it), or the bare list of its messages. */
import { ContextError } from "../../errors.ts";
import type { RecordedSession } from "./recorded-session.ts";

type Fields = Readonly<Record<string, unknown>>;

export function readRequestSession(value: unknown, file: string): RecordedSession {
  if (Array.isArray(value)) return { file, source: "messages", messages: checkList(value, file), notes: [] };
  const request = Object(value) as Fields;
  const key = listKeyOf(request);
  if (key === undefined) throw noRequest(file);
  const { model, tools } = request;
  return {
    file,
    source: "request",
    ...(key !== "messages" && { format: "responses" }),
    messages: checkList(listOf(request[key]), file),
    ...definite({ system: request.system ?? request.instructions }),
    ...(Array.isArray(tools) && { tools }),
    ...(typeof model === "string" && { model }),
    notes: [],
  };
}

export function isRequest(value: unknown): boolean {
  return listKeyOf(Object(value) as Fields) !== undefined;
}

/** `messages`: Anthropic, OpenAI chat, AI SDK. `input`: OpenAI responses, where it may be a plain text. `items`: Codex before rollouts were JSON Lines. */
const listKeys = ["messages", "input", "items"] as const;

function listKeyOf(request: Fields): (typeof listKeys)[number] | undefined {
  return listKeys.find(
    (key) => Array.isArray(request[key]) || (key === "input" && typeof request.input === "string"),
  );
}

function listOf(value: unknown): readonly unknown[] {
  return typeof value === "string" ? [{ role: "user", content: value }] : (value as readonly unknown[]);
}

function checkList(list: readonly unknown[], file: string): readonly object[] {
  const index = list.findIndex((each) => typeof each !== "object" || each === null || Array.isArray(each));
  if (index < 0) return list as readonly object[];
  throw new ContextError("invalid_message", `messages[${index}] must be an object`, { file });
}

function noRequest(file: string): ContextError {
  return new ContextError("unreadable_input", "no messages in this JSON", {
    file,
    hint: "A request has a list under messages or input; a bare list of messages will do, too.",
  });
}

function definite(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null),
  );
}
