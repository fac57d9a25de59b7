/** A vocabulary as three typed arrays: its tokens' bytes end to end, where each begins, and a hash table into them.
 *  Lookups compare bytes, so that an answer never rests on a hash alone, and make no string or array. */
export interface BytePairRanks {
  /** The rank of the token that is exactly these bytes, `noRank` when there is none. */
  rankOf(bytes: Uint8Array, start: number, end: number): number;
  /** The same for two bytes. Every merge begins with these, so they have a table of their own. */
  rankOfPair(first: number, second: number): number;
}

/** Larger than every rank. */
export const noRank = 0x7fffffff;

/** A token's place in the list is its rank; one that is no valid UTF-8 is given by its bytes. */
export function createBytePairRanks(tokens: readonly (string | readonly number[])[]): BytePairRanks {
  const { pool, starts, maxLength } = packTokens(tokens);
  const mask = 2 ** Math.ceil(Math.log2(tokens.length * 2)) - 1;
  const slots = new Int32Array((mask + 1) * 2); // pairs of hash and rank + 1; 0 is an empty slot
  const pairs = new Int32Array(0x10000).fill(noRank);
  for (let rank = 0; rank < tokens.length; rank++) {
    const start = starts[rank]!;
    const end = starts[rank + 1]!;
    if (end === start) continue; // a rank that the vocabulary leaves out
    if (end - start === 2) pairs[(pool[start]! << 8) | pool[start + 1]!] = rank;
    const hash = hashOf(pool, start, end);
    let slot = hash & mask;
    while (slots[slot * 2 + 1] !== 0) slot = (slot + 1) & mask;
    slots[slot * 2] = hash;
    slots[slot * 2 + 1] = rank + 1;
  }
  return {
    rankOf(bytes, start, end) {
      if (end - start > maxLength) return noRank;
      const hash = hashOf(bytes, start, end);
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

interface PackedTokens {
  pool: Uint8Array;
  /** One more than there are tokens: a token ends where the next begins. */
  starts: Uint32Array;
  maxLength: number;
}

function packTokens(tokens: readonly (string | readonly number[])[]): PackedTokens {
  const starts = new Uint32Array(tokens.length + 1);
  const encoder = new TextEncoder();
  let pool = new Uint8Array(tokens.length * 8);
  let maxLength = 0;
  let used = 0;
  for (let rank = 0; rank < tokens.length; rank++) {
    starts[rank] = used;
    const token = tokens[rank] ?? "";
    if (used + token.length * 3 > pool.length) pool = grown(pool);
    if (typeof token === "string") used += encoder.encodeInto(token, pool.subarray(used)).written;
    else {
      pool.set(token, used);
      used += token.length;
    }
    maxLength = Math.max(maxLength, used - starts[rank]!);
  }
  starts[tokens.length] = used;
  return { pool: pool.slice(0, used), starts, maxLength };
}

function grown(pool: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(pool.length * 2);
  larger.set(pool);
  return larger;
}

function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = end - start;
  for (let at = start; at < end; at++) hash = Math.imul(hash, 0x01000193) ^ bytes[at]!;
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}

function sameBytes(pool: Uint8Array, from: number, bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (pool[from + at - start] !== bytes[at]) return false;
  return true;
}
