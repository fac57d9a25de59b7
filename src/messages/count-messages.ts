import { ContextError } from "../errors.ts";
import type { Counter } from "../tokens/index.ts";
import { type CountCache, cacheOf } from "./count-cache.ts";
import { fail, fieldsAt, nameOf } from "./fields.ts";
import { formatNamed, formatOf, formats } from "./formats/index.ts";
import { type ImageTier, imageTierOf, imageTokens, pdfTokens, sealedTokens } from "./media-tokens.ts";
import type { FormatName, MessageFormat, Overheads, Piece } from "./message-format.ts";
import { isUnchanged, takeSnapshot } from "./snapshot.ts";

export interface CountOptions {
  /** Absent: recognised from the messages. */
  format?: FormatName | undefined;
  /** Decides what images and the provider's tool prompt cost; absent or unknown: the dearest. */
  model?: string | undefined;
}

/** Tokens of a conversation as the provider bills it, with roles and wrappers; 0 only for no messages. A system prompt
 *  outside the list counts as a message of role `system`. Costs what is new: a message is counted once, also
 *  when it comes as another object with the same content. Edits in place are noticed. */
export function countMessages(
  messages: readonly object[],
  counter: Counter,
  options: CountOptions = {},
): number {
  if (!Array.isArray(messages)) return fail("messages", `must be an array, not ${nameOf(messages)}`);
  if (messages.length === 0) return 0;
  const context = contextFor(messages, counter, options);
  context.cache.texts.restart();
  context.cache.args.restart();
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
  const { format, tier, cache } = context;
  const known = cache.messages.get(message as object);
  if (known?.format === format && known.tier === tier && isUnchanged(message, known.snapshot)) {
    return known.tokens;
  }
  const path = index === undefined ? "message" : `messages[${index}]`;
  const fields = fieldsAt(message, path);
  const { pieces, parts } = format.read(fields, path);
  const missesBefore = cache.misses;
  let tokens = format.overheads.message + format.overheads.part * parts;
  for (const piece of pieces) tokens += countPiece(piece, format.overheads, context);
  if (cache.misses > missesBefore) {
    cache.messages.set(fields, { format, tier, snapshot: takeSnapshot(fields), tokens });
  }
  return tokens;
}

function countPiece(piece: Piece, overheads: Overheads, { cache, tier }: CountContext): number {
  switch (piece.kind) {
    case "tool_call":
      return overheads.toolCall + cache.texts.count(piece.name) + cache.args.count(piece.args, piece.path);
    case "tool_result":
      return overheads.toolResult + cache.texts.count(piece.text);
    case "sealed": {
      const readable = { bytes: Buffer.byteLength(piece.text), tokens: cache.texts.count(piece.text) };
      return sealedTokens(piece.sealed, readable);
    }
    case "image":
      cache.misses++;
      return imageTokens(piece.data, tier);
    case "document":
      cache.misses++;
      return pdfTokens(piece.data);
    default:
      return cache.texts.count(piece.text);
  }
}
