/** The message shape of the context-engineering RFC, and its check: what is malformed is named by its JSON path before
 *  anything is estimated or changed. Fields that the RFC does not know are let through untouched. */
import { failAt, fieldsAt, jsonAt, stringAt, typeName } from "../../messages/index.ts";

export interface RfcMessage {
  readonly role: RfcRole;
  readonly content: string | readonly RfcPart[];
}

const rfcRoles = ["system", "user", "assistant", "tool"] as const;
export type RfcRole = (typeof rfcRoles)[number];

/** A call is `tool_use` on the wire and `tool_call` in the RFC's text; its arguments come as `args` or `input`. */
export type RfcPart =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "tool_use" | "tool_call";
      readonly id?: string;
      readonly name: string;
      readonly args?: unknown;
      readonly input?: unknown;
    }
  | { readonly type: "tool_result"; readonly tool_use_id?: string; readonly content: string }
  | { readonly type: "image"; readonly source?: unknown };

/** The same messages, known to be of the RFC's shape. */
export function checkMessages(messages: unknown): readonly RfcMessage[] {
  if (!Array.isArray(messages)) return failAt("messages", `must be an array, not ${typeName(messages)}`);
  for (let index = 0; index < messages.length; index++) checkMessage(messages[index], `messages[${index}]`);
  return messages;
}

function checkMessage(value: unknown, path: string): void {
  const { role, content } = fieldsAt(value, path);
  if (!rfcRoles.includes(role as RfcRole)) {
    failAt(`${path}.role`, `must be one of ${rfcRoles.join(", ")}, not ${shown(role)}`);
  }
  if (typeof content === "string") return;
  if (!Array.isArray(content)) {
    failAt(`${path}.content`, `must be a string or an array, not ${typeName(content)}`);
  }
  for (let index = 0; index < content.length; index++) checkPart(content[index], `${path}.content[${index}]`);
}

/** A part of a kind that the RFC does not know counts as its JSON and is never changed. */
function checkPart(value: unknown, path: string): void {
  const part = fieldsAt(value, path);
  switch (stringAt(part, "type", path)) {
    case "text":
      stringAt(part, "text", path);
      return;
    case "tool_use":
    case "tool_call":
      optionalString(part, "id", path);
      stringAt(part, "name", path);
      jsonAt(argsOf(part), `${path}.${part.args === undefined ? "input" : "args"}`);
      return;
    case "tool_result":
      optionalString(part, "tool_use_id", path);
      stringAt(part, "content", path);
      return;
    case "image":
      return;
    default:
      jsonAt(part, path);
  }
}

export function optionalString(
  fields: Readonly<Record<string, unknown>>,
  key: string,
  path: string,
): string | undefined {
  return fields[key] === undefined ? undefined : stringAt(fields, key, path);
}

export function argsOf(call: { readonly args?: unknown; readonly input?: unknown }): unknown {
  return call.args ?? call.input ?? {};
}

function shown(value: unknown): string {
  return typeof value === "string" ? `"${value}"` : typeName(value);
}
