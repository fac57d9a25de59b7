/** Splits a text into lines, so that a reader can ask for a part of it. A line that is too long counts as several lines.
 *  Otherwise a result of one long line could be shown only whole, or not at all. */
import { isInsidePair } from "./wording.ts";

export const mostLineCharacters = 2_000;

/** A line, or a part of one that is too long. */
export interface LinePart {
  readonly text: string;
  /** Whether the part before has the beginning of the line. */
  readonly continues: boolean;
}

export function splitLines(text: string): LinePart[] {
  return text
    .split("\n")
    .flatMap((line) => splitLong(line).map((part, index) => ({ text: part, continues: index > 0 })));
}

/** Joins parts that follow each other. */
export function joinLines(parts: readonly LinePart[]): string {
  return parts.map(({ text, continues }, index) => (index === 0 || continues ? text : `\n${text}`)).join("");
}

/** Splits a line. Never cuts a character in two. */
export function splitLong(line: string): string[] {
  const parts: string[] = [];
  let start = 0;
  for (let end = partEnd(line, 0); end < line.length; end = partEnd(line, start)) {
    parts.push(line.slice(start, end));
    start = end;
  }
  return [...parts, line.slice(start)];
}

function partEnd(text: string, start: number): number {
  const end = start + mostLineCharacters;
  return isInsidePair(text, end) ? end - 1 : end;
}

/** Counts the lines that start in a range: at its beginning, or behind a line feed. */
export function countLineParts(text: string, from = 0, to: number = text.length): number {
  let lines = 0;
  for (let start = from; start <= to; ) {
    const feed = text.indexOf("\n", start);
    const end = feed < 0 ? text.length : feed;
    lines += end - start <= mostLineCharacters ? 1 : splitLong(text.slice(start, end)).length;
    start = end + 1;
  }
  return lines;
}
