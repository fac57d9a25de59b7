/** The sections of the fabric layer, each with its items, as places in the text. */
import { type Line, type LineKind, scanLines } from "../../text/index.ts";

/** There may be a million of them: each is small, and holds no text. */
export interface Section {
  /** Where its heading starts. */
  readonly start: number;
  /** Where its heading ends; the start where it has none. */
  readonly headingEnd: number;
  /** At most one blank line behind the last that is none: more of them say nothing, and could be millions. */
  readonly end: number;
  /** What its items are called. */
  readonly noun: string;
  readonly isDiscovery: boolean;
  /** How many sections stand before it. */
  readonly index: number;
  /** How many of them are discoveries as well, or are none as well. */
  readonly place: number;
  /** Where each item starts; it ends where the next one does, the last with the section. A `####` heading belongs to the item behind
   *  it, and is one itself only where none is: groups are not what is counted. */
  readonly itemStarts: readonly number[];
}

/** Cuts at `## ` and `### ` headings. What stands before the first is a section too. */
export function readSections(text: string): Section[] {
  const sections: Section[] = [];
  const places = { discoveries: 0, others: 0 };
  const reader: Reader = { section: noSection(), parent: "", ...atHeading };
  const close = (): void => {
    const { section, groupStart } = reader;
    if (section.end === section.start) return;
    if (groupStart !== undefined) section.itemStarts.push(groupStart);
    section.index = sections.length;
    section.place = places[section.isDiscovery ? "discoveries" : "others"]++;
    sections.push(section);
  };
  scanLines(text, (line, kind) => {
    const level = kind === "text" ? headingLevel(text, line) : 0;
    if (level === 2 || level === 3) {
      close();
      openSection(reader, { text, line, level });
    } else readLine(reader, { text, line, kind, level });
    const isBlank = isBlankLine(text, line);
    if (!isBlank || reader.hasText) reader.section.end = line.next;
    reader.hasText = !isBlank;
  });
  close();
  return sections;
}

interface MutableSection extends Section {
  end: number;
  index: number;
  place: number;
  readonly itemStarts: number[];
}

interface Reader {
  section: MutableSection;
  /** The `## ` heading that a `### ` stands under, as far as it is about all of its sections. */
  parent: string;
  /** Of a `####` heading that no item has followed yet. */
  groupStart: number | undefined;
  /** Whether the line before belongs to a comment. */
  inComment: boolean;
  /** Whether the line before is not blank. */
  hasText: boolean;
}

const atHeading = { groupStart: undefined, inComment: false, hasText: false } as const;

function noSection(): MutableSection {
  const [noun, isDiscovery] = ["items", false];
  return { start: 0, headingEnd: 0, end: 0, noun, isDiscovery, index: 0, place: 0, itemStarts: [] };
}

type Heading = Pick<BodyLine, "text" | "line" | "level">;

function openSection(reader: Reader, { text, line: { start, end }, level }: Heading): void {
  const heading = text.slice(start, end);
  // What a heading adds in brackets, such as counts, is not about the sections below it.
  if (level === 2) reader.parent = withoutBrackets(heading);
  const isDiscovery = discovery.test(heading) || discovery.test(reader.parent);
  const noun =
    nouns.find(([pattern]) => pattern.test(heading))?.[1] ?? (isDiscovery ? "discoveries" : "items");
  Object.assign(reader, atHeading);
  reader.section = { start, headingEnd: end, end, noun, isDiscovery, index: 0, place: 0, itemStarts: [] };
}

/** Behind the last closing bracket no opening one is looked at: each would be followed to the end of the heading. */
function withoutBrackets(heading: string): string {
  const end = heading.lastIndexOf(")") + 1;
  return heading.slice(0, end).replaceAll(/\([^)]*\)/g, "") + heading.slice(end);
}

const discovery = /discover/i;

const nouns: readonly (readonly [RegExp, string])[] = [
  [discovery, "discoveries"],
  [/entanglement/i, "entanglements"],
  [/claim/i, "claims"],
  [/phase/i, "phases"],
  [/note/i, "notes"],
];

/** 0 for any other line. */
function headingLevel(text: string, { start, end }: Line): number {
  let at = start;
  while (at < end && text.charCodeAt(at) === hash) at++;
  return at > start && text.charCodeAt(at) === blank && at < end ? at - start : 0;
}

const [hash, blank, tab] = [0x23, 0x20, 0x09];

interface BodyLine {
  readonly text: string;
  readonly line: Line;
  readonly kind: LineKind;
  readonly level: number;
}

/** An item is a line that is not indented, with the indented ones below it, or a fence with its code, or a comment. */
function readLine(reader: Reader, { text, line, kind, level }: BodyLine): void {
  const { start, end } = line;
  const { itemStarts } = reader.section;
  const isInside = kind === "code" || kind === "closer" || (kind === "comment" && reader.inComment);
  reader.inComment = kind === "comment";
  if (isInside) return;
  if (isBlankLine(text, line)) return;
  if (level >= 4 && level <= 6) {
    if (reader.groupStart !== undefined) itemStarts.push(reader.groupStart);
    reader.groupStart = start;
    return;
  }
  const first = text.charCodeAt(start);
  const isIndented = end > start && (first === blank || first === tab);
  const hasOwner = itemStarts.length > 0 && reader.groupStart === undefined;
  if (isIndented && hasOwner) return;
  itemStarts.push(reader.groupStart ?? start);
  reader.groupStart = undefined;
}

function isBlankLine(text: string, { start, end }: Line): boolean {
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (code !== blank && code !== tab) return false;
  }
  return true;
}
