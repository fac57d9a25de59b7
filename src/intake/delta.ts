/** Finds the lines of a result that the context already holds, and writes the rest. Whoever has the earlier results can
 *  put the whole result together again. */
import { hash } from "node:crypto";
import type { ResultLine } from "./result-lines.ts";

/** A text in the context: a result that was sent, or a text that the agent wrote in a call. */
export interface HeldText {
  /** The number of the result in its conversation, counted from 1. */
  readonly sequence: number;
  /** The call, as the notes name it. */
  readonly label: string;
  /** The id of the call, if the client has told it. */
  readonly callId?: string | undefined;
  readonly isWritten?: true;
  /** What this text takes of the window of deltas: 0 for what the agent wrote. */
  readonly tokens: number;
  readonly runs: readonly HeldRun[];
}

/** Lines that were sent one after the other. */
export interface HeldRun {
  /** The number of the first line. */
  readonly from: number;
  /** The hashes of all lines, joined. */
  readonly hashes: string;
}

/** A range of lines that is not sent again, by indexes in the result. */
export interface HeldRange {
  readonly start: number;
  /** The index after the last line. */
  readonly end: number;
  readonly base: HeldText;
  /** The number of the first line in the base. */
  readonly baseFrom: number;
}

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
  readonly note: string;
}

export interface DeltaOptions {
  readonly held: readonly HeldText[];
  /** Whether a line is shown although the context holds it. */
  readonly isKept: (index: number) => boolean;
  readonly isOnePiece: boolean;
  /** Says how to get the whole text. */
  readonly recallHint: () => string;
}

/** Returns undefined if the context holds none of the lines. */
export function findDelta(lines: readonly ResultLine[], options: DeltaOptions): Delta | undefined {
  const { isOnePiece, recallHint } = options;
  const found = findHeld(lines, options);
  const ranges = isOnePiece ? aroundOnePiece(found, lines.length) : found;
  if (ranges.length === 0) return undefined;
  const text = renderDelta(lines, ranges, recallHint());
  return { text, ranges, ...(isOnePiece && { piece: pieceOf(lines, ranges, text) }) };
}

/** Returns the ranges of lines that the context holds, in order. */
function findHeld(lines: readonly ResultLine[], { held, isKept }: Pick<DeltaOptions, "held" | "isKept">): HeldRange[] {
  const hashes = lines.map(({ body }) => hashLine(body));
  const places = findPlaces(hashes, held);
  const ranges: HeldRange[] = [];
  for (let at = 0; at < lines.length; ) {
    const best = isKept(at) ? undefined : longestRun(hashes, { lines, at, places, isKept, previous: ranges.at(-1) });
    if (best === undefined || !isWorthANote(lines, at, at + best.length)) {
      at++;
      continue;
    }
    const { text: base, run, line } = best.place;
    ranges.push({ start: at, end: at + best.length, base, baseFrom: run.from + line });
    at += best.length;
  }
  return ranges;
}

/** A note costs about 8 tokens. */
const leastCharacters = 60;

function isWorthANote(lines: readonly ResultLine[], start: number, end: number): boolean {
  let characters = 0;
  for (let index = start; index < end && characters < leastCharacters; index++) {
    characters += (lines[index] as ResultLine).text.length + 1;
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
      for (let line = 0; line * hashLength < run.hashes.length; line++) {
        const found = places.get(hashAt(run, line));
        if (found !== undefined && found.length < mostPlaces) found.push({ text, run, line });
      }
    }
  }
  return places;
}

function hashAt({ hashes }: HeldRun, line: number): string {
  return hashes.slice(line * hashLength, (line + 1) * hashLength);
}

interface Search {
  readonly lines: readonly ResultLine[];
  readonly at: number;
  readonly places: ReadonlyMap<string, readonly Place[]>;
  readonly isKept: (index: number) => boolean;
  readonly previous: HeldRange | undefined;
}

function longestRun(hashes: readonly string[], { lines, at, places, isKept, previous }: Search) {
  let best: { readonly place: Place; readonly length: number } | undefined;
  for (const place of places.get(hashes[at] as string) ?? []) {
    let length = 1;
    while (
      at + length < hashes.length &&
      !isKept(at + length) &&
      lines[at + length]?.sign === lines[at]?.sign &&
      hashAt(place.run, place.line + length) === hashes[at + length]
    ) {
      length++;
    }
    const isBetter = length > (best?.length ?? 0) || (length === best?.length && place.text === previous?.base);
    if (isBetter) best = { place, length };
  }
  return best;
}

/** Writes the result with a note in place of each range. The first line names the text that holds most of them, so that
 *  the notes can be short. */
function renderDelta(lines: readonly ResultLine[], ranges: readonly HeldRange[], recallHint: string): string {
  const main = mainBase(ranges);
  const place =
    main.isWritten === true ? `as you wrote them in ${main.label}` : `as in the result of ${main.label} above`;
  const written = [
    `[Only new lines are shown. Lines that are named in brackets are ${place}. Whole text: ${recallHint}]`,
  ];
  let at = 0;
  for (const range of [...ranges, undefined]) {
    const end = range?.start ?? lines.length;
    for (const { text } of lines.slice(at, end)) written.push(text);
    if (range !== undefined) written.push(noteOf(lines, range, main));
    at = range?.end ?? end;
  }
  return written.join("\n");
}

/** The text that holds the most lines. */
function mainBase(ranges: readonly HeldRange[]): HeldText {
  const counts = new Map<HeldText, number>();
  for (const { base, start, end } of ranges) counts.set(base, (counts.get(base) ?? 0) + end - start);
  return [...counts].reduce((most, each) => (each[1] > most[1] ? each : most))[0];
}

function noteOf(lines: readonly ResultLine[], { start, end, base, baseFrom }: HeldRange, main: HeldText): string {
  const range = lines.slice(start, end);
  const isMoved = base.isWritten !== true && baseFrom !== numbersOf(range)[0];
  const words = [linesWord(range)];
  const sign = range[0]?.sign ?? "";
  if (sign !== "" && sign !== " ") words.push(`all with "${sign}"`);
  if (isMoved) words.push(`there ${baseFrom}-${baseFrom + end - start - 1}`);
  if (base !== main) words.push(base.isWritten === true ? `as written in ${base.label}` : `as in ${base.label}`);
  return `[${words.join(", ")}]`;
}

function linesWord(lines: readonly ResultLine[]): string {
  const [first, last] = numbersOf(lines);
  return first === last ? `line ${first}` : `lines ${first}-${last}`;
}

/** A tool may write other lines before and after the numbered ones. */
function numbersOf(lines: readonly ResultLine[]): [number, number] {
  const some = lines.some(({ isNumbered }) => isNumbered) ? lines.filter(({ isNumbered }) => isNumbered) : lines;
  return [some[0]?.number ?? 0, some.at(-1)?.number ?? 0];
}

/** Keeps the ranges at the beginning and at the end, so that the lines between them follow each other. */
function aroundOnePiece(ranges: readonly HeldRange[], count: number): HeldRange[] {
  const first = ranges.findIndex(({ start }, index) => start !== (ranges[index - 1]?.end ?? 0));
  if (first < 0) return [...ranges];
  const last = ranges.findLastIndex(({ end }, index) => end !== (ranges[index + 1]?.start ?? count));
  return [...ranges.slice(0, first), ...ranges.slice(Math.max(first, last + 1))];
}

/** Returns the lines that no range has, and the notes of the rendered delta. */
function pieceOf(lines: readonly ResultLine[], ranges: readonly HeldRange[], text: string): ShownPiece {
  const gap = ranges.findIndex(({ end }, index) => end !== ranges[index + 1]?.start);
  const start = ranges[0]?.start === 0 ? (ranges[gap]?.end ?? 0) : 0;
  const end = ranges.find((range) => range.start >= start)?.start ?? lines.length;
  const shown = new Set(lines.slice(start, end).map((line) => line.text));
  const note = text.split("\n").filter((line) => !shown.has(line));
  return { start, end, note: note.join(" ") };
}

/** Returns what the context holds of a result once it is sent without these ranges. */
export function runsSent(lines: readonly ResultLine[], ranges: readonly HeldRange[]): HeldRun[] {
  const runs: HeldRun[] = [];
  let at = 0;
  for (const range of [...ranges, undefined]) {
    const end = range?.start ?? lines.length;
    for (const run of numberedRuns(lines.slice(at, end))) runs.push(run);
    at = range?.end ?? end;
  }
  return runs;
}

/** Splits where the numbers do not count on. */
function numberedRuns(lines: readonly ResultLine[]): HeldRun[] {
  const runs: { from: number; hashes: string; next: number }[] = [];
  for (const { body, number } of lines) {
    const last = runs.at(-1);
    if (last !== undefined && last.next === number) {
      last.hashes += hashLine(body);
      last.next++;
    } else runs.push({ from: number, hashes: hashLine(body), next: number + 1 });
  }
  return runs.map(({ from, hashes }) => ({ from, hashes }));
}

/** The length of a line's hash in characters. 60 bits: two different lines of a conversation never have the same. */
const hashLength = 10;

function hashLine(line: string): string {
  return hash("sha256", line, "base64url").slice(0, hashLength);
}
