/** Counts the parts of messages, and remembers what was counted. */
import { Buffer } from "../bytes.ts";
import { ContextError } from "../errors.ts";
import type { Counter } from "../tokens/index.ts";
import { jsonAt } from "./fields.ts";
import { chooseFormat } from "./formats/index.ts";

import { isSameJson } from "./json-snapshot.ts";
import { type ImageTier, mediaTokens } from "./media-tokens.ts";
import type { FormatName, MessageFormat, Overheads, Part, Piece, Reading } from "./message-format.ts";

/** The settings of `countMessages`. */
export interface CountOptions {
  /** The shape of the messages. By default it is detected from the messages. */
  readonly format?: FormatName | undefined;
  /** The model's id. It decides what images and the provider's tool prompt cost.
   * @default the most expensive model */
  readonly model?: string | undefined;
}

/** How to count encrypted content: as the provider bills it, or only its readable text. */
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
  const tier = mediaTokens.tierOf(options.model);
  return { format, tier, sealed: options.sealed ?? "billed", cache: getCache(counter) };
}

/** Returns the tokens of a message that are not in its parts. */
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
      // OpenAI's arguments are already JSON text. They are billed as they are, not as a string within JSON.
      const argsTokens = typeof args === "string" ? cache.texts.count(args) : cache.args.count(args, path);
      return format.overheads.toolCall + cache.texts.count(name) + argsTokens;
    }
    case "tool_result":
      return format.overheads.toolResult + cache.texts.count(piece.text);
    case "sealed": {
      const tokens = cache.texts.count(piece.text);
      if (sealed === "readable") return tokens;
      return mediaTokens.sealed(piece.sealed, { bytes: Buffer.byteLength(piece.text), tokens });
    }
    case "image":
      cache.misses++;
      return mediaTokens.image(piece.data, tier);
    case "document":
      cache.misses++;
      return mediaTokens.pdf(piece.data);
    default:
      return cache.texts.count(piece.text);
  }
}

/** What counting remembers for one counter: counted objects, and texts for messages that are parsed again. */
interface CountCache {
  readonly messages: WeakMap<object, Counted & { readonly tier: ImageTier }>;
  readonly tools: WeakMap<object, Counted>;
  readonly texts: ContentCounter<string>;
  /** Counts the arguments of a tool call as JSON. */
  readonly args: ContentCounter<unknown>;
  /** How often something was not found. A message without a miss is faster to read again than to remember. */
  misses: number;
}

/** A count and what it was taken from. It is valid only while all of that is unchanged. */
interface Counted {
  readonly format: MessageFormat;
  readonly isUnchanged: (value: unknown) => boolean;
  readonly tokens: number;
}

/** Returns the cache of a counter. It lives as long as the counter. */
export function getCache(counter: Counter): CountCache {
  if (typeof counter?.count !== "function") {
    throw new ContextError("invalid_argument", "the second argument must be a counter", {
      hint: "Make one with await createCounter(name).",
    });
  }
  let cache = caches.get(counter);
  if (cache === undefined) {
    const count = (text: string): number => {
      created.misses++;
      return counter.count(text);
    };
    const created: CountCache = {
      messages: new WeakMap(),
      tools: new WeakMap(),
      texts: createTextCounter(count),
      args: createArgumentsCounter(count),
      misses: 0,
    };
    caches.set(counter, created);
    cache = created;
  }
  return cache;
}

const caches = new WeakMap<Counter, CountCache>();

/** Counts a text once while it is remembered. */
export function createTextCounter(count: (text: string) => number, maxChars?: number): ContentCounter<string> {
  const isSame = (kept: string, text: string) => kept === text;
  return createContentCounter<string>({ count, isSame, write: (text) => text, keep: (text) => text, maxChars });
}

/** Counts arguments by their JSON. Remembered ones are compared value by value, which avoids writing the JSON. */
export function createArgumentsCounter(count: (json: string) => number, maxChars?: number): ContentCounter<unknown> {
  const keep = (json: string) => (json === "" ? undefined : JSON.parse(json));
  return createContentCounter<unknown>({ count, isSame: isSameJson, write: jsonAt, keep, maxChars });
}

/** Remembers counts by content, for messages that are parsed again: new objects with known content. A history comes
 *  back in the same order, so each content is first compared with what came next the last time. That runs at the speed
 *  of memory, however similar the contents are. A Map of texts would hash each new string, which is slower than
 *  JSON.parse. */
export interface ContentCounter<T> {
  /** Must be called when a conversation starts. From here on, contents are expected in the order they had before. */
  restart(): void;
  /** Errors name the content by `path`. */
  count(content: T, path?: string): number;
}

/** Remembers about `maxChars` characters, then starts over. Content that is still in use is then counted once more. */
function createContentCounter<T>({
  count,
  isSame,
  write,
  keep,
  // Enough for a few long sessions, or for a single tool result of 10 MB.
  maxChars = 32_000_000,
}: {
  readonly count: (text: string) => number;
  readonly isSame: (kept: T, content: T) => boolean;
  readonly write: (content: T, path: string) => string;
  /** Returns what to remember of a content. It must not be something that its owner may change. */
  readonly keep: (text: string) => T;
  readonly maxChars?: number | undefined;
}): ContentCounter<T> {
  // The memory used in addition to the text: for each content, and for each place in an order.
  const knownChars = 200;
  const slotChars = 8;
  let memory = emptyMemory<T>();
  const record = (known: Known<T>): number => {
    known.order = memory.order;
    known.at = memory.order.length;
    memory.order.push(known);
    memory.chars += slotChars;
    if (memory.chars > maxChars) memory = emptyMemory();
    return known.tokens;
  };
  /** Returns the count if the content is what came next the last time. Short, so that the compiler inlines it. */
  const next = (content: T): number | undefined => {
    const known = memory.expected[memory.expectedAt];
    if (known === undefined || !isSame(known.content, content)) return undefined;
    memory.expectedAt++;
    return record(known);
  };
  const find = (content: T, text: string): number => {
    if (text.length > maxChars) return count(text);
    const { places, key, known } = search(memory, text, (kept) => isSame(kept, content));
    if (known !== undefined) {
      memory.expected = known.order;
      memory.expectedAt = known.at + 1;
      return record(known);
    }
    // Unexpected content most often replaces the expected one (a placeholder, an edit). The rest then comes as before.
    memory.expectedAt++;
    memory.chars += text.length + knownChars;
    const added = { content: keep(text), tokens: count(text), order: memory.order, at: 0 };
    places.set(key, added);
    return record(added);
  };
  return {
    restart() {
      memory.expected = memory.order;
      memory.expectedAt = 0;
      memory.order = [];
    },
    count: (content, path = "") => next(content) ?? find(content, write(content, path)),
  };
}

interface Known<T> {
  readonly content: T;
  readonly tokens: number;
  /** Where it was last. */
  order: Known<T>[];
  at: number;
}

interface Memory<T> {
  readonly bySample: Map<number, Known<T>>;
  /** Contents whose sample equals that of another. Of two with the same hash, the newer one is kept. */
  readonly byHash: Map<number, Known<T>>;
  /** Since the last restart. */
  order: Known<T>[];
  expected: readonly Known<T>[];
  expectedAt: number;
  chars: number;
}

function emptyMemory<T>(): Memory<T> {
  return { bySample: new Map(), byHash: new Map(), order: [], expected: [], expectedAt: 0, chars: 0 };
}

function search<T>(memory: Memory<T>, text: string, isWanted: (kept: T) => boolean) {
  const sample = computeKey(text, Math.max(1, text.length >> 6));
  const sampled = memory.bySample.get(sample);
  if (sampled === undefined || isWanted(sampled.content)) {
    return { places: memory.bySample, key: sample, known: sampled };
  }
  const key = computeKey(text, 1);
  const known = memory.byHash.get(key);
  const isHit = known !== undefined && isWanted(known.content);
  return { places: memory.byHash, key, known: isHit ? known : undefined };
}

function computeKey(text: string, step: number): number {
  let key = text.length;
  for (let index = text.length - 1; index >= 0; index -= step) {
    key = (Math.imul(key, 31) + text.charCodeAt(index)) | 0;
  }
  return key >> 1; // fits a small integer of V8
}
