/** `<!-- sync:fetch url="…" -->`: a line in a pack's text that is replaced with the text at an address. */

import { didYouMean, type LineWarning, scanLines } from "../../core/text/index.ts";

export interface FetchMarker {
  /** 1-based. */
  readonly line: number;
  /** The start of its line. */
  readonly start: number;
  readonly next: number;
  /** The level of the heading above it, or 0 without a heading. */
  readonly under: number;
  readonly url: string;
  readonly format: FetchFormat;
  /** The elements of a page to use. Without it, the whole page is used. */
  readonly selector: string | undefined;
  readonly maxLines: number | undefined;
  readonly maxTokens: number | undefined;
  readonly ttlHours: number | undefined;
  /** Shown while fetching. Never part of the text. */
  readonly label: string | undefined;
}

const fetchFormats = ["raw", "text", "markdown"] as const;
export type FetchFormat = (typeof fetchFormats)[number];

export interface FoundMarkers {
  readonly markers: readonly FetchMarker[];
  readonly warnings: readonly LineWarning[];
}

/** Finds markers that are alone on their line, outside code and other comments. A marker without an address is a
 *  warning, not a marker. */
export function findFetchMarkers(markdown: string): FoundMarkers {
  const markers: FetchMarker[] = [];
  const warnings: LineWarning[] = [];
  if (!markdown.includes("sync:fetch")) return { markers, warnings };
  let under = 0;
  const markerPattern = /^[ \t]*<!--[ \t]*sync:fetch(?![\w:-])((?:(?!-->).)*)-->[ \t]*$/;
  scanLines(markdown, (line, kind) => {
    const text = kind === "text" ? markdown.slice(line.start, line.end) : "";
    under = getLevel(text) ?? under;
    const written = markerPattern.exec(text);
    if (written === null) return;
    const warn = (message: string) => warnings.push({ line: line.number, message: `sync:fetch: ${message}` });
    const read = readAttributes(written[1] ?? "", warn);
    if (read !== undefined) markers.push({ line: line.number, start: line.start, next: line.next, under, ...read });
  });
  return { markers, warnings };
}

/** Returns the level of a heading with marks (`## Title`), or `undefined` for other text. */
function getLevel(line: string): number | undefined {
  return /^ {0,3}(#{1,6})(?=[ \t]|$)/.exec(line)?.[1]?.length;
}

/** Moves the headings of a fetched text below the heading above its marker. A page starts with a title of level 1, which
 *  would end the pack's section and leave that heading empty. */
export function headingsBelow(text: string, { under }: Pick<FetchMarker, "under">): string {
  const headings: { readonly start: number; readonly level: number }[] = [];
  // The block has the only title of level 1.
  const top = Math.max(2, under + 1);
  let added = 0;
  scanLines(text, ({ start, end }, kind) => {
    const level = kind === "text" ? getLevel(text.slice(start, end)) : undefined;
    if (level === undefined) return;
    headings.push({ start: text.indexOf("#", start), level });
    added = Math.max(added, top - level);
  });
  if (added === 0) return text;
  let result = "";
  let at = 0;
  for (const { start, level } of headings) {
    // With more than six marks a line is plain text, so it never ends a section of level 6.
    result += text.slice(at, start) + "#".repeat(Math.min(level + added, Math.max(6, top)) - level);
    at = start;
  }
  return result + text.slice(at);
}

export interface ReplacedMarkers {
  /** The same string if nothing was replaced. */
  readonly text: string;
  /** Returns the line in the given text for a line in the new text. For replaced text, this is the marker's line. */
  originalLine(line: number): number;
}

/** Replaces markers with texts. A marker without a text is kept. An empty text also removes the headings that then have
 *  nothing under them. */
export function replaceFetchMarkers(
  markdown: string,
  textOf: (marker: FetchMarker) => string | undefined,
): ReplacedMarkers {
  const replaced: Replacement[] = [];
  for (const { line, start, next, ...marker } of findFetchMarkers(markdown).markers) {
    const text = textOf({ line, start, next, ...marker });
    if (text === undefined) continue;
    const whole = text === "" || text.endsWith("\n") ? text : `${text}\n`;
    replaced.push({ line, start, next, text: whole, count: whole.split("\n").length - 1 });
  }
  const all = [...replaced, ...findEmptyHeadings(markdown, replaced)].sort((a, b) => a.line - b.line);
  let result = "";
  let at = 0;
  for (const { start, next, text } of all) {
    result += markdown.slice(at, start) + text;
    at = next;
  }
  const text = all.length === 0 ? markdown : result + markdown.slice(at);
  return { text, originalLine: (line) => findOriginalLine(line, all) };
}

/** A line that is replaced. */
interface Replacement extends Pick<FetchMarker, "line" | "start" | "next"> {
  readonly text: string;
  /** The number of lines that replace it. */
  readonly count: number;
}

/** Finds the headings that have nothing under them once the texts are in place, and had a marker there. */
function findEmptyHeadings(markdown: string, replaced: readonly Replacement[]): Replacement[] {
  const isEmpty = new Map(replaced.map(({ line, text }) => [line, text === ""]));
  const removed: Replacement[] = [];
  if (![...isEmpty.values()].includes(true)) return removed;
  let open: OpenHeading[] = [];
  const close = (level: number) => {
    for (let last = open.at(-1); last !== undefined && last.level >= level; last = open.at(-1)) {
      // Somebody wrote this heading without a text, so it stays, and so do those around it.
      if (!last.hadMarker) open = [];
      else removed.push({ ...last, text: "", count: 0 });
      open.pop();
      const outer = open.at(-1);
      if (outer !== undefined) outer.hadMarker = true;
    }
  };
  const tierMarker = /^[ \t]*<!--[ \t]*verbosity:/;
  scanLines(markdown, ({ number: line, start, end, next }, kind) => {
    const text = kind === "text" ? markdown.slice(start, end) : "content";
    const level = getLevel(text);
    const last = open.at(-1);
    if (isEmpty.get(line) && last !== undefined) last.hadMarker = true;
    if (isEmpty.get(line) || text.trim() === "" || tierMarker.test(text)) return;
    if (level === undefined) open = [];
    else close(level);
    if (level !== undefined) open.push({ line, start, next, level, hadMarker: false });
  });
  close(0);
  return removed;
}

/** A heading with nothing under it so far. */
interface OpenHeading extends Pick<FetchMarker, "line" | "start" | "next"> {
  readonly level: number;
  hadMarker: boolean;
}

function findOriginalLine(line: number, replaced: readonly Replacement[]): number {
  let added = 0;
  for (const each of replaced) {
    if (line < each.line + added) break;
    if (line < each.line + added + each.count) return each.line;
    added += each.count - 1;
  }
  return line - added;
}

const attributeNames = ["url", "max_lines", "max_tokens", "label", "ttl_hours", "format", "selector"];

type Warn = (message: string) => void;

function readAttributes(
  written: string,
  warn: Warn,
): Omit<FetchMarker, "line" | "start" | "next" | "under"> | undefined {
  const values = new Map<string, string>();
  const attributePattern = /([\w-]+)[ \t]*=[ \t]*(?:"([^"]*)"|'([^']*)'|([^\s"']+))/g;
  for (const [, name = "", double, single, bare] of written.matchAll(attributePattern)) {
    if (attributeNames.includes(name)) values.set(name, (double ?? single ?? bare ?? "").trim());
    else warn(`unknown attribute "${name}" is ignored. ${didYouMean(name, attributeNames) ?? ""}`.trim());
  }
  const url = values.get("url") ?? "";
  if (url === "") {
    warn('the marker has no url and is left out. Write url="https://…".');
    return undefined;
  }
  return {
    url,
    format: readFormat(values.get("format"), warn),
    selector: values.get("selector") || undefined,
    ...readLimits(values, warn),
    ttlHours: readNumber(values, "ttl_hours", { least: 0, warn }),
    label: values.get("label") || undefined,
  };
}

function readFormat(written: string | undefined, warn: Warn): FetchFormat {
  if (written === undefined) return "markdown";
  const format = fetchFormats.find((each) => each === written);
  if (format === undefined) warn(`unknown format "${written}", markdown is used. Formats: ${fetchFormats.join(", ")}.`);
  return format ?? "markdown";
}

function readLimits(values: ReadonlyMap<string, string>, warn: Warn): Pick<FetchMarker, "maxLines" | "maxTokens"> {
  const maxLines = readNumber(values, "max_lines", { least: 1, warn });
  const maxTokens = readNumber(values, "max_tokens", { least: 1, warn });
  if (maxLines === undefined || maxTokens === undefined) return { maxLines, maxTokens };
  warn("the marker has max_lines and max_tokens; max_lines is used");
  return { maxLines, maxTokens: undefined };
}

function readNumber(
  values: ReadonlyMap<string, string>,
  name: string,
  { least, warn }: { least: number; warn: Warn },
): number | undefined {
  const written = values.get(name);
  if (written === undefined) return undefined;
  const value = /^\d{1,9}$/.test(written) ? Number(written) : -1;
  if (value >= least) return value;
  warn(`${name} is "${written}" and is ignored. Write a whole number from ${least}.`);
  return undefined;
}
