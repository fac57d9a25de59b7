/** Edits for formats whose parts are the blocks of `content`, or `content` itself where that is a string. */
import { ContextError } from "../../errors.ts";
import type { Fields } from "../fields.ts";
import type { PartEdits } from "../message-format.ts";

/** The block with another text: the same block where it already has it. */
export type ReplaceBlock = (block: Fields, text: string) => Fields;

export function editContent(message: Fields, edits: PartEdits, replace: ReplaceBlock): Fields | undefined {
  if (edits.size === 0) return message;
  const { content } = message;
  if (!Array.isArray(content)) return editString(message, edits);
  const blocks = editBlocks(content, edits, replace);
  if (blocks === content) return message;
  return blocks.length === 0 ? undefined : { ...message, content: blocks };
}

/** The same list when nothing changes. */
export function editBlocks(
  blocks: readonly unknown[],
  edits: PartEdits,
  replace: ReplaceBlock,
): readonly unknown[] {
  const edited: unknown[] = [];
  let isChanged = false;
  for (let index = 0; index < blocks.length; index++) {
    const block = blocks[index];
    const edit = edits.get(index);
    if (edit?.action === "drop") isChanged = true;
    else edited.push(edit === undefined ? block : replace(block as Fields, edit.text));
    if (edit?.action === "replace" && edited.at(-1) !== block) isChanged = true;
  }
  return isChanged ? edited : blocks;
}

/** The block with this field set; the same block where it is so already. */
export function withField(block: Fields, name: string, value: unknown): Fields {
  return block[name] === value ? block : { ...block, [name]: value };
}

/** The input of a call that was trimmed; the same object where it is that already. */
export function trimmedInput(input: unknown, text: string): unknown {
  const { trimmed, ...rest } = Object(input) as Fields;
  return trimmed === text && Object.keys(rest).length === 0 ? input : { trimmed: text };
}

export function refuseReplace(kind: unknown): never {
  throw new ContextError("invalid_argument", `a part of type ${JSON.stringify(kind)} cannot be replaced`, {
    hint: "Drop it, or leave it as it is.",
  });
}

/** The content of two messages as one list; a string becomes a text block. */
export function joinContent(first: Fields, second: Fields): Fields {
  return { ...second, ...first, content: [...blocksOf(first.content), ...blocksOf(second.content)] };
}

function blocksOf(content: unknown): readonly unknown[] {
  return Array.isArray(content) ? content : [{ type: "text", text: content }];
}

function editString(message: Fields, edits: PartEdits): Fields | undefined {
  const edit = edits.get(0);
  if (edit === undefined) return message;
  return edit.action === "drop" ? undefined : withField(message, "content", edit.text);
}
