/** Finds the lines of a result that the context already holds, and writes the rest. A reader puts the whole result
 *  together again: a note names lines by their numbers, as the newest result of a call that has these numbers shows them.
 *  So text that such a result no longer shows is never referred to, even if it is still in the context. */
import type { KeyedHash } from "../../core/text/index.ts";
import {
  type HashedLine,
  type HeldRange,
  type HeldRun,
  type HeldText,
  hashAt,
  type LineName,
  linesIn,
} from "./held-texts.ts";
import { unnumbered } from "./result-lines.ts";

/** A result without the lines that the context holds. */
export interface Delta {
  readonly text: string;
  readonly ranges: readonly HeldRange[];
  /** If the client can show only one piece: the piece, and what to say beside it. */
  readonly piece?: ShownPiece;
}

/** Lines that follow each other, by indexes, and what stands beside them. */
interface ShownPiece {
  readonly start: number;
  readonly end: number;
  /** The lines without their numbers. */
  readonly text: string;
  readonly note: string;
}

export interface DeltaOptions {
  readonly held: readonly HeldText[];
  /** The call of the result. Of equally long runs, one that this call showed is easiest to find. */
  readonly label: string;
  /** Whether a line is shown although the context holds it. */
  readonly isKept: (index: number) => boolean;
  readonly isOnePiece: boolean;
  readonly hash: KeyedHash;
  /** Stands in every note, so that text of a result cannot look like one. */
  readonly mark: string;
  /** Says how to get the whole text. */
  readonly recallHint: () => string;
}

/** Returns undefined if the context holds none of the lines. */
export function findDelta(lines: readonly HashedLine[], options: DeltaOptions): Delta | undefined {
  const { isOnePiece } = options;
  const found = withoutLongNotes(lines, findHeld(lines, options), options.mark);
  const ranges = isOnePiece ? aroundOnePiece(found, lines.length) : found;
  if (ranges.length === 0) return undefined;
  const text = renderDelta(lines, ranges, options);
  return { text, ranges, ...(isOnePiece && { piece: pieceOf(lines, ranges, text) }) };
}

/** Returns the ranges of lines that the context holds, in order. */
function findHeld(lines: readonly HashedLine[], { held, isKept, label, hash }: DeltaOptions): HeldRange[] {
  const hashes = lines.map((line) => line.hash);
  // In a diff, a line of the file stands after a sign.
  const bare = lines.map(({ body, sign }) => (sign === undefined ? "" : hash.text(body.slice(1))));
  const places = findPlaces([...hashes, ...bare], held);
  const ranges: HeldRange[] = [];
  for (let at = 0; at < lines.length; ) {
    const search = { lines, at, places, isKept, label, previous: ranges.at(-1) };
    const best = isKept(at) ? undefined : longer(longestRun(hashes, search), longestRun(bare, search));
    if (best === undefined || !isWorthANote(lines, at, at + best.length)) {
      at++;
      continue;
    }
    const { text: base, run, line } = best.place;
    const sign = hashAt(run, line) === hashes[at] ? undefined : lines[at]?.sign;
    ranges.push({ start: at, end: at + best.length, base, baseFrom: run.from + line, name: { ...nameOf(best), sign } });
    at += best.length;
  }
  return ranges;
}

function longer(one: FoundRun | undefined, other: FoundRun | undefined): FoundRun | undefined {
  return (other?.length ?? 0) > (one?.length ?? 0) ? other : one;
}

function nameOf({ place: { text, run, line }, length }: FoundRun): LineName {
  const { label, by, from } = run.named ?? { label: text.label, from: run.from };
  const isWritten = text.isWritten === true && by === undefined;
  const of = isWritten && length < linesIn(run) ? linesIn(run) : undefined;
  return { label, isWritten, by, from: from + line, of };
}

/** A note costs about 8 tokens. */
const leastCharacters = 60;

function isWorthANote(lines: readonly HashedLine[], start: number, end: number): boolean {
  let characters = 0;
  for (let index = start; index < end && characters < leastCharacters; index++) {
    characters += (lines[index] as HashedLine).text.length + 1;
  }
  return characters >= leastCharacters;
}

interface Place {
  readonly text: HeldText;
  readonly run: HeldRun;
  /** The index of the line in the run. */
  readonly line: number;
}

/** Common lines ("}") stand in many places. Only the newest of them are tried. */
const mostPlaces = 12;

/** Returns where the context holds these lines, the newest places first. */
function findPlaces(hashes: readonly string[], held: readonly HeldText[]): Map<string, Place[]> {
  const places = new Map<string, Place[]>(hashes.map((hash) => [hash, []]));
  for (const text of held.toReversed()) {
    for (const run of text.runs) {
      for (let line = 0; line < linesIn(run); line++) {
        const found = places.get(hashAt(run, line));
        if (found !== undefined && found.length < mostPlaces) found.push({ text, run, line });
      }
    }
  }
  return places;
}

interface Search {
  readonly lines: readonly HashedLine[];
  readonly at: number;
  readonly places: ReadonlyMap<string, readonly Place[]>;
  readonly isKept: (index: number) => boolean;
  readonly label: string;
  readonly previous: HeldRange | undefined;
}

interface FoundRun {
  readonly place: Place;
  readonly length: number;
}

function longestRun(hashes: readonly string[], { lines, at, places, isKept, ...search }: Search): FoundRun | undefined {
  const first = lines[at] as HashedLine;
  const isNext = (index: number): boolean =>
    lines[index]?.number === first.number + index - at && lines[index]?.sign === first.sign;
  let best: FoundRun | undefined;
  for (const place of places.get(hashes[at] as string) ?? []) {
    let length = 1;
    while (
      at + length < hashes.length &&
      !isKept(at + length) &&
      isNext(at + length) &&
      hashAt(place.run, place.line + length) === hashes[at + length]
    ) {
      length++;
    }
    const isAsLong = best !== undefined && length === best.length;
    if (best === undefined || length > best.length || (isAsLong && rankOf(place, search) > rankOf(best.place, search)))
      best = { place, length };
  }
  return best;
}

function rankOf({ text, run }: Place, { label, previous }: Pick<Search, "label" | "previous">): number {
  if ((run.named?.label ?? text.label) === label && (run.named !== undefined || text.isWritten !== true)) return 2;
  return text === previous?.base ? 1 : 0;
}

/** Drops ranges whose note would be as long as the lines: the note of a line that another call showed has its name. */
function withoutLongNotes(lines: readonly HashedLine[], ranges: readonly HeldRange[], mark: string): HeldRange[] {
  if (ranges.length === 0) return [];
  const main = mainName(ranges);
  return ranges.filter((range) => {
    const note = `[${mark} ${noteOf(lines, range, main)}]`;
    const replaced = lines.slice(range.start, range.end);
    return replaced.reduce((sum, { text }) => sum + text.length + 1, 0) > note.length;
  });
}

/** Writes the result with a note in place of each range. The first line names the call that showed most of them, so that
 *  the notes can be short. */
function renderDelta(
  lines: readonly HashedLine[],
  ranges: readonly HeldRange[],
  { mark, recallHint }: Pick<DeltaOptions, "mark" | "recallHint">,
): string {
  const main = mainName(ranges);
  const place = main.isWritten ? `as you wrote them in ${main.label}` : `as last shown by ${main.label} above`;
  const written = [
    `[${mark}: Only new lines are shown. Lines in brackets with ${mark} are ${place}. Whole text: ${recallHint()}]`,
  ];
  let at = 0;
  for (const range of [...ranges, undefined]) {
    const end = range?.start ?? lines.length;
    for (const { text } of lines.slice(at, end)) written.push(text);
    if (range !== undefined) written.push(`[${mark} ${noteOf(lines, range, main)}]`);
    at = range?.end ?? end;
  }
  return written.join("\n");
}

/** The name of the most lines. */
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

function noteOf(lines: readonly HashedLine[], { start, end, name }: HeldRange, main: LineName): string {
  const [first, last] = [lines[start]?.number ?? 0, lines[end - 1]?.number ?? 0];
  const { from, of } = name;
  const words = [linesWord(first, last)];
  if (name.sign !== undefined) words.push(`all with "${name.sign}"`);
  const there = `there ${numbersWord(from, from + last - first)}`;
  if (of !== undefined) words.push(`${there} of ${of}`);
  else if (!name.isWritten && from !== first) words.push(there);
  if (nameKey(name) !== nameKey(main))
    words.push(name.isWritten ? `as written in ${name.label}` : `as in ${name.label}`);
  return words.join(", ");
}

function linesWord(first: number, last: number): string {
  return `${first < 0 ? "unnumbered " : ""}${numbersWord(first, last)}`;
}

function numbersWord(first: number, last: number): string {
  return first === last ? `${shownNumber(first)}` : `${shownNumber(first)}-${shownNumber(last)}`;
}

function shownNumber(number: number): number {
  return number < 0 ? number - unnumbered : number;
}

/** Keeps the ranges at the beginning and at the end, so that the lines between them follow each other. */
function aroundOnePiece(ranges: readonly HeldRange[], count: number): HeldRange[] {
  const first = ranges.findIndex(({ start }, index) => start !== (ranges[index - 1]?.end ?? 0));
  if (first < 0) return [...ranges];
  const last = ranges.findLastIndex(({ end }, index) => end !== (ranges[index + 1]?.start ?? count));
  return [...ranges.slice(0, first), ...ranges.slice(Math.max(first, last + 1))];
}

/** Returns the lines that no range has, and the notes of the rendered delta. */
function pieceOf(lines: readonly HashedLine[], ranges: readonly HeldRange[], text: string): ShownPiece {
  const gap = ranges.findIndex(({ end }, index) => end !== ranges[index + 1]?.start);
  const start = ranges[0]?.start === 0 ? (ranges[gap]?.end ?? 0) : 0;
  const end = ranges.find((range) => range.start >= start)?.start ?? lines.length;
  const piece = lines.slice(start, end);
  const shown = new Set(piece.map((line) => line.text));
  const note = text.split("\n").filter((line) => !shown.has(line));
  return { start, end, text: piece.map(({ body }) => body).join("\n"), note: note.join(" ") };
}
