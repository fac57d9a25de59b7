/** A fingerprint of a tokenizer's most frequent pieces: says whether a string is one piece, and of which class, without holding the strings.
 *  A perfect hash gives every piece a slot of its own, so a look-up reads two numbers; one stranger in 4,096 is taken for a piece. */
import { packedVocabulary } from "./vocabulary.data.ts";

export const SLOT_BITS = 17;
export const BUCKET_BITS = 15;
// Not exported: the compiler folds a module's own constants, not those that it imports or exports.
const SLOT_MASK = 2 ** SLOT_BITS - 1;
const SLOT_SHIFT = 32 - SLOT_BITS;
const BUCKET_SHIFT = 32 - BUCKET_BITS;
/** A class says how common a piece is and how far a smaller vocabulary would split it. */
export const PIECE_CLASSES = 16;

/** The hash of no units. */
export const EMPTY_HASH: number = 0x811c9dc5 | 0;
const HASH_PRIME = 0x01000193;

/** One 16-bit number a slot: 12 bits of fingerprint, 4 bits of class. */
const slots: Uint16Array = unpackWords(packedVocabulary.slots);
const displacements: Uint16Array = unpackWords(packedVocabulary.displacements);

/** The hash of a string and one more unit (FNV-1a). */
export function fold(hash: number, unit: number): number {
  return Math.imul(hash ^ unit, HASH_PRIME);
}

/** Class of the piece whose units were folded into `hash`, or -1. */
export function findPiece(hash: number): number {
  const entry = slots[slotOf(hash, displacements[bucketOf(hash)]!)]!;
  return entry >>> 4 === (hash & 0xfff) ? entry & 15 : -1;
}

export function bucketOf(hash: number): number {
  return Math.imul(hash, 0x85ebca6b) >>> BUCKET_SHIFT;
}

export function slotOf(hash: number, displacement: number): number {
  return ((Math.imul(hash, 0xc2b2ae35) >>> SLOT_SHIFT) + displacement) & SLOT_MASK;
}

function unpackWords(packed: string): Uint16Array {
  const bytes = Buffer.from(packed, "base64");
  const hostIsBigEndian = new Uint8Array(Uint16Array.of(1).buffer)[0] === 0;
  if (hostIsBigEndian) bytes.swap16();
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
}
