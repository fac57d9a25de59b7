import { Buffer } from "../bytes.ts";
import { createHash } from "../crypto.ts";
import { ContextError } from "../errors.ts";

/** Returns the candidate that a person most likely meant, or `undefined` if none is close enough. The earlier one wins
 *  a tie. */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const wanted = word.toLowerCase();
  const letters = wanted.replace(/^-+/, "").length;
  // Every other letter is one step away from a single letter.
  if (letters < 2) return undefined;
  const allowed = Math.max(1, Math.floor(wanted.length / 3));
  let best: string | undefined;
  let bestDistance = allowed + 1;
  for (const candidate of candidates) {
    const distance = editDistance(wanted, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best ?? candidates.find((candidate) => candidate.toLowerCase().includes(wanted));
}

/** Returns the suggestion as a sentence, or `undefined`. */
export function didYouMean(word: string, candidates: readonly string[]): string | undefined {
  const match = closest(word, candidates);
  return match === undefined ? undefined : suggest(match);
}

function suggest(name: string): string {
  return `Did you mean "${name}"?`;
}

export interface UnknownName {
  readonly kind: "tool" | "pack" | "profile" | "language";
  /** The names that exist. The earlier one wins a tie. */
  readonly known: readonly string[];
  /** The name to suggest. The default is the closest one. */
  readonly meant?: string | undefined;
  /** Where a file has the name. Absent for a name on the command line. */
  readonly place?: { readonly file?: string | undefined; readonly line?: number | undefined } | undefined;
}

/** Creates the error for a name that does not exist. Suggests the closest name, or else lists all of them. */
export function unknownName(name: string, { kind, known, meant, place }: UnknownName): ContextError {
  const all = [...new Set(known)].sort().join(", ");
  const match = meant ?? closest(name, known);
  const hint = match === undefined ? `${kind[0]!.toUpperCase()}${kind.slice(1)}s are ${all}.` : suggest(match);
  const code = place === undefined ? "usage" : "invalid_config";
  return new ContextError(code, `unknown ${kind} "${name}"`, { ...place, hint });
}

/** Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment). Returns at most
 *  `enough`. */
function editDistance(from: string, to: string, enough: number): number {
  if (Math.abs(from.length - to.length) >= enough) return enough;
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = previous[column - 1]! + (from[row - 1] === to[column - 1] ? 0 : 1);
      let cost = Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1);
      const isSwap = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (row > 1 && column > 1 && isSwap) cost = Math.min(cost, beforePrevious[column - 2]! + 1);
      current.push(cost);
    }
    if (Math.min(...current) >= enough) return enough;
    beforePrevious = previous;
    previous = current;
  }
  return Math.min(previous[to.length]!, enough);
}

/** Formats a whole number with thousands separators: 1,234,567. The same in every locale. */
export function formatNumber(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** `1 session`, `2,000 sessions`. */
export function countNoun(value: number, noun: string): string {
  return `${formatNumber(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** Returns the message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns a short name that is the same in every process: the readable name, as far as a file name allows, and a hash
 *  of the identity. */
export function namedKey(name: string, identity: string): string {
  const hash = createHash("sha256").update(identity).digest("hex").slice(0, 10);
  const shown = name.replaceAll(/[^\w.-]+/g, "-").slice(0, 40);
  return shown === "" ? hash : `${shown}-${hash}`;
}

// C0 and C1 controls, and the marks that reorder text (Trojan Source, CVE-2021-42574).
const unsafe: RegExp = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
const shortEscapes: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Returns text on one line that cannot control a terminal: control characters become visible escapes. Use it for file
 *  names. */
export function printable(text: string): string {
  return text.replace(unsafe, escapeCharacter);
}

/** Returns an ISO 8601 time to the second, as `printable` shows it. */
export function shownTime(time: string): string {
  return printable(time.replace(/\.\d+Z$/, "Z"));
}

/** Works as `printable`, but keeps line breaks, and tabs, which are harmless and part of code. */
export function printableLines(text: string): string {
  return text.replace(unsafe, (character) => (/[\n\t]/.test(character) ? character : escapeCharacter(character)));
}

/** Returns JSON with the same value that cannot control a terminal. JSON.stringify escapes only some characters. */
export function printableJson(json: string): string {
  return json.replace(unsafe, (character) =>
    character === "\n" ? character : `\\u${hex(character.charCodeAt(0), 4)}`,
  );
}

function escapeCharacter(character: string): string {
  const code = character.charCodeAt(0);
  return shortEscapes[character] ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u${hex(code, 4)}`);
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, "0");
}

export interface CutText {
  readonly text: string;
  /** The number of characters left out after `text`. */
  readonly omitted: number;
}

/** Returns at most `maxCharacters` of a text (UTF-16 units, as `length` counts). Never cuts a surrogate pair in half,
 *  which would become U+FFFD. */
export function cutText(text: string, maxCharacters: number): CutText {
  if (text.length <= maxCharacters) return { text, omitted: 0 };
  const end = characterStart(text, maxCharacters);
  return { text: text.slice(0, end), omitted: text.length - end };
}

/** Returns one line of at most `maxCharacters` (UTF-16 units, as `length` counts). Runs of white space become one
 *  space, and a cut text ends with `…`. Never cuts a surrogate pair in half. */
export function shorten(text: string, maxCharacters: number): string {
  // Twice the length is enough for ordinary text. Only a text of mostly white space is read completely.
  const enough = maxCharacters * 2 + 2;
  const beginning = oneLine(text.slice(0, enough));
  const line = beginning.length > maxCharacters || text.length <= enough ? beginning : oneLine(text);
  if (line.length <= maxCharacters) return line;
  const { text: start } = cutText(line, Math.max(0, maxCharacters - 1));
  return `${start.trimEnd()}…`.slice(0, maxCharacters);
}

/** Compares by code unit, so the result does not depend on the locale. */
export function compareText(one: string, two: string): number {
  if (one === two) return 0;
  return one < two ? -1 : 1;
}

/** Returns the text on one line: runs of white space become one space. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Returns the text from its first line with text on. Keeps the spaces of that line: they may make it code. */
export function withoutLeadingBlankLines(text: string): string {
  const lead = /^\s*\n/.exec(text)?.[0] ?? "";
  return text.slice(lead.length);
}

// A JavaScript string may hold half of a surrogate pair; UTF-8 may not.

/** Returns whether a cut at this index would separate the two halves of one character. */
export function isInsidePair(text: string, index: number): boolean {
  const [before, after] = [text.charCodeAt(index - 1), text.charCodeAt(index)];
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000;
}

/** Returns the largest index up to `index` at which a cut leaves every character whole. */
export function characterStart(text: string, index: number): number {
  return isInsidePair(text, index) ? index - 1 : index;
}

/** Replaces half of a pair with U+FFFD, as UTF-8 encoding does, so the counted text is the sent text. */
export function wellFormed(text: string): string {
  return text.replaceAll(/\p{Surrogate}/gu, "\ufffd");
}

/** Returns the longest start of a text within `maxBytes` of UTF-8 that ends with a whole line. If not even one line
 *  fits, it ends with a whole character. */
export function truncateBytes(text: string, maxBytes: number): { readonly text: string; readonly truncated: boolean } {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return { text, truncated: false };
  const bytes = Buffer.from(text).subarray(0, Math.max(0, maxBytes));
  const lineEnd = bytes.lastIndexOf(0x0a);
  if (lineEnd !== -1) return { text: bytes.subarray(0, lineEnd + 1).toString(), truncated: true };
  // The first byte after the cut shows whether a character was cut: bytes inside one are 10xxxxxx.
  let end = bytes.length;
  const whole = Buffer.from(text);
  while (end > 0 && (whole[end]! & 0xc0) === 0x80) end--;
  return { text: whole.subarray(0, end).toString(), truncated: true };
}

/** A warning about one line of a text. */
export interface LineWarning {
  /** 1-based. */
  readonly line: number;
  readonly message: string;
}

/** Returns the first hundred warnings of a text, and the number of the others. */
export function firstWarnings<Warning extends LineWarning>(warnings: readonly Warning[]): Warning[] {
  // Nobody reads more warnings about one text.
  const maxWarnings = 100;
  const first = warnings.slice(0, maxWarnings);
  const [more, last] = [warnings.length - first.length, first.at(-1)];
  return more === 0 || last === undefined ? first : [...first, { ...last, message: `… and ${more} more` }];
}

/** Returns where the match of a sticky pattern at `start` ends. */
export function matchEnd(pattern: RegExp, text: string, start: number): number {
  pattern.lastIndex = start;
  pattern.test(text);
  return pattern.lastIndex;
}
