/** Scans words: an optional prefix (one blank or symbol), then upper case, then lower case. */
import { characterClasses, characterKinds } from "./character-kinds.ts";
import { EMPTY_HASH, features, findPiece, fold, PIECE_CLASSES } from "./features.ts";
import * as buffer from "./scan-buffer.ts";
import { add } from "./scan-buffer.ts";

/** Cuts a string that is not one piece into pieces, always the longest one that fits. The count is within a few percent
 *  of merging byte pairs. */
// Copied because the compiler folds a module's own constants but not imported ones. The loops below run a third faster.
const { UNKNOWN_UNIT } = features;

/** Means that pieces are not counted by class. */
const NO_ROW = -1;

/** Longer pieces are found only if they are a whole word. From U+2E80 on (Chinese, Japanese, Korean) pieces are
 *  short. */
const LONGEST_PIECE = 14;
const LONGEST_EAST_ASIAN_PIECE = 5;
const FIRST_EAST_ASIAN = 0x2e80;
/** A look ahead does not pay off for shorter runs of one unit. */
const LONG_RUN = 32;

const prefixHashes: Int32Array = new Int32Array(LONGEST_PIECE + 1);

/** Cuts the text from `start` to `stop`, which is not one piece. Counts the first piece in `row` and the others in
 *  `nextRow`, by class. Returns the number of pieces. A unit that is not a piece is counted as unknown. */
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
    const times = countRepeats(at, Math.max(length, 1), stop);
    if (piece < 0) {
      add(UNKNOWN_UNIT + (kinds[units[at]!]! >> 3), times);
      at += times;
    } else {
      if (pieceRow >= 0) add(pieceRow + piece, times);
      pieces += times;
      at += length * times;
    }
  }
  return pieces;
}

/** Returns how often a piece follows itself in a long run of one unit, so that the run is cut in one step. */
function countRepeats(at: number, length: number, stop: number): number {
  const unit = units[at];
  if (at + LONG_RUN >= stop || units[at + length] !== unit || units[at + LONG_RUN] !== unit) return 1;
  let end = at + 1;
  while (end < stop && units[end] === unit) end++;
  return Math.max(1, Math.floor((end - at) / length));
}

/** Puts the hashes of prefixes that may be pieces into `prefixHashes`, by length. Returns the longest length. */
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

const kinds: Uint8Array = characterKinds;
const units: Uint16Array = buffer.units;
const emptyHash: number = EMPTY_HASH;
const { LOWER, SYMBOL, UNCASED, UPPER } = characterClasses;
const {
  AFTER_SPACE,
  AFTER_SYMBOL,
  BARE,
  CONTINUED,
  REPEATED_LETTER,
  SCRIPT_BARE_WORD,
  SCRIPT_PIECE,
  SCRIPT_UNIT,
  SCRIPT_WORD,
  UPPER_WORD,
  WORD_CAP,
  WORD_EXCESS,
  WORD_LENGTH,
  WORD_PIECE,
  WORD_SPLIT,
} = features;

/** Longer words are checked for one repeated letter, which costs far less than other letters. */
const LONG_WORD = 24;
const BLANK = 0x20;
const APOSTROPHE = 0x27;

/** Features for a word's first piece, by what comes before the word, and for its other pieces. */
const SPACE_ROW = WORD_PIECE + AFTER_SPACE * PIECE_CLASSES;
const BARE_ROW = WORD_PIECE + BARE * PIECE_CLASSES;
const SYMBOL_ROW = WORD_PIECE + AFTER_SYMBOL * PIECE_CLASSES;
const CONTINUED_ROW = WORD_PIECE + CONTINUED * PIECE_CLASSES;

/** Scans the word whose prefix is at `start` and whose first letter is at `from`. Returns where it ends. */
export function scanWord(start: number, from: number, end: number): number {
  let hash = emptyHash;
  if (from > start) hash = fold(hash, units[start]!);
  let at = from;
  // ASCII is script 0, so a kind here equals its class.
  while (at < end && kinds[units[at]!] === UPPER) hash = fold(hash, units[at++]!);
  const shape = Math.min(at - from, UPPER_WORD);
  while (at < end && kinds[units[at]!] === LOWER) hash = fold(hash, units[at++]!);
  if (at < end) {
    const kind = kinds[units[at]!]!;
    if (kind > SYMBOL && (kind & 7) <= UNCASED) return scanScriptWord(start, from, end);
    const stop = at + contractionLength(at, end);
    while (at < stop) hash = fold(hash, units[at++]!);
  }
  if (at - from <= WORD_CAP) add(WORD_LENGTH + shape * WORD_CAP + at - from - 1, 1);
  else addLongWord(from, at, shape);
  const row = chooseRow(start, from);
  const piece = findPiece(hash);
  if (piece >= 0) {
    add(row + piece, 1);
  } else {
    add(WORD_SPLIT + shape, 1);
    cutIntoPieces(start, at, row, CONTINUED_ROW);
  }
  return at;
}

function contractionLength(at: number, end: number): number {
  if (units[at] !== APOSTROPHE || at + 1 === end) return 0;
  const first = units[at + 1]! | 0x20;
  if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return 2; // 's 't 'm 'd
  const second = at + 2 < end ? units[at + 2]! | 0x20 : 0;
  if (first === 0x6c) return second === 0x6c ? 3 : 0; // 'll
  return (first === 0x72 || first === 0x76) && second === 0x65 ? 3 : 0; // 're 've
}

function addLongWord(from: number, stop: number, shape: number): void {
  const length = stop - from;
  let repeated = 0;
  if (length > LONG_WORD) for (let at = from + 1; at < stop; at++) if (units[at] === units[at - 1]) repeated++;
  add(WORD_LENGTH + shape * WORD_CAP + WORD_CAP - 1, 1);
  add(WORD_EXCESS + shape, Math.max(0, length - WORD_CAP - repeated));
  add(REPEATED_LETTER, repeated);
}

function chooseRow(start: number, from: number): number {
  if (from === start) return BARE_ROW;
  return units[start] === BLANK ? SPACE_ROW : SYMBOL_ROW;
}

/** Scans a word with letters outside of ASCII: upper case first, then lower case. Letters without case can be
 *  anywhere. */
function scanScriptWord(start: number, from: number, end: number): number {
  const stop = scriptWordEnd(from, end);
  let hash = emptyHash;
  let script = 0;
  for (let at = start; at < stop; at++) {
    hash = fold(hash, units[at]!);
    const unitScript = kinds[units[at]!]! >> 3;
    if (unitScript !== 0) script = unitScript;
    if (at >= from) add(SCRIPT_UNIT + unitScript, 1);
  }
  add((from > start ? SCRIPT_WORD : SCRIPT_BARE_WORD) + script, 1);
  add(SCRIPT_PIECE + script, findPiece(hash) >= 0 ? 1 : cutIntoPieces(start, stop, NO_ROW, NO_ROW));
  return stop;
}

function scriptWordEnd(from: number, end: number): number {
  let at = from;
  let afterUncased = from;
  let kind: number = UPPER;
  for (; at < end; at++) {
    kind = kinds[units[at]!]! & 7;
    if (kind === LOWER || kind > UNCASED) break;
    if (kind === UNCASED) afterUncased = at + 1;
  }
  // Without lower case, the splitter backtracks to the last letter without case.
  if (at === end || kind !== LOWER) return afterUncased > from ? afterUncased : at;
  for (; at < end; at++) {
    kind = kinds[units[at]!]! & 7;
    if (kind !== LOWER && kind !== UNCASED) break;
  }
  return at;
}
