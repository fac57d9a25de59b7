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
import { passing, type ResultLine, readResultLines, type Weight, weighLines, withoutColours } from "./result-lines.ts";

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
  /** Stands in every note, so that text of a result cannot look like one. */
  readonly mark: string;
  /** Whether a program printed the text. Then failures are kept, and similar lines are folded. */
  readonly isOutput: boolean;
}

/** Returns a page of at most `maxTokens` that its reader shows whole, or undefined if not even its notes fit. */
export function pageOf(text: string, options: ResultPageOptions): ResultPage | undefined {
  // Tokens and characters are nearly proportional in one text, so few attempts are needed.
  const fitting = (text.length * options.maxTokens) / Math.max(1, options.resultTokens);
  let most = Math.floor(Math.min(fitting, text.length));
  const { isOutput, mark } = options;
  // The rows of a table are data, however alike they are.
  const folds = isOutput && headerOf(readResultLines(text.slice(0, mostHeader))).length === 0;
  const units = listElements(text, most) ?? lineUnits(text, { isOutput, folds, mark });
  for (let attempt = 0; attempt < 8 && most > 0; attempt++) {
    const page = render(chooseUnits(units, most), units, options);
    const share = Math.max(page.tokens / options.maxTokens, options.shareOfLimit?.(page.text) ?? 0);
    if (share <= 1) return page;
    most = Math.floor(most * Math.min(0.95, 1 / share));
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
  /** The whole lines that stand here; more than one if similar lines are folded into one. */
  readonly lines: readonly ResultLine[];
  readonly noun: "line" | "element";
  /** How many lines or elements stand here. */
  readonly count: number;
}

/** Texts with more characters are read only in part: reading takes about 60 ms for each million of characters. */
export const largeText = 300_000;
/** How much of the beginning and the end of a large text is read. */
const readStart = 140_000;
const readEnd = 60_000;
/** How many lines with failures are looked for between them, and how much of the text around each is read. */
const mostFailures = 100;

/** Counts the tokens of a text; of a large one, from its beginning and its end. */
export function countLarge(text: string, counter: Counter): number {
  if (text.length <= largeText) return counter.count(text);
  const sample = text.slice(0, readStart) + text.slice(-readEnd);
  return Math.round((counter.count(sample) * text.length) / sample.length);
}

/** Says how long a text is. */
export function sizeOf(text: string, tokens: number): string {
  return `${linesOf(text)}, ${formatNumber(tokens)} tokens`;
}

function linesOf(text: string): string {
  const lines = countNoun(countLineParts(text), "line");
  const isLong = (start: number, end: number): boolean => (end < 0 ? text.length : end) - start > mostLineCharacters;
  for (let start = 0, end = 0; end >= 0; start = end + 1) {
    end = text.indexOf("\n", start);
    if (isLong(start, end)) return `${lines} of at most ${formatNumber(mostLineCharacters)} characters`;
  }
  return lines;
}

/** The lines of a text. Of a large one, those of the beginning, of the end, and lines between them that look like
 *  failures; others are only counted. */
function lineUnits(text: string, options: UnitOptions): Unit[] {
  if (text.length <= largeText) return unitsOf(text, options);
  const parts: Unit[][] = [];
  const skip = (from: number, to: number): void => {
    const count = countLineParts(text, from + 1, to);
    if (count > 0) parts.push([{ text: "", weight: -1, lines: [], noun: "line", count, continues: false }]);
  };
  let done = lineEnd(text, readStart);
  parts.push(unitsOf(text.slice(0, done), options));
  const end = Math.max(done, text.lastIndexOf("\n", text.length - readEnd));
  const failures = options.isOutput ? failuresIn(text, done, end) : [];
  for (const { start, stop } of failures) {
    skip(done, start);
    parts.push(unitsOf(text.slice(start + 1, stop), options));
    done = stop;
  }
  skip(done, end);
  if (end < text.length) parts.push(unitsOf(text.slice(end + 1), options));
  return parts.flat();
}

/** The index of the first line feed from here on, or the end. */
function lineEnd(text: string, from: number): number {
  const at = text.indexOf("\n", from);
  return at < 0 ? text.length : at;
}

interface Place {
  /** The line feed before the lines. */
  readonly start: number;
  /** The line feed after them. */
  readonly stop: number;
}

/** Finds lines with words of a failure, with a few lines after each. */
function failuresIn(text: string, from: number, to: number): Place[] {
  const places: Place[] = [];
  failureWords.lastIndex = from;
  for (let match = failureWords.exec(text); match !== null && match.index < to; match = failureWords.exec(text)) {
    const start = Math.max(from, text.lastIndexOf("\n", match.index));
    let stop = lineEnd(text, match.index);
    for (let lines = 0; lines < 3 && stop < to; lines++) stop = lineEnd(text, stop + 1);
    stop = Math.min(stop, to);
    const isPassing = passing.test(withoutColours(text.slice(start + 1, lineEnd(text, match.index))));
    if (isPassing) stop = lineEnd(text, match.index);
    else if (stop - start <= longestFailure) places.push({ start, stop });
    if (places.length === mostFailures) break;
    failureWords.lastIndex = Math.max(stop, match.index + 1);
  }
  return places;
}

const failureWords =
  /\b(?:FAIL(?:ED|URE)?|ERROR|[Ee]rror|[Ff]ailed|[Ff]ailure|[Ee]xception|panic(?:ked)?|fatal|Traceback)\b/g;
/** Longer ones are data. */
const longestFailure = 4_000;

function unitsOf(text: string, { isOutput, folds, mark }: UnitOptions): Unit[] {
  const lines = readResultLines(isOutput ? withoutColours(text) : text);
  const weights = isOutput ? weighLines(lines) : lines.map((): Weight => 0);
  for (const index of headerOf(lines)) weights[index] = 3;
  const units: Unit[] = [];
  for (let at = 0; at < lines.length; ) {
    const end = folds ? endOfSimilar(lines, weights, at) : at + 1;
    const group = lines.slice(at, end);
    if (group.length < leastSimilar)
      for (const [index, line] of group.entries()) units.push(...unitsOfLine(line, weights[at + index]));
    else {
      units.push(...unitsOfLine(lines[at] as ResultLine, weights[at]));
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
const mostHeader = 4_000;

/** Returns the lines with the names of a table's columns: a first line with signs between names, and a rule. Rows that
 *  mention an error would be kept before it. */
function headerOf(lines: readonly ResultLine[]): number[] {
  const signsIn = (line: ResultLine | undefined): string => line?.body.replace(/[^,|\t;]/g, "") ?? "";
  const signs = signsIn(lines[0]);
  const isRule = /^[\s|:+=-]{3,}$/.test(lines[1]?.body ?? "");
  const isTable = signs !== "" && lines.slice(isRule ? 2 : 1, 5).every((line) => signsIn(line) === signs);
  if (!isTable) return [];
  return isRule ? [0, 1] : [0];
}

/** A line that is too long is cut into several units, so that a part of it can be shown. */
function unitsOfLine(line: ResultLine, weight: Weight = 0): Unit[] {
  if (line.text.length <= mostLineCharacters)
    return [{ text: line.text, weight, lines: [line], noun: "line", count: 1, continues: false }];
  return splitLong(line.text).map((text, index) => {
    return { text, weight, lines: [], noun: "line", count: 1, continues: index > 0 };
  });
}

/** The elements of a JSON list, or undefined if the text is something else, or if its first element alone fills a page
 *  of `most` characters. Of a large list, only elements at the beginning and at the end are read. */
function listElements(text: string, most: number): Unit[] | undefined {
  const ends = /^\s*\[/.test(text) ? elementEnds(text) : undefined;
  const rest = ends === undefined ? "" : text.slice((ends.at(-1) as number) + 1).trim();
  if (ends === undefined || (ends[0] as number) > most * beginning) return undefined;
  // A long list has tens of thousands of elements, so no list of them is copied.
  const [early, late] = text.length > largeText ? unreadElements(ends, text.length) : [ends.length, ends.length];
  const unitsFrom = (from: number, to: number): Unit[] =>
    ends.slice(from, to).map((end, index) => {
      const start = ends[from + index - 1] ?? text.indexOf("[");
      return elementUnit(text.slice(start + 1, end).trim());
    });
  const unread: Unit = { text: "", weight: -1, lines: [], noun: "element", count: late - early, continues: false };
  const elements = [...unitsFrom(0, early), ...(late > early ? [unread] : []), ...unitsFrom(late, ends.length)];
  return rest === "" ? elements : [...elements, { ...elementUnit(rest), weight: 3, noun: "line" }];
}

/** Returns the index of the first element after the beginning of a large list, and of the first one of its end. */
function unreadElements(ends: readonly number[], length: number): [number, number] {
  const early = ends.findIndex((end) => end > readStart);
  const late = ends.findLastIndex((end) => end <= length - readEnd) + 2;
  return [early < 0 ? ends.length : early + 1, Math.min(late, ends.length)];
}

/** Its lines have no numbers by which a note could name them. */
function elementUnit(text: string): Unit {
  return { text, weight: 0, lines: [], noun: "element", count: 1, continues: false };
}

/** Finds the comma or bracket after each element of a list. Parsing the list would take three times as long. Undefined
 *  if its brackets do not match, or if something else follows it. */
function elementEnds(text: string): number[] | undefined {
  const ends: number[] = [];
  let depth = 0;
  for (let at = text.indexOf("["); at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = (jsonStringEnd(text, at) || text.length) - 1;
    else if (code === comma && depth === 1) ends.push(at);
    else depth += depthSteps[code] ?? 0;
    if (depth === 0) return text.length - at <= longestRest ? [...ends, at] : undefined;
  }
  return undefined;
}

/** A program may print its exit code after a list. */
const longestRest = 200;
const [quote, comma] = [0x22, 0x2c];
/** By code unit: 1 for an opening bracket, -1 for a closing one. */
const depthSteps = Int8Array.from({ length: 128 }, (_, code) =>
  "[{".includes(String.fromCharCode(code)) ? 1 : "]}".includes(String.fromCharCode(code)) ? -1 : 0,
);

const leastSimilar = 4;

/** Lines are similar if they differ in digits only, as the lines of a log do. A failure is like no other line. */
function endOfSimilar(lines: readonly ResultLine[], weights: readonly Weight[], start: number): number {
  const pattern = patternOf(lines[start] as ResultLine);
  let end = start + 1;
  if (pattern === "" || (weights[start] ?? 0) >= 2) return end;
  while (end < lines.length && (weights[end] ?? 0) < 2 && patternOf(lines[end] as ResultLine) === pattern) end++;
  return end;
}

function patternOf({ body }: ResultLine): string {
  return kindOf(body);
}

function kindOf(text: string): string {
  return text.length > 1_000 ? text : text.replace(/[\da-f]*\d[\da-f]*/gi, "0").trim();
}

/** Chooses units of at most `most` characters: the heaviest first, and of one weight the beginning and the end. */
function chooseUnits(units: readonly Unit[], most: number): Set<number> {
  const chosen = new Set<number>();
  const heaviestFirst: readonly number[][] = [[], [], [], []];
  // A long list has tens of thousands of elements.
  for (let index = 0; index < units.length; index++) heaviestFirst[3 - (units[index] as Unit).weight]?.push(index);
  let left = most;
  for (const [rank, indexes] of heaviestFirst.entries()) {
    // A program may repeat one failure a hundred times, and another one only once.
    const kinds = rank < 2 ? [firstOfKinds(indexes, units), indexes] : [indexes];
    for (const some of kinds)
      left -= takeEnds(
        some.filter((index) => !chosen.has(index)),
        units,
        { most: left, chosen },
      );
    if (left <= 0) break;
  }
  return chosen;
}

function firstOfKinds(indexes: readonly number[], units: readonly Unit[]): number[] {
  const seen = new Set<string>();
  return indexes.filter((index) => {
    const kind = kindOf((units[index] as Unit).text);
    return !seen.has(kind) && seen.add(kind);
  });
}

/** The share of a page that the beginning gets. */
const beginning = 0.7;

function takeEnds(
  indexes: readonly number[],
  units: readonly Unit[],
  { most, chosen }: { readonly most: number; readonly chosen: Set<number> },
): number {
  const size = (index: number): number => (units[index] as Unit).text.length + 1;
  const total = indexes.reduce((sum, index) => sum + size(index), 0);
  if (total <= most) {
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
  take(indexes, most * beginning);
  take(
    indexes.toReversed().filter((index) => !chosen.has(index)),
    most,
  );
  return most;
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
    if (isShown) written.push(joinLines(group));
    else written.push(`[${mark}: … ${countMissing(group)} left out]`);
    if (isShown) runs.push(...shownRuns(group));
    at = end;
  }
  const text = [...written, about].join("\n");
  return { text, tokens: counter.count(text), runs };
}

function countMissing(units: readonly Unit[]): string {
  return countNoun(
    units.reduce((sum, { count }) => sum + count, 0),
    units[0]?.noun ?? "line",
  );
}

/** Folded lines and parts of lines are not shown as they are, so they end a run. */
function shownRuns(units: readonly Unit[]): ResultLine[][] {
  const runs: ResultLine[][] = [[]];
  for (const { lines, text } of units) {
    if (lines[0]?.text === text) runs.at(-1)?.push(...lines);
    else runs.push([]);
  }
  return runs.filter(({ length }) => length > 0);
}
