/** The Markdown of one pack: tiers without text, headings that break out of the block, sync:fetch lines that cannot be fetched. */
import {
  findFetchMarkers,
  firstWarnings,
  type Line,
  type LineKind,
  parseSegments,
  scanLines,
} from "../../text/index.ts";
import type { PackSource } from "../pack.ts";
import type { LintFinding } from "./lint-packs.ts";

type TextFinding = Omit<LintFinding, "place"> & { readonly line: number };

/** Every variant of every text, whatever the language of the run. */
export function lintTexts(source: PackSource): LintFinding[] {
  const { texts, directory } = source;
  const inTexts = Object.entries(texts).flatMap(([file, text]) => {
    const found = [lintTiers(text), lintHeadings(text), lintFetches(text)].flatMap(withErrorsFirst);
    return found.map(({ line, ...finding }) => ({ ...finding, place: { directory, file, line } }));
  });
  return [...lintEmpty(source), ...inTexts];
}

/** Where there are too many to tell, warnings are left out before errors. */
function withErrorsFirst(found: readonly TextFinding[]): TextFinding[] {
  const isError = ({ severity }: TextFinding) => severity === "error";
  return firstWarnings([...found.filter(isError), ...found.filter((each) => !isError(each))]);
}

function lintEmpty({ texts, directory, ...source }: PackSource): LintFinding[] {
  const lists = [source.samples, source.knownErrors, source.learning, source.changelog];
  const isEmpty = lists.every((list) => list.length === 0) && Object.values(texts).every(isBlank);
  if (!isEmpty) return [];
  const message = "the pack has no text. Write context.md, or remove the pack.";
  return [{ place: { directory, key: ["id"] }, severity: "warning", rule: "empty-pack", message }];
}

function isBlank(text: string): boolean {
  return text.trim() === "";
}

function lintTiers(text: string): TextFinding[] {
  const empty: TextFinding[] = [];
  let marker: Line | undefined;
  const closeMarker = () => {
    const message = "a verbosity marker has no text below it. Write some, or remove the marker.";
    if (marker !== undefined)
      empty.push({ line: marker.number, severity: "warning", rule: "empty-tier", message });
    marker = undefined;
  };
  scanLines(text, (line, kind) => {
    const content = text.slice(line.start, line.end);
    const rest = kind === "text" ? behindMarker(content) : undefined;
    if (rest !== undefined) closeMarker();
    if (rest !== undefined && isBlank(rest)) marker = line;
    else if (!isBlank(rest ?? content)) marker = undefined;
  });
  closeMarker();
  return empty;
}

/** What follows a marker on its line; undefined where there is none. What a marker is, the parser says: it takes it out. */
function behindMarker(line: string): string | undefined {
  if (!line.includes("verbosity")) return undefined;
  const rest = parseSegments(line)
    .segments.map(({ text }) => text)
    .join("");
  return rest === line ? undefined : rest;
}

function lintHeadings(text: string): TextFinding[] {
  const found: TextFinding[] = [];
  let above = "";
  scanLines(text, (line, kind) => {
    const content = kind === "text" ? text.slice(line.start, line.end) : "";
    const isUnderline = /^ {0,3}=+\s*$/.test(content) && isParagraph(above);
    if (/^ {0,3}#(\s|$)/.test(content) || isUnderline) {
      const message = "a heading of level 1: the block has its own title, so texts of packs start with `##`.";
      const number = isUnderline ? line.number - 1 : line.number;
      found.push({ line: number, severity: "warning", rule: "heading-level", message });
    }
    above = content;
  });
  return found;
}

function isParagraph(line: string): boolean {
  return !isBlank(line) && !/^\s*(#{1,6}\s|[-*+>|]|<!--)/.test(line);
}

function lintFetches(text: string): TextFinding[] {
  if (!text.includes("sync:fetch")) return [];
  const { markers, warnings } = findFetchMarkers(text);
  const fetched = new Set(markers.map(({ line }) => line));
  const finding = (line: number, severity: "error" | "warning", message: string) => ({
    ...{ line, severity, message, rule: "fetch-marker" },
  });
  const odd = warnings.map(({ line, message }) =>
    finding(line, fetched.has(line) ? "warning" : "error", message),
  );
  const foreign = markers
    .filter(({ url }) => !/^https?:\/\/[^/]/i.test(url))
    .map(({ line, url }) => finding(line, "error", `sync:fetch: "${url}" is no http or https address`));
  const known = new Set([...fetched, ...warnings.map(({ line }) => line)]);
  const torn = linesWithMarker(text)
    .filter((line) => !known.has(line))
    .map((line) => finding(line, "error", "sync:fetch: a marker must have one whole line to itself"));
  return [...odd, ...foreign, ...torn];
}

/** Where one begins. A quotation or inline code shows a marker on purpose. */
function linesWithMarker(text: string): number[] {
  const found: number[] = [];
  const visit = (line: Line, kind: LineKind) => {
    if (kind !== "text" && kind !== "comment") return;
    const begin = /^([^`>]*)<!--\s*sync:fetch(?![\w:-])/.test(text.slice(line.start, line.end));
    if (begin) found.push(line.number);
  };
  scanLines(text, visit);
  return found;
}
