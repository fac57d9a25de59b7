/** The RFC's estimator for a message of any format. On its own shape it gives the same numbers as `tokensOf`. */
import type { CountedMessage, CountedPart, Piece } from "../../messages/index.ts";
import {
  bytesToTokens,
  imageTokens,
  messageOverhead,
  partOverhead,
  placeholder,
  wrapperBytes,
} from "./estimate-tokens.ts";

export interface MessageEstimate {
  /** Results are what the RFC calls a tool message, in whatever role the format puts them. */
  readonly role: CountedMessage["role"];
  readonly full: number;
  readonly trimmed: number;
}

export function estimateMessage({ role, parts }: CountedMessage, source: object): MessageEstimate {
  const isPlain = "content" in source && typeof source.content === "string";
  const overhead = isPlain ? 0 : partOverhead;
  let full = messageOverhead;
  let trimmed = messageOverhead;
  let hasResult = false;
  for (const part of parts) {
    const tokens = overhead + tokensOf(part);
    full += tokens;
    trimmed += isDropped(part, role) ? 0 : overhead + (placeholderTokens(part, role) ?? tokensOf(part));
    hasResult ||= part.kind === "tool_result";
  }
  return { role: hasResult && role !== "assistant" ? "tool" : role, full, trimmed };
}

function tokensOf(part: CountedPart): number {
  if (part.kind === "tool_result")
    return bytesToTokens(bytesOf(part.pieces) + wrapperBytes) + pictures(part.pieces);
  return bytesToTokens(bytesOf(part.pieces)) + pictures(part.pieces);
}

function bytesOf(pieces: readonly Piece[]): number {
  let bytes = 0;
  for (const piece of pieces) {
    if (piece.kind === "tool_call") bytes += callBytes(piece) + wrapperBytes;
    else if ("text" in piece) bytes += Buffer.byteLength(piece.text);
  }
  return bytes;
}

function callBytes({ name, args }: Extract<Piece, { kind: "tool_call" }>): number {
  const json = typeof args === "string" ? args : (JSON.stringify(args) ?? "");
  return Buffer.byteLength(name) + Buffer.byteLength(json);
}

function pictures(pieces: readonly Piece[]): number {
  return imageTokens * pieces.filter(({ kind }) => kind === "image" || kind === "document").length;
}

function isDropped(part: CountedPart, role: string): boolean {
  return part.kind === "thinking" && role === "assistant" && part.isBound !== true;
}

/** Undefined for a part that trimming leaves as it is. */
function placeholderTokens(part: CountedPart, role: string): number | undefined {
  if (part.kind === "tool_result") return bytesToTokens(Buffer.byteLength(placeholder) + wrapperBytes);
  return part.kind === "text" && (role === "assistant" || role === "tool")
    ? bytesToTokens(Buffer.byteLength(placeholder))
    : undefined;
}
