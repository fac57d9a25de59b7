/** Parts as every format makes them: the same fields in the same order, which keeps reading fast. */
import type { Part } from "../message-format.ts";

export function createPart({ kind, pieces, value, callId, toolName, isBound, exchangeRole }: Part): Part {
  return { kind, pieces, value, callId, toolName, isBound, exchangeRole };
}

/** Content that is a plain string. */
export function textPart(text: string): Part {
  return createPart({ kind: "text", pieces: [{ kind: "text", text }], value: text });
}

/** Names come from callers: what is no text is none. */
export function nameIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
