/** The fitted estimator: one pass counts features, and each is multiplied by a coefficient of the tokenizer family. */

import { characterClasses, characterKinds } from "./character-kinds.ts";
import { coefficients } from "./coefficients.data.ts";
import type { Counter } from "./create-counter.ts";
import type { Family } from "./families.ts";
import { EMPTY_HASH, FEATURE_COUNT, features, findPiece, fold } from "./features.ts";
import * as buffer from "./scan-buffer.ts";
import { cutIntoPieces, scanWord } from "./scan-words.ts";

/** Takes time linear in the text's length. Returns at least 1 for a text that is not empty, and at most its UTF-8
 *  bytes. */
export function createEstimator(family: Family): Counter {
  return estimatorWith(family, scan);
}

/** Works as `createEstimator`, for the drafts of one text. Remembers the features of each section, so only sections
 *  that are new are scanned. */
export function createDraftEstimator(family: Family): Counter {
  const known = new Map<string, Int32Array>();
  const featuresOf = (section: string) => {
    const found = known.get(section) ?? presentIn(scan(section));
    if (known.size >= MOST_SECTIONS) known.clear();
    known.set(section, found);
    return found;
  };
  return estimatorWith(family, (text) => {
    // A longer text is scanned in parts that end elsewhere.
    if (text.length > buffer.PART_LENGTH) return scan(text);
    const sum = new Int32Array(FEATURE_COUNT);
    for (let start = 0; start < text.length; ) {
      const end = sectionEnd(text, start);
      const counted = featuresOf(text.slice(start, end));
      for (let at = 0; at < counted.length; at += 2) sum[counted[at]!]! += counted[at + 1]!;
      start = end;
    }
    return sum;
  });
}

const MOST_SECTIONS = 2_000;

/** Returns the position and the number of each feature that is present. Most features are in few sections. */
function presentIn(counted: Int32Array): Int32Array {
  const present: number[] = [];
  for (let at = 0; at < FEATURE_COUNT; at++) if (counted[at] !== 0) present.push(at, counted[at]!);
  return Int32Array.from(present);
}

/** A scan always stops before a symbol that starts a line, and reads nothing before it. So the features of sections
 *  that start with one add up. */
function sectionEnd(text: string, start: number): number {
  const end = text.indexOf("\n#", start);
  return end < 0 ? text.length : end + 1;
}

function estimatorWith(family: Family, scanText: (text: string) => Int32Array): Counter {
  const weights = Float64Array.from(coefficients[family]);
  return {
    name: `estimate:${family}`,
    count(text) {
      if (text === "") return 0;
      const counted = scanText(text);
      let tokens = 0;
      for (let at = 0; at < FEATURE_COUNT; at++) tokens += counted[at]! * weights[at]!;
      return Math.max(1, Math.min(Math.round(tokens), Buffer.byteLength(text)));
    },
  };
}

/** The pass over a text that counts the features. Words end where o200k's splitter ends them, so a piece of the
 *  vocabulary is never split. */
// Copied because the compiler folds a module's own constants but not imported ones. The loops below run a third faster.
const kinds: Uint8Array = characterKinds;
const units: Uint16Array = buffer.units;
const tally: Int32Array = buffer.tally;
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

/** Counts the features of `text`. The result has `FEATURE_COUNT` entries and is valid until the next call. */
export function scan(text: string): Int32Array {
  tally.fill(0);
  for (let start = 0; start < text.length; ) {
    const length = buffer.readPart(text, start);
    const end = start + length < text.length ? afterLastNewline(length) : length;
    for (let at = 0; at < end; ) at = scanPretoken(at, end);
    start += end;
  }
  return tally;
}

/** Cuts a long text after a line break if it has one, so that no word is cut. */
function afterLastNewline(length: number): number {
  for (let at = length; at > 0; at--) if (units[at - 1] === LINE_FEED) return at;
  return length;
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
  tally[DIGITS + at - start - 1]!++;
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
  tally[SYMBOL_RUN + (from - start) + (stop > at ? 2 : 0)]!++;
  if (scriptsSeen !== 0) tallyScripts(from, at);
  if (at - from >= LONG_REPEAT && repeated === at - from - 1) tallyRule(at - from);
  else tallySymbols(start, at, stop, hash);
  return stop;
}

function lineBreakEnd(at: number, end: number): number {
  const feed = units[at] === CARRIAGE_RETURN ? at + 1 : at;
  return feed < end && units[feed] === LINE_FEED ? feed + 1 : at;
}

/** Counts a rule of one symbol. Tokenizers have long ones as single tokens. */
function tallyRule(length: number): void {
  tally[SYMBOL_RULE]!++;
  tally[SYMBOL_RULE_LENGTH]! += length;
}

/** Counts symbols and the line break after them, which are often one piece. */
function tallySymbols(start: number, symbolsEnd: number, stop: number, symbolsHash: number): void {
  tally[SYMBOL_LENGTH]! += stop - start - 1;
  let hash = symbolsHash;
  for (let at = symbolsEnd; at < stop; at++) hash = fold(hash, units[at]!);
  const piece = findPiece(hash);
  if (piece >= 0) {
    tally[SYMBOL_PIECE + piece]!++;
  } else {
    tally[SYMBOL_SPLIT]!++;
    cutIntoPieces(start, stop, SYMBOL_PIECE, SYMBOL_PIECE);
  }
}

function tallyScripts(from: number, stop: number): void {
  for (let at = from; at < stop; at++) tally[SCRIPT_UNIT + (kinds[units[at]!]! >> 3)]!++;
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
    tally[row + Math.min(newlines, NEWLINE_CAP) - 1]!++;
    tally[NEWLINES_EXCESS]! += Math.max(0, newlines - NEWLINE_CAP);
    tally[NEWLINE_INDENT]! += indents;
    tally[SPACES_LONG]! += Math.max(0, afterNewline - start - newlines - indents * LONG_SPACE_RUN);
    return afterNewline;
  }
  if (at < end && at - start > 1) at--;
  tallySpaces(at - start, units[start] === TAB);
  return at;
}

function tallySpaces(length: number, tabs: boolean): void {
  if (tabs) {
    tally[TABS + Math.min(length, TAB_CAP) - 1]!++;
    tally[TABS_EXCESS]! += Math.max(0, length - TAB_CAP);
    return;
  }
  tally[SPACES + Math.min(length, SPACE_CAP) - 1]!++;
  tally[SPACES_EXCESS]! += Math.max(0, Math.min(length, LONG_SPACE_RUN) - SPACE_CAP);
  tally[SPACES_LONG]! += Math.max(0, length - LONG_SPACE_RUN);
}
