/** Converts Markdown to plain text for a reader that shows it unrendered: removes the marks and keeps the words. Code,
 *  tables and links are not changed. */
import { scanLines } from "../../core/text/index.ts";

/** Removes fences (not the code in them), heading marks, emphasis, inline code ticks and comments. Keeps at most one
 *  empty line in a row. */
export function toPlainProse(markdown: string): string {
  const writer = createProseWriter();
  scanLines(markdown, (line, kind) => {
    const text = markdown.slice(line.start, line.next);
    if (kind === "text") writer.addText(text);
    else if (kind === "comment") writer.addComment(text);
    else writer.addCode(kind === "code" ? text : "");
  });
  return writer.finish();
}

/** Collects the lines of one paragraph, since emphasis may span them. Ends the paragraph where Markdown does. */
function createProseWriter() {
  const output: string[] = [];
  let paragraph = "";
  let afterEmpty = false;
  let inItem = false;

  const write = (text: string): void => {
    if (text === "") return;
    const empty = text === "\n" || text === "\r\n";
    if (!(empty && afterEmpty)) output.push(text);
    afterEmpty = empty;
  };
  const endParagraph = (): void => {
    const stripped = stripInline(paragraph);
    // Only removed marks can have left an empty line.
    if (stripped === paragraph) write(paragraph);
    else for (const line of stripped.split(/(?<=\n)/)) write(line);
    paragraph = "";
  };
  const writeAlone = (text: string): void => {
    endParagraph();
    write(text);
  };
  return {
    addText(line: string) {
      const isIndentedCode = /^(?: {4}|\t)\s*\S/.test(line) && paragraph === "" && !inItem;
      if (/^\s*$/.test(line) || isIndentedCode) return writeAlone(line);
      if (/^\s*\|/.test(line)) return writeAlone(withoutComments(line));
      const heading = headingIn(line);
      if (heading !== undefined) {
        inItem = false;
        return writeAlone(stripInline(heading));
      }
      const startsItem = /^\s*(?:[-*+]|\d{1,9}[.)])\s/.test(line);
      if (startsItem || /^\s*>/.test(line)) endParagraph();
      inItem = startsItem || (inItem && /^\s/.test(line)) || (inItem && paragraph !== "");
      paragraph += line;
    },
    addComment(line: string) {
      endParagraph();
      const end = line.indexOf("-->");
      if (end !== -1) write(stripInline(line.slice(end + 3)));
    },
    addCode(line: string) {
      endParagraph();
      if (line === "") return;
      output.push(line);
      afterEmpty = false;
    },
    finish() {
      endParagraph();
      return output.join("");
    },
  };
}

/** `## Title ##` → `Title`. */
function headingIn(line: string): string | undefined {
  const match = /^ {0,3}#{1,6}(?:[ \t]+(.*?))?(\r?\n)?$/s.exec(line);
  if (match === null) return undefined;
  const [, title = "", lineEnd = ""] = match;
  return `${title.replace(/(?:^|[ \t]+)#+[ \t]*$/, "").trimEnd()}${lineEnd}`;
}

function withoutComments(line: string): string {
  const [first = "", ...rest] = line.split("<!--");
  return (
    first + rest.map((part) => (part.includes("-->") ? part.slice(part.indexOf("-->") + 3) : `<!--${part}`)).join("")
  );
}

// Emphasis, inline code and comments inside one paragraph. Every step takes linear time, since packs may come from
// anywhere.

/** Removes the marks and keeps the words. Escapes, links, addresses and tags are not changed. */
function stripInline(paragraph: string): string {
  if (!/[*_`<]/.test(paragraph)) return paragraph;
  const pieces = readPieces(paragraph);
  matchEmphasis(pieces);
  return pieces.map(({ text, removed }) => (removed === 0 ? text : text.slice(removed))).join("");
}

interface Piece {
  readonly text: string;
  readonly canOpen: boolean;
  readonly canClose: boolean;
  /** The number of matched marks in this run. They are removed. */
  removed: number;
}

/** Text that must not be changed, and the runs of marks. */
const special =
  /\\[\s\S]|`+|<!--|!?\[[^[\]\n]*\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)?\)|https?:\/\/[^\s<>`]+|<[a-z/][^<>\n]*>|\*+|_+/gi;

function readPieces(paragraph: string): Piece[] {
  const pieces: Piece[] = [];
  const endOfSpan = createSpanSearch(paragraph);
  const lastComment = paragraph.lastIndexOf("-->");
  const words = (text: string) => pieces.push({ text, canOpen: false, canClose: false, removed: 0 });
  let from = 0;
  special.lastIndex = 0;
  for (let match = special.exec(paragraph); match !== null; match = special.exec(paragraph)) {
    const [found] = match;
    const start = match.index;
    words(paragraph.slice(from, start));
    from = start + found.length;
    if (found === "<!--" && start < lastComment) {
      from = paragraph.indexOf("-->", start + 2) + 3;
    } else if (found[0] === "`") {
      const end = endOfSpan(from, found.length);
      if (end === undefined) words(found);
      // One space on each side separates ticks. It is not part of the code.
      else words(paragraph.slice(from, end).replace(/^ (.*[^ ].*) $/s, "$1"));
      if (end !== undefined) from = end + found.length;
    } else if (found[0] === "*" || found[0] === "_") {
      pieces.push(runOfMarks(paragraph, start, found));
    } else words(found);
    special.lastIndex = from;
  }
  words(paragraph.slice(from));
  return pieces;
}

/** Inline code ends at a run of exactly as many ticks. Runs are listed once, so ticks without a partner cost
 *  nothing. */
function createSpanSearch(paragraph: string): (from: number, length: number) => number | undefined {
  const runs = new Map<number, number[]>();
  const read = new Map<number, number>();
  for (const { 0: ticks, index } of paragraph.matchAll(/`+/g)) {
    const places = runs.get(ticks.length);
    if (places === undefined) runs.set(ticks.length, [index]);
    else places.push(index);
  }
  return (from, length) => {
    const places = runs.get(length) ?? [];
    let next = read.get(length) ?? 0;
    while (next < places.length && places[next]! < from) next++;
    read.set(length, next);
    return places[next];
  };
}

/** Follows CommonMark's flanking rules. An underscore inside a word is a letter. */
function runOfMarks(paragraph: string, start: number, marks: string): Piece {
  const before = paragraph[start - 1] ?? " ";
  const after = paragraph[start + marks.length] ?? " ";
  const left = !isSpace(after) && (!isPunctuation(after) || isSpace(before) || isPunctuation(before));
  const right = !isSpace(before) && (!isPunctuation(before) || isSpace(after) || isPunctuation(after));
  const inWord = marks[0] === "_" && left && right;
  return {
    text: marks,
    canOpen: left && (!inWord || isPunctuation(before)),
    canClose: right && (!inWord || isPunctuation(after)),
    removed: 0,
  };
}

function isSpace(character: string): boolean {
  return /\s/.test(character);
}

function isPunctuation(character: string): boolean {
  return /[\p{P}\p{S}]/u.test(character);
}

/** Every closing run removes marks from the nearest open runs of its kind. */
function matchEmphasis(pieces: readonly Piece[]): void {
  const open: Record<string, Piece[]> = { "*": [], _: [] };
  for (const piece of pieces) {
    if (!piece.canOpen && !piece.canClose) continue;
    const stack = open[piece.text[0]!]!;
    if (piece.canClose) takeMarks(stack, piece);
    if (piece.canOpen && left(piece) > 0) stack.push(piece);
  }
}

function takeMarks(stack: Piece[], closer: Piece): void {
  for (let opener = stack.at(-1); opener !== undefined && left(closer) > 0; opener = stack.at(-1)) {
    if (clash(opener, closer)) return;
    const count = Math.min(left(opener), left(closer));
    opener.removed += count;
    closer.removed += count;
    if (left(opener) === 0) stack.pop();
  }
}

/** CommonMark's rule of three: in `*a**b*` the inner run is text. */
function clash(opener: Piece, closer: Piece): boolean {
  const [one, other] = [opener.text.length, closer.text.length];
  const twoFaced = (opener.canOpen && opener.canClose) || (closer.canOpen && closer.canClose);
  return twoFaced && (one + other) % 3 === 0 && !(one % 3 === 0 && other % 3 === 0);
}

function left({ text, removed }: Piece): number {
  return text.length - removed;
}
