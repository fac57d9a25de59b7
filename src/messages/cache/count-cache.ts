/** What counting remembers for one counter: objects already counted, and texts, for messages that were parsed anew. */
import { ContextError } from "../../errors.ts";
import type { Counter } from "../../tokens/index.ts";
import { jsonAt } from "../fields.ts";
import type { ImageTier } from "../media/media-tokens.ts";
import type { MessageFormat } from "../message-format.ts";
import { createContentCache } from "./content-cache.ts";
import { isSameJson, type Snapshot } from "./snapshot.ts";

export interface CountCache {
  readonly messages: WeakMap<object, CountedMessage>;
  readonly tools: WeakMap<object, Counted>;
  readonly texts: TextCounter;
  readonly args: ArgumentsCounter;
  /** How often something was not remembered. A message that did not add to it is quicker read again than stored. */
  misses: number;
}

export interface TextCounter {
  /** To be told when a conversation begins: what was counted before is looked for in the order it had. */
  restart(): void;
  count(text: string): number;
}

export interface ArgumentsCounter {
  restart(): void;
  /** Tokens of a tool call's arguments as JSON. */
  count(value: unknown, path: string): number;
}

/** A count and what it was taken of: it holds only while all of that is still so. */
export interface Counted {
  readonly format: MessageFormat;
  readonly snapshot: Snapshot;
  readonly tokens: number;
}

export interface CountedMessage extends Counted {
  readonly tier: ImageTier;
}

/** The cache of a counter; it lives as long as the counter does. */
export function cacheOf(counter: Counter): CountCache {
  if (typeof counter?.count !== "function") {
    throw new ContextError("invalid_argument", "the second argument must be a counter", {
      hint: "Make one with await createCounter(name).",
    });
  }
  let cache = caches.get(counter);
  if (cache === undefined) {
    cache = createCache(counter);
    caches.set(counter, cache);
  }
  return cache;
}

const caches = new WeakMap<Counter, CountCache>();

function createCache(counter: Counter): CountCache {
  const count = (text: string): number => {
    cache.misses++;
    return counter.count(text);
  };
  const cache: CountCache = {
    messages: new WeakMap(),
    tools: new WeakMap(),
    texts: createTextCounter(count),
    args: createArgumentsCounter(count),
    misses: 0,
  };
  return cache;
}

/** Counts a text once as long as it is remembered. */
export function createTextCounter(count: (text: string) => number, maxChars?: number): TextCounter {
  const isSame = (kept: string, text: string) => kept === text;
  const cache = createContentCache<string>({ count, isSame, keep: (text) => text, maxChars });
  return { restart: cache.restart, count: (text) => cache.next(text) ?? cache.find(text, text) };
}

/** Counts arguments by their JSON; remembered ones are compared value by value, which spares writing that JSON. */
export function createArgumentsCounter(count: (json: string) => number, maxChars?: number): ArgumentsCounter {
  const keep = (_value: unknown, json: string) => (json === "" ? undefined : JSON.parse(json));
  const cache = createContentCache<unknown>({ count, isSame: isSameJson, keep, maxChars });
  return {
    restart: cache.restart,
    count: (value, path) => cache.next(value) ?? cache.find(value, jsonAt(value, path)),
  };
}
