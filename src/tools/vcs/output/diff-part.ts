/** A hunk, or a part of a long one, while its lines are read. */
import { cutText } from "../../../text/index.ts";
import { decodeBytes } from "../../../workspace/index.ts";
import { decodeWholeLine } from "../../source/text-encoding.ts";

export interface Part {
  /** As git wrote it. */
  readonly given: string;
  readonly isFirst: boolean;
  /** Columns before each line, one for each old side: a conflict has two. */
  readonly columns: number;
  readonly start: { readonly old: number; readonly new: number };
  readonly count: { old: number; new: number };
  readonly lines: string[];
  characters: number;
}

/** A part of this size fits a page with room to spare. */
const mostPartLines = 200;
const mostPartCharacters = 8_000;
const mostLineCharacters = 2_000;
/** Of a longer line git's output was read in part. */
const mostCounted = 1_000_000;

/** Lines are byte strings. */
export function partOf(header: string): Part {
  const given = decodeBytes(header.slice(0, mostLineCharacters));
  const [, old, now] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(given) ?? [];
  const columns = given.search(/[^@]/) - 1;
  const start = { old: Number(old ?? 0), new: Number(now ?? 0) };
  return { given, isFirst: true, columns, start, count: { old: 0, new: 0 }, lines: [], characters: 0 };
}

export function isFull({ lines, characters }: Part): boolean {
  return lines.length >= mostPartLines || characters > mostPartCharacters;
}

export function nextPart({ given, columns, start, count }: Part): Part {
  const next = { old: start.old + count.old, new: start.new + count.new };
  return { given, isFirst: false, columns, start: next, count: { old: 0, new: 0 }, lines: [], characters: 0 };
}

export function addLine(part: Part, line: string): void {
  if (!line.startsWith("+") && !line.startsWith("\\")) part.count.old++;
  if (!line.startsWith("-") && !line.startsWith("\\")) part.count.new++;
  const { text, omitted } = cutText(decodeWholeLine(line), mostLineCharacters);
  const left = omitted < mostCounted ? omitted : `at least ${mostCounted}`;
  const shown = omitted > 0 ? `${text}… [${left} more characters]` : text;
  part.lines.push(shown);
  part.characters += shown.length + 1;
}

/** A part has the lines' real numbers. The hunk of a merge has several old sides and keeps git's header. */
export function headerOf({ given, isFirst, start, count }: Part): string {
  const heading = /^@@ [^@]+ @@(.*)$/.exec(given)?.[1];
  if (heading === undefined) return isFirst ? given : `${given} (continued)`;
  return `@@ -${start.old},${count.old} +${start.new},${count.new} @@${heading}`;
}
