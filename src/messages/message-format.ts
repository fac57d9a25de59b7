/** What counting knows of a message format. A further format is one file in `formats/` and one line in its index. */
import type { Fields } from "./fields.ts";

export interface MessageFormat {
  readonly name: FormatName;
  readonly overheads: Overheads;
  /** True when the message can be of no other format; plain text in a known role is claimed by none. */
  claims(message: Fields): boolean;
  /** The billable pieces of a message. Throws `invalid_message` with the JSON path of what is malformed. */
  read(message: Fields, path: string): Reading;
  readTool(tool: Fields, path: string): ToolReading;
  /** Tokens of the system prompt that the provider adds as soon as a request has tools. */
  toolPromptTokens(model: string | undefined, toolChoice: ToolChoice): number;
}

export type FormatName = "anthropic" | "rfc";
export const toolChoices = ["auto", "any", "tool", "none"] as const;
export type ToolChoice = (typeof toolChoices)[number];

export interface Reading {
  readonly pieces: readonly Piece[];
  /** Length of the content list, 0 where the content is a plain string. */
  readonly parts: number;
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
