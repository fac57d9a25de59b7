/** What counting remembers for one counter: message objects already counted, and texts, for messages that were parsed anew. */
import { ContextError } from "../errors.ts";
import type { Counter } from "../tokens/index.ts";
import { createContentCache, sampleKey } from "./content-cache.ts";
import { type Fields, jsonAt } from "./fields.ts";
import type { ImageTier } from "./media-tokens.ts";
import type { MessageFormat } from "./message-format.ts";

export interface CountCache {
  readonly messages: WeakMap<object, CountedMessage>;
  readonly tools: WeakMap<object, CountedMessage>;
  countText(text: string): number;
  /** Tokens of a tool call's arguments as JSON. */
  countArguments(value: unknown, path: string): number;
}

/** A count and what it was taken of: an entry holds only while all of that is still so. */
export interface CountedMessage {
  readonly format: MessageFormat;
  readonly tier: ImageTier | undefined;
  readonly content: unknown;
  readonly extent: number;
  readonly tokens: number;
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
    const countText = createTextCounter(counter);
    const countArguments = createArgumentsCounter(counter);
    cache = { messages: new WeakMap(), tools: new WeakMap(), countText, countArguments };
    caches.set(counter, cache);
  }
  return cache;
}

const caches = new WeakMap<Counter, CountCache>();

/** Counts a text once as long as it is remembered; short ones are quicker counted than looked up. */
export function createTextCounter(
  counter: Counter,
  maxChars: number = maxCachedChars,
): (text: string) => number {
  if (lengthCounter.test(counter.name)) return (text) => counter.count(text);
  const cache = createContentCache<string>(maxChars, (left, right) => left === right);
  return (text) => {
    if (text.length < minCachedChars) return counter.count(text);
    const key = sampleKey(text);
    const known = cache.get(key, text);
    if (known !== undefined) return known;
    const tokens = counter.count(text);
    cache.set(key, text, { tokens, chars: text.length });
    return tokens;
  };
}

/** Counts arguments by their JSON; flat ones that are remembered are compared field by field, which spares writing that JSON. */
export function createArgumentsCounter(counter: Counter): (value: unknown, path: string) => number {
  const cache = createContentCache<Fields>(maxCachedChars, isSameFlat);
  return (value, path) => {
    const key = flatKey(value);
    const known = key === undefined ? undefined : cache.get(key, value as Fields);
    if (known !== undefined) return known;
    const json = jsonAt(value, path);
    const tokens = counter.count(json);
    if (key !== undefined) cache.set(key, { ...(value as Fields) }, { tokens, chars: json.length });
    return tokens;
  };
}

// A few long sessions; a single tool result of 10 MB still fits. Two generations hold at most twice that.
const maxCachedChars = 16_000_000;
// Measured with a counter of about 200 MB/s: from here on a look-up takes half the time of counting, or less.
const minCachedChars = 64;
// Dividing a length is cheaper than any look-up.
const lengthCounter = /^(?:bytes|chars)\//;

/** A key for a plain object of plain values; undefined for anything that JSON might write differently than it looks. */
function flatKey(value: unknown): number | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Object.getPrototypeOf(value) !== Object.prototype) return undefined;
  let key = 0;
  for (const name of Object.keys(value)) {
    const field = (value as Fields)[name];
    if (typeof field === "string") key = (Math.imul(key, 31) + sampleKey(field)) | 0;
    else if (typeof field === "number") key = (Math.imul(key, 31) + field) | 0;
    else if (typeof field !== "boolean" && field !== null) return undefined;
  }
  return key >> 1;
}

// In order too: the JSON follows it.
function isSameFlat(left: Fields, right: Fields): boolean {
  const names = Object.keys(left);
  const others = Object.keys(right);
  if (names.length !== others.length) return false;
  return names.every((name, index) => name === others[index] && Object.is(left[name], right[name]));
}
