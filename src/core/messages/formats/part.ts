/** Edits for formats whose parts are the blocks of `content`, or `content` itself if it is a string. */
import { ContextError } from "../../errors.ts";
import type { Fields } from "../../text/index.ts";
import { jsonAt, withoutCacheMarkers } from "../fields.ts";
import { isSameJson } from "../json-snapshot.ts";
import type { Part, PartEdits, PartReplacement, Piece } from "../message-format.ts";

/** Sets the text of a block, or its input. Returns the same block if it already has that. */
type ReplaceBlock = (block: Fields, replacement: PartReplacement) => Fields;

export function editContent(message: Fields, edits: PartEdits, replace: ReplaceBlock): Fields | undefined {
  if (edits.size === 0) return message;
  const { content } = message;
  if (!Array.isArray(content)) {
    const edit = edits.get(0);
    if (edit === undefined) return message;
    return edit.action === "drop" ? undefined : withField(message, "content", edit.text);
  }
  const blocks = editBlocks(content, edits, replace);
  if (blocks === content) return message;
  return blocks.length === 0 ? undefined : { ...message, content: blocks };
}

/** Returns the same list if nothing changes. */
export function editBlocks(blocks: readonly unknown[], edits: PartEdits, replace: ReplaceBlock): readonly unknown[] {
  const edited: unknown[] = [];
  let isChanged = false;
  for (let index = 0; index < blocks.length; index++) {
    const block = blocks[index];
    const edit = edits.get(index);
    if (edit?.action === "drop") isChanged = true;
    else edited.push(edit === undefined ? block : replace(block as Fields, edit));
    if (edit?.action === "replace" && edited.at(-1) !== block) isChanged = true;
  }
  return isChanged ? edited : blocks;
}

/** Sets a field of a block. Returns the same block if the field already has that value. */
export function withField(block: Fields, name: string, value: unknown): Fields {
  return block[name] === value ? block : { ...block, [name]: value };
}

/** Returns the input of a trimmed call, and the same object if it is already trimmed like that. */
export function trimmedInput(input: unknown, { text, input: kept }: PartReplacement): unknown {
  if (kept !== undefined) return isSameJson(input, kept) ? input : kept;
  const { trimmed, ...rest } = Object(input) as Fields;
  return trimmed === text && Object.keys(rest).length === 0 ? input : { trimmed: text };
}

export function refuseReplace(kind: unknown): never {
  throw new ContextError("invalid_argument", `a part of type ${JSON.stringify(kind)} cannot be replaced`, {
    hint: "Drop it, or leave it as it is.",
  });
}

/** Counts unknown content by its JSON, which is rather too much than too little. */
export function unknownPiece(value: Fields, path: string): Piece {
  return { kind: "text", text: jsonAt(withoutCacheMarkers(value), path) };
}

/** Joins the content of two messages into one list. A string becomes a text block. */
export function joinContent(first: Fields, second: Fields): Fields {
  return { ...second, ...first, content: [...toBlocks(first.content), ...toBlocks(second.content)] };
}

function toBlocks(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : [{ type: "text", text: content }];
}

/** Creates a part. All parts have the same fields in the same order, which keeps reading fast. */
export function createPart({ kind, pieces, value, callId, toolName, isBound, exchangeRole }: Part): Part {
  return { kind, pieces, value, callId, toolName, isBound, exchangeRole };
}

/** Creates the part of content that is a plain string. */
export function textPart(text: string): Part {
  return createPart({ kind: "text", pieces: [{ kind: "text", text }], value: text });
}

/** Callers may put anything into a name. Returns undefined for a value that is not a string. */
export function nameIn(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
