/** Cuts UTF-8 text into pretokens, inside which byte pairs are merged. It follows the patterns of tiktoken's o200k_base
 *  and cl100k_base by hand: a regex engine backtracks on long runs, and its classes follow its own Unicode version. */
import { classTable } from "./pretoken-classes.ts";

/** Returns where the pretoken that begins at `start` ends. `start` must be below `end`, and `bytes` valid UTF-8 up to
 *  `end`. */
export type PretokenEnd = (bytes: Uint8Array, start: number, end: number) => number;

/** `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
 *  `|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
 *  `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+` */
const o200k: PretokenEnd = (bytes, start, end) => {
  const first = classAt(bytes, start);
  if (first === number) return numberEnd(bytes, start, end);
  const word = o200kWordEnd(bytes, start, end);
  if (word > start) return word + contractionLength(bytes, word, end);
  const symbols = symbolsEnd(bytes, start, end);
  if (symbols === start) return spaceEnd(bytes, start, end);
  let position = symbols;
  while (position < end && (isNewline(bytes[position]!) || bytes[position] === slash)) position += 1;
  return position;
};

/** `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*`
 *  `|\s*[\r\n]+|\s+(?!\S)|\s+` */
const cl100k: PretokenEnd = (bytes, start, end) => {
  const first = classAt(bytes, start);
  if (first === number) return numberEnd(bytes, start, end);
  const contraction = contractionLength(bytes, start, end);
  if (contraction > 0) return start + contraction;
  const letters = first & prefix ? start + widthAt(bytes, start) : start;
  const word = skipClass(bytes, letters, end, letter);
  if (word > letters) return word;
  const symbols = symbolsEnd(bytes, start, end);
  if (symbols === start) return spaceEnd(bytes, start, end);
  let position = symbols;
  while (position < end && isNewline(bytes[position]!)) position += 1;
  return position;
};

/** By encoding. */
export const pretokenEnds: Readonly<Record<"o200k" | "cl100k", PretokenEnd>> = { o200k, cl100k };

const upper = 1;
const lower = 2;
const caseless = 4;
const mark = 8;
const number = 16;
const space = 32;
const newline = 64;
const other = 128;
const letter: number = upper | lower | caseless;
const prefix: number = mark | space | other;

const slash = 0x2f;
const apostrophe = 0x27;
const blank = 0x20;

const classes: Uint8Array = classTable(0x110000, [upper, lower, caseless, mark, number, space, newline, other]);

function classAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  if (byte < 0x80) return classes[byte]!;
  const second = bytes[at + 1]! & 0x3f;
  if (byte < 0xe0) return classes[((byte & 0x1f) << 6) | second]!;
  const third = bytes[at + 2]! & 0x3f;
  if (byte < 0xf0) return classes[((byte & 0xf) << 12) | (second << 6) | third]!;
  return classes[((byte & 7) << 18) | (second << 12) | (third << 6) | (bytes[at + 3]! & 0x3f)]!;
}

function widthAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  if (byte < 0x80) return 1;
  if (byte < 0xe0) return 2;
  return byte < 0xf0 ? 3 : 4;
}

function skipClass(bytes: Uint8Array, from: number, end: number, mask: number): number {
  let position = from;
  while (position < end && classAt(bytes, position) & mask) position += widthAt(bytes, position);
  return position;
}

function numberEnd(bytes: Uint8Array, start: number, end: number): number {
  let position = start;
  for (let digits = 0; digits < 3 && position < end && classAt(bytes, position) === number; digits++) {
    position += widthAt(bytes, position);
  }
  return position;
}

/** Returns `start` if no word begins there. Tries in the order of the pattern: lower case with a prefix, lower case
 *  without it (only a mark can be both), then upper case alone. */
function o200kWordEnd(bytes: Uint8Array, start: number, end: number): number {
  const first = classAt(bytes, start);
  const from = first & prefix ? start + widthAt(bytes, start) : start;
  const cased = casedEnd(bytes, from, end);
  if (cased > from) return cased;
  if (first === mark) return casedEnd(bytes, start, end);
  const shout = skipClass(bytes, from, end, upper);
  return shout > from ? shout : start;
}

/** Returns the end of `[upper caseless mark]*[lower caseless mark]+`, or `from` if it does not match. */
function casedEnd(bytes: Uint8Array, from: number, end: number): number {
  let position = from;
  let fallback = from;
  while (position < end) {
    const kind = classAt(bytes, position);
    if (kind === lower) return skipClass(bytes, position, end, lower | caseless | mark);
    if (!(kind & (upper | caseless | mark))) break;
    position += widthAt(bytes, position);
    // Without lower case, the first part backtracks until the second can begin: at the last caseless letter or mark.
    if (kind !== upper) fallback = position;
  }
  return fallback;
}

function contractionLength(bytes: Uint8Array, at: number, end: number): number {
  if (at + 1 >= end || bytes[at] !== apostrophe) return 0;
  const first = bytes[at + 1]! | 0x20;
  if (first === 0x73 || first === 0x74 || first === 0x6d || first === 0x64) return 2; // s t m d
  if (at + 2 >= end) return 0;
  // A case-insensitive pattern treats U+017F, the long s, as an s.
  if (bytes[at + 1] === 0xc5 && bytes[at + 2] === 0xbf) return 3;
  const second = bytes[at + 2]! | 0x20;
  if (first === 0x6c) return second === 0x6c ? 3 : 0; // ll
  return (first === 0x72 || first === 0x76) && second === 0x65 ? 3 : 0; // re ve
}

/** Returns the end of ` ?[^\s\p{L}\p{N}]+`, or `start` if it does not match. */
function symbolsEnd(bytes: Uint8Array, start: number, end: number): number {
  const from = bytes[start] === blank ? start + 1 : start;
  const position = skipClass(bytes, from, end, other | mark);
  return position > from ? position : start;
}

/** `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the run's last line break. Without one, up to but not including its last
 *  character, which the next word takes. */
function spaceEnd(bytes: Uint8Array, start: number, end: number): number {
  let position = start;
  let last = start;
  let afterNewline = start;
  while (position < end && classAt(bytes, position) & (space | newline)) {
    last = position;
    position += widthAt(bytes, position);
    if (isNewline(bytes[last]!)) afterNewline = position;
  }
  if (afterNewline > start) return afterNewline;
  return position === end || last === start ? position : last;
}

function isNewline(byte: number): boolean {
  return byte === 0x0a || byte === 0x0d;
}
