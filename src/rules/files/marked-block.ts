/** Plimsoll's block in a person's file. Files are byte strings, so every byte outside the block is kept. Removing the
 *  block restores the file exactly, because the bytes added around it can be recognised. */

import { createHash, type Hash } from "../../core/crypto.ts";
import { ContextError } from "../../core/errors.ts";
import {
  closes,
  type Fence,
  fenceAt,
  forEachLine,
  fromByteString,
  type Line,
  toByteString,
} from "../../core/text/index.ts";

export interface MarkedBlock {
  /** From the first character of the start marker to the end of the end marker. */
  readonly start: number;
  readonly end: number;
  /** With LF line ends, whatever the file has. */
  readonly body: string;
  readonly hash: string | undefined;
  /** The hash does not match the text: a person changed it. */
  readonly edited: boolean;
}

export type BlockSearch =
  | { readonly kind: "none" }
  | { readonly kind: "block"; readonly block: MarkedBlock }
  | { readonly kind: "broken"; readonly line: number; readonly problem: string };

/** Works on byte strings. `undefined` is a file that does not exist. */
export const markedBlock: {
  /** Finds the block of a section. Markers in code fences are text. Markers that do not form exactly one block are
   *  `broken`. */
  find(file: string, section: string): BlockSearch;
  /** Returns the file with the block: in place of an existing one, else at the end after one empty line. */
  put(file: string | undefined, section: string, body: string): string;
  /** Returns the file as it was before `put`, or `undefined` if Plimsoll created the file and it must be deleted. */
  remove(file: string, section: string): { file: string | undefined };
  /** Returns the file without the blocks of these sections whose hash matches, or `undefined` as in `remove`. */
  removeWhole(file: string, isMeant?: (section: string) => boolean): string | undefined;
  /** Renames Plimsoll's first block to this section if the file has no block of that name. A run then continues the
   *  block that an adapter with another section left, instead of adding a second one. */
  adopt(file: string, section: string): string;
} = {
  find: findBlock,
  put: putBlock,
  remove(file, section) {
    const span = findSpan(file, section);
    return { file: span === undefined ? file : withoutSpan(file, span) };
  },
  removeWhole: removeWholeBlocks,
  adopt: adoptBlock,
};

function findBlock(file: string, section: string): BlockSearch {
  const found = searchMarkers(file, toByteString(section));
  if (found.kind !== "block") return found;
  const { start, end, bodyStart, bodyEnd, hash } = found.span;
  const body = canonicalBody(file.slice(bodyStart, bodyEnd));
  return { kind: "block", block: { start, end, body, hash, edited: hash !== blockHash(body) } };
}

function putBlock(file: string | undefined, section: string, body: string): string {
  if (file === undefined) return `${renderBlock(section, body, "\n")}\n`;
  const span = findSpan(file, section);
  if (span !== undefined) {
    const block = renderBlock(section, body, lineEndAt(file, span));
    return file.slice(0, span.start) + block + file.slice(span.end);
  }
  const lineEnd = chooseLineEnd(file);
  const block = renderBlock(section, body, lineEnd);
  // The empty line above marks a file that was empty, as opposed to a file that Plimsoll created.
  if (isBlank(file)) return file + lineEnd + block + lineEnd;
  // A file without a final line break gets none after the block either, so removal can tell.
  return file.endsWith("\n") ? file + lineEnd + block + lineEnd : file + lineEnd + lineEnd + block;
}

function removeWholeBlocks(file: string, isMeant: (section: string) => boolean = () => true): string | undefined {
  if (![...listSections(file)].some((section) => isMeant(fromByteString(section)))) return file;
  const meant = searchWholeBlocks(file).findLast(({ section }) => isMeant(fromByteString(section)));
  if (meant === undefined) return file;
  const rest = withoutSpan(file, meant);
  return rest === undefined ? undefined : removeWholeBlocks(rest, isMeant);
}

function adoptBlock(file: string, section: string): string {
  const named = listSections(file);
  const others = [...named].filter((name) => name !== toByteString(section));
  if (others.length === 0 || findBlock(file, section).kind !== "none") return file;
  const [block] = searchWholeBlocks(file);
  if (block === undefined) return file;
  const { start, bodyStart, bodyEnd, end } = block;
  const rename = (kind: "start" | "end", marker: string) =>
    marker.replace(`:${kind}:${block.section}`, () => `:${kind}:${toByteString(section)}`);
  const first = rename("start", file.slice(start, bodyStart));
  const last = rename("end", file.slice(bodyEnd, end));
  return file.slice(0, start) + first + file.slice(bodyStart, bodyEnd) + last + file.slice(end);
}

function withoutSpan(file: string, span: Span): string | undefined {
  const lineEnd = lineEndAt(file, span);
  const before = file.slice(0, span.start);
  const after = file.slice(span.end);
  // An editor may have added or removed the last line break of a file that Plimsoll created.
  if (isBlank(before)) return after.trim() === "" ? undefined : before + withoutLeading(after, lineEnd);
  const empty = before.slice(0, -lineEnd.length);
  if (isBlank(empty) && after.trim() === "") return empty;
  const separator = lineEnd + lineEnd;
  if (after === "") return before.endsWith(separator) ? before.slice(0, -separator.length) : before;
  const rest = after.startsWith(lineEnd) ? after.slice(lineEnd.length) : after;
  return withoutSeparator(before, lineEnd) + rest;
}

function findSpan(file: string, section: string): Span | undefined {
  const found = searchMarkers(file, toByteString(section));
  if (found.kind === "broken") throw new ContextError("refused_target", found.problem, { line: found.line });
  return found.kind === "block" ? found.span : undefined;
}

function renderBlock(section: string, body: string, lineEnd: string): string {
  if (section === "" || /[\r\n]|--|^\s|\s$/.test(section)) {
    throw new ContextError("invalid_argument", `"${section}" cannot be the name of a section`);
  }
  const name = toByteString(section);
  const lines = canonicalBody(body);
  const hash = blockHash(lines);
  const text = `<!-- plimsoll:start:${name} sha256=${hash} -->\n${lines}<!-- plimsoll:end:${name} -->`;
  return lineEnd === "\n" ? text : text.replaceAll("\n", lineEnd);
}

/** Returns the line end of the block itself, to recognise the bytes added around it. */
function lineEndAt(file: string, { bodyStart }: Span): string {
  return file.slice(0, bodyStart).endsWith("\r\n") ? "\r\n" : "\n";
}

function chooseLineEnd(file: string): string {
  let feeds = 0;
  let pairs = 0;
  for (let at = file.indexOf("\n"); at !== -1; at = file.indexOf("\n", at + 1)) {
    feeds++;
    if (file.charCodeAt(at - 1) === 0x0d) pairs++;
  }
  return pairs * 2 > feeds ? "\r\n" : "\n";
}

/** Empty, or only a byte order mark. */
function isBlank(text: string): boolean {
  return text === "" || text === "\xef\xbb\xbf";
}

/** Removes the empty line at the end of `before`. A person who moved the block may not have left one. */
function withoutSeparator(before: string, lineEnd: string): string {
  const shorter = before.slice(0, -lineEnd.length);
  return before.endsWith(lineEnd) && (shorter.endsWith("\n") || isBlank(shorter)) ? shorter : before;
}

/** Removes the block's line end at the top of a file, and the separator of another block below it. */
function withoutLeading(after: string, lineEnd: string): string {
  if (after.startsWith(`${lineEnd}${lineEnd}<!-- plimsoll:start:`)) return after.slice(2 * lineEnd.length);
  return after.startsWith(lineEnd) ? after.slice(lineEnd.length) : after;
}

// A whole file that is Plimsoll's: one line in it says so and holds the hash of the rest.

/** Renders `preamble` (usually front matter), the ownership line, then `body`. Both are byte strings. */
export function renderOwnedFile({ preamble, body }: { preamble: string; body: string }): string {
  const text = canonicalBody(canonicalBody(preamble) + body);
  const top = endOfFrontMatter(text);
  return `${text.slice(0, top)}<!-- plimsoll:owns sha256=${blockHash(text)} -->\n${text.slice(top)}`;
}

/** A file is Plimsoll's only if the ownership line is exactly where Plimsoll writes it. Every other file belongs to a
 *  person. */
export function readOwnership(
  file: string,
): { readonly kind: "ours"; readonly edited: boolean } | { readonly kind: "foreign" } {
  const text = canonicalBody(file.startsWith("\xef\xbb\xbf") ? file.slice(3) : file);
  const top = endOfFrontMatter(text);
  const line = /^<!-- plimsoll:owns sha256=(\S*) -->\n/.exec(text.slice(top, top + 100));
  if (line === null) return { kind: "foreign" };
  const rest = text.slice(0, top) + text.slice(top + line[0].length);
  return { kind: "ours", edited: line[1] !== blockHash(rest) };
}

/** Tools read front matter only at the top of a file, so nothing may come before it. */
function endOfFrontMatter(text: string): number {
  if (!text.startsWith("---\n")) return 0;
  const end = text.indexOf("\n---\n", 3);
  return end === -1 ? 0 : end + 5;
}

// The markers of Plimsoll's blocks in a person's file. Finding them is more than a search: an example in a code fence
// is text, and a fence that a person never closed must not hide the block, or every run would add another one.

/** The place of a block: from its start marker to its end marker. */
interface Span {
  readonly start: number;
  readonly end: number;
  readonly bodyStart: number;
  readonly bodyEnd: number;
  readonly hash: string | undefined;
}

type MarkerSearch =
  | { readonly kind: "none" }
  | { readonly kind: "block"; readonly span: Span }
  | { readonly kind: "broken"; readonly line: number; readonly problem: string };

/** `section` is a byte string, as the file is. */
function searchMarkers(file: string, section: string): MarkerSearch {
  if (!file.includes("plimsoll:")) return { kind: "none" };
  const events = readEvents(file);
  const visible = visibleMarkers(events, wholeBlocks(file, events));
  return judge(visible.filter((marker) => marker.section === section));
}

/** Returns the blocks of any section that are certainly Plimsoll's, from top to bottom: both markers are outside code,
 *  and the hash matches the text. */
export function searchWholeBlocks(file: string): readonly (Span & { readonly section: string })[] {
  if (!file.includes("plimsoll:start:")) return [];
  const events = readEvents(file);
  return visibleMarkers(events, wholeBlocks(file, events)).flatMap(({ line, section, hash, endLine }) =>
    endLine === undefined ? [] : { ...spanBetween(line, endLine, hash), section },
  );
}

/** Returns the sections that any marker at the start of a line names, in code or not. This is quick and usually shows
 *  that there is nothing to search for. */
function listSections(file: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (let at = file.indexOf(opening); at !== -1; at = file.indexOf(opening, at + opening.length)) {
    const end = file.indexOf("\n", at);
    const line = file.slice(at, Math.min(end === -1 ? file.length : end, at + maxMarkerLength));
    const section = markerPattern.exec(line.replace(/\r+$/, ""))?.[2];
    if (section !== undefined) names.add(section);
  }
  return names;
}

/** Every marker starts with this. */
const opening = "<!--";

/** The first 16 hex digits of the SHA-256 of the text with LF line ends. */
export function blockHash(body: string): string {
  return digest(createHash("sha256").update(canonicalLines(body), "latin1"));
}

/** Returns the text as a block holds it: LF line ends, and a line break at the end. */
function canonicalBody(body: string): string {
  return canonicalLines(body === "" || body.endsWith("\n") ? body : `${body}\n`);
}

/** Removes all carriage returns before a line feed, so a second call changes nothing. */
function canonicalLines(text: string): string {
  return text.includes("\r") ? text.replace(/\r+\n/g, "\n") : text;
}

function digest(hash: Hash): string {
  return hash.digest("hex").slice(0, 16);
}

type Event = Marker | { readonly kind: "fence"; readonly line: Line; readonly fence: Fence };

interface Marker {
  readonly kind: "start" | "end";
  readonly line: Line;
  readonly section: string;
  readonly hash: string | undefined;
}

/** Reads the markers of all sections: blocks of other sections matter too. */
function readEvents(file: string): Event[] {
  const events: Event[] = [];
  forEachLine(file, (line) => {
    const marker = markerAt(file, line);
    if (marker !== undefined) {
      events.push(marker);
      return;
    }
    const fence = fenceAt(file, line);
    if (fence !== undefined) events.push({ kind: "fence", line, fence });
  });
  return events;
}

const markerPattern = /^<!--\s*plimsoll:(start|end):(.+?)(?:\s+sha256=(\S*))?\s*-->\s*$/;

/** A marker is at the start of a line, or after a byte order mark. */
function markerAt(file: string, line: Line): Marker | undefined {
  const start = line.start === 0 && file.startsWith("\xef\xbb\xbf") ? 3 : line.start;
  if (!file.startsWith("<!--", start)) return undefined;
  const match = markerPattern.exec(file.slice(start, Math.min(line.end, start + maxMarkerLength)));
  if (match === null) return undefined;
  const [, kind, section = "", hash] = match;
  return { kind: kind === "start" ? "start" : "end", line: { ...line, start }, section, hash };
}

const maxMarkerLength = 1_000;

/** Maps start events to end events whose text matches the hash in the start marker. Such a block is Plimsoll's as a
 *  whole: fences and markers in it say nothing about the rest of the file. */
function wholeBlocks(file: string, events: readonly Event[]): ReadonlyMap<number, number> {
  const whole = new Map<number, number>();
  // A file with endless markers must not cost more than a few passes.
  const budget = { bytes: 8 * file.length, tries: 1_000 };
  for (let index = events.length - 1; index >= 0; index--) {
    const event = events[index]!;
    if (event.kind !== "start" || event.hash === undefined) continue;
    const end = matchingEnd(file, { events, index, start: event, budget });
    if (end !== undefined) whole.set(index, end);
  }
  return whole;
}

function matchingEnd(
  file: string,
  {
    events,
    index,
    start,
    budget,
  }: {
    readonly events: readonly Event[];
    readonly index: number;
    readonly start: Marker;
    readonly budget: { bytes: number; tries: number };
  },
): number | undefined {
  const hash = createHash("sha256");
  let from = start.line.next;
  for (let next = index + 1; next < events.length; next++) {
    const event = events[next]!;
    if (event.kind !== "end" || event.section !== start.section) continue;
    const { line } = event;
    budget.bytes -= line.start - from;
    budget.tries--;
    if (budget.bytes < 0 || budget.tries < 0) return undefined;
    hash.update(canonicalLines(file.slice(from, line.start)), "latin1");
    if (digest(hash.copy()) === start.hash) return next;
    from = line.start;
  }
  return undefined;
}

interface Visible {
  readonly kind: "block" | "start" | "end";
  readonly line: Line;
  readonly section: string;
  readonly hash: string | undefined;
  /** The end of a whole block. */
  readonly endLine?: Line;
}

/** Returns the markers outside code. A whole block is one entry. */
function visibleMarkers(events: readonly Event[], whole: ReadonlyMap<number, number>): Visible[] {
  const visible: Visible[] = [];
  const closers = closersBelow(events, whole);
  let open: Fence | undefined;
  for (let index = 0; index < events.length; index++) {
    const event = events[index]!;
    if (event.kind === "fence") {
      open = fenceAfter(open, event.fence, closers[index]!);
      continue;
    }
    // A marker at the start of its line ends a list item and the code in it.
    if (open === undefined || isIndented(open)) {
      open = undefined;
      const end = events[whole.get(index) ?? -1];
      visible.push(end === undefined ? event : { ...event, kind: "block", endLine: end.line });
    }
    index = whole.get(index) ?? index;
  }
  return visible;
}

/** Returns the fence that is open after this one. A fence without an end would hide the rest of the file, including a
 *  block at its end. */
function fenceAfter(open: Fence | undefined, fence: Fence, below: Closers): Fence | undefined {
  if (open !== undefined && closes(open, fence)) return undefined;
  // A fence further to the left has ended the list item, or the indented code, of the open one.
  if (open !== undefined && !(isIndented(open) && fence.column < open.column)) return open;
  const hides = isIndented(fence) || below[fence.mark] >= fence.length;
  return fence.canOpen && hides ? fence : undefined;
}

/** The longest closing fence of each mark after an event. */
type Closers = Readonly<Record<Fence["mark"], number>>;

function closersBelow(events: readonly Event[], whole: ReadonlyMap<number, number>): Closers[] {
  const inside = new Set<number>();
  for (const [start, end] of whole) for (let index = start + 1; index < end; index++) inside.add(index);
  const below: Closers[] = new Array(events.length);
  let longest: Closers = { "`": 0, "~": 0 };
  for (let index = events.length - 1; index >= 0; index--) {
    below[index] = longest;
    const event = events[index]!;
    if (event.kind !== "fence" || !event.fence.canClose || isIndented(event.fence) || inside.has(index)) continue;
    const { mark, length } = event.fence;
    if (length > longest[mark]) longest = { ...longest, [mark]: length };
  }
  return below;
}

function isIndented({ column, inItem }: Fence): boolean {
  return inItem || column > 3;
}

function judge(visible: readonly Visible[]): MarkerSearch {
  const [first, second, third] = visible;
  if (first === undefined) return { kind: "none" };
  if (first.kind === "end") return broken(first, "an end marker has no start marker before it");
  const end = first.kind === "block" ? first.endLine : second?.kind === "end" ? second.line : undefined;
  if (end === undefined) {
    return second === undefined
      ? broken(first, "a start marker has no end marker")
      : broken(second, "a second start marker comes before the end of the block");
  }
  const extra = first.kind === "block" ? second : third;
  if (extra !== undefined) return broken(extra, "there is a second block, or a marker left over from one");
  return { kind: "block", span: spanBetween(first.line, end, first.hash) };
}

function spanBetween(start: Line, end: Line, hash: string | undefined): Span {
  return { start: start.start, end: end.end, bodyStart: start.next, bodyEnd: end.start, hash };
}

function broken({ line }: Visible, what: string): MarkerSearch {
  return { kind: "broken", line: line.number, problem: `${what}. Repair the plimsoll markers by hand` };
}
