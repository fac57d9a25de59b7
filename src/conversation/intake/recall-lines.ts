/** Chooses lines of a recalled text: a range, lines that match a pattern, and as many as fit a number of tokens. If the
 *  tool wrote numbers before the lines, these are their numbers, as in the notes. Otherwise lines are counted from 1,
 *  and a line that is too long counts as several. */
import { ContextError } from "../../core/errors.ts";
import { formatNumber, joinLines, type LinePart, printable, splitLines } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { largeText } from "./page.ts";
import { readResultLines } from "./result-lines.ts";

export interface RecallChoice {
  /** `A-B`, `A-` or `A`. */
  readonly lines?: string | undefined;
  /** A regular expression. */
  readonly grep?: string | undefined;
  /** Returns the indexes of the lines that match, within its own limit of time. By default any pattern is tried. */
  readonly find?: ((pattern: string, lines: readonly string[]) => readonly number[]) | undefined;
  /** The number of the first line, if the tool wrote none and the call asked for a later part.
   *  @default 1 */
  readonly first?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly maxCharacters?: number | undefined;
  readonly counter: Counter;
}

export interface RecalledLines {
  /** How many lines the whole text has. */
  readonly count: number;
  readonly shown: readonly RecalledLine[];
  /** The lines that were chosen and did not fit. */
  readonly rest: readonly RecalledLine[];
  /** The shown lines; with numbers if `grep` chose them. */
  readonly text: string;
}

interface RecalledLine {
  /** A line without a number has the number of the line before it. */
  readonly number: number;
  readonly text: string;
}

type NumberedPart = RecalledLine & LinePart;

export function recallLines(text: string, choice: RecallChoice): RecalledLines {
  const { lines, grep, find = findMatches, first = 1 } = choice;
  const { all, isNumbered } = numberParts(text, first);
  const ranged = lines === undefined ? all : chooseRange(all, lines);
  const texts = ranged.map((line) => line.text);
  const found = grep === undefined ? ranged : find(grep, texts).flatMap((index) => ranged[index] ?? []);
  const end = countFitting(found, choice);
  const shown = found.slice(0, end);
  const isPlain = grep === undefined || isNumbered;
  const rendered = isPlain ? joinLines(shown) : shown.map((line) => `${line.number}: ${line.text}`).join("\n");
  const plain = ({ number, text: line }: NumberedPart): RecalledLine => ({ number, text: line });
  return { count: all.length, shown: shown.map(plain), rest: found.slice(end).map(plain), text: rendered };
}

/** The most lines beside the numbered ones: a program may write some before and after them. */
const maxOthers = 10;

function numberParts(
  text: string,
  first: number,
): { readonly all: readonly NumberedPart[]; readonly isNumbered: boolean } {
  const parts = splitLines(text);
  // No note names lines of a large result, and reading the numbers takes long.
  const own = text.length > largeText ? [] : readResultLines(text);
  const others = own.filter(({ body, text: line }) => body === line).length;
  // The parts of one long line would have the same number, so a reader could not go on after one of them.
  const isNumbered = parts.length === own.length && others < own.length && others <= maxOthers;
  let number = 0;
  const all = parts.map((part, index): NumberedPart => {
    number = isNumbered ? Math.max(number, own[index]?.number ?? 0) : index + first;
    return { number, ...part };
  });
  return { all, isNumbered };
}

function chooseRange(lines: readonly NumberedPart[], range: string): readonly NumberedPart[] {
  const [, from, dash, to] = /^(\d+)(-?)(\d*)$/.exec(range) ?? [];
  if (from === undefined) {
    throw new ContextError("usage", `lines is "${printable(range)}"`, { hint: "Use A-B, A- or A, as in 120-180." });
  }
  const last = dash === "" ? Number(from) : to === "" ? Number.POSITIVE_INFINITY : Number(to);
  const chosen = lines.filter(({ number }) => number >= Number(from) && number <= last);
  if (chosen.length > 0) return chosen;
  const [first = 0, end = 0] = [lines.find(({ number }) => number > 0)?.number, lines.at(-1)?.number];
  throw new ContextError(
    "usage",
    `the result has no lines ${printable(range)}: its lines are ${formatNumber(first)} to ${formatNumber(end)}`,
  );
}

function findMatches(source: string, lines: readonly string[]): number[] {
  let pattern: RegExp;
  try {
    pattern = new RegExp(source, "u");
  } catch (cause) {
    throw new ContextError("usage", `grep is not a regular expression: ${printable(source)}`, { cause });
  }
  return lines.flatMap((line, index) => (pattern.test(line) ? index : []));
}

/** Returns how many of the lines fit. Lines with the same number stay together: a reader goes on from a number. */
function countFitting(lines: readonly RecalledLine[], { maxTokens, maxCharacters, counter }: RecallChoice): number {
  let tokens = maxTokens ?? Number.POSITIVE_INFINITY;
  let characters = maxCharacters ?? Number.POSITIVE_INFINITY;
  const end = lines.findIndex(({ text }) => {
    if (maxTokens !== undefined) tokens -= counter.count(`${text}\n`);
    characters -= text.length + 1;
    return tokens < 0 || characters < 0;
  });
  if (end < 0) return lines.length;
  return lines.findIndex(({ number }) => number === lines[end]?.number);
}
