/** Counts remembered by content, for messages that were parsed anew: as strings and objects they are new, in content not. A history
 *  comes back in the order it had, so each content is first compared with what came next the last time. That runs at the speed of
 *  memory however alike the contents are, while hashing a fresh string, as a Map of texts would, is slower than JSON.parse. */

export interface ContentCache<T> {
  /** From here on the contents come in the order they had after the last restart, as far as is known. */
  restart(): void;
  /** The count of content that is the same as what came next the last time. */
  next(content: T): number | undefined;
  /** The count of content that came unexpectedly: found by its text, or taken now. */
  find(content: T, text: string): number;
}

export interface ContentCacheOptions<T> {
  readonly count: (text: string) => number;
  readonly isSame: (kept: T, content: T) => boolean;
  /** What to remember of a content: nothing that its owner may change. */
  readonly keep: (content: T, text: string) => T;
  readonly maxChars?: number | undefined;
}

/** Remembers about `maxChars` at most, then starts anew: what is still in use is counted once more. */
export function createContentCache<T>(options: ContentCacheOptions<T>): ContentCache<T> {
  const { count, isSame, keep, maxChars = defaultMaxChars } = options;
  let memory = emptyMemory<T>();
  const record = (known: Known<T>): number => {
    known.order = memory.order;
    known.at = memory.order.length;
    memory.order.push(known);
    memory.chars += slotChars;
    if (memory.chars > maxChars) memory = emptyMemory();
    return known.tokens;
  };
  return {
    restart() {
      memory.expected = memory.order;
      memory.expectedAt = 0;
      memory.order = [];
    },
    next(content) {
      const known = memory.expected[memory.expectedAt];
      if (known === undefined || !isSame(known.content, content)) return undefined;
      memory.expectedAt++;
      return record(known);
    },
    find(content, text) {
      if (text.length > maxChars) return count(text);
      const { places, key, known } = search(memory, text, (kept) => isSame(kept, content));
      if (known !== undefined) {
        memory.expected = known.order;
        memory.expectedAt = known.at + 1;
        return record(known);
      }
      // It most often replaces the expected one (a placeholder, an edit), and then the rest comes as before.
      memory.expectedAt++;
      memory.chars += text.length + knownChars;
      const added = { content: keep(content, text), tokens: count(text), order: memory.order, at: 0 };
      places.set(key, added);
      return record(added);
    },
  };
}

interface Known<T> {
  readonly content: T;
  readonly tokens: number;
  /** Where it stood last. */
  order: Known<T>[];
  at: number;
}

interface Memory<T> {
  readonly bySample: Map<number, Known<T>>;
  /** What has the same sample as another; of two with the same hash the newer is kept. */
  readonly byHash: Map<number, Known<T>>;
  /** Since the last restart. */
  order: Known<T>[];
  expected: readonly Known<T>[];
  expectedAt: number;
  chars: number;
}

// A few long sessions; a single tool result of 10 MB still fits.
const defaultMaxChars = 32_000_000;
// What is kept beside the text, so that many tiny contents do not add up to much memory: for each content, and for each place in an order.
const knownChars = 200;
const slotChars = 8;

function emptyMemory<T>(): Memory<T> {
  return { bySample: new Map(), byHash: new Map(), order: [], expected: [], expectedAt: 0, chars: 0 };
}

interface Search<T> {
  readonly places: Map<number, Known<T>>;
  readonly key: number;
  readonly known: Known<T> | undefined;
}

function search<T>(memory: Memory<T>, text: string, isWanted: (kept: T) => boolean): Search<T> {
  const sample = keyOf(text, Math.max(1, text.length >> 6));
  const sampled = memory.bySample.get(sample);
  if (sampled === undefined || isWanted(sampled.content)) {
    return { places: memory.bySample, key: sample, known: sampled };
  }
  const key = keyOf(text, 1);
  const known = memory.byHash.get(key);
  const isHit = known !== undefined && isWanted(known.content);
  return { places: memory.byHash, key, known: isHit ? known : undefined };
}

function keyOf(text: string, step: number): number {
  let key = text.length;
  for (let index = text.length - 1; index >= 0; index -= step) {
    key = (Math.imul(key, 31) + text.charCodeAt(index)) | 0;
  }
  return key >> 1; // a small integer in V8
}
