/** `<!-- sync:fetch url="…" -->`: a line of a pack's text that stands for the text behind an address. */
import { didYouMean } from "../closest.ts";
import { scanLines } from "../markdown/fences.ts";
import type { SegmentWarning } from "../markdown/verbosity.ts";

export interface FetchMarker {
  /** 1-based. */
  readonly line: number;
  /** Where its line starts and where the next one does. */
  readonly start: number;
  readonly next: number;
  readonly url: string;
  readonly format: FetchFormat;
  /** Which elements of a page are meant; the whole page without it. */
  readonly selector: string | undefined;
  readonly maxLines: number | undefined;
  readonly maxTokens: number | undefined;
  readonly ttlHours: number | undefined;
  /** For people who watch the fetch; never part of the text. */
  readonly label: string | undefined;
}

const fetchFormats = ["raw", "text", "markdown"] as const;
export type FetchFormat = (typeof fetchFormats)[number];

export interface FoundMarkers {
  readonly markers: readonly FetchMarker[];
  readonly warnings: readonly SegmentWarning[];
}

/** Markers on a line of their own, outside code and other comments. One without an address is a warning and no marker. */
export function findFetchMarkers(markdown: string): FoundMarkers {
  const markers: FetchMarker[] = [];
  const warnings: SegmentWarning[] = [];
  if (!markdown.includes("sync:fetch")) return { markers, warnings };
  scanLines(markdown, (line, kind) => {
    const written = kind === "text" ? markerPattern.exec(markdown.slice(line.start, line.end)) : null;
    if (written === null) return;
    const warn = (message: string) => warnings.push({ line: line.number, message: `sync:fetch: ${message}` });
    const read = readAttributes(written[1] ?? "", warn);
    if (read !== undefined) markers.push({ line: line.number, start: line.start, next: line.next, ...read });
  });
  return { markers, warnings };
}

export interface ReplacedMarkers {
  /** The same string if nothing was replaced. */
  readonly text: string;
  /** The line of the given text that a line of the new one was; for a replaced marker's text the marker's. */
  originalLine(line: number): number;
}

/** Puts texts in the place of markers; a marker without one stays as it is. */
export function replaceFetchMarkers(
  markdown: string,
  textOf: (marker: FetchMarker) => string | undefined,
): ReplacedMarkers {
  const replaced: Replacement[] = [];
  let result = "";
  let at = 0;
  for (const marker of findFetchMarkers(markdown).markers) {
    const text = textOf(marker);
    if (text === undefined) continue;
    const whole = text === "" || text.endsWith("\n") ? text : `${text}\n`;
    replaced.push({ line: marker.line, count: whole.split("\n").length - 1 });
    result += markdown.slice(at, marker.start) + whole;
    at = marker.next;
  }
  const text = at === 0 ? markdown : result + markdown.slice(at);
  return { text, originalLine: (line) => originalLine(line, replaced) };
}

interface Replacement {
  /** Of the marker. */
  readonly line: number;
  /** Lines in its place. */
  readonly count: number;
}

function originalLine(line: number, replaced: readonly Replacement[]): number {
  let added = 0;
  for (const each of replaced) {
    if (line < each.line + added) break;
    if (line < each.line + added + each.count) return each.line;
    added += each.count - 1;
  }
  return line - added;
}

const markerPattern = /^[ \t]*<!--[ \t]*sync:fetch(?![\w:-])((?:(?!-->).)*)-->[ \t]*$/;
const attributePattern = /([\w-]+)[ \t]*=[ \t]*(?:"([^"]*)"|'([^']*)'|([^\s"']+))/g;
const attributeNames = ["url", "max_lines", "max_tokens", "label", "ttl_hours", "format", "selector"];

type Attributes = Omit<FetchMarker, "line" | "start" | "next">;
type Warn = (message: string) => void;

function readAttributes(written: string, warn: Warn): Attributes | undefined {
  const values = new Map<string, string>();
  for (const [, name = "", double, single, bare] of written.matchAll(attributePattern)) {
    if (attributeNames.includes(name)) values.set(name, (double ?? single ?? bare ?? "").trim());
    else warn(`unknown attribute "${name}" is ignored. ${didYouMean(name, attributeNames) ?? ""}`.trim());
  }
  const url = values.get("url") ?? "";
  if (url === "") {
    warn('has no url and is left out. Write url="https://…".');
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
  if (format === undefined)
    warn(`unknown format "${written}", markdown is used. Formats: ${fetchFormats.join(", ")}.`);
  return format ?? "markdown";
}

function readLimits(
  values: ReadonlyMap<string, string>,
  warn: Warn,
): Pick<FetchMarker, "maxLines" | "maxTokens"> {
  const maxLines = readNumber(values, "max_lines", { least: 1, warn });
  const maxTokens = readNumber(values, "max_tokens", { least: 1, warn });
  if (maxLines === undefined || maxTokens === undefined) return { maxLines, maxTokens };
  warn("has max_lines and max_tokens, max_lines is used");
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
