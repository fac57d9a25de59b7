/** What a trimmer is asked to reduce, in the shapes that requests have. */
import { ContextError } from "../errors.ts";
import type { FormatName } from "../messages/index.ts";

export interface TrimRequest<Message extends object = object> {
  readonly messages: readonly Message[];
  /** System text that is in no message. */
  readonly system?: unknown;
  readonly tools?: readonly object[] | undefined;
}

/** As OpenAI's responses have it: `input` stands for the messages, `instructions` for the system text. */
export interface ResponsesRequest<Item extends object = object> {
  readonly input: string | readonly Item[];
  readonly instructions?: string | null | undefined;
  readonly tools?: readonly object[] | undefined;
}

export interface RequestParts extends TrimRequest {
  /** Where the request itself tells. */
  readonly format?: FormatName | undefined;
}

export function partsOf(request: TrimRequest | ResponsesRequest): RequestParts {
  const fields = Object(request) as Partial<TrimRequest & ResponsesRequest>;
  const { messages, system, input, instructions, tools } = fields;
  if (messages === undefined && input !== undefined) {
    const items = typeof input === "string" ? [{ role: "user", content: input }] : listAt(input, "input");
    return { messages: items, system: system ?? instructions, tools, format: "responses" };
  }
  return { messages: listAt(messages, "messages"), system, tools };
}

function listAt(value: unknown, name: string): readonly object[] {
  if (Array.isArray(value)) return value;
  const given = value === null ? "null" : typeof value;
  throw new ContextError("invalid_message", `${name} must be an array, not ${given}`, {
    hint: "Pass { messages, system, tools }, or { input, instructions, tools } of OpenAI's responses.",
  });
}
