/** A message format: reads and edits the caller's own objects. To add one: a file in `formats/` and a line in its
 *  index. */
import type { Fields } from "../text/index.ts";

export interface MessageFormat {
  readonly name: FormatName;
  readonly overheads: Overheads;
  /** Returns true if the message can only be of this format. No format claims plain text in a common role. */
  claims(message: Fields): boolean;
  /** Reads the message as parts, in order. Throws `invalid_message` with the JSON path of what is malformed. */
  read(message: Fields, path: string): Reading;
  /** Replaces or drops parts, named by their index in `read(message).parts`. Everything else, unknown fields included,
   *  stays the caller's own. Returns the same object if nothing changes, and undefined if no part is left. */
  edit(message: Fields, edits: PartEdits): Fields | undefined;
  /** Removes what ties the message's text to other content of the same answer (`isBound`), for when that content is
   *  removed. Returns the same object if nothing does. */
  detach(message: Fields): Fields;
  /** Merges two neighbours of the same role. Returns undefined if the format needs them apart. */
  merge(first: Fields, second: Fields): Fields | undefined;
  /** Makes a user message with this text only. */
  userText(text: string): Fields;
  /** Makes an assistant message with this text only. */
  assistantText(text: string): Fields;
  /** Makes a message with the result of a call only. */
  toolResult(call: CallName, text: string): Fields;
  readTool(tool: Fields, path: string): ToolReading;
  /** Returns the tokens of the system prompt that the provider adds if a request has tools. */
  toolPromptTokens(model: string | undefined, toolChoice: ToolChoice): number;
}

/**
 * The names of all message formats: Anthropic, OpenAI chat, OpenAI responses, AI SDK, Gemini and the context-engineering
 * RFC.
 *
 * @example
 * ```ts
 * import { formatNames } from "plimsoll/messages";
 *
 * console.log(`Formats: ${formatNames.join(", ")}`);
 * ```
 */
export const formatNames = ["anthropic", "openai", "responses", "ai-sdk", "gemini", "rfc"] as const;
/** The name of a message format. */
export type FormatName = (typeof formatNames)[number];
export type ToolChoice = "auto" | "any" | "tool" | "none";
/** `tool` is a message with tool results only. Anthropic does not have it: its results are in user messages. */
export type Role = "system" | "user" | "assistant" | "tool";

export interface Reading {
  readonly role: Role;
  readonly parts: readonly Part[];
  /** The number of parts that are billed with a separator: the length of the content list, or 0 for a plain string. */
  readonly separators: number;
}

/** A piece of a message that can be trimmed separately. `other` is never edited, because its meaning is not known. */
export interface Part {
  readonly kind: PartKind;
  readonly pieces: readonly Piece[];
  /** The caller's own block, item or string. */
  readonly value: unknown;
  /** Pairs a call with its result. */
  readonly callId?: string | undefined;
  readonly toolName?: string | undefined;
  /** Set on thinking that the provider ties to its neighbours; on a call that it may tie to the thinking before it; and
   *  on a text that refers to other content of its answer, by an item id or by citations (see `detach`). */
  readonly isBound?: boolean | undefined;
  /** Set on `other`: its role in an exchange that can be removed as a whole. `both` is a call with its result. */
  readonly exchangeRole?: "call" | "result" | "both" | undefined;
}
export type PartKind = "text" | "thinking" | "tool_call" | "tool_result" | "media" | "other";

export type PartEdits = ReadonlyMap<number, PartEdit>;
/** `replace` sets the text of a text part, the whole content of a result, or the input of a call. An input stays an
 *  object: `input`, or `{ "trimmed": text }` without it. */
export type PartEdit = { readonly action: "drop" } | PartReplacement;
export interface PartReplacement {
  readonly action: "replace";
  readonly text: string;
  readonly input?: Fields | undefined;
}

export interface CallName {
  readonly callId: string;
  readonly toolName: string | undefined;
  /** The type of the call's block or item. Some formats answer each type in a different shape. */
  readonly type?: unknown;
}

/** Something that the provider bills. A tool call has its arguments, which are billed as JSON, and their path. */
export type Piece =
  | { readonly kind: "text" | "tool_result"; readonly text: string }
  | { readonly kind: "tool_call"; readonly name: string; readonly args: unknown; readonly path: string }
  /** Encrypted content, such as thinking. `text` is its readable part, if any. */
  | { readonly kind: "sealed"; readonly text: string; readonly sealed: string }
  /** `data` is base64; undefined if only a URL or a file id is known. */
  | { readonly kind: "image" | "document"; readonly data: string | undefined };

export interface ToolReading {
  readonly text: string;
  /** What the provider bills for a tool whose definition it holds itself. */
  readonly fixedTokens: number;
}

/** Tokens that are not in any text: roles, wrappers, separators. */
export interface Overheads {
  readonly request: number;
  readonly message: number;
  readonly part: number;
  readonly toolCall: number;
  readonly toolResult: number;
  readonly tool: number;
  /** A factor on the tokens of a tool definition's text. */
  readonly toolFactor: number;
}
