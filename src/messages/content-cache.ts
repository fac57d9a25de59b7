/** Counts remembered by content, for messages that were parsed anew: as strings and objects they are new, in content not. */

export interface ContentCache<T> {
  /** What was set for content that is the same. */
  get(key: number, content: T): number | undefined;
  set(key: number, content: T, count: { tokens: number; chars: number }): void;
}

/** Two generations of at most `maxChars` each: what was not asked for while one filled up is forgotten. */
export function createContentCache<T>(
  maxChars: number,
  isSame: (left: T, right: T) => boolean,
): ContentCache<T> {
  let young: Generation<T> = new Map();
  let old: Generation<T> = new Map();
  let youngChars = 0;
  const keep = (key: number, counted: Counted<T>): void => {
    if (counted.chars > maxChars) return;
    if (youngChars + counted.chars > maxChars) {
      old = young;
      young = new Map();
      youngChars = 0;
    }
    const bucket = young.get(key);
    if (bucket !== undefined && bucket.length >= maxSameKey) return;
    if (bucket === undefined) young.set(key, [counted]);
    else bucket.push(counted);
    youngChars += counted.chars;
  };
  const find = (generation: Generation<T>, key: number, content: T): Counted<T> | undefined => {
    const bucket = generation.get(key);
    if (bucket !== undefined)
      for (const counted of bucket) if (isSame(counted.content, content)) return counted;
    return undefined;
  };
  return {
    get(key, content) {
      const known = find(young, key, content);
      if (known !== undefined) return known.tokens;
      const aged = find(old, key, content);
      if (aged !== undefined) keep(key, aged);
      return aged?.tokens;
    },
    set: (key, content, count) => keep(key, { content, ...count }),
  };
}

/** A key from a sample of the text. Not a Map keyed by the text: V8 hashes every character of a fresh string at about the
 *  speed of JSON.parse, while comparing it with the remembered text of that key runs at the speed of memory. */
export function sampleKey(text: string): number {
  const step = Math.max(1, text.length >> 4);
  let key = text.length;
  for (let index = text.length - 1; index >= 0; index -= step) {
    key = (Math.imul(key, 31) + text.charCodeAt(index)) | 0;
  }
  return key >> 1; // a small integer in V8
}

interface Counted<T> {
  readonly content: T;
  readonly tokens: number;
  readonly chars: number;
}

type Generation<T> = Map<number, Counted<T>[]>;

// Contents that differ outside the sample; further ones are not kept.
const maxSameKey = 16;
