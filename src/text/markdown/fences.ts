/** One pass over Markdown that knows code fences, so that nothing in an example is ever taken for markup of ours. */

export interface Line {
  /** 1-based. */
  readonly number: number;
  readonly start: number;
  /** Without its line break, LF or CRLF. */
  readonly end: number;
  /** Where the following line starts. */
  readonly next: number;
}

/** `fence` is the line that opens or closes `code`; `comment` belongs to an HTML comment of several lines. */
export type LineKind = "text" | "fence" | "code" | "comment";

export interface Fence {
  readonly mark: "`" | "~";
  readonly length: number;
  /** Column of the first mark. */
  readonly column: number;
  /** Behind a list marker, so that it belongs to the item and ends with it. */
  readonly inItem: boolean;
  readonly canOpen: boolean;
  readonly canClose: boolean;
}

/** Visits every line with its kind. Returns the line of a fence that is never closed: its code runs to the end, as in CommonMark. */
export function scanLines(text: string, visit: (line: Line, kind: LineKind) => void): Line | undefined {
  let open: { readonly fence: Fence; readonly line: Line } | undefined;
  let commentEnd = 0;
  // A comment without an end is text: it must not hide the rest.
  const lastComment = text.lastIndexOf("-->");
  const kindOf = (line: Line): LineKind => {
    if (line.start < commentEnd) return "comment";
    const fence = fenceAt(text, line);
    if (open !== undefined) {
      if (fence === undefined || !closes(open.fence, fence)) return "code";
      open = undefined;
      return "fence";
    }
    if (fence?.canOpen) {
      open = { fence, line };
      return "fence";
    }
    if (line.start < lastComment) commentEnd = endOfComment(text, line);
    return commentEnd > line.next ? "comment" : "text";
  };
  forEachLine(text, (line) => visit(line, kindOf(line)));
  return open?.line;
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

/** The fence that a line is, whatever surrounds it. Any indentation counts, and one behind a list marker, since a list item may hold it. */
export function fenceAt(text: string, { start, end }: Line): Fence | undefined {
  const indented = skipBlanks(text, start, end);
  const at = skipListMarkers(text, indented, end);
  const code = text.charCodeAt(at);
  if ((code !== tick && code !== tilde) || at >= end) return undefined;
  let marksEnd = at + 1;
  while (marksEnd < end && text.charCodeAt(marksEnd) === code) marksEnd++;
  if (marksEnd - at < 3) return undefined;
  const inItem = at !== indented;
  return {
    mark: code === tick ? "`" : "~",
    length: marksEnd - at,
    column: at - start,
    inItem,
    canOpen: code === tilde || !text.slice(marksEnd, end).includes("`"),
    canClose: !inItem && skipBlanks(text, marksEnd, end) === end,
  };
}

/** A closer stands at most three columns to the right of where its container starts. */
export function closes(opener: Fence, fence: Fence): boolean {
  const mostColumn = opener.column <= 3 ? 3 : opener.column + 3;
  return (
    fence.canClose &&
    fence.mark === opener.mark &&
    fence.length >= opener.length &&
    fence.column <= mostColumn
  );
}

const [tab, space, tick, tilde] = [0x09, 0x20, 0x60, 0x7e];

function skipBlanks(text: string, start: number, end: number): number {
  let at = start;
  while (at < end && isBlank(text.charCodeAt(at))) at++;
  return at;
}

function isBlank(code: number): boolean {
  return code === space || code === tab;
}

/** `- 1. text` → where the text starts. */
function skipListMarkers(text: string, start: number, end: number): number {
  let at = start;
  for (;;) {
    const behind = listMarkerEnd(text, at);
    if (behind === at || behind >= end || !isBlank(text.charCodeAt(behind))) return at;
    at = skipBlanks(text, behind, end);
  }
}

/** Behind a bullet or a number with its mark; the same place if there is none. */
function listMarkerEnd(text: string, start: number): number {
  const first = text[start];
  if (first === "-" || first === "*" || first === "+") return start + 1;
  let at = start;
  while (at - start < 9 && isDigit(text.charCodeAt(at))) at++;
  const isNumber = at > start && (text[at] === "." || text[at] === ")");
  return isNumber ? at + 1 : start;
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Where the comment ends that starts this line, 0 if there is none. */
function endOfComment(text: string, { start, end }: Line): number {
  let at = start;
  while (at < end && text.charCodeAt(at) === 0x20) at++;
  return text.startsWith("<!--", at) ? text.indexOf("-->", at + 2) + 3 : 0;
}
