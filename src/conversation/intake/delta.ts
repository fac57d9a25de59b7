/** Replaces lines that the context already holds by notes. Lines that differ only in durations and the like count too.
 *  A note names a call and line numbers. It means the newest result of that call that has these numbers, so a reader
 *  can put the whole result together again. Lines that a newer result of the call replaced get no note, even if the
 *  context still has them. */
import type { KeyedHash } from "../../core/text/index.ts";
import { listFieldKinds } from "./changing-fields.ts";
import {
  countRunLines,
  type HashedLine,
  type HeldRange,
  type HeldRun,
  type HeldText,
  type LineName,
  listHashes,
} from "./held-texts.ts";
import { areInStrings, unnumbered } from "./result-lines.ts";

/** A result without the lines that the context holds. */
export interface Delta {
  readonly text: string;
  readonly ranges: readonly HeldRange[];
  /** If the client can show only one piece: the piece, and what to say beside it. */
  readonly piece?: Piece;
}

/** Lines that follow each other, by indexes, and the note beside them. */
interface Piece {
  readonly start: number;
  readonly end: number;
  /** The lines without their numbers. */
  readonly text: string;
  readonly note: string;
}

export interface DeltaOptions {
  readonly held: readonly HeldText[];
  /** The name of this result's call. If several runs match equally many lines, a run from a call of this name is used,
   *  because a reader finds it most easily. */
  readonly label: string;
  /** Whether a line is shown although the context holds it. */
  readonly isKept: (index: number) => boolean;
  /** Whether a line counts as held only if the context has exactly this line, not one that is merely alike. Absent if
   *  no two lines count as alike. */
  readonly isExact?: ((index: number) => boolean) | undefined;
  readonly isOnePiece: boolean;
  readonly isUnordered?: boolean | undefined;
  readonly hash: KeyedHash;
  /** Is part of every note, so that text of a result cannot look like one. */
  readonly mark: string;
  /** Says how to get the whole text. */
  readonly recallHint: () => string;
}

/** Returns undefined if the context holds none of the lines. */
export function findDelta(lines: readonly HashedLine[], options: DeltaOptions): Delta | undefined {
  const { isOnePiece } = options;
  const { ranges: held, repeated } = findHeld(lines, options);
  const found = dropLongNotes(lines, held, options.mark);
  const ranges = isOnePiece ? keepOuterRanges(found, lines.length) : found;
  if (ranges.length === 0) return undefined;
  const text = renderDelta(lines, ranges, { ...options, repeated });
  return { text, ranges, ...(isOnePiece && { piece: cutPiece(lines, ranges, text) }) };
}

/** One way in which lines of the result can be those of the context. */
interface Comparison {
  /** The hashes by which lines of the result are found. */
  readonly hashes: readonly string[];
  /** By which hashes they are found in the context. */
  readonly of: "hashes" | "shapes";
  readonly matches: ReadonlyMap<string, readonly Match[]>;
  readonly isKept: (index: number) => boolean;
}

/** At least this many lines must be left out as alike. Fewer are shown, because a person may have changed their
 *  numbers. */
const minAlike = 8;
/** The least share of lines in a range that differ in their numbers. In a text that is mostly the same, a changed
 *  number is news. */
const alikeShare = 0.125;

/** Returns the ranges of lines that the context holds, in order, and the lines that are shown although it holds them. */
function findHeld(
  lines: readonly HashedLine[],
  options: DeltaOptions,
): { readonly ranges: HeldRange[]; readonly repeated: ReadonlySet<number> } {
  const { held, isKept, isExact, hash } = options;
  const hashes = lines.map((line) => line.hash);
  // In a diff, a line of the file comes after a sign.
  const isDiff = lines.some(({ sign }) => sign !== undefined);
  const bare = isDiff ? lines.map(({ body, sign }) => (sign === undefined ? "" : hash.text(body.slice(1)))) : [];
  const matches = findMatches([...hashes, ...bare], held, "hashes");
  const kept = [...hashes.keys()].filter((index) => isKept(index) && matches.get(hashes[index] ?? "")?.length);
  const repeated = new Set(kept);
  const same: Comparison = { hashes, of: "hashes", matches, isKept };
  if (isDiff) return { ranges: findRanges(lines, { same, signed: { ...same, hashes: bare } }, options), repeated };
  if (isExact !== undefined && lines.some(({ hash, shape }) => hash !== shape)) {
    const shapes = lines.map((line) => line.shape);
    const found = findMatches(shapes, held, "shapes");
    const alike: Comparison = { hashes: shapes, of: "shapes", matches: found, isKept: isExact };
    const ranges = findRanges(lines, { same, alike }, options);
    const folded = ranges.filter(({ differing }) => differing !== undefined);
    if (folded.reduce((sum, { start, end }) => sum + end - start, 0) >= minAlike) return { ranges, repeated };
  }
  return { ranges: findRanges(lines, { same }, options), repeated };
}

interface Comparisons {
  readonly same: Comparison;
  /** The lines of the result come after a sign. */
  readonly signed?: Comparison;
  /** The lines may differ in changing fields. */
  readonly alike?: Comparison;
}

function findRanges(
  lines: readonly HashedLine[],
  { same, signed, alike }: Comparisons,
  { label }: DeltaOptions,
): HeldRange[] {
  const ranges: HeldRange[] = [];
  for (let at = 0; at < lines.length; ) {
    const search = { lines, at, label, previous: ranges.at(-1)?.base };
    const exact = longestMatch(same, search);
    const others = [signed, alike].map((each) => each && longestMatch(each, search, each === alike ? same : undefined));
    const longer = others.findIndex((other) => (other?.length ?? 0) > (exact?.length ?? 0));
    const best = others[longer] ?? exact;
    const end = at + (best?.length ?? 0);
    if (best === undefined || !isWorthANote(lines, at, end)) {
      at++;
      continue;
    }
    const range = createRange(best, at, longer === 0 ? lines[at]?.sign : undefined);
    const bodies = (): string[] => lines.slice(at, end).map(({ body }) => body);
    ranges.push(longer === 1 ? { ...range, differing: listFieldKinds(bodies()) } : range);
    at = end;
  }
  return ranges;
}

function createRange({ text: base, run, line, length }: LongMatch, start: number, sign: string | undefined): HeldRange {
  const { label, by, from } = run.named ?? { label: base.label, from: run.from };
  const isWritten = base.isWritten === true && by === undefined;
  const of = isWritten && length < countRunLines(run) ? countRunLines(run) : undefined;
  return {
    start,
    end: start + length,
    base,
    baseFrom: run.from + line,
    name: { label, isWritten, by, from: from + line, of, sign },
  };
}

/** A note costs about 8 tokens. */
const minCharacters = 60;

function isWorthANote(lines: readonly HashedLine[], start: number, end: number): boolean {
  let characters = 0;
  for (let index = start; index < end && characters < minCharacters; index++) {
    characters += (lines[index] as HashedLine).text.length + 1;
  }
  return characters >= minCharacters;
}

/** A line of a text in the context that is the same as a line of the result. */
interface Match {
  readonly text: HeldText;
  readonly run: HeldRun;
  /** The index of the line in the run. */
  readonly line: number;
}

/** Common lines ("}") match in many places. Only the newest of them are tried. */
const maxMatches = 12;

/** Returns where the context holds these lines, the newest matches first. */
function findMatches(hashes: readonly string[], held: readonly HeldText[], of: Comparison["of"]): Map<string, Match[]> {
  const matches = new Map<string, Match[]>(hashes.map((hash) => [hash, []]));
  for (const text of held.toReversed()) {
    for (const run of text.runs) {
      const list = listHashes(run, of);
      for (let line = 0; line < list.length; line++) {
        const found = matches.get(list[line] as string);
        if (found !== undefined && found.length < maxMatches) found.push({ text, run, line });
      }
    }
  }
  return matches;
}

interface Search {
  readonly lines: readonly HashedLine[];
  readonly at: number;
  readonly label: string;
  /** The text that has the range before. */
  readonly previous: HeldText | undefined;
}

interface LongMatch extends Match {
  /** How many lines match. */
  readonly length: number;
}

/** Returns the longest match. Among equally long matches it prefers one from a call of this name, then one in the same
 *  text as the previous range. With `same`, ignores matches in which nearly all lines are exactly equal: there, a
 *  changed number is news. */
function longestMatch(comparison: Comparison, search: Search, same?: Comparison): LongMatch | undefined {
  const { at, label, previous } = search;
  if (comparison.isKept(at)) return undefined;
  let best: LongMatch | undefined;
  let bestRank = 0;
  for (const match of comparison.matches.get(comparison.hashes[at] as string) ?? []) {
    const { text, run } = match;
    const length = countMatching(comparison, search, match, same);
    const name = run.named?.label ?? (text.isWritten === true ? undefined : text.label);
    const rank = name === label ? 2 : Number(text === previous);
    if (length === 0 || length < (best?.length ?? 0) || (length === best?.length && rank <= bestRank)) continue;
    best = { text, run, line: match.line, length };
    bestRank = rank;
  }
  return best;
}

/** Returns how many lines match. With `same`, the range ends when too few lines differ. */
function countMatching(
  { hashes, of, isKept }: Comparison,
  { lines, at }: Search,
  { run, line }: Match,
  same: Comparison | undefined,
): number {
  const [there, exact] = [listHashes(run, of), listHashes(run)];
  const first = lines[at] as HashedLine;
  const isMatch = (count: number): boolean => {
    const next = lines[at + count];
    const isNext = next?.number === first.number + count && next.sign === first.sign;
    return isNext && there[line + count] === hashes[at + count] && (count === 0 || !isKept(at + count));
  };
  let length = 0;
  for (let count = 0, others = 0; isMatch(count); count++) {
    if (same === undefined) length = count + 1;
    else {
      if (exact[line + count] !== same.hashes[at + count]) others++;
      const isEnough = others > count * alikeShare;
      if (isEnough && others > 2) length = count + 1;
      if (!isEnough && count > 2 * minAlike) break;
    }
  }
  return length;
}

/** Drops ranges whose note would be as long as the lines that it replaces. A note about lines of another call is
 *  longer, because it names that call. */
function dropLongNotes(lines: readonly HashedLine[], ranges: readonly HeldRange[], mark: string): HeldRange[] {
  if (ranges.length === 0) return [];
  const main = mainName(ranges);
  return ranges.filter((range) => {
    const note = `[${mark} ${writeNote(lines, range, main)}]`;
    const replaced = lines.slice(range.start, range.end);
    return replaced.reduce((sum, { text }) => sum + text.length + 1, 0) > note.length;
  });
}

/** Writes the result with a note in place of each range. The first line names the call that showed most of the ranges,
 *  so that the notes can be short. */
function renderDelta(
  lines: readonly HashedLine[],
  ranges: readonly HeldRange[],
  {
    mark,
    recallHint,
    repeated,
    isUnordered,
  }: Pick<DeltaOptions, "mark" | "recallHint" | "isUnordered"> & { readonly repeated: ReadonlySet<number> },
): string {
  const main = mainName(ranges);
  const place = main.isWritten ? `as you wrote them in ${main.label}` : `as last shown by ${main.label} above`;
  const before = isUnordered === true ? ", before these calls" : "";
  const shown = repeated.size === 0 ? "Only new lines are shown" : "Only new lines are shown, and failures again";
  const split = areInStrings(lines) ? ", split at \\n in strings" : "";
  const written = [
    `[${mark}: ${shown}${split}. Lines in brackets with ${mark} are ${place}${before}. Whole text: ${recallHint()}]`,
  ];
  let at = 0;
  for (const range of [...ranges, undefined]) {
    const end = range?.start ?? lines.length;
    writeShown(lines, { at, end, mark, repeated, written });
    if (range !== undefined) written.push(`[${mark} ${writeNote(lines, range, main)}]`);
    at = range?.end ?? end;
  }
  return written.join("\n");
}

interface ShownLines extends Pick<DeltaOptions, "mark"> {
  readonly at: number;
  readonly end: number;
  readonly repeated: ReadonlySet<number>;
  readonly written: string[];
}

/** Writes lines as they are. Those that the context holds are marked as repeated. */
function writeShown(lines: readonly HashedLine[], { at, end, mark, repeated, written }: ShownLines): void {
  for (let index = at; index < end; index++) {
    let again = index;
    while (again < end && repeated.has(again)) again++;
    if (again > index && (index === at || !repeated.has(index - 1))) {
      const words = `repeated ${nameLines(lines, index, again)}:`;
      // Adds the words to the note that stands directly before these lines.
      const isAfterNote = index === at && at > 0;
      written.push(isAfterNote ? `${written.pop()?.slice(0, -1)}, ${words}]` : `[${mark} ${words}]`);
    }
    written.push((lines[index] as HashedLine).text);
  }
}

/** The name that applies to most lines. */
function mainName(ranges: readonly HeldRange[]): LineName {
  const counts = new Map<string, { name: LineName; lines: number }>();
  for (const { name, start, end } of ranges) {
    const key = nameKey(name);
    counts.set(key, { name, lines: (counts.get(key)?.lines ?? 0) + end - start });
  }
  return [...counts.values()].reduce((most, each) => (each.lines > most.lines ? each : most)).name;
}

function nameKey({ label, isWritten }: LineName): string {
  return `${isWritten} ${label}`;
}

function writeNote(lines: readonly HashedLine[], { start, end, name, differing }: HeldRange, main: LineName): string {
  const [first, last] = [lines[start]?.number ?? 0, lines[end - 1]?.number ?? 0];
  const { from, of } = name;
  const words = [nameLines(lines, start, end)];
  if (name.sign !== undefined) words.push(`all with "${name.sign}"`);
  const there = `there ${writeNumbers(from, from + last - first)}`;
  if (of !== undefined) words.push(`${there} of ${of}`);
  else if (!name.isWritten && from !== first) words.push(there);
  if (differing !== undefined) words.push(`but for ${differing.join(", ")}`);
  if (nameKey(name) !== nameKey(main))
    words.push(name.isWritten ? `as written in ${name.label}` : `as in ${name.label}`);
  return words.join(", ");
}

function nameLines(lines: readonly HashedLine[], start: number, end: number): string {
  const [first, last] = [lines[start]?.number ?? 0, lines[end - 1]?.number ?? 0];
  return `${first < 0 ? "unnumbered " : ""}${writeNumbers(first, last)}`;
}

function writeNumbers(first: number, last: number): string {
  const [from, to] = [first, last].map((number) => (number < 0 ? number - unnumbered : number));
  return from === to ? `${from}` : `${from}-${to}`;
}

/** Keeps the ranges at the beginning and at the end, so that the lines between them follow each other. */
function keepOuterRanges(ranges: readonly HeldRange[], count: number): HeldRange[] {
  const first = ranges.findIndex(({ start }, index) => start !== (ranges[index - 1]?.end ?? 0));
  if (first < 0) return [...ranges];
  const last = ranges.findLastIndex(({ end }, index) => end !== (ranges[index + 1]?.start ?? count));
  return [...ranges.slice(0, first), ...ranges.slice(Math.max(first, last + 1))];
}

/** Returns the lines that no range has, and the notes of the rendered delta. */
function cutPiece(lines: readonly HashedLine[], ranges: readonly HeldRange[], text: string): Piece {
  const gap = ranges.findIndex(({ end }, index) => end !== ranges[index + 1]?.start);
  const start = ranges[0]?.start === 0 ? (ranges[gap]?.end ?? 0) : 0;
  const end = ranges.find((range) => range.start >= start)?.start ?? lines.length;
  const piece = lines.slice(start, end);
  const texts = new Set(piece.map((line) => line.text));
  const note = text.split("\n").filter((line) => !texts.has(line));
  return { start, end, text: piece.map(({ body }) => body).join("\n"), note: note.join(" ") };
}
