/** Scans Markdown once and knows code fences, so no example is ever taken for Plimsoll's own markup. */

export interface Line {
  /** 1-based. */
  readonly number: number;
  readonly start: number;
  /** The end without the line break, LF or CRLF. */
  readonly end: number;
  /** The start of the following line. */
  readonly next: number;
}

/** Code ends with its closing fence, or with the list item or quote that contains it. `comment` is a line of a
 *  multi-line HTML comment. */
export type LineKind = "text" | "opener" | "code" | "closer" | "comment";

/** A fence without a closing line. */
interface OpenFence extends Line {
  /** The line that would close it, with the list indent, quote marks and column. */
  readonly closer: string;
}

/** Visits every line with its kind, as CommonMark reads it. Returns the fence whose code runs to the end of the
 *  text. */
export function scanLines(text: string, visit: (line: Line, kind: LineKind) => void): OpenFence | undefined {
  const containers = createContainers(text);
  const reader: Reader = { containers, leaf: none, arrow: 0 };
  forEachLine(text, (line) => visit(line, readLine(reader, line)));
  if (reader.leaf.kind !== "code") return undefined;
  const { opener, marks, indent } = reader.leaf;
  return { ...opener, closer: containers.marks() + " ".repeat(indent) + marks.mark.repeat(marks.length) };
}

export function forEachLine(text: string, visit: (line: Line) => void): void {
  let start = 0;
  for (let number = 1; start < text.length; number++) {
    const feed = text.indexOf("\n", start);
    const next = feed === -1 ? text.length : feed + 1;
    const end = feed === -1 ? next : feed > start && text.charCodeAt(feed - 1) === 0x0d ? feed - 1 : feed;
    visit({ number, start, end, next });
    start = next;
  }
}

interface Reader {
  readonly containers: Containers;
  /** The block that the next line may continue. */
  leaf: Leaf;
  /** The end of the last comment that was searched for. A search from an earlier place has the same result. */
  arrow: number;
}

type Leaf =
  | { readonly kind: "none" | "paragraph" }
  | { readonly kind: "comment"; readonly end: number }
  | { readonly kind: "code"; readonly opener: Line; readonly marks: Marks; readonly indent: number };

const none: Leaf = { kind: "none" };
const paragraph: Leaf = { kind: "paragraph" };

function readLine(reader: Reader, line: Line): LineKind {
  const { containers, leaf } = reader;
  const isContinued = containers.enter(line.start, line.end);
  if (isContinued && leaf.kind === "code") {
    if (!isCloser(containers.place, leaf.marks)) return "code";
    reader.leaf = none;
    return "closer";
  }
  if (isContinued && leaf.kind === "comment") {
    if (leaf.end <= line.end) reader.leaf = none;
    return "comment";
  }
  const opened = containers.open(isContinued && leaf.kind === "paragraph");
  const inParagraph = leaf.kind === "paragraph" && !opened;
  reader.leaf = readLeaf(reader, line, { inParagraph, canUnderline: inParagraph && isContinued });
  if (!inParagraph || reader.leaf.kind !== "paragraph") containers.endOthers();
  if (reader.leaf.kind === "code") return "opener";
  return reader.leaf.kind === "comment" ? "comment" : "text";
}

/** A line of dashes turns a paragraph in the same container into a heading, if it `canUnderline`. */
function readLeaf(
  reader: Reader,
  line: Line,
  { inParagraph, canUnderline }: Readonly<Record<"inParagraph" | "canUnderline", boolean>>,
): Leaf {
  const { place } = reader.containers;
  const { text, at, end } = place;
  if (at === end) return none;
  const indent = getIndent(place);
  if (indent >= codeIndent) return inParagraph ? paragraph : none;
  const marks = readMarks(text, at, end);
  if (marks?.canOpen) return { kind: "code", opener: line, marks, indent };
  if (text.startsWith("<!--", at)) {
    const commentEnd = findCommentEnd(reader, at);
    // A comment without an end is text: it must not hide the rest.
    if (commentEnd <= end) return none;
    if (commentEnd < Number.POSITIVE_INFINITY) return { kind: "comment", end: commentEnd };
  }
  const endsHere = isHeading(place) || isRule(place) || (canUnderline && isUnderline(place));
  return endsHere ? none : paragraph;
}

/** The marks of a fence. */
export interface Marks {
  readonly mark: "`" | "~";
  readonly length: number;
  readonly end: number;
  readonly canOpen: boolean;
}

function readMarks(text: string, at: number, end: number): Marks | undefined {
  const code = text.charCodeAt(at);
  if ((code !== tick && code !== tilde) || at >= end) return undefined;
  let marksEnd = at + 1;
  while (marksEnd < end && text.charCodeAt(marksEnd) === code) marksEnd++;
  if (marksEnd - at < 3) return undefined;
  return {
    mark: code === tick ? "`" : "~",
    length: marksEnd - at,
    end: marksEnd,
    canOpen: code === tilde || !text.slice(marksEnd, end).includes("`"),
  };
}

function isCloser(place: Place, opener: Marks): boolean {
  const { text, at, end } = place;
  const marks = getIndent(place) < codeIndent ? readMarks(text, at, end) : undefined;
  if (marks === undefined || marks.mark !== opener.mark || marks.length < opener.length) return false;
  return skipBlanks(text, marks.end, end) === end;
}

function skipBlanks(text: string, start: number, end: number): number {
  let at = start;
  while (at < end && isBlank(text.charCodeAt(at))) at++;
  return at;
}

/** Returns the end of the comment that starts here, or infinity. */
function findCommentEnd(reader: Reader, at: number): number {
  if (reader.arrow < at + 2) {
    const found = reader.containers.place.text.indexOf("-->", at + 2);
    reader.arrow = found === -1 ? Number.POSITIVE_INFINITY : found;
  }
  return reader.arrow + 3;
}

function isHeading({ text, at, end }: Place): boolean {
  let after = at;
  while (after < end && text.charCodeAt(after) === hash) after++;
  const level = after - at;
  return level >= 1 && level <= 6 && (after === end || isBlank(text.charCodeAt(after)));
}

function isUnderline({ text, at, end }: Place): boolean {
  const mark = text.charCodeAt(at);
  if (mark !== minus && mark !== equals) return false;
  let after = at;
  while (after < end && text.charCodeAt(after) === mark) after++;
  return skipBlanks(text, after, end) === end;
}

const [hash, equals, tick, tilde] = [0x23, 0x3d, 0x60, 0x7e];

// List items and quotes, as in CommonMark: everything in a container ends with it, even code without a closing fence.

/** The containers of a line, and the place in the line where their content starts. */
interface Containers {
  /** Moves to the next line and skips the marks of the containers that continue. Returns false if a container does not
   *  continue. */
  enter(start: number, end: number): boolean;
  /** Opens the containers that begin here. Returns false if there are none. Not every mark may interrupt a
   *  paragraph. */
  open(isInParagraph: boolean): boolean;
  /** Ends the containers that did not continue. This happens later, because a paragraph may continue without the
   *  marks. */
  endOthers(): void;
  /** The marks of another line in all open containers. */
  marks(): string;
  readonly place: Readonly<Place>;
}

interface Place {
  readonly text: string;
  /** The end of the line. */
  end: number;
  /** The first character after all marks that is not a blank, or the end of the line. */
  at: number;
  /** The column of that character. A tab has several columns, so this is not a difference of indexes. */
  column: number;
  /** The column where the content of the containers starts. */
  taken: number;
  /** No rule begins between here and `at`. Without this, each bullet in a line of bullets would scan all the others. */
  noRuleBefore: number;
}

function createContainers(text: string): Containers {
  /** The indent of each item's content; 0 for a quote. */
  const widths: number[] = [];
  const place: Place = { text, end: 0, at: 0, column: 0, taken: 0, noRuleBefore: 0 };
  let continued = 0;
  let isEmptyItem = false;
  /** A blank line ends a quote, and an item that has only its mark. */
  const countInBlank = (from: number): number => {
    const quoteAt = widths.indexOf(0, from);
    if (quoteAt !== -1) return quoteAt;
    return isEmptyItem ? Math.max(from, widths.length - 1) : widths.length;
  };
  // More than anybody writes. It keeps a text of nothing but marks from taking quadratic time.
  const maxContainers = 100;
  return {
    place,
    enter(start, end) {
      place.end = end;
      place.column = 0;
      place.taken = 0;
      skipToText(place, start);
      continued = 0;
      while (place.at < end && continued < widths.length && enterContainer(place, widths[continued]!)) continued++;
      if (place.at === end) continued = countInBlank(continued);
      isEmptyItem = false;
      return continued === widths.length;
    },
    open(isInParagraph) {
      let opened = false;
      while (place.at < place.end && continued < maxContainers && getIndent(place) < codeIndent) {
        const width = takeQuote(place) ? 0 : takeItem(place, isInParagraph && !opened);
        if (width === undefined) break;
        widths.length = continued;
        continued = widths.push(width);
        opened = true;
        isEmptyItem = width > 0 && place.at === place.end;
      }
      return opened;
    },
    endOthers() {
      widths.length = continued;
    },
    marks: () => widths.map((width) => (width === 0 ? "> " : " ".repeat(width))).join(""),
  };
}

/** In columns. Text with this indent is code or continues a paragraph; it is never a mark. */
const codeIndent = 4;

function getIndent({ column, taken }: Place): number {
  return column - taken;
}

function skipToText(place: Place, from: number): void {
  const { text, end } = place;
  let { column } = place;
  let at = from;
  for (; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code === tab) column += 4 - (column % 4);
    else if (code === space) column++;
    else break;
  }
  place.at = at;
  place.column = column;
}

function enterContainer(place: Place, width: number): boolean {
  if (width === 0) return takeQuote(place);
  if (getIndent(place) < width) return false;
  place.taken += width;
  return true;
}

function takeQuote(place: Place): boolean {
  const { text, at } = place;
  if (text.charCodeAt(at) !== quote || getIndent(place) >= codeIndent) return false;
  const after = ++place.column;
  skipToText(place, at + 1);
  // One blank belongs to the mark.
  place.taken = place.column > after ? after + 1 : after;
  return true;
}

/** Returns the indent of the item's content, or `undefined` if no item starts here. */
function takeItem(place: Place, isInParagraph: boolean): number | undefined {
  const { text, at, end, taken } = place;
  const markEnd = listMarkEnd(text, at);
  if (markEnd === at || (markEnd < end && !isBlank(text.charCodeAt(markEnd)))) return undefined;
  if (isInParagraph) {
    // Only an item that starts at 1 and has content: a number or a dash may start a line by chance.
    const isFirst = markEnd - at === 1 || Number(text.slice(at, markEnd - 1)) === 1;
    if (!isFirst || text.slice(markEnd, end).trim() === "") return undefined;
  }
  if (isRule(place)) return undefined;
  place.column += markEnd - at;
  const after = place.column;
  skipToText(place, markEnd);
  const blanks = place.column - after;
  // Text more than four columns away is indented code, one column after the mark.
  place.taken = after + (place.at < end && blanks <= 4 ? blanks : 1);
  return place.taken - taken;
}

/** Returns the index after a bullet or a number with its mark, or the same index without one. */
function listMarkEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === minus || first === star || first === plus) return start + 1;
  let at = start;
  while (at - start < 9 && text.charCodeAt(at) >= 0x30 && text.charCodeAt(at) <= 0x39) at++;
  const isNumber = at > start && (text[at] === "." || text[at] === ")");
  return isNumber ? at + 1 : start;
}

/** Returns whether the rest of the line is a rule: only three or more equal marks, which may look like bullets. */
function isRule(place: Place): boolean {
  const { text, at, end } = place;
  const mark = text.charCodeAt(at);
  if (at < place.noRuleBefore || (mark !== minus && mark !== star && mark !== underscore)) return false;
  let marks = 0;
  let next = at;
  for (; next < end; next++) {
    const code = text.charCodeAt(next);
    if (code === mark) marks++;
    else if (!isBlank(code)) break;
  }
  if (next === end && marks >= 3) return true;
  place.noRuleBefore = next;
  return false;
}

const [tab, space, quote, star, plus, minus, underscore] = [0x09, 0x20, 0x3e, 0x2a, 0x2b, 0x2d, 0x5f];

function isBlank(code: number): boolean {
  return code === space || code === tab;
}

// Single fences, for callers that must not trust a fence without an end.

/** A line that is a fence, whatever surrounds it. */
export interface Fence {
  readonly mark: "`" | "~";
  readonly length: number;
  /** The column of the first mark. */
  readonly column: number;
  /** The fence comes after a list marker, so it belongs to the item and ends with it. */
  readonly inItem: boolean;
  readonly canOpen: boolean;
  readonly canClose: boolean;
}

/** Accepts any indentation, and a fence after a list marker, since a list item may hold it. */
export function fenceAt(text: string, { start, end }: Line): Fence | undefined {
  const indented = skipBlanks(text, start, end);
  const at = skipListMarks(text, indented, end);
  const marks = readMarks(text, at, end);
  if (marks === undefined) return undefined;
  const { mark, length, canOpen } = marks;
  const inItem = at !== indented;
  const canClose = !inItem && skipBlanks(text, marks.end, end) === end;
  return { mark, length, column: at - start, inItem, canOpen, canClose };
}

/** A closing fence is at most three columns to the right of its container's start. */
export function closes(opener: Fence, fence: Fence): boolean {
  const maxColumn = opener.column <= 3 ? 3 : opener.column + 3;
  return fence.canClose && fence.mark === opener.mark && fence.length >= opener.length && fence.column <= maxColumn;
}

/** `- 1. text` → the index where the text starts. */
function skipListMarks(text: string, start: number, end: number): number {
  let at = start;
  for (;;) {
    const after = listMarkEnd(text, at);
    if (after === at || after >= end || !isBlank(text.charCodeAt(after))) return at;
    at = skipBlanks(text, after, end);
  }
}

/** Returns the text with a closing fence if one is open, so later text is not taken for code. */
export function closeFence(text: string): string {
  const open = openFence(text);
  if (open === undefined) return text;
  return `${text}${text.endsWith("\n") ? "" : "\n"}${open.closer}`;
}

/** Returns the text without an open fence that has no code after it. Cutting there would only close it again. */
export function withoutBareFence(text: string): string {
  const open = openFence(text);
  const isBare = open !== undefined && text.slice(open.end).trim() === "";
  return isBare ? text.slice(0, open.start).trimEnd() : text;
}

function openFence(text: string): OpenFence | undefined {
  const mayHaveOne = text.includes("```") || text.includes("~~~");
  return mayHaveOne ? scanLines(text, () => {}) : undefined;
}

/** Returns the names that a text imports, as Claude Code and Gemini CLI read it: `@name` at the start of a word,
 *  outside code. */
export function importedNames(text: string): string[] {
  const names: string[] = [];
  // Most texts import nothing, and reading them as Markdown is the slowest step.
  let at = text.indexOf("@");
  if (at === -1) return names;
  scanLines(text, ({ start, end }, kind) => {
    if (at !== -1 && at < start) at = text.indexOf("@", start);
    if (kind !== "text" || at === -1 || at >= end) return;
    const line = text.slice(start, end).replace(/`[^`]*`/g, "");
    for (const [, named] of line.matchAll(/(?<=^|\s)@(~\/[^\s]+|[\w./-]+)/g))
      names.push(named!.replace(/[.,;:]+$/, ""));
  });
  return names;
}
