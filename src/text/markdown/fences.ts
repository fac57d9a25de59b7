/** One pass over Markdown that knows code fences, so that nothing in an example is ever taken for markup of ours. */
import {
  type Containers,
  codeIndent,
  createContainers,
  indentOf,
  isBlank,
  isRule,
  type Place,
} from "./containers.ts";

export interface Line {
  /** 1-based. */
  readonly number: number;
  readonly start: number;
  /** Without its line break, LF or CRLF. */
  readonly end: number;
  /** Where the following line starts. */
  readonly next: number;
}

/** Code ends with the fence that closes it, or with the list item or quote that it stands in. `comment` belongs to an HTML comment of
 *  several lines. */
export type LineKind = "text" | "opener" | "code" | "closer" | "comment";

/** A fence that nothing closes. */
export interface OpenFence extends Line {
  /** The line that would close it: in its list item, its quote and its column. */
  readonly closer: string;
}

/** Visits every line with its kind, as CommonMark reads it. Returns the fence whose code runs to the end of the text. */
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
  /** What the next line may go on with. */
  leaf: Leaf;
  /** The last end of a comment that was looked for: what is looked for from before it is the same. */
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
  const goesOn = containers.enter(line.start, line.end);
  if (goesOn && leaf.kind === "code") {
    if (!isCloser(containers.place, leaf.marks)) return "code";
    reader.leaf = none;
    return "closer";
  }
  if (goesOn && leaf.kind === "comment") {
    if (leaf.end <= line.end) reader.leaf = none;
    return "comment";
  }
  const opened = containers.open(goesOn && leaf.kind === "paragraph");
  const inParagraph = leaf.kind === "paragraph" && !opened;
  reader.leaf = leafAt(reader, line, { inParagraph, canUnderline: inParagraph && goesOn });
  if (!inParagraph || reader.leaf.kind !== "paragraph") containers.endOthers();
  if (reader.leaf.kind === "code") return "opener";
  return reader.leaf.kind === "comment" ? "comment" : "text";
}

interface Before {
  readonly inParagraph: boolean;
  /** A line of dashes makes a heading of a paragraph in the same container. */
  readonly canUnderline: boolean;
}

function leafAt(reader: Reader, line: Line, { inParagraph, canUnderline }: Before): Leaf {
  const { place } = reader.containers;
  const { text, at, end } = place;
  if (at === end) return none;
  const indent = indentOf(place);
  if (indent >= codeIndent) return inParagraph ? paragraph : none;
  const marks = marksAt(text, at, end);
  if (marks?.canOpen) return { kind: "code", opener: line, marks, indent };
  if (text.startsWith("<!--", at)) {
    const commentEnd = endOfComment(reader, at);
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

export function marksAt(text: string, at: number, end: number): Marks | undefined {
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
  const marks = indentOf(place) < codeIndent ? marksAt(text, at, end) : undefined;
  if (marks === undefined || marks.mark !== opener.mark || marks.length < opener.length) return false;
  return skipBlanks(text, marks.end, end) === end;
}

export function skipBlanks(text: string, start: number, end: number): number {
  let at = start;
  while (at < end && isBlank(text.charCodeAt(at))) at++;
  return at;
}

/** Where the comment ends that starts here; infinite if nowhere. */
function endOfComment(reader: Reader, at: number): number {
  if (reader.arrow < at + 2) {
    const found = reader.containers.place.text.indexOf("-->", at + 2);
    reader.arrow = found === -1 ? Number.POSITIVE_INFINITY : found;
  }
  return reader.arrow + 3;
}

function isHeading({ text, at, end }: Place): boolean {
  let behind = at;
  while (behind < end && text.charCodeAt(behind) === hash) behind++;
  const level = behind - at;
  return level >= 1 && level <= 6 && (behind === end || isBlank(text.charCodeAt(behind)));
}

function isUnderline({ text, at, end }: Place): boolean {
  const mark = text.charCodeAt(at);
  if (mark !== dash && mark !== equals) return false;
  let behind = at;
  while (behind < end && text.charCodeAt(behind) === mark) behind++;
  return skipBlanks(text, behind, end) === end;
}

const [hash, dash, equals, tick, tilde] = [0x23, 0x2d, 0x3d, 0x60, 0x7e];
