/** Builds the estimator's vocabulary table from the ranks that gpt-tokenizer ships: the most frequent pieces of o200k that are valid
 *  UTF-8, in a perfect hash (buckets placed largest first, each with the first displacement that fits).
 *  Writes src/core/tokens/vocabulary.data.ts. */
import { writeFileSync } from "node:fs";
import ranks from "gpt-tokenizer/bpeRanks/o200k_base";
import { BUCKET_BITS, bucketOf, EMPTY_HASH, fold, SLOT_BITS, slotOf } from "../src/core/tokens/features.ts";

/** Share of the slots in use: above it the last buckets find no place. */
const LOAD = 0.975;
/** The ranks below which a small vocabulary would end; how far it splits a piece is half of the piece's class. */
const SMALL_VOCABULARY = 1_000;
const RANK_STEPS = [4_000, 16_000, 64_000];

interface Entry {
  readonly hash: number;
  readonly value: number;
}

const { slots, displacements } = place(fillBuckets());
writeFileSync(
  new URL("../../src/core/tokens/vocabulary.data.ts", import.meta.url),
  `/** Written by bench/build-vocabulary.ts from o200k's ranks as gpt-tokenizer 4.0.0 ships them (MIT). */
export const packedVocabulary: { slots: string; displacements: string } = {
  slots: "${packWords(slots)}",
  displacements: "${packWords(displacements)}",
};
`,
);
console.log(
  `${slots.filter((entry) => entry !== 0).length} pieces in ${slots.byteLength + displacements.byteLength} bytes`,
);

function fillBuckets(): Entry[][] {
  const pieces = readPieces();
  const buckets: Entry[][] = Array.from({ length: 2 ** BUCKET_BITS }, () => []);
  let count = 0;
  for (const [text, rank] of pieces) {
    if (count >= LOAD * 2 ** SLOT_BITS) break;
    const hash = hashOf(text);
    const bucket = buckets[bucketOf(hash)]!;
    // Two pieces of one bucket that want the same slot can never both have a place: the commoner one stays.
    if (bucket.some((entry) => slotOf(entry.hash, 0) === slotOf(hash, 0))) continue;
    bucket.push({ hash, value: ((hash & 0xfff) << 4) | classOf(text, rank, pieces) });
    count++;
  }
  return buckets;
}

/** Pieces by text, most frequent first. */
function readPieces(): Map<string, number> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const pieces = new Map<string, number>();
  ranks.forEach((piece, rank) => {
    try {
      pieces.set(typeof piece === "string" ? piece : decoder.decode(Uint8Array.from(piece)), rank);
    } catch {
      // Half a character: only byte-level merging meets it.
    }
  });
  return pieces;
}

function classOf(text: string, rank: number, pieces: ReadonlyMap<string, number>): number {
  const rarity = RANK_STEPS.filter((step) => rank >= step).length;
  let parts = 0;
  for (let at = 0; at < text.length; parts++) {
    let to = text.length;
    while (to > at + 1 && (pieces.get(text.slice(at, to)) ?? Infinity) >= SMALL_VOCABULARY) to--;
    at = to;
  }
  return rarity * 4 + Math.min(parts, 4) - 1;
}

function hashOf(text: string): number {
  let hash = EMPTY_HASH;
  for (let at = 0; at < text.length; at++) hash = fold(hash, text.charCodeAt(at));
  return hash;
}

function place(buckets: readonly Entry[][]): { slots: Uint16Array; displacements: Uint16Array } {
  const slots = new Uint16Array(2 ** SLOT_BITS);
  const taken = new Uint8Array(2 ** SLOT_BITS);
  const displacements = new Uint16Array(2 ** BUCKET_BITS);
  const order = buckets.map((_, index) => index).sort((a, b) => buckets[b]!.length - buckets[a]!.length || a - b);
  for (const index of order) {
    const bucket = buckets[index]!;
    let displacement = 0;
    while (bucket.some(({ hash }) => taken[slotOf(hash, displacement)])) displacement++;
    if (displacement > 0xffff) throw new Error("no displacement fits: lower LOAD or raise BUCKET_BITS");
    displacements[index] = displacement;
    for (const { hash, value } of bucket) {
      taken[slotOf(hash, displacement)] = 1;
      slots[slotOf(hash, displacement)] = value;
    }
  }
  return { slots, displacements };
}

function packWords(words: Uint16Array): string {
  const bytes = Buffer.alloc(words.length * 2);
  words.forEach((word, at) => {
    bytes.writeUInt16LE(word, 2 * at);
  });
  return bytes.toString("base64");
}
