/** What the parts of a message count: the one place where tokens of pieces and overheads come together. */
import type { Counter } from "../tokens/index.ts";
import { type CountCache, cacheOf } from "./cache/count-cache.ts";
import { chooseFormat } from "./formats/index.ts";
import { type ImageTier, imageTierOf, imageTokens, pdfTokens, sealedTokens } from "./media/media-tokens.ts";
import type { FormatName, MessageFormat, Overheads, Part, Piece, Reading } from "./message-format.ts";

export interface CountOptions {
  /** Absent: recognised from the messages. */
  format?: FormatName | undefined;
  /** Decides what images and the provider's tool prompt cost; absent or unknown: the dearest. */
  model?: string | undefined;
}

/** How encrypted content counts: as the provider bills it, or by its readable text alone. */
export type SealedCounting = "billed" | "readable";

export interface CountContext {
  readonly format: MessageFormat;
  readonly tier: ImageTier;
  readonly sealed: SealedCounting;
  readonly cache: CountCache;
}

export function createCountContext(
  messages: readonly unknown[],
  counter: Counter,
  options: CountOptions & { sealed?: SealedCounting | undefined },
): CountContext {
  const format = chooseFormat(messages, options.format);
  const tier = imageTierOf(options.model);
  return { format, tier, sealed: options.sealed ?? "billed", cache: cacheOf(counter) };
}

/** Tokens of a message that are in none of its parts. */
export function frameTokens({ separators }: Reading, { message, part }: Overheads): number {
  return message + part * separators;
}

export function countPart(part: Part, context: CountContext): number {
  let tokens = 0;
  for (const piece of part.pieces) tokens += countPiece(piece, context);
  return tokens;
}

function countPiece(piece: Piece, { cache, tier, format, sealed }: CountContext): number {
  switch (piece.kind) {
    case "tool_call": {
      const { name, args, path } = piece;
      // OpenAI's arguments are JSON text already: billed as they are, not as a string within JSON.
      const argsTokens = typeof args === "string" ? cache.texts.count(args) : cache.args.count(args, path);
      return format.overheads.toolCall + cache.texts.count(name) + argsTokens;
    }
    case "tool_result":
      return format.overheads.toolResult + cache.texts.count(piece.text);
    case "sealed": {
      const tokens = cache.texts.count(piece.text);
      if (sealed === "readable") return tokens;
      return sealedTokens(piece.sealed, { bytes: Buffer.byteLength(piece.text), tokens });
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
