/** Words of the scan: an optional prefix (one blank or symbol), then upper case, then lower case. */
import { characterClasses, characterKinds } from "./character-kinds.ts";
import { features } from "./features.ts";
import { cutIntoPieces, NO_ROW } from "./pieces.ts";
import * as buffer from "./scan-buffer.ts";
import { EMPTY_HASH, findPiece, fold, PIECE_CLASSES } from "./vocabulary.ts";

// The compiler folds a module's own constants, not those that it imports: the loops below run a third faster.
const kinds: Uint8Array = characterKinds;
const units: Uint16Array = buffer.units;
const tally: Int32Array = buffer.tally;
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

/** Above this length a word is looked at for one repeated letter, which costs far less than other letters. */
const LONG_WORD = 24;
const BLANK = 0x20;
const APOSTROPHE = 0x27;

/** Rows of the tally for a word's first piece, by what stands before the word, and for the pieces behind it. */
const SPACE_ROW = WORD_PIECE + AFTER_SPACE * PIECE_CLASSES;
const BARE_ROW = WORD_PIECE + BARE * PIECE_CLASSES;
const SYMBOL_ROW = WORD_PIECE + AFTER_SYMBOL * PIECE_CLASSES;
const CONTINUED_ROW = WORD_PIECE + CONTINUED * PIECE_CLASSES;

/** Scans the word whose prefix is at `start` and whose first letter is at `from`; returns where it ends. */
export function scanWord(start: number, from: number, end: number): number {
  let hash = emptyHash;
  if (from > start) hash = fold(hash, units[start]!);
  let at = from;
  // ASCII is script 0, so that here a kind is the bare class.
  while (at < end && kinds[units[at]!] === UPPER) hash = fold(hash, units[at++]!);
  const shape = Math.min(at - from, UPPER_WORD);
  while (at < end && kinds[units[at]!] === LOWER) hash = fold(hash, units[at++]!);
  if (at < end) {
    const kind = kinds[units[at]!]!;
    if (kind > SYMBOL && (kind & 7) <= UNCASED) return scanScriptWord(start, from, end);
    const stop = at + contractionLength(at, end);
    while (at < stop) hash = fold(hash, units[at++]!);
  }
  if (at - from <= WORD_CAP) tally[WORD_LENGTH + shape * WORD_CAP + at - from - 1]!++;
  else tallyLongWord(from, at, shape);
  const row = rowOf(start, from);
  const piece = findPiece(hash);
  if (piece >= 0) {
    tally[row + piece]!++;
  } else {
    tally[WORD_SPLIT + shape]!++;
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

function tallyLongWord(from: number, stop: number, shape: number): void {
  const length = stop - from;
  let repeated = 0;
  if (length > LONG_WORD)
    for (let at = from + 1; at < stop; at++) if (units[at] === units[at - 1]) repeated++;
  tally[WORD_LENGTH + shape * WORD_CAP + WORD_CAP - 1]!++;
  tally[WORD_EXCESS + shape]! += Math.max(0, length - WORD_CAP - repeated);
  tally[REPEATED_LETTER]! += repeated;
}

function rowOf(start: number, from: number): number {
  if (from === start) return BARE_ROW;
  return units[start] === BLANK ? SPACE_ROW : SYMBOL_ROW;
}

/** A word with letters beyond ASCII: upper case first, then lower; letters without case anywhere. */
function scanScriptWord(start: number, from: number, end: number): number {
  const stop = scriptWordEnd(from, end);
  let hash = emptyHash;
  let script = 0;
  for (let at = start; at < stop; at++) {
    hash = fold(hash, units[at]!);
    const unitScript = kinds[units[at]!]! >> 3;
    if (unitScript !== 0) script = unitScript;
    if (at >= from) tally[SCRIPT_UNIT + unitScript]!++;
  }
  tally[(from > start ? SCRIPT_WORD : SCRIPT_BARE_WORD) + script]!++;
  tally[SCRIPT_PIECE + script]! += findPiece(hash) >= 0 ? 1 : cutIntoPieces(start, stop, NO_ROW, NO_ROW);
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
  // Without lower case the splitter gives back what follows the last letter that has no case.
  if (at === end || kind !== LOWER) return afterUncased > from ? afterUncased : at;
  for (; at < end; at++) {
    kind = kinds[units[at]!]! & 7;
    if (kind !== LOWER && kind !== UNCASED) break;
  }
  return at;
}
