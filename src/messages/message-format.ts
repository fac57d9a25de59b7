/** One message format: a lens over the caller's own objects. A further format is one file in `formats/` and one line in its index. */
import type { Fields } from "./fields.ts";

export interface MessageFormat {
  readonly name: FormatName;
  readonly overheads: Overheads;
  /** True when the message can be of no other format; plain text in a known role is claimed by none. */
  claims(message: Fields): boolean;
  /** The message as parts, in its own order. Throws `invalid_message` with the JSON path of what is malformed. */
  read(message: Fields, path: string): Reading;
  /** The message with some parts replaced or dropped, named by their index in `read(message).parts`. All else, unknown fields
   *  included, stays the caller's own; the same object when nothing changes, undefined when no part is left. */
  edit(message: Fields, edits: PartEdits): Fields | undefined;
  /** The message without what ties its text to other content of the same answer (`isBound`), for where that is gone; the same object when
   *  nothing does. */
  detach(message: Fields): Fields;
  /** Two neighbours of one role as one message; undefined where the format needs them apart. */
  merge(first: Fields, second: Fields): Fields | undefined;
  /** A message of the assistant with nothing but this text. */
  assistantText(text: string): Fields;
  /** A message with nothing but the result of a call. */
  toolResult(call: CallName, text: string): Fields;
  readTool(tool: Fields, path: string): ToolReading;
  /** Tokens of the system prompt that the provider adds as soon as a request has tools. */
  toolPromptTokens(model: string | undefined, toolChoice: ToolChoice): number;
}

export const formatNames = ["anthropic", "openai", "responses", "ai-sdk", "rfc"] as const;
export type FormatName = (typeof formatNames)[number];
export const toolChoices = ["auto", "any", "tool", "none"] as const;
export type ToolChoice = (typeof toolChoices)[number];
/** `tool` is a message that holds tool results and nothing else; Anthropic has none, its results live in user messages. */
export type Role = "system" | "user" | "assistant" | "tool";

export interface Reading {
  readonly role: Role;
  readonly parts: readonly Part[];
  /** Parts that are billed with a separator: the length of the content list, 0 where the content is a plain string. */
  readonly separators: number;
}

/** What trimming can tell apart in a message. `other` is never edited: what belongs to it is not known. */
export interface Part {
  readonly kind: PartKind;
  readonly pieces: readonly Piece[];
  /** The caller's own block, item or string. */
  readonly value: unknown;
  /** Pairs a call with its result. */
  readonly callId?: string | undefined;
  readonly toolName?: string | undefined;
  /** Set on thinking that the provider ties to its neighbours, which goes with them or stays; on a call that it may tie to the thinking
   *  before it; and on a text that refers to other content of its answer, by an item id or by citations: see `detach`. */
  readonly isBound?: boolean | undefined;
  /** On `other`: what it is of an exchange that can go as a whole, though no text can be put there; `both` is a call with its result. */
  readonly exchangeRole?: "call" | "result" | "both" | undefined;
}
export type PartKind = "text" | "thinking" | "tool_call" | "tool_result" | "media" | "other";

export type PartEdits = ReadonlyMap<number, PartEdit>;
/** `replace` sets the text of a text part, the whole content of a result, or the input of a call, which stays an object: `{ "trimmed": text }`. */
export type PartEdit = { readonly action: "drop" } | { readonly action: "replace"; readonly text: string };

export interface CallName {
  readonly callId: string;
  readonly toolName: string | undefined;
  /** The type of the call's own block or item: some formats answer each type in a shape of its own. */
  readonly type?: unknown;
}

/** One thing the provider bills. A tool call carries its arguments, which are billed as JSON, and their path. */
export type Piece =
  | { readonly kind: "text" | "tool_result"; readonly text: string }
  | { readonly kind: "tool_call"; readonly name: string; readonly args: unknown; readonly path: string }
  /** Encrypted content that the provider opens, such as thinking; `text` is the part of it that is readable, if any. */
  | { readonly kind: "sealed"; readonly text: string; readonly sealed: string }
  /** `data` is base64; undefined where only a URL or a file id is known. */
  | { readonly kind: "image" | "document"; readonly data: string | undefined };

export interface ToolReading {
  readonly text: string;
  /** What the provider bills for a tool whose definition it holds itself. */
  readonly fixedTokens: number;
}

/** Tokens that are in no text: roles, wrappers, separators. */
export interface Overheads {
  readonly request: number;
  readonly message: number;
  readonly part: number;
  readonly toolCall: number;
  readonly toolResult: number;
  readonly tool: number;
  /** Factor on a tool definition's text. */
  readonly toolFactor: number;
}
