/** Chooses lines of a recalled text: a range, those that match, and as many as fit a number of tokens. A line that is too
 *  long counts as several. */
import { ContextError } from "../errors.ts";
import { formatNumber, joinLines, type LinePart, printable, splitLines } from "../text/index.ts";
import type { Counter } from "../tokens/index.ts";

export interface RecallChoice {
  /** `A-B`, `A-` or `A`, counted from 1. */
  readonly lines?: string | undefined;
  /** A regular expression. */
  readonly grep?: string | undefined;
  /** Returns the indexes of the lines that match, within its own limit of time. By default any pattern is tried. */
  readonly find?: ((pattern: string, lines: readonly string[]) => readonly number[]) | undefined;
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
  readonly number: number;
  readonly text: string;
}

type NumberedPart = RecalledLine & LinePart;

export function recallLines(text: string, choice: RecallChoice): RecalledLines {
  const { lines, grep, find = findMatches } = choice;
  const all = splitLines(text).map((part, index): NumberedPart => ({ number: index + 1, ...part }));
  const ranged = lines === undefined ? all : chooseRange(all, lines);
  const texts = ranged.map((line) => line.text);
  const found = grep === undefined ? ranged : find(grep, texts).flatMap((index) => ranged[index] ?? []);
  const end = endWithin(found, choice);
  const shown = found.slice(0, end);
  const rendered =
    grep === undefined ? joinLines(shown) : shown.map((line) => `${line.number}: ${line.text}`).join("\n");
  return { count: all.length, shown: shown.map(plain), rest: found.slice(end).map(plain), text: rendered };
}

function plain({ number, text }: NumberedPart): RecalledLine {
  return { number, text };
}

function chooseRange(lines: readonly NumberedPart[], range: string): readonly NumberedPart[] {
  const [, from, dash, to] = /^(\d+)(-?)(\d*)$/.exec(range) ?? [];
  if (from === undefined) {
    throw new ContextError("usage", `lines is "${printable(range)}"`, { hint: "Use A-B, A- or A, as in 120-180." });
  }
  const last = dash === "" ? Number(from) : to === "" ? lines.length : Number(to);
  const chosen = lines.slice(Math.max(0, Number(from) - 1), last);
  if (chosen.length > 0) return chosen;
  throw new ContextError("usage", `the result has lines 1 to ${formatNumber(lines.length)}, not ${printable(range)}`);
}

function findMatches(source: string, lines: readonly string[]): number[] {
  const pattern = patternOf(source);
  return lines.flatMap((line, index) => (pattern.test(line) ? index : []));
}

function patternOf(source: string): RegExp {
  try {
    return new RegExp(source, "u");
  } catch (cause) {
    throw new ContextError("usage", `grep is not a regular expression: ${printable(source)}`, { cause });
  }
}

function endWithin(lines: readonly RecalledLine[], { maxTokens, maxCharacters, counter }: RecallChoice): number {
  let tokens = maxTokens ?? Number.POSITIVE_INFINITY;
  let characters = maxCharacters ?? Number.POSITIVE_INFINITY;
  const end = lines.findIndex(({ text }) => {
    if (maxTokens !== undefined) tokens -= counter.count(`${text}\n`);
    characters -= text.length + 1;
    return tokens < 0 || characters < 0;
  });
  return end < 0 ? lines.length : end;
}
