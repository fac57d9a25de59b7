/** Renders the body of the injected block. The same content gives the same bytes: no clock, no version, no path. */
import { Buffer } from "../../core/bytes.ts";
import {
  oneLine,
  type Segment,
  scanLines,
  type Tier,
  textAt,
  tiersAt,
  type Verbosity,
  withoutLeadingBlankLines,
} from "../../core/text/index.ts";
import type { Pack, Profile, Skill } from "./pack.ts";

export interface RenderOptions {
  readonly title: string;
  readonly verbosity: Verbosity;
  /** The verbosity of single packs. The rest use `verbosity`. */
  readonly verbosityOf?: ((pack: Pack) => Verbosity) | undefined;
  readonly profile?: Profile | undefined;
  readonly notes?: readonly string[] | undefined;
  /** Facts about the project. Without this list there is no Runtime Context section. */
  readonly facts?: readonly Fact[] | undefined;
  /** The parts to add to the packs' own texts. */
  readonly parts?: readonly AddedPart[] | undefined;
  /** Returns the file of a skill. Without it there is no Skills section, because the tool finds skills itself. */
  readonly skillPath?: ((skill: Skill) => string | undefined) | undefined;
}

/** What the block has besides the packs' own texts, the most useful part first. */
export const addedParts = [
  "Current Context",
  "Runtime Context",
  "Profile",
  "What's New",
  "Canonical Patterns",
  "Recommended Learning",
] as const;
export type AddedPart = (typeof addedParts)[number];

export interface Fact {
  readonly name: string;
  readonly value: string;
}

const newestChangelogLines = 3;
/** Longer notes would leave too little room for the packs. */
export const maxNoteBytes: number = 500;

/** Renders the packs in the given order. The result ends with exactly one line break. */
export function renderContext(packs: readonly Pack[], options: RenderOptions): string {
  const shown = packs.map((pack) => {
    const verbosity = options.verbosityOf?.(pack) ?? options.verbosity;
    return { pack, verbosity, tiers: tiersAt(verbosity) };
  });
  const parts = options.parts ?? addedParts;
  const when = (part: AddedPart, render: () => string[]) => (parts.includes(part) ? render() : []);
  const sections = [
    `# ${oneLine(options.title)}`,
    "Maintained by plimsoll. Edit the packs, not this block.",
    ...when("Profile", () => renderProfile(options)),
    ...when("What's New", () =>
      renderList(
        "What's New",
        packs.flatMap(({ changelog }) => changelog.slice(0, newestChangelogLines)),
      ),
    ),
    ...when("Current Context", () => renderList("Current Context", (options.notes ?? []).map(shortenNote))),
    ...when("Runtime Context", () => renderRuntime(packs, options)),
    ...packs.map(({ preamble }) => tidy(preamble)),
    ...renderConstraints(shown),
    ...shown.map(({ pack, verbosity }) => shownText(pack.context, verbosity)),
    ...renderSkills(packs, options),
    ...when("Canonical Patterns", () => renderPatterns(packsWith(shown, "detail"))),
    ...when("Recommended Learning", () => renderLearning(packsWith(shown, "extended"))),
    ...renderKnownErrors(packsWith(shown, "extended")),
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

interface Shown {
  readonly pack: Pack;
  readonly verbosity: Verbosity;
  readonly tiers: readonly Tier[];
}

function renderProfile({ profile }: RenderOptions): string[] {
  if (profile === undefined) return [];
  const about = [profile.name || profile.id, profile.description].map(oneLine).filter((text) => text !== "");
  return [`**Profile:** ${about.join(": ")}`];
}

function renderList(heading: string, lines: readonly string[]): string[] {
  const items = lines.map(oneLine).filter((line) => line !== "");
  return items.length === 0 ? [] : [`## ${heading}`, items.map(renderItem).join("\n")];
}

/** After a list marker, three backticks open a code block that no other line closes. */
function renderItem(item: string): string {
  const line = `- ${item}`;
  const opensCode = scanLines(line, () => {}) !== undefined;
  return opensCode ? line.replace(/`{3,}|~{3,}/, "\\$&") : line;
}

/** Cuts between characters. */
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
  return tidy(textAt(segments, verbosity));
}

function tidy(text: string): string {
  return withoutLeadingBlankLines(withoutEmptyHeadings(text)).trimEnd();
}

interface Heading {
  readonly level: number;
  readonly start: number;
  /** Where the heading and the blank lines after it end. */
  end: number;
}

/** Leaves out headings without text below them: their text is in a tier that is not shown, or was not fetched. */
function withoutEmptyHeadings(text: string): string {
  if (!mayHaveEmptyHeading.test(text)) return text;
  const empty = emptyHeadings(text);
  const starts = [0, ...empty.map(({ end }) => end)];
  return starts.map((start, index) => text.slice(start, empty[index]?.start)).join("");
}

function emptyHeadings(text: string): readonly Heading[] {
  const empty: Heading[] = [];
  /** Headings without text so far, each inside the one before. */
  let open: Heading[] = [];
  let last: Heading | undefined;
  scanLines(text, ({ start, end }, kind) => {
    const content = text.slice(start, end);
    if (content.trim() === "") return;
    if (last !== undefined) last.end = start;
    last = undefined;
    const marks = kind === "text" ? /^ {0,3}(#{1,6})(?:\s|$)/.exec(content)?.[1] : undefined;
    if (marks !== undefined) {
      const level = marks.length;
      empty.push(...open.filter((each) => each.level >= level));
      last = { level, start, end: text.length };
      open = [...open.filter((each) => each.level < level), last];
    } else if (kind !== "comment" && !/^\s*<!--.*-->\s*$/.test(content)) open = [];
  });
  return [...empty, ...open].sort((a, b) => a.start - b.start);
}

/** Most texts have no empty heading and need no scan by line. An empty one ends the text, or precedes another heading
 *  or a comment. */
const mayHaveEmptyHeading = /^ {0,3}#{1,6}(?=\s|$)[^\n]*(?:\n\s*(?:#|<!--)|(?:\n\s*)?(?![\s\S]))/m;

function packsWith(shown: readonly Shown[], tier: Tier): Pack[] {
  return shown.filter(({ tiers }) => tiers.includes(tier)).map(({ pack }) => pack);
}

function renderSkills(packs: readonly Pack[], { skillPath }: RenderOptions): string[] {
  const skills = skillPath === undefined ? [] : packs.flatMap((pack) => pack.skills);
  const lines = skills.flatMap((skill) => {
    const path = skillPath?.(skill);
    return path === undefined ? [] : `${skill.name}: ${skill.description} Read ${path} before you do this.`;
  });
  return renderList("Skills", lines);
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
    .filter(({ featured, title }) => featured && title !== "")
    .map(({ title, url, level, hours }) => [
      url === "" ? title : `[${escapeLinkText(title)}](${url})`,
      level ?? "",
      hours === undefined ? "" : `${hours} hr`,
    ]);
  return rows.length === 0 ? [] : ["## Recommended Learning", renderTable(["Course", "Level", "Duration"], rows)];
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

/** Renders a Markdown table from any text: a cell never breaks its row. */
function renderTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const rule = header.map(() => "---");
  return [header, rule, ...rows].map((cells) => `| ${cells.map(renderCell).join(" | ")} |`).join("\n");
}

/** Doubles backslashes before a pipe, or they would escape the added backslash. */
function renderCell(text: string): string {
  return oneLine(text).replace(/(\\*)\|/g, "$1$1\\|");
}

function escapeLinkText(text: string): string {
  return text.replace(/[[\]]/g, "\\$&");
}
