/**
 * Finds the markers of one section in a file. Two things make this more than a search: an example in a code fence is
 * text, and a person's fence that is never closed must not hide our block, or every run would add another one.
 */
import { createHash, type Hash } from "node:crypto";
import { closes, type Fence, fenceAt } from "../markdown/fence-at.ts";
import { forEachLine, type Line } from "../markdown/fences.ts";

export interface Span {
  readonly start: number;
  readonly end: number;
  readonly bodyStart: number;
  readonly bodyEnd: number;
  readonly hash: string | undefined;
}

export type MarkerSearch =
  | { readonly kind: "none" }
  | { readonly kind: "block"; readonly span: Span }
  | { readonly kind: "broken"; readonly line: number; readonly problem: string };

/** `section` is a byte string, as the file is. */
export function searchMarkers(file: string, section: string): MarkerSearch {
  if (!file.includes("plimsoll:")) return { kind: "none" };
  const events = readEvents(file);
  const visible = visibleMarkers(events, wholeBlocks(file, events));
  return judge(visible.filter((marker) => marker.section === section));
}

/** The blocks of any section that are certainly ours, from top to bottom: both markers outside of code, and a hash that fits the
 *  text. An example in a code fence is none, and neither are markers around another text. */
export function searchWholeBlocks(file: string): readonly (Span & { readonly section: string })[] {
  if (!file.includes("plimsoll:start:")) return [];
  const events = readEvents(file);
  return visibleMarkers(events, wholeBlocks(file, events)).flatMap(({ line, section, hash, endLine }) =>
    endLine === undefined ? [] : { ...spanBetween(line, endLine, hash), section },
  );
}

/** The sections that any marker at the start of a line names, in code or not: quick, and nearly always enough to know that there is
 *  nothing to look for. */
export function namedSections(file: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (let at = file.indexOf(opening); at !== -1; at = file.indexOf(opening, at + opening.length)) {
    const end = file.indexOf("\n", at);
    const line = file.slice(at, Math.min(end === -1 ? file.length : end, at + longestMarker));
    const section = markerPattern.exec(line.replace(/\r+$/, ""))?.[2];
    if (section !== undefined) names.add(section);
  }
  return names;
}

/** Every marker begins so. */
const opening = "<!--";

/** The first 16 hex digits of the SHA-256 of the text with LF line ends. */
export function blockHash(body: string): string {
  return digest(createHash("sha256").update(canonicalLines(body), "latin1"));
}

/** As a block holds it: LF line ends, the last line ended. */
export function canonicalBody(body: string): string {
  return canonicalLines(body === "" || body.endsWith("\n") ? body : `${body}\n`);
}

/** All carriage returns before a line feed go, so that doing it again changes nothing. */
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

/** Markers of all our sections: a block of another one is a whole too. */
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

/** Ours stand at the start of a line, at most behind a byte order mark. */
function markerAt(file: string, line: Line): Marker | undefined {
  const start = line.start === 0 && file.startsWith("\xef\xbb\xbf") ? 3 : line.start;
  if (!file.startsWith("<!--", start)) return undefined;
  const match = markerPattern.exec(file.slice(start, Math.min(line.end, start + longestMarker)));
  if (match === null) return undefined;
  const [, kind, section = "", hash] = match;
  return { kind: kind === "start" ? "start" : "end", line: { ...line, start }, section, hash };
}

const longestMarker = 1_000;

/** Start and end events whose text is exactly what the hash in the start marker was made of, by index of the start event.
 *  Such a block is ours as a whole: what it holds, fences and markers included, says nothing about the rest of the file. */
function wholeBlocks(file: string, events: readonly Event[]): ReadonlyMap<number, number> {
  const whole = new Map<number, number>();
  // A file that repeats markers without end must not cost more than a few readings.
  const budget = { bytes: 8 * file.length, tries: 1_000 };
  for (let index = events.length - 1; index >= 0; index--) {
    const event = events[index]!;
    if (event.kind !== "start" || event.hash === undefined) continue;
    const end = matchingEnd(file, { events, index, start: event, budget });
    if (end !== undefined) whole.set(index, end);
  }
  return whole;
}

interface EndSearch {
  readonly events: readonly Event[];
  readonly index: number;
  readonly start: Marker;
  readonly budget: { bytes: number; tries: number };
}

function matchingEnd(file: string, { events, index, start, budget }: EndSearch): number | undefined {
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
  /** Of a whole block. */
  readonly endLine?: Line;
}

/** The markers outside of code, whole blocks as one. */
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
    // A marker is at the start of its line, which ends a list item and the code in it.
    if (open === undefined || isIndented(open)) {
      open = undefined;
      visible.push(visibleOf(event, events[whole.get(index) ?? -1]));
    }
    index = whole.get(index) ?? index;
  }
  return visible;
}

/** The fence that is open below this one. One that nothing closes would hide the rest of the file, our block at its end too. */
function fenceAfter(open: Fence | undefined, fence: Fence, below: Closers): Fence | undefined {
  if (open !== undefined && closes(open, fence)) return undefined;
  // One further to the left has ended the list item, or the indented code, that the open one stands in.
  if (open !== undefined && !(isIndented(open) && fence.column < open.column)) return open;
  const hides = isIndented(fence) || below[fence.mark] >= fence.length;
  return fence.canOpen && hides ? fence : undefined;
}

function visibleOf(marker: Marker, end: Event | undefined): Visible {
  return end === undefined ? marker : { ...marker, kind: "block", endLine: end.line };
}

/** The longest closing fence of each mark below an event. */
type Closers = Readonly<Record<Fence["mark"], number>>;

function closersBelow(events: readonly Event[], whole: ReadonlyMap<number, number>): Closers[] {
  const inside = new Set<number>();
  for (const [start, end] of whole) for (let index = start + 1; index < end; index++) inside.add(index);
  const below: Closers[] = new Array(events.length);
  let longest: Closers = { "`": 0, "~": 0 };
  for (let index = events.length - 1; index >= 0; index--) {
    below[index] = longest;
    const event = events[index]!;
    if (event.kind !== "fence" || !event.fence.canClose || isIndented(event.fence) || inside.has(index))
      continue;
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
  if (first.kind === "end") return broken(first, "an end marker without a start marker before it");
  const end = first.kind === "block" ? first.endLine : second?.kind === "end" ? second.line : undefined;
  if (end === undefined) {
    return second === undefined
      ? broken(first, "a start marker without an end marker")
      : broken(second, "a second start marker before the end of the block");
  }
  const extra = first.kind === "block" ? second : third;
  if (extra !== undefined) return broken(extra, "a second block, or a marker left over from one");
  return { kind: "block", span: spanBetween(first.line, end, first.hash) };
}

function spanBetween(start: Line, end: Line, hash: string | undefined): Span {
  return { start: start.start, end: end.end, bodyStart: start.next, bodyEnd: end.start, hash };
}

function broken({ line }: Visible, what: string): MarkerSearch {
  return { kind: "broken", line: line.number, problem: `${what}: mend the plimsoll markers by hand` };
}
