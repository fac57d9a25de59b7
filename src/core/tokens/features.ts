/** The features that the estimator counts, by position. Fitted coefficients are stored in this order. */
import { Buffer } from "../bytes.ts";
import { scripts } from "./character-kinds.ts";
import { packedVocabulary } from "./vocabulary.data.ts";

/** A fingerprint of a tokenizer's most frequent pieces. It says whether a string is one piece, and of which class,
 *  without storing the strings. A perfect hash gives every piece its own slot, so a lookup reads two numbers. One in
 *  4,096 other strings is mistaken for a piece. */
export const SLOT_BITS = 17;
export const BUCKET_BITS = 15;
// Not exported, because the compiler folds only constants that a module neither imports nor exports.
const SLOT_MASK = 2 ** SLOT_BITS - 1;
const SLOT_SHIFT = 32 - SLOT_BITS;
const BUCKET_SHIFT = 32 - BUCKET_BITS;
/** A class says how common a piece is, and into how many parts a smaller vocabulary would split it. */
export const PIECE_CLASSES = 16;

/** The hash of the empty string. */
export const EMPTY_HASH: number = 0x811c9dc5 | 0;
const HASH_PRIME = 0x01000193;

/** One 16-bit number per slot: 12 bits of fingerprint, 4 bits of class. */
const slots: Uint16Array = unpackWords(packedVocabulary.slots);
const displacements: Uint16Array = unpackWords(packedVocabulary.displacements);

/** Returns the hash of a string with one more unit (FNV-1a). */
export function fold(hash: number, unit: number): number {
  return Math.imul(hash ^ unit, HASH_PRIME);
}

/** Returns the class of the piece whose units were folded into `hash`, or -1. */
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

/** The longest word and the longest runs that have their own number. The rest of longer ones adds to an `…_EXCESS`
 *  number. */
const caps = {
  WORD_CAP: 12,
  SPACE_CAP: 12,
  TAB_CAP: 4,
  NEWLINE_CAP: 4,
  /** Tokenizers have no longer runs of spaces. Each further space costs its share of the longest run. */
  LONG_SPACE_RUN: 64,
} as const;

/** The place of a piece in an ASCII word. */
const places = { AFTER_SPACE: 0, BARE: 1, AFTER_SYMBOL: 2, CONTINUED: 3 } as const;

/** How an ASCII word is written: the number of capitals at its start, up to 2. */
const shapes = { UPPER_WORD: 2 } as const;

/** How many numbers each feature has, in order. */
export const featureSizes = {
  /** Pieces of ASCII words, by place and class. */
  WORD_PIECE: (4 * PIECE_CLASSES) as number,
  /** ASCII words, by shape and length. */
  WORD_LENGTH: (3 * caps.WORD_CAP) as number,
  WORD_EXCESS: 3,
  /** ASCII words that are not one piece, by shape. */
  WORD_SPLIT: 3,
  REPEATED_LETTER: 1,
  /** Groups of up to three digits, by length. */
  DIGITS: 3,
  SYMBOL_PIECE: PIECE_CLASSES as number,
  /** Runs of symbols: +1 after a blank, +2 if a line break follows. */
  SYMBOL_RUN: 4,
  SYMBOL_LENGTH: 1,
  SYMBOL_SPLIT: 1,
  /** Long runs of one symbol, and their length. */
  SYMBOL_RULE: 1,
  SYMBOL_RULE_LENGTH: 1,
  SPACES: caps.SPACE_CAP as number,
  SPACES_EXCESS: 1,
  SPACES_LONG: 1,
  TABS: caps.TAB_CAP as number,
  TABS_EXCESS: 1,
  /** Runs of line breaks, by length. */
  NEWLINES: caps.NEWLINE_CAP as number,
  /** The same after symbols with a line break. */
  BLANK_LINES: caps.NEWLINE_CAP as number,
  NEWLINES_EXCESS: 1,
  /** Runs of spaces between line breaks. */
  NEWLINE_INDENT: 1,
  /** Words with letters outside of ASCII, by script: with a prefix and without. */
  SCRIPT_WORD: scripts.length as number,
  SCRIPT_BARE_WORD: scripts.length as number,
  SCRIPT_UNIT: scripts.length as number,
  SCRIPT_PIECE: scripts.length as number,
  /** Code units that are not one piece, by script. */
  UNKNOWN_UNIT: scripts.length as number,
};

export type FeatureName = keyof typeof featureSizes;

export const FEATURE_COUNT: number = Object.values(featureSizes).reduce((sum, size) => sum + size, 0);

/** Where each feature's numbers begin, with the caps and offsets that the scan needs. */
export const features: Readonly<Record<FeatureName, number>> & typeof caps & typeof places & typeof shapes = {
  ...starts(),
  ...caps,
  ...places,
  ...shapes,
};

function starts(): Record<FeatureName, number> {
  let next = 0;
  const result = { ...featureSizes };
  for (const name of Object.keys(featureSizes) as FeatureName[]) {
    result[name] = next;
    next += featureSizes[name];
  }
  return result;
}
