import { ContextError } from "../errors.ts";
import type { Counter } from "../tokens/index.ts";
import { type CountCache, type CountedMessage, cacheOf } from "./count-cache.ts";
import { fail, fieldsAt, nameOf } from "./fields.ts";
import { formatNamed, formatOf, formats } from "./formats/index.ts";
import { type ImageTier, imageTierOf, imageTokens, pdfTokens, sealedTokens } from "./media-tokens.ts";
import type { FormatName, MessageFormat, Overheads, Piece } from "./message-format.ts";

export interface CountOptions {
  /** Absent: recognised from the messages. */
  format?: FormatName | undefined;
  /** Decides what images and the provider's tool prompt cost; absent or unknown: the dearest. */
  model?: string | undefined;
}

/** Tokens of a conversation as the provider bills it, with roles and wrappers; 0 only for no messages. A system prompt
 *  outside the list counts as a message of role `system`. Costs what is new: a message object is counted once.
 *  Edits in place are noticed when they replace the content, add or remove parts or change the length of a part's text. */
export function countMessages(
  messages: readonly object[],
  counter: Counter,
  options: CountOptions = {},
): number {
  if (!Array.isArray(messages)) return fail("messages", `must be an array, not ${nameOf(messages)}`);
  if (messages.length === 0) return 0;
  const context = contextFor(messages, counter, options);
  let tokens = context.format.overheads.request;
  for (let index = 0; index < messages.length; index++) tokens += countOne(messages[index], index, context);
  return tokens;
}

/** Tokens of one message without the frame of the request: `countMessages` is the sum of these and that frame. */
export function countMessage(message: object, counter: Counter, options: CountOptions = {}): number {
  return countOne(message, undefined, contextFor([message], counter, options));
}

/** The format that was asked for, or the one the messages show. */
export function chooseFormat(messages: readonly unknown[], name: FormatName | undefined): MessageFormat {
  if (name === undefined) return formatOf(messages);
  const format = formatNamed(name);
  if (format !== undefined) return format;
  throw new ContextError("invalid_argument", `unknown message format "${name}"`, {
    hint: `Formats are ${formats.map((each) => each.name).join(", ")}.`,
  });
}

interface CountContext {
  readonly format: MessageFormat;
  readonly tier: ImageTier;
  readonly cache: CountCache;
}

function contextFor(messages: readonly object[], counter: Counter, options: CountOptions): CountContext {
  const format = chooseFormat(messages, options.format);
  return { format, tier: imageTierOf(options.model), cache: cacheOf(counter) };
}

function countOne(message: unknown, index: number | undefined, context: CountContext): number {
  const known = context.cache.messages.get(message as object);
  if (known !== undefined && isCurrent(known, message as { content: unknown }, context)) return known.tokens;
  const path = index === undefined ? "message" : `messages[${index}]`;
  const fields = fieldsAt(message, path);
  const { pieces, parts } = context.format.read(fields, path);
  const { overheads } = context.format;
  let tokens = overheads.message + overheads.part * parts;
  for (const piece of pieces) tokens += countPiece(piece, overheads, context);
  const content = fields.content;
  const { format, tier } = context;
  context.cache.messages.set(fields, { format, tier, content, extent: extentOf(content), tokens });
  return tokens;
}

function isCurrent(known: CountedMessage, message: { content: unknown }, context: CountContext): boolean {
  return (
    known.content === message.content &&
    known.format === context.format &&
    known.tier === context.tier &&
    (typeof known.content === "string" || known.extent === extentOf(known.content))
  );
}

// Cheap enough for every message on every turn, and it moves when a caller pushes a part, streams into the
// last one or puts a placeholder in place of a tool result.
function extentOf(content: unknown): number {
  if (!Array.isArray(content)) return 0;
  let extent = content.length;
  for (const part of content)
    extent += 3 * lengthOf(part?.text) + 5 * lengthOf(part?.thinking) + 7 * lengthOf(part?.content);
  return extent;
}

function lengthOf(value: unknown): number {
  return typeof value === "string" || Array.isArray(value) ? value.length : 0;
}

function countPiece(piece: Piece, overheads: Overheads, { cache, tier }: CountContext): number {
  switch (piece.kind) {
    case "tool_call":
      return overheads.toolCall + cache.countText(piece.name) + cache.countArguments(piece.args, piece.path);
    case "tool_result":
      return overheads.toolResult + cache.countText(piece.text);
    case "thinking":
    case "sealed": {
      const readable = { bytes: Buffer.byteLength(piece.text), tokens: cache.countText(piece.text) };
      return sealedTokens(piece.sealed, readable);
    }
    case "image":
      return imageTokens(piece.data, tier);
    case "document":
      return pdfTokens(piece.data);
    default:
      return cache.countText(piece.text);
  }
}
