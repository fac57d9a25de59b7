/** Counters that equal tiktoken's ordinary encoding on any text. Text that looks like a special token is plain text,
 *  and a lone surrogate is U+FFFD. The ranks are gpt-tokenizer's. Splitting and merging are our own, because
 *  gpt-tokenizer's take quadratic time in a pretoken. */
import type { Counter } from "./create-counter.ts";
import { type PackedTokens, packTokens, unpackTokens } from "./packed-tokens.ts";
import { type PretokenEnd, pretokenEnds } from "./pretoken.ts";

export type ExactEncoding = "o200k" | "cl100k";

/** Loads the ranks of this encoding once. Counting then takes time linear in the text. */
export async function createExactCounter(encoding: ExactEncoding): Promise<Counter> {
  loading[encoding] ??= loadRanks(encoding);
  const ranks = await loading[encoding];
  const pretokenEnd = pretokenEnds[encoding];
  return { name: `exact:${encoding}`, count: (text) => countTokens(text, ranks, pretokenEnd) };
}

const loading: Partial<Record<ExactEncoding, Promise<BytePairRanks>>> = {};

async function loadRanks(encoding: ExactEncoding): Promise<BytePairRanks> {
  const packed =
    encoding === "o200k" ? (await import("./o200k.ts")).o200kTokens : (await import("./cl100k.ts")).cl100kTokens;
  return indexTokens(unpackTokens(packed));
}

const encoder = new TextEncoder();
// Most texts are small, and writing into existing memory is several times cheaper than allocating it.
const scratch = new Uint8Array(64 * 1024);

function countTokens(text: string, ranks: BytePairRanks, pretokenEnd: PretokenEnd): number {
  const fits = text.length * 3 <= scratch.length;
  const bytes = fits ? scratch : encoder.encode(text);
  const end = fits ? encoder.encodeInto(text, scratch).written : bytes.length;
  let tokens = 0;
  for (let start = 0; start < end; ) {
    const next = pretokenEnd(bytes, start, end);
    tokens += ranks.rankOf(bytes, start, next) === noRank ? countByMerging(ranks, bytes, start, next) : 1;
    start = next;
  }
  return tokens;
}

/** A vocabulary as three typed arrays: the bytes of all tokens, where each token begins, and a hash table. A lookup
 *  compares bytes, so it is exact, and it allocates nothing. */
interface BytePairRanks {
  /** Returns the rank of the token with exactly these bytes, or `noRank`. */
  rankOf(bytes: Uint8Array, start: number, end: number): number;
  /** The same for two bytes. Every merge begins with pairs, so they have their own table. */
  rankOfPair(first: number, second: number): number;
}

/** Larger than every rank. */
export const noRank = 0x7fffffff;

/** A token's place in the list is its rank. A token that is not valid UTF-8 is given as bytes. */
export function createBytePairRanks(tokens: readonly (string | readonly number[])[]): BytePairRanks {
  return indexTokens(packTokens(tokens));
}

function indexTokens({ pool, starts }: PackedTokens): BytePairRanks {
  const count = starts.length - 1;
  const mask = 2 ** Math.ceil(Math.log2(count * 2)) - 1;
  const slots = new Int32Array((mask + 1) * 2); // pairs of hash and rank + 1; 0 is an empty slot
  const pairs = new Int32Array(0x10000).fill(noRank);
  let maxLength = 0;
  for (let rank = 0; rank < count; rank++) {
    const start = starts[rank]!;
    const end = starts[rank + 1]!;
    if (end === start) continue; // the vocabulary skips this rank
    maxLength = Math.max(maxLength, end - start);
    if (end - start === 2) pairs[(pool[start]! << 8) | pool[start + 1]!] = rank;
    const hash = computeHash(pool, start, end);
    let slot = hash & mask;
    while (slots[slot * 2 + 1] !== 0) slot = (slot + 1) & mask;
    slots[slot * 2] = hash;
    slots[slot * 2 + 1] = rank + 1;
  }
  return {
    rankOf(bytes, start, end) {
      if (end - start > maxLength) return noRank;
      const hash = computeHash(bytes, start, end);
      for (let slot = hash & mask; slots[slot * 2 + 1] !== 0; slot = (slot + 1) & mask) {
        if (slots[slot * 2] !== hash) continue;
        const rank = slots[slot * 2 + 1]! - 1;
        const from = starts[rank]!;
        if (starts[rank + 1]! - from === end - start && sameBytes(pool, from, bytes, start, end)) return rank;
      }
      return noRank;
    },
    rankOfPair: (first, second) => pairs[(first << 8) | second]!,
  };
}

function computeHash(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at++) hash = Math.imul(hash, 0x01000193) ^ bytes[at]!;
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

function sameBytes(pool: Uint8Array, from: number, bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (pool[from + at - start] !== bytes[at]) return false;
  return true;
}

// Counting the tokens of one pretoken: repeatedly merge the adjacent pair with the lowest rank, the leftmost one first.

/** Returns how many tokens `bytes` from `start` to `end` have. Takes O(n log n) for long pretokens. Short ones do not
 *  need the queue. */
export function countByMerging(ranks: BytePairRanks, bytes: Uint8Array, start: number, end: number): number {
  return end - start <= shortBytes ? countShort(ranks, bytes, start, end) : countLong(ranks, bytes, start, end);
}

const shortBytes = 64;
const shortStarts = new Int32Array(shortBytes + 2);
const shortRanks = new Int32Array(shortBytes + 2);

function countShort(ranks: BytePairRanks, bytes: Uint8Array, start: number, end: number): number {
  let parts = end - start;
  for (let part = 0; part < parts; part++) {
    shortStarts[part] = start + part;
    shortRanks[part] = part + 1 < parts ? ranks.rankOfPair(bytes[start + part]!, bytes[start + part + 1]!) : noRank;
  }
  shortStarts[parts] = end;
  for (;;) {
    const lowest = lowestPart(parts);
    if (shortRanks[lowest] === noRank) return parts;
    parts -= 1;
    for (let part = lowest + 1; part <= parts; part++) {
      shortStarts[part] = shortStarts[part + 1]!;
      shortRanks[part] = shortRanks[part + 1]!;
    }
    shortRanks[lowest] =
      lowest + 1 < parts ? ranks.rankOf(bytes, shortStarts[lowest]!, shortStarts[lowest + 2]!) : noRank;
    if (lowest > 0) {
      shortRanks[lowest - 1] = ranks.rankOf(bytes, shortStarts[lowest - 1]!, shortStarts[lowest + 1]!);
    }
  }
}

function lowestPart(parts: number): number {
  let lowest = 0;
  let rank = shortRanks[0]!;
  for (let part = 1; part < parts; part++) {
    if (shortRanks[part]! < rank) {
      rank = shortRanks[part]!;
      lowest = part;
    }
  }
  return lowest;
}

/** The parts are a linked list. A part is named by the offset of its first byte from `start`. */
function countLong(ranks: BytePairRanks, bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  const next = new Int32Array(length + 1);
  const previous = new Int32Array(length + 1);
  const pairRanks = new Int32Array(length + 1);
  const queue = createBytePairQueue();
  const setRank = (part: number, rank: number): void => {
    pairRanks[part] = rank;
    if (rank !== noRank) queue.push(rank, part);
  };
  const rankPairAt = (part: number): void => {
    const second = next[part]!;
    setRank(part, second < length ? ranks.rankOf(bytes, start + part, start + next[second]!) : noRank);
  };
  for (let part = 0; part < length; part++) {
    next[part] = part + 1;
    previous[part] = part - 1;
    const at = start + part;
    setRank(part, part + 1 < length ? ranks.rankOfPair(bytes[at]!, bytes[at + 1]!) : noRank);
  }
  let parts = length;
  for (let part = queue.pop(); part >= 0; part = queue.pop()) {
    if (pairRanks[part] !== queue.rank()) continue; // one of its halves was merged in the meantime
    const second = next[part]!;
    pairRanks[second] = noRank;
    next[part] = next[second]!;
    previous[next[second]!] = part;
    parts -= 1;
    rankPairAt(part);
    if (part > 0) rankPairAt(previous[part]!);
  }
  return parts;
}

/** Pairs that wait to be merged, lowest rank first, then leftmost. It has a bucket per rank and a heap of the ranks in
 *  use, because the pairs of a long run have few ranks. A heap of the pairs takes more than twice the time. */
interface BytePairQueue {
  push(rank: number, part: number): void;
  /** Returns the part at which the next pair begins, or -1 if none is left. `rank()` is then its rank. */
  pop(): number;
  rank(): number;
}

export function createBytePairQueue(): BytePairQueue {
  const buckets = new Map<number, Bucket>();
  const ranks: number[] = [];
  let poppedRank = -1;
  return {
    push(rank, part) {
      const bucket = buckets.get(rank);
      if (bucket === undefined) {
        buckets.set(rank, { parts: [part], taken: 0, sorted: true });
        pushRank(ranks, rank);
      } else {
        if (part < bucket.parts[bucket.parts.length - 1]!) bucket.sorted = false;
        bucket.parts.push(part);
      }
    },
    pop() {
      while (ranks.length > 0) {
        poppedRank = ranks[0]!;
        const bucket = buckets.get(poppedRank)!;
        if (bucket.taken < bucket.parts.length) return takeLeftmost(bucket);
        buckets.delete(poppedRank);
        popRank(ranks);
      }
      return -1;
    },
    rank: () => poppedRank,
  };
}

interface Bucket {
  parts: number[];
  taken: number;
  sorted: boolean;
}

// A bucket is sorted at most once. A pair that is pushed while the bucket is emptied contains a merged token, so it is
// longer and belongs to another bucket.
function takeLeftmost(bucket: Bucket): number {
  if (!bucket.sorted) {
    bucket.parts = bucket.parts.slice(bucket.taken).sort((a, b) => a - b);
    bucket.taken = 0;
    bucket.sorted = true;
  }
  return bucket.parts[bucket.taken++]!;
}

function pushRank(heap: number[], rank: number): void {
  let at = heap.length;
  heap.push(rank);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    if (heap[parent]! <= rank) break;
    heap[at] = heap[parent]!;
    at = parent;
  }
  heap[at] = rank;
}

function popRank(heap: number[]): void {
  const rank = heap.pop()!;
  if (heap.length === 0) return;
  let at = 0;
  for (;;) {
    const left = at * 2 + 1;
    const least = left + 1 < heap.length && heap[left + 1]! < heap[left]! ? left + 1 : left;
    if (least >= heap.length || heap[least]! >= rank) break;
    heap[at] = heap[least]!;
    at = least;
  }
  heap[at] = rank;
}
