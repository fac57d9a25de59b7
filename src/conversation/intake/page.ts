/** Cuts a long result to a page: whole lines, or whole elements of a JSON list. Failures and sums come first, then the
 *  beginning and the end. Notes count exactly what is missing. */
import {
  countLineParts,
  countNoun,
  formatNumber,
  joinLines,
  jsonStringEnd,
  type LinePart,
  mostLineCharacters,
  splitLong,
} from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import {
  decisive,
  findLoneLines,
  passing,
  type ResultLine,
  readResultLines,
  type Weight,
  weighLines,
  withoutColours,
} from "./result-lines.ts";

export interface ResultPage {
  readonly text: string;
  readonly tokens: number;
  /** The lines of the result that the page shows, with a gap between two runs that do not follow each other. */
  readonly runs: readonly (readonly ResultLine[])[];
}

export interface ResultPageOptions {
  readonly counter: Counter;
  /** The tokens of the whole result. Counting takes longer than all the rest. */
  readonly resultTokens: number;
  readonly maxTokens: number;
  /** Returns which share of its reader's limit a text takes. Above 1 the reader cuts it. */
  readonly shareOfLimit?: ((text: string) => number) | undefined;
  /** The last line of the page: how to get the rest. */
  readonly about: string;
  /** Is part of every note, so that text of a result cannot look like one. */
  readonly mark: string;
  /** Whether a program printed the text. Then failures are kept, and similar lines are folded. */
  readonly isOutput: boolean;
}

/** Returns a page of at most `maxTokens` that its reader shows whole, or undefined if not even its notes fit. */
export function makePage(text: string, options: ResultPageOptions): ResultPage | undefined {
  // Tokens and characters are nearly proportional in one text, so few attempts are needed.
  const fitting = (text.length * options.maxTokens) / Math.max(1, options.resultTokens);
  let maxCharacters = Math.floor(Math.min(fitting, text.length));
  const { isOutput, mark } = options;
  // The rows of a table are data, however alike they are.
  const folds = isOutput && findHeader(readResultLines(text.slice(0, headerCharacters))).length === 0;
  const units = listElements(text, maxCharacters) ?? lineUnits(text, { isOutput, folds, mark });
  for (let attempt = 0; attempt < 8 && maxCharacters > 0; attempt++) {
    const page = render(chooseUnits(units, maxCharacters), units, options);
    const share = Math.max(page.tokens / options.maxTokens, options.shareOfLimit?.(page.text) ?? 0);
    if (share <= 1) return page;
    maxCharacters = Math.floor(maxCharacters * Math.min(0.95, 1 / share));
  }
  return undefined;
}

interface UnitOptions {
  readonly isOutput: boolean;
  readonly folds: boolean;
  readonly mark: string;
}

/** What is kept or left out as a whole. */
interface Unit extends LinePart {
  /** -1 for lines that were not read. */
  readonly weight: Weight | -1;
  /** The whole lines of this unit; more than one if similar lines are folded into one. */
  readonly lines: readonly ResultLine[];
  readonly noun: "line" | "element";
  /** How many lines or elements it has. */
  readonly count: number;
}

/** Texts with more characters are read only in part: reading takes about 60 ms for each million of characters. */
export const largeText = 300_000;
/** How much of the beginning and the end of a large text is read. */
const readStart = 140_000;
const readEnd = 60_000;
/** How many lines with failures are looked for between them, and how much of the text around each is read. */
const maxFailures = 100;

/** Counts the tokens of a text; of a large one, from its beginning and its end. */
export function countLarge(text: string, counter: Counter): number {
  if (text.length <= largeText) return counter.count(text);
  const sample = text.slice(0, readStart) + text.slice(-readEnd);
  return Math.round((counter.count(sample) * text.length) / sample.length);
}

/** Says how long a text is. */
export function describeSize(text: string, tokens: number): string {
  const lines = countNoun(countLineParts(text), "line");
  const size = `${formatNumber(tokens)} tokens`;
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = text.indexOf("\n", start);
    if ((end < 0 ? text.length : end) - start > mostLineCharacters)
      return `${lines} of at most ${formatNumber(mostLineCharacters)} characters, ${size}`;
  }
  return `${lines}, ${size}`;
}

/** The lines of a text. Of a large one, those of the beginning, of the end, and lines between them that look like
 *  failures; others are only counted. */
function lineUnits(text: string, options: UnitOptions): Unit[] {
  if (text.length <= largeText) return readUnits(text, options);
  const parts: Unit[][] = [];
  const skip = (from: number, to: number): void => {
    const count = countLineParts(text, from + 1, to);
    if (count > 0) parts.push([{ text: "", weight: -1, lines: [], noun: "line", count, continues: false }]);
  };
  let done = lineEnd(text, readStart);
  parts.push(readUnits(text.slice(0, done), options));
  const end = Math.max(done, text.lastIndexOf("\n", text.length - readEnd));
  const failures = options.isOutput ? findFailures(text, done, end) : [];
  for (const [start, stop] of failures) {
    skip(done, start);
    // What is alone in the whole text need not be alone among the lines around it.
    const units = readUnits(text.slice(start + 1, stop), options);
    parts.push(units.map((unit) => (unit.weight === 0 ? { ...unit, weight: 1 } : unit)));
    done = stop;
  }
  skip(done, end);
  if (end < text.length) parts.push(readUnits(text.slice(end + 1), options));
  return parts.flat();
}

/** The index of the first line feed from here on, or the end. */
function lineEnd(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  return at < 0 ? text.length : at;
}

type Range = readonly [start: number, stop: number];

/** Finds lines with failures, with a few lines after each. Returns the line feeds before and after them. A decisive line
 *  may come after a thousand others that only have a word of a failure, so those are looked for first. */
function findFailures(text: string, from: number, to: number): Range[] {
  const [decided, worded] = [decisiveLines, failureWords].map((words) => findRanges(words, text, [from, to]));
  const lone = findLoneRanges(text, [from, to]);
  const chosen: Range[] = [];
  for (const range of [...decided!, ...lone, ...worded!]) {
    const [start, stop] = range;
    if (chosen.every((other) => stop <= other[0] || start >= other[1])) chosen.push(range);
  }
  return chosen.sort(([a], [b]) => a - b);
}

function findRanges(words: RegExp, text: string, [from, to]: Range): Range[] {
  const ranges: Range[] = [];
  words.lastIndex = from;
  for (let match = words.exec(text); match !== null && match.index < to; match = words.exec(text)) {
    const start = Math.max(from, text.lastIndexOf("\n", match.index));
    let stop = lineEnd(text, match.index);
    for (let lines = 0; lines < 3 && stop < to; lines++) stop = lineEnd(text, stop + 1);
    stop = Math.min(stop, to);
    const isPassing = passing.test(withoutColours(text.slice(start + 1, lineEnd(text, match.index))));
    if (isPassing) stop = lineEnd(text, match.index);
    else if (stop - start <= maxFailureCharacters) ranges.push([start, stop]);
    if (ranges.length === maxFailures) break;
    words.lastIndex = Math.max(stop, match.index + 1);
  }
  return ranges;
}

function findLoneRanges(text: string, [from, to]: Range): Range[] {
  // Comparing all lines takes about 2 ms for each million of characters.
  const lines = to - from > maxComparedCharacters ? [] : text.slice(from + 1, to).split("\n");
  const lone = new Set(findLoneLines(lines));
  const ranges: Range[] = [];
  let start = from;
  for (const [index, line] of lines.entries()) {
    const stop = start + 1 + line.length;
    if (lone.has(index) && line.length <= maxFailureCharacters) ranges.push([start, stop]);
    if (ranges.length === maxFailures) break;
    start = stop;
  }
  return ranges;
}

const maxComparedCharacters = 2_000_000;
const decisiveLines = new RegExp(decisive.map(({ source }) => source).join("|"), "gm");
const failureWords =
  /(?<![\w./-])(?:FAIL(?:ED|URE)?|ERROR|[Ee]rror|[Ff]ailed|[Ff]ailure|[Ee]xception|panic(?:ked)?|fatal|Traceback)(?![\w/-])/g;
/** Longer ones are data. */
const maxFailureCharacters = 4_000;

function readUnits(text: string, { isOutput, folds, mark }: UnitOptions): Unit[] {
  const lines = readResultLines(isOutput ? withoutColours(text) : text);
  const weights = isOutput ? weighLines(lines) : lines.map((): Weight => 0);
  for (const index of findHeader(lines)) weights[index] = 3;
  const units: Unit[] = [];
  for (let at = 0; at < lines.length; ) {
    const end = folds ? findSimilarEnd(lines, weights, at) : at + 1;
    const group = lines.slice(at, end);
    if (group.length < minSimilar)
      for (const [index, line] of group.entries()) units.push(...splitLine(line, weights[at + index]));
    else {
      units.push(...splitLine(lines[at] as ResultLine, weights[at]));
      const folded = lines.slice(at + 1, end);
      units.push({
        text: `[${mark}: … ${formatNumber(folded.length)} similar lines]`,
        weight: weights[at] ?? 0,
        lines: folded,
        noun: "line",
        count: folded.length,
        continues: false,
      });
    }
    at = end;
  }
  return units;
}

/** The characters in which a header is looked for. */
const headerCharacters = 4_000;

/** Returns the indexes of a table's header: its first line, which has the same separators as the rows, and the rule
 *  below it, if there is one. Without this, a page could have rows that mention an error, but not the names of their
 *  columns. */
function findHeader(lines: readonly ResultLine[]): number[] {
  const signsIn = (line: ResultLine | undefined): string => line?.body.replace(/[^,|\t;]/g, "") ?? "";
  const signs = signsIn(lines[0]);
  const isRule = /^[\s|:+=-]{3,}$/.test(lines[1]?.body ?? "");
  const isTable = signs !== "" && lines.slice(isRule ? 2 : 1, 5).every((line) => signsIn(line) === signs);
  if (!isTable) return [];
  return isRule ? [0, 1] : [0];
}

/** A line that is too long is cut into several units, so that a part of it can be shown. */
function splitLine(line: ResultLine, weight: Weight = 0): Unit[] {
  if (line.text.length <= mostLineCharacters)
    return [{ text: line.text, weight, lines: [line], noun: "line", count: 1, continues: false }];
  return splitLong(line.text).map((text, index) => {
    return { text, weight, lines: [], noun: "line", count: 1, continues: index > 0 };
  });
}

/** The elements of a JSON list, or undefined if the text is something else, or if its first element alone fills a page
 *  of `maxCharacters`. Of a large list, only elements at the beginning and at the end are read. */
function listElements(text: string, maxCharacters: number): Unit[] | undefined {
  const ends = /^\s*\[/.test(text) ? findElementEnds(text) : undefined;
  if (ends === undefined || (ends[0] as number) > maxCharacters * beginning) return undefined;
  // Elements have no numbers by which a note could name their lines.
  const createUnit = (fields: Partial<Unit>): Unit => {
    return { text: "", weight: 0, lines: [], noun: "element", count: 1, continues: false, ...fields };
  };
  // A long list has tens of thousands of elements, so no list of them is copied.
  const createUnits = (from: number, to: number): Unit[] =>
    ends.slice(from, to).map((end, index) => {
      const start = ends[from + index - 1] ?? text.indexOf("[");
      return createUnit({ text: text.slice(start + 1, end).trim() });
    });
  const isLarge = text.length > largeText;
  const firstUnread = isLarge ? ends.findIndex((end) => end > readStart) + 1 || ends.length : ends.length;
  const firstOfEnd = isLarge ? ends.findLastIndex((end) => end <= text.length - readEnd) + 2 : ends.length;
  const unread = Math.min(firstOfEnd, ends.length) - firstUnread;
  const rest = text.slice((ends.at(-1) as number) + 1).trim();
  return [
    ...createUnits(0, firstUnread),
    ...(unread > 0 ? [createUnit({ weight: -1, count: unread })] : []),
    ...createUnits(Math.min(firstOfEnd, ends.length), ends.length),
    ...(rest === "" ? [] : [createUnit({ text: rest, weight: 3, noun: "line" })]),
  ];
}

/** Finds the comma or bracket after each element of a list. Parsing the list would take three times as long. Undefined
 *  if its brackets do not match, or if something else follows it. */
function findElementEnds(text: string): number[] | undefined {
  const ends: number[] = [];
  let depth = 0;
  for (let at = text.indexOf("["); at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = (jsonStringEnd(text, at) || text.length) - 1;
    else if (code === comma && depth === 1) ends.push(at);
    else depth += depthSteps[code] ?? 0;
    if (depth === 0) return text.length - at <= maxRest ? [...ends, at] : undefined;
  }
  return undefined;
}

/** A program may print its exit code after a list. */
const maxRest = 200;
const [quote, comma] = [0x22, 0x2c];
/** By code unit: 1 for an opening bracket, -1 for a closing one. */
const depthSteps = Int8Array.from({ length: 128 }, (_, code) =>
  "[{".includes(String.fromCharCode(code)) ? 1 : "]}".includes(String.fromCharCode(code)) ? -1 : 0,
);

const minSimilar = 4;

/** Lines are similar if they differ in digits only, as the lines of a log do. A failure is like no other line. */
function findSimilarEnd(lines: readonly ResultLine[], weights: readonly Weight[], start: number): number {
  const pattern = dropDigits((lines[start] as ResultLine).body);
  let end = start + 1;
  if (pattern === "" || (weights[start] ?? 0) >= 2) return end;
  while (end < lines.length && (weights[end] ?? 0) < 2 && dropDigits((lines[end] as ResultLine).body) === pattern)
    end++;
  return end;
}

function dropDigits(text: string): string {
  return text.length > 1_000 ? text : text.replace(/[\da-f]*\d[\da-f]*/gi, "0").trim();
}

/** Chooses units up to `maxCharacters` in all: the heaviest first. Among units of one weight, takes those at the
 *  beginning and the end. */
function chooseUnits(units: readonly Unit[], maxCharacters: number): Set<number> {
  const chosen = new Set<number>();
  const heaviestFirst: readonly number[][] = [[], [], [], []];
  // A long list has tens of thousands of elements.
  for (let index = 0; index < units.length; index++) heaviestFirst[3 - (units[index] as Unit).weight]?.push(index);
  // A program may repeat one failure a hundred times, and another one only once.
  const different = heaviestFirst.slice(0, 3).map((indexes) => {
    const patterns = new Set<string>();
    return indexes.filter((index) => {
      const pattern = dropDigits((units[index] as Unit).text);
      return !patterns.has(pattern) && patterns.add(pattern);
    });
  });
  let left = maxCharacters;
  const [failures = [], ...others] = different;
  for (const indexes of [failures, heaviestFirst[0]!, ...others, ...heaviestFirst]) {
    if (left <= 0) break;
    const next = indexes.filter((index) => !chosen.has(index));
    left -= takeEnds(next, units, { maxCharacters: left, chosen });
  }
  return chosen;
}

/** The share of a page that the beginning gets. */
const beginning = 0.7;

function takeEnds(
  indexes: readonly number[],
  units: readonly Unit[],
  { maxCharacters, chosen }: { readonly maxCharacters: number; readonly chosen: Set<number> },
): number {
  const size = (index: number): number => (units[index] as Unit).text.length + 1;
  const total = indexes.reduce((sum, index) => sum + size(index), 0);
  if (total <= maxCharacters) {
    for (const index of indexes) chosen.add(index);
    return total;
  }
  let used = 0;
  const take = (order: readonly number[], limit: number): void => {
    for (const index of order) {
      if (used + size(index) > limit) return;
      used += size(index);
      chosen.add(index);
    }
  };
  take(indexes, maxCharacters * beginning);
  take(
    indexes.toReversed().filter((index) => !chosen.has(index)),
    maxCharacters,
  );
  return maxCharacters;
}

function render(
  chosen: ReadonlySet<number>,
  units: readonly Unit[],
  { counter, about, mark }: ResultPageOptions,
): ResultPage {
  const written: string[] = [];
  const runs: ResultLine[][] = [];
  for (let at = 0; at < units.length; ) {
    const isShown = chosen.has(at);
    let end = at + 1;
    while (end < units.length && chosen.has(end) === isShown) end++;
    const group = units.slice(at, end);
    at = end;
    if (!isShown) {
      const count = group.reduce((sum, unit) => sum + unit.count, 0);
      written.push(`[${mark}: … ${countNoun(count, group[0]?.noun ?? "line")} left out]`);
      continue;
    }
    written.push(joinLines(group));
    runs.push([]);
    for (const unit of group) {
      // Folded lines and parts of lines are not shown as they are, so they end a run.
      if (unit.lines[0]?.text === unit.text) runs.at(-1)?.push(...unit.lines);
      else runs.push([]);
    }
  }
  const text = [...written, about].join("\n");
  return { text, tokens: counter.count(text), runs: runs.filter(({ length }) => length > 0) };
}

/** Cuts a page that is one piece: the lines from the first one up to `end`. */
export function cutBeginning(
  lines: readonly ResultLine[],
  { counter, maxTokens, about, mark }: Pick<ResultPageOptions, "counter" | "maxTokens" | "about" | "mark">,
):
  | {
      readonly end: number;
      readonly text: string;
      readonly tokens: number;
      readonly piece: { readonly start: number; readonly end: number; readonly text: string; readonly note: string };
    }
  | undefined {
  let left = maxTokens - counter.count(about) - endTokens;
  const end = lines.findIndex((line) => {
    left -= counter.count(`${line.text}\n`);
    return left < 0;
  });
  if (end < 1) return undefined;
  const missing = `[${mark}: … ${countNoun(lines.length - end, "line")} left out]`;
  const first = lines.slice(0, end);
  const text = [...first.map((line) => line.text), missing, about].join("\n");
  const bodies = first.map(({ body }) => body).join("\n");
  const piece = { start: 0, end, text: bodies, note: `${missing} ${about}` };
  return { end, text, tokens: counter.count(text), piece };
}

/** Room for the note about missing lines, and for the difference between counting lines together and one by one. */
const endTokens = 40;
