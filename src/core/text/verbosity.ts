import { type Line, scanLines } from "./fences.ts";
import { didYouMean, firstWarnings, type LineWarning } from "./wording.ts";

/** The tiers of a pack's text. */
export const tiers = ["core", "detail", "extended"] as const;
export type Tier = (typeof tiers)[number];

/** How many tiers a reader gets. */
export const verbosities = ["minimal", "standard", "full"] as const;
export type Verbosity = (typeof verbosities)[number];

export interface Segment {
  readonly tier: Tier;
  readonly text: string;
}

/** Cuts Markdown at its `<!-- verbosity:TIER -->` lines and removes them. Segments keep the order of the document. Text
 *  before the first marker is core, and so is text after an unknown level. */
export function parseSegments(markdown: string): {
  readonly segments: readonly Segment[];
  readonly warnings: readonly LineWarning[];
} {
  if (!markdown.includes("verbosity")) return { segments: joinTiers([{ tier: "core", text: markdown }]), warnings: [] };
  const segments: Segment[] = [];
  const warnings: LineWarning[] = [];
  let tier: Tier = "core";
  let from = 0;
  const openFence = scanLines(markdown, (line, kind) => {
    const marker = kind === "text" ? findMarker(markdown, line) : undefined;
    if (marker === undefined) return;
    const warn = (message: string) => warnings.push({ line: line.number, message });
    const { level, indented, end } = marker;
    if (level === undefined) {
      warn("a verbosity marker after other text is kept as text: put it on its own line");
      return;
    }
    if (indented) warn("indented verbosity marker: put it at the start of its line");
    const named = tiers.find((each) => each === level);
    if (named === undefined) {
      const advice = didYouMean(level, tiers) ?? `Levels are ${tiers.join(", ")}.`;
      warn(`unknown verbosity level "${level}", treated as core. ${advice}`);
    }
    segments.push({ tier, text: markdown.slice(from, line.start) });
    tier = named ?? "core";
    from = end;
  });
  segments.push({ tier, text: markdown.slice(from) });
  if (openFence !== undefined) {
    const message = "a code fence has no end, so everything below it counts as code";
    warnings.push({ line: openFence.number, message });
  }
  return { segments: joinTiers(segments), warnings: firstWarnings(warnings) };
}

/** Returns the tiers that a reader at this verbosity gets. */
export function tiersAt(verbosity: Verbosity): readonly Tier[] {
  return tiers.slice(0, verbosities.indexOf(verbosity) + 1);
}

/** Joins the segments that a reader at this verbosity gets, in document order. */
export function textAt(segments: readonly Segment[], verbosity: Verbosity): string {
  const kept = tiersAt(verbosity);
  return segments
    .filter(({ tier }) => kept.includes(tier))
    .map(({ text }) => text)
    .join("");
}

/** Returns no level for a marker after other text, which is kept as text. The end is where the text after the marker
 *  starts: the next line, or the rest of the marker's line. */
function findMarker(markdown: string, line: Line) {
  const markerPattern = /<!--\s*verbosity\s*:\s*([^\s>]*?)\s*-->/;
  const text = markdown.slice(line.start, line.end);
  if (!text.includes("verbosity")) return undefined;
  const match = markerPattern.exec(text);
  if (match === null) return undefined;
  const before = text.slice(0, match.index).replace(/^\uFEFF/, "");
  // A quotation or inline code shows a marker on purpose.
  if (/[`>]/.test(before)) return undefined;
  const after = match.index + match[0].length;
  return {
    level: before.trim() === "" ? match[1] : undefined,
    indented: before !== "",
    end: text.slice(after).trim() === "" ? line.next : line.start + after,
  };
}

/** Removes empty segments and joins neighbours of one tier. */
function joinTiers(segments: readonly Segment[]): Segment[] {
  const result: Segment[] = [];
  for (const segment of segments) {
    const last = result.at(-1);
    if (segment.text === "") continue;
    if (last?.tier === segment.tier) result[result.length - 1] = { tier: last.tier, text: last.text + segment.text };
    else result.push(segment);
  }
  return result;
}
