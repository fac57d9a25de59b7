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
  /** Empty: the text holds only packs and notes, without a heading and without facts. */
  readonly title: string;
  readonly verbosity: Verbosity;
  /** The verbosity of single packs. The rest use `verbosity`. */
  readonly verbosityOf?: ((pack: Pack) => Verbosity) | undefined;
  readonly profile?: Profile | undefined;
  readonly notes?: readonly string[] | undefined;
  /** Facts about the project. Without this list there is no Runtime Context section. */
  readonly facts?: readonly { readonly name: string; readonly value: string }[] | undefined;
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

/** Longer notes would leave too little room for the packs. */
export const maxNoteBytes: number = 500;

/** Renders the packs in the given order. The result ends with exactly one line break. */
export function renderContext(packs: readonly Pack[], options: RenderOptions): string {
  const { profile, notes = [], facts, parts = addedParts } = options;
  const chosen = packs.map((pack) => ({ pack, verbosity: options.verbosityOf?.(pack) ?? options.verbosity }));
  const render = (texts: (pack: Pack) => readonly Segment[]) =>
    chosen.map(({ pack, verbosity }) => tidy(textAt(texts(pack), verbosity))).filter((text) => text !== "");
  const packsWith = (tier: Tier) =>
    chosen.filter(({ verbosity }) => tiersAt(verbosity).includes(tier)).map(({ pack }) => pack);
  const isBare = options.title === "";
  const isShown = (part: AddedPart) => parts.includes(part) && !(isBare && /^(?:Profile|Runtime Context)$/.test(part));
  const when = (part: AddedPart, section: () => string[]) => (isShown(part) ? section() : []);
  const constraints = render((pack) => pack.constraints);
  const about = profile && [profile.name || profile.id, profile.description].map(oneLine).filter((text) => text !== "");
  const runtime = [
    { name: "Profile", value: profile?.id ?? "" },
    { name: "Packs", value: packs.map(({ id }) => id).join(", ") },
    ...(facts ?? []),
  ].filter(({ value }) => value.trim() !== "");
  const changes = packs.flatMap(({ changelog }) => changelog.slice(0, maxChanges));
  const sections = [
    ...(isBare ? [] : [`# ${oneLine(options.title)}`, "Maintained by plimsoll. Edit the packs, not this block."]),
    ...when("Profile", () => (about === undefined ? [] : [`**Profile:** ${about.join(": ")}`])),
    ...when("What's New", () => renderList("What's New", changes)),
    ...when("Current Context", () => renderList("Current Context", notes.map(shortenNote))),
    ...when("Runtime Context", () =>
      facts === undefined
        ? []
        : renderList(
            "Runtime Context",
            runtime.map(({ name, value }) => `${name}: ${value}`),
          ),
    ),
    ...packs.map(({ preamble }) => tidy(preamble)),
    ...(constraints.length === 0 ? [] : ["## Constraints", ...constraints]),
    ...render((pack) => pack.context),
    ...renderSkills(packs, options),
    ...when("Canonical Patterns", () => renderPatterns(packsWith("detail"))),
    ...when("Recommended Learning", () => renderLearning(packsWith("extended"))),
    ...renderKnownErrors(packsWith("extended")),
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

const maxChanges = 3;

function renderList(heading: string, lines: readonly string[]): string[] {
  const items = lines.map(oneLine).filter((line) => line !== "");
  const rendered = items.map((item) => {
    const line = `- ${item}`;
    // After a list marker, three backticks open a code block that no other line closes.
    const opensCode = scanLines(line, () => {}) !== undefined;
    return opensCode ? line.replace(/`{3,}|~{3,}/, "\\$&") : line;
  });
  return items.length === 0 ? [] : [`## ${heading}`, rendered.join("\n")];
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

/** Leaves out headings without text below them: their text is in a tier that is not shown, or was not fetched. Leaves
 *  out blank lines around the text too. */
function tidy(text: string): string {
  // Most texts have no empty heading and need no scan by line. An empty one ends the text, or precedes another heading
  // or a comment.
  const mayHaveEmpty = /^ {0,3}#{1,6}(?=\s|$)[^\n]*(?:\n\s*(?:#|<!--)|(?:\n\s*)?(?![\s\S]))/m;
  const empty = mayHaveEmpty.test(text) ? findEmptyHeadings(text) : [];
  const starts = [0, ...empty.map(({ end }) => end)];
  const filled = starts.map((start, index) => text.slice(start, empty[index]?.start)).join("");
  return withoutLeadingBlankLines(filled).trimEnd();
}

/** Returns where each heading and the blank lines after it are. */
function findEmptyHeadings(text: string): readonly { readonly start: number; readonly end: number }[] {
  type Heading = { readonly level: number; readonly start: number; end: number };
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

function renderSkills(packs: readonly Pack[], { skillPath }: RenderOptions): string[] {
  const lines = packs
    .flatMap((pack) => pack.skills)
    .flatMap((skill) => {
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
  const advice = "Follow these examples before inventing a new shape.";
  return renderTable(["## Canonical Patterns", advice], [["Pattern", "Description", "URL"], ...rows]);
}

function renderLearning(packs: readonly Pack[]): string[] {
  // Two packs may recommend the same course.
  const courses = new Map(packs.flatMap(({ learning }) => learning).map((course) => [course.slug, course]));
  const rows = [...courses.values()]
    .filter(({ featured, title }) => featured && title !== "")
    .map(({ title, url, level, hours }) => [
      url === "" ? title : `[${title.replace(/[[\]]/g, "\\$&")}](${url})`,
      level ?? "",
      hours === undefined ? "" : `${hours} hr`,
    ]);
  return renderTable(["## Recommended Learning"], [["Course", "Level", "Duration"], ...rows]);
}

function renderKnownErrors(packs: readonly Pack[]): string[] {
  const rows = packs
    .flatMap(({ knownErrors }) => knownErrors)
    .map(({ pattern, cause, fix, docs }) => [pattern, cause, docs ? `${fix} ([docs](${docs}))` : fix]);
  return renderTable(["## Known Errors"], [["Error", "Cause", "Fix"], ...rows]);
}

/** Renders a Markdown table from any text: a cell never breaks its row. Nothing if it has no rows. */
function renderTable(above: readonly string[], [header = [], ...rows]: readonly (readonly string[])[]): string[] {
  if (rows.length === 0) return [];
  // Doubles backslashes before a pipe, or they would escape the added backslash.
  const renderCell = (text: string) => oneLine(text).replace(/(\\*)\|/g, "$1$1\\|");
  const lines = [header, header.map(() => "---"), ...rows];
  return [...above, lines.map((cells) => `| ${cells.map(renderCell).join(" | ")} |`).join("\n")];
}
