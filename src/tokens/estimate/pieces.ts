/** Cuts what is no piece by itself into the longest pieces that begin it, which comes within a few percent of merging byte pairs. */
import { characterKinds } from "./character-kinds.ts";
import { features } from "./features.ts";
import * as buffer from "./scan-buffer.ts";
import { EMPTY_HASH, findPiece, fold } from "./vocabulary.ts";

// The compiler folds a module's own constants, not those that it imports: the loops below run a third faster.
const kinds: Uint8Array = characterKinds;
const units: Uint16Array = buffer.units;
const tally: Int32Array = buffer.tally;
const emptyHash: number = EMPTY_HASH;
const { UNKNOWN_UNIT } = features;

/** Says that pieces are not tallied by class. */
export const NO_ROW = -1;

/** Longer pieces are only found when they are a whole word. From U+2E80 on, in Chinese, Japanese and Korean, pieces are short. */
const LONGEST_PIECE = 14;
const LONGEST_EAST_ASIAN_PIECE = 5;
const FIRST_EAST_ASIAN = 0x2e80;
/** Shorter runs of one unit are not worth a look ahead. */
const LONG_RUN = 32;

const prefixHashes: Int32Array = new Int32Array(LONGEST_PIECE + 1);

/** Cuts `start` to `stop`, which together are no piece; tallies the first piece in `row` and those behind it in `nextRow`, by
 *  class, and returns how many there were. A unit that is no piece by itself is tallied as unknown. */
export function cutIntoPieces(start: number, stop: number, row: number, nextRow: number): number {
  let pieces = 0;
  let pieceRow = row;
  for (let at = start; at < stop; pieceRow = nextRow) {
    let length = hashPrefixes(at, at === start ? stop - 1 : stop);
    let piece = -1;
    for (; length > 0; length--) {
      piece = findPiece(prefixHashes[length]!);
      if (piece >= 0) break;
    }
    const times = repeatsOf(at, Math.max(length, 1), stop);
    if (piece < 0) {
      tally[UNKNOWN_UNIT + (kinds[units[at]!]! >> 3)]! += times;
      at += times;
    } else {
      if (pieceRow >= 0) tally[pieceRow + piece]! += times;
      pieces += times;
      at += length * times;
    }
  }
  return pieces;
}

/** How often a piece follows itself in a long run of one unit: the run is cut in one step. */
function repeatsOf(at: number, length: number, stop: number): number {
  const unit = units[at];
  if (at + LONG_RUN >= stop || units[at + length] !== unit || units[at + LONG_RUN] !== unit) return 1;
  let end = at + 1;
  while (end < stop && units[end] === unit) end++;
  return Math.max(1, Math.floor((end - at) / length));
}

/** Puts the hashes of the prefixes that may be pieces into `prefixHashes`, by length; returns the longest length. */
function hashPrefixes(start: number, stop: number): number {
  const limit = units[start]! < FIRST_EAST_ASIAN ? LONGEST_PIECE : LONGEST_EAST_ASIAN_PIECE;
  const longest = Math.min(stop - start, limit);
  let hash = emptyHash;
  for (let length = 1; length <= longest; length++) {
    hash = fold(hash, units[start + length - 1]!);
    prefixHashes[length] = hash;
  }
  return longest;
}
