/** The body of the injected block. Same content, same bytes: no clock, no version, no path. */
import { type Segment, scanLines, type Tier, textAt, tiersAt, type Verbosity } from "../../text/index.ts";
import { withoutLeadingBlankLines } from "../merge-segments.ts";
import type { Pack } from "../pack.ts";
import type { Profile } from "../profile.ts";
import { escapeLinkText, oneLine, renderTable } from "./render-table.ts";

export interface RenderOptions {
  readonly title: string;
  readonly verbosity: Verbosity;
  /** Thins single packs; `verbosity` for the rest. */
  readonly verbosityOf?: ((pack: Pack) => Verbosity) | undefined;
  readonly profile?: Profile | undefined;
  readonly notes?: readonly string[] | undefined;
  /** What is known of the project; without the list there is no Runtime Context at all. */
  readonly facts?: readonly Fact[] | undefined;
}

export interface Fact {
  readonly name: string;
  readonly value: string;
}

const newestChangelogLines = 3;
/** Longer notes would push out the packs. */
export const maxNoteBytes: number = 500;

/** Packs come out in the order given. Ends with exactly one line break. */
export function renderContext(packs: readonly Pack[], options: RenderOptions): string {
  const shown = packs.map((pack) => {
    const verbosity = options.verbosityOf?.(pack) ?? options.verbosity;
    return { pack, verbosity, tiers: tiersAt(verbosity) };
  });
  const sections = [
    ...renderHeader(options),
    ...renderList(
      "What's New",
      packs.flatMap(({ changelog }) => changelog.slice(0, newestChangelogLines)),
    ),
    ...renderList("Current Context", (options.notes ?? []).map(shortenNote)),
    ...renderRuntime(packs, options),
    ...packs.map(({ preamble }) => trimBlankLines(preamble)),
    ...renderConstraints(shown),
    ...shown.map(({ pack, verbosity }) => shownText(pack.context, verbosity)),
    ...renderPatterns(packsWith(shown, "detail")),
    ...renderLearning(packsWith(shown, "extended")),
    ...renderKnownErrors(packsWith(shown, "extended")),
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

interface Shown {
  readonly pack: Pack;
  readonly verbosity: Verbosity;
  readonly tiers: readonly Tier[];
}

function renderHeader({ title, profile }: RenderOptions): string[] {
  const header = [`# ${oneLine(title)}`, "Maintained by plimsoll. Edit the packs, not this block."];
  if (profile === undefined) return header;
  const about = [profile.name || profile.id, profile.description].map(oneLine).filter((text) => text !== "");
  return [...header, `**Profile:** ${about.join(": ")}`];
}

function renderList(heading: string, lines: readonly string[]): string[] {
  const items = lines.map(oneLine).filter((line) => line !== "");
  return items.length === 0 ? [] : [`## ${heading}`, items.map(renderItem).join("\n")];
}

/** Behind a list marker three backticks open a code block, and no other line closes it. */
function renderItem(item: string): string {
  const line = `- ${item}`;
  const opensCode = scanLines(line, () => {}) !== undefined;
  return opensCode ? line.replace(/`{3,}|~{3,}/, "\\$&") : line;
}

/** Cut where a character ends. */
function shortenNote(note: string): string {
  const line = oneLine(note);
  const bytes = Buffer.from(line);
  if (bytes.length <= maxNoteBytes) return line;
  let end = maxNoteBytes;
  while ((bytes[end]! & 0xc0) === 0x80) end--;
  return `${bytes.toString("utf8", 0, end)}...`;
}

function renderRuntime(packs: readonly Pack[], { profile, facts }: RenderOptions): string[] {
  if (facts === undefined) return [];
  const all = [
    { name: "Profile", value: profile?.id ?? "" },
    { name: "Packs", value: packs.map(({ id }) => id).join(", ") },
    ...facts,
  ];
  return renderList(
    "Runtime Context",
    all.filter(({ value }) => value.trim() !== "").map(({ name, value }) => `${name}: ${value}`),
  );
}

function renderConstraints(shown: readonly Shown[]): string[] {
  const texts = shown
    .map(({ pack, verbosity }) => shownText(pack.constraints, verbosity))
    .filter((text) => text !== "");
  return texts.length === 0 ? [] : ["## Constraints", ...texts];
}

function shownText(segments: readonly Segment[], verbosity: Verbosity): string {
  return trimBlankLines(textAt(segments, verbosity));
}

function trimBlankLines(text: string): string {
  return withoutLeadingBlankLines(text).trimEnd();
}

function packsWith(shown: readonly Shown[], tier: Tier): Pack[] {
  return shown.filter(({ tiers }) => tiers.includes(tier)).map(({ pack }) => pack);
}

function renderPatterns(packs: readonly Pack[]): string[] {
  const rows = packs
    .flatMap(({ samples }) => samples)
    .filter(({ inject }) => inject)
    .map(({ label, description, url }) => [label, description, url]);
  return rows.length === 0
    ? []
    : [
        "## Canonical Patterns",
        "Follow these examples before inventing a new shape.",
        renderTable(["Pattern", "Description", "URL"], rows),
      ];
}

function renderLearning(packs: readonly Pack[]): string[] {
  // Two packs may recommend the same course.
  const courses = new Map(packs.flatMap(({ learning }) => learning).map((course) => [course.slug, course]));
  const rows = [...courses.values()]
    .filter(({ featured }) => featured)
    .map(({ title, url, level, hours }) => [
      `[${escapeLinkText(title)}](${url})`,
      level ?? "",
      hours === undefined ? "" : `${hours} hr`,
    ]);
  return rows.length === 0
    ? []
    : ["## Recommended Learning", renderTable(["Course", "Level", "Duration"], rows)];
}

function renderKnownErrors(packs: readonly Pack[]): string[] {
  const rows = packs
    .flatMap(({ knownErrors }) => knownErrors)
    .map(({ pattern, cause, fix, docs }) => [
      pattern,
      cause,
      docs === undefined || docs === "" ? fix : `${fix} ([docs](${docs}))`,
    ]);
  return rows.length === 0 ? [] : ["## Known Errors", renderTable(["Error", "Cause", "Fix"], rows)];
}
