/** Texts that say nothing, neighbours of one role, and the few messages that normalising makes itself. */
import type { Fields } from "../fields.ts";
import type { MessageFormat, Part, PartEdit } from "../message-format.ts";

/** The messages without empty texts, neighbours merged where the format does. */
export function tidyMessages(messages: readonly Fields[], format: MessageFormat): readonly Fields[] {
  const kept: Fields[] = [];
  for (const message of messages) {
    const tidied = dropParts(message, format, isBlank);
    if (tidied !== undefined) kept.push(tidied);
  }
  return mergeNeighbours(kept, format);
}

export function mergeNeighbours(messages: readonly Fields[], format: MessageFormat): readonly Fields[] {
  const merged: Fields[] = [];
  for (const message of messages) {
    const last = merged.at(-1);
    const both = last === undefined ? undefined : format.merge(last, message);
    if (both === undefined) merged.push(message);
    else merged[merged.length - 1] = both;
  }
  return merged;
}

/** The message without some parts; undefined when it has none left, or had none. */
export function dropParts(
  message: Fields,
  format: MessageFormat,
  isDropped: (part: Part, index: number) => boolean,
): Fields | undefined {
  const { parts } = format.read(message, "message");
  const edits = new Map<number, PartEdit>();
  for (const [index, part] of parts.entries())
    if (isDropped(part, index)) edits.set(index, { action: "drop" });
  return parts.length === 0 ? undefined : format.edit(message, edits);
}

// The API of Anthropic refuses text without a visible character just as it does an empty one.
export function isBlank({ kind, pieces }: Part): boolean {
  return kind === "text" && pieces.every((piece) => "text" in piece && piece.text.trim() === "");
}

/** True for a format whose messages are single items, of which several make a turn: there not even two texts are merged. */
export function keepsItemsApart(format: MessageFormat): boolean {
  return format.merge(format.assistantText("a"), format.assistantText("b")) === undefined;
}

export function userText(text: string, format: MessageFormat): Fields {
  return { role: "user", content: keepsItemsApart(format) ? text : [{ type: "text", text }] };
}
