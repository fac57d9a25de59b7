/** The fitted estimator: one pass finds features, and adds up what each costs in the tokenizer family. */

import { Buffer } from "../bytes.ts";
import { characterClasses, characterKinds } from "./character-kinds.ts";
import { coefficients } from "./coefficients.data.ts";
import type { Counter } from "./create-counter.ts";
import type { Family } from "./families.ts";
import { EMPTY_HASH, features, findPiece, fold } from "./features.ts";
import * as buffer from "./scan-buffer.ts";
import { add, currentSum, setSum, startSum } from "./scan-buffer.ts";
import { cutIntoPieces, scanWord } from "./scan-words.ts";

/** Takes time linear in the text's length. Returns at least 1 for a text that is not empty, and at most its UTF-8
 *  bytes. */
export function createEstimator(family: Family): Counter {
  const weights = computeWeights(family);
  return estimatorWith(family, (text) => scan(text, weights));
}

/** Works as `createEstimator`, for the drafts of one text. Remembers the sum of each section, so only sections that are
 *  new are scanned. */
export function createDraftEstimator(family: Family): Counter {
  const weights = computeWeights(family);
  const known = new Map<string, number>();
  const sumOf = (section: string) => {
    const found = known.get(section) ?? scan(section, weights);
    if (known.size >= MAX_SECTIONS) known.clear();
    known.set(section, found);
    return found;
  };
  return estimatorWith(family, (text) => {
    // A longer text is scanned in parts that end elsewhere.
    if (text.length > buffer.PART_LENGTH) return scan(text, weights);
    let sum = 0;
    for (let start = 0; start < text.length; ) {
      const end = sectionEnd(text, start);
      sum += sumOf(text.slice(start, end));
      start = end;
    }
    return sum;
  });
}

const MAX_SECTIONS = 2_000;

/** A scan always stops before a symbol that starts a line, and reads nothing before it. So the sums of sections that
 *  start with one add up. */
function sectionEnd(text: string, start: number): number {
  const end = text.indexOf("\n#", start);
  return end < 0 ? text.length : end + 1;
}

/** The sum for one token. Coefficients have four decimals, so sums are whole numbers, which add up in any order. */
const ONE_TOKEN = 10_000;

function computeWeights(family: Family): Float64Array {
  return Float64Array.from(coefficients[family], (coefficient) => Math.round(coefficient * ONE_TOKEN));
}

function estimatorWith(family: Family, sumOf: (text: string) => number): Counter {
  return {
    name: `estimate:${family}`,
    count(text) {
      if (text === "") return 0;
      const tokens = Math.round(sumOf(text) / ONE_TOKEN);
      return Math.max(1, Math.min(tokens, Buffer.byteLength(text)));
    },
  };
}

/** The pass over a text that finds the features. Words end where o200k's splitter ends them, so a piece of the
 *  vocabulary is never split. */
// Copied because the compiler folds a module's own constants but not imported ones. The loops below run a third faster.
const kinds: Uint8Array = characterKinds;
const units: Uint16Array = buffer.units;
const emptyHash: number = EMPTY_HASH;
const { DIGIT, NEWLINE, SPACE, SYMBOL, UNCASED } = characterClasses;
const {
  BLANK_LINES,
  DIGITS,
  LONG_SPACE_RUN,
  NEWLINES,
  NEWLINES_EXCESS,
  NEWLINE_CAP,
  NEWLINE_INDENT,
  SCRIPT_UNIT,
  SPACES,
  SPACES_EXCESS,
  SPACES_LONG,
  SPACE_CAP,
  SYMBOL_LENGTH,
  SYMBOL_PIECE,
  SYMBOL_RULE,
  SYMBOL_RULE_LENGTH,
  SYMBOL_RUN,
  SYMBOL_SPLIT,
  TABS,
  TABS_EXCESS,
  TAB_CAP,
} = features;

const BLANK = 0x20;
const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** From this length on, a run of one symbol counts as a rule. */
const LONG_REPEAT = 16;

/** Returns the sum of the weights of the features of `text`. */
export function scan(text: string, weights: Float64Array): number {
  startSum(weights);
  for (let start = 0; start < text.length; ) {
    const length = buffer.readPart(text, start);
    const end = start + length < text.length ? afterLastNewline(length) : length;
    for (let at = 0; at < end; ) at = scanPretokenWithinBytes(at, end);
    start += end;
  }
  return currentSum();
}

/** Cuts a long text after a line break if it has one, so that no word is cut. */
function afterLastNewline(length: number): number {
  for (let at = length; at > 0; at--) if (units[at - 1] === LINE_FEED) return at;
  return length;
}

/** A coefficient is a mean, so it can be more than a rare letter or symbol has bytes. Alone, such a text is cut to its
 *  bytes, and in a longer text it would not be. So each pretoken outside of ASCII is kept within its bytes. In ASCII,
 *  pretokens that cost too much and too little stand side by side, and a bound would make all estimates lower. */
function scanPretokenWithinBytes(start: number, end: number): number {
  const before = currentSum();
  const stop = scanPretoken(start, end);
  if (currentSum() - before > (stop - start) * ONE_TOKEN) {
    const bytes = bytesBetween(start, stop);
    if (bytes > stop - start) setSum(Math.min(currentSum(), before + bytes * ONE_TOKEN));
  }
  return stop;
}

/** The UTF-8 bytes of units. Each half of a pair of surrogates has two of its four bytes. */
function bytesBetween(start: number, stop: number): number {
  let bytes = 0;
  for (let at = start; at < stop; at++) {
    const unit = units[at]!;
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit & 0xf800) === 0xd800 ? 2 : 3;
  }
  return bytes;
}

function scanPretoken(at: number, end: number): number {
  const kind = kinds[units[at]!]! & 7;
  if (kind <= UNCASED) return scanWord(at, at, end);
  if (kind === DIGIT) return scanDigits(at, end);
  if (kind === NEWLINE) return scanSpaces(at, end);
  const nextKind = at + 1 < end ? kinds[units[at + 1]!]! & 7 : NEWLINE;
  if (nextKind <= UNCASED) return scanWord(at, at + 1, end);
  if (kind === SYMBOL || (nextKind === SYMBOL && units[at] === BLANK)) return scanSymbols(at, end);
  return scanSpaces(at, end);
}

function scanDigits(start: number, end: number): number {
  let at = start + 1;
  const limit = Math.min(end, start + 3);
  while (at < limit && (kinds[units[at]!]! & 7) === DIGIT) at++;
  add(DIGITS + at - start - 1, 1);
  return at;
}

/** Scans symbols after at most one blank, and the line break after them. It takes only one line break, so that lines
 *  cost the same together as apart. */
function scanSymbols(start: number, end: number): number {
  const from = units[start] === BLANK ? start + 1 : start;
  let hash = emptyHash;
  if (from > start) hash = fold(hash, BLANK);
  let at = from;
  let scriptsSeen = 0;
  let repeated = 0;
  for (; at < end; at++) {
    const kind = kinds[units[at]!]!;
    if ((kind & 7) !== SYMBOL) break;
    scriptsSeen |= kind >> 3;
    if (at > from && units[at] === units[at - 1]) repeated++;
    hash = fold(hash, units[at]!);
  }
  const stop = lineBreakEnd(at, end);
  add(SYMBOL_RUN + (from - start) + (stop > at ? 2 : 0), 1);
  if (scriptsSeen !== 0) addScripts(from, at);
  if (at - from >= LONG_REPEAT && repeated === at - from - 1) addRule(at - from);
  else addSymbols(start, at, stop, hash);
  return stop;
}

function lineBreakEnd(at: number, end: number): number {
  const feed = units[at] === CARRIAGE_RETURN ? at + 1 : at;
  return feed < end && units[feed] === LINE_FEED ? feed + 1 : at;
}

/** Counts a rule of one symbol. Tokenizers have long ones as single tokens. */
function addRule(length: number): void {
  add(SYMBOL_RULE, 1);
  add(SYMBOL_RULE_LENGTH, length);
}

/** Counts symbols and the line break after them, which are often one piece. */
function addSymbols(start: number, symbolsEnd: number, stop: number, symbolsHash: number): void {
  add(SYMBOL_LENGTH, stop - start - 1);
  let hash = symbolsHash;
  for (let at = symbolsEnd; at < stop; at++) hash = fold(hash, units[at]!);
  const piece = findPiece(hash);
  if (piece >= 0) {
    add(SYMBOL_PIECE + piece, 1);
  } else {
    add(SYMBOL_SPLIT, 1);
    cutIntoPieces(start, stop, SYMBOL_PIECE, SYMBOL_PIECE);
  }
}

function addScripts(from: number, stop: number): void {
  for (let at = from; at < stop; at++) add(SCRIPT_UNIT + (kinds[units[at]!]! >> 3), 1);
}

/** Scans white space up to its last line break. Without one, up to but not including the last space, which belongs to
 *  the next word. */
function scanSpaces(start: number, end: number): number {
  let at = start;
  let newlines = 0;
  let indents = 0;
  let afterNewline = start;
  for (; at < end; at++) {
    const kind = kinds[units[at]!]! & 7;
    if (kind === NEWLINE) {
      newlines++;
      if (at > afterNewline) indents++;
      afterNewline = at + 1;
    } else if (kind !== SPACE) break;
  }
  if (newlines > 0) {
    // After symbols that took their line break, the next line break is often part of the same piece.
    const row = start > 0 && units[start - 1] === LINE_FEED ? BLANK_LINES : NEWLINES;
    add(row + Math.min(newlines, NEWLINE_CAP) - 1, 1);
    add(NEWLINES_EXCESS, Math.max(0, newlines - NEWLINE_CAP));
    add(NEWLINE_INDENT, indents);
    add(SPACES_LONG, Math.max(0, afterNewline - start - newlines - indents * LONG_SPACE_RUN));
    return afterNewline;
  }
  if (at < end && at - start > 1) at--;
  addSpaces(at - start, units[start] === TAB);
  return at;
}

function addSpaces(length: number, tabs: boolean): void {
  if (tabs) {
    add(TABS + Math.min(length, TAB_CAP) - 1, 1);
    add(TABS_EXCESS, Math.max(0, length - TAB_CAP));
    return;
  }
  add(SPACES + Math.min(length, SPACE_CAP) - 1, 1);
  add(SPACES_EXCESS, Math.max(0, Math.min(length, LONG_SPACE_RUN) - SPACE_CAP));
  add(SPACES_LONG, Math.max(0, length - LONG_SPACE_RUN));
}
