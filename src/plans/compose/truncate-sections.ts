/** Truncates the fabric layer section by section, discoveries last. */

import { closeFence, type Line, type LineKind, scanLines, wellFormed } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import {
  countUpTo,
  type FittedLayer,
  findLargest,
  type Measure,
  type PromptLayer,
  readWhole,
  truncateText,
  withoutEdges,
} from "./truncate-layer.ts";

/** Creates the fabric layer. Above its `least` it loses only items of sections without discoveries; below it also the
 *  lines that count these items, and headings. */
export function createSectionsLayer(text: string, measure: Measure): PromptLayer {
  const whole = readWhole(text, measure);
  // A layer that fits whole is never parsed.
  let cutter: ReturnType<typeof createCutter> | undefined;
  const open = () => {
    cutter ??= createCutter(withoutEdges(text), measure);
    return cutter;
  };
  return {
    need: whole.need,
    get least() {
      return open().least;
    },
    fit(limit) {
      return whole.within(limit) ?? open().cut(limit);
    },
  };
}

function createCutter(text: string, measure: Measure) {
  const { counter } = measure;
  const sections = readSections(text);
  const items = sections.reduce((sum, { itemStarts }) => sum + itemStarts.length, 0);
  const sectioned = { text, sections, items };
  const stages = stepsOf(sectioned).map((step) => createStage(step, sectioned, measure));
  const hasDiscoveries = sections.some(({ isDiscovery }) => isDiscovery);
  let ofDiscoveries: number | undefined;
  const overflowOf = (stage: number, limit: number): number => {
    if (!hasDiscoveries || (stage !== -1 && stage <= headingsStep)) return 0;
    ofDiscoveries ??= tokensOfDiscoveries(text, stages[headingsStep]!, counter);
    return Math.max(1, ofDiscoveries - limit);
  };
  return {
    // The lines that count missing items are worth more than prior work.
    least: stages[firstItems]!.least(),
    cut(limit: number): FittedLayer {
      const index = stages.findIndex(({ least }) => least() <= limit);
      const overflow = overflowOf(index, limit);
      const facts = { truncated: true, isBelowLeast: index === -1 || index > firstItems, overflow };
      if (index === -1) return { ...facts, text: "", tokens: 0, omitted: items };
      const rendered = stages[index]!.renderWithin(limit);
      const isBare = rendered.omitted === items;
      const text = isBare ? withFirstItem(rendered, { sectioned, counter, limit }) : rendered.text;
      return { ...facts, text, tokens: counter.count(text), omitted: rendered.omitted };
    },
  };
}

/** Counts the discoveries with the marker for the rest, or with the rest if that is shorter. */
function tokensOfDiscoveries(text: string, stage: Stage, counter: Counter): number {
  const [alone, whole] = [stage.renderAt(0).text, closeFence(wellFormed(text))];
  if (alone.startsWith(whole)) return counter.count(whole);
  const tokens = counter.count(alone);
  return Math.min(tokens, countUpTo(counter, whole, tokens));
}

type Stage = ReturnType<typeof createStage>;

function createStage({ most, keptAt }: Step, sectioned: SectionedText, { counter, maxTokens }: Measure) {
  const renderAt = (number: number) => renderSections(sectioned, keptAt(number));
  let tokens: number | undefined;
  return {
    renderAt,
    /** Tokens that remain when this stage removes all it may; may be infinite above the whole budget. */
    least() {
      tokens ??= countUpTo(counter, renderAt(0).text, maxTokens);
      return tokens;
    },
    renderWithin(limit: number) {
      const tokensAt = (number: number) => countUpTo(counter, renderAt(number).text, limit);
      return renderAt(findLargest({ limit, largest: most, first: limit * 4, tokensAt }));
    },
  };
}

/** One way to shorten the text: 0 removes all it may, `most` removes nothing. */
interface Step {
  readonly most: number;
  keptAt(number: number): KeptSections;
}

/** The steps that remove the first items and the headings of sections without discoveries. Steps before the second one
 *  keep all headings. It and those before it keep discoveries whole. */
const [firstItems, headingsStep] = [1, 3];

/** The order of cuts. Of the other sections: items down to one each, these first items, the lines that count missing
 *  items, headings. Then items and headings of discoveries. */
function stepsOf(sectioned: SectionedText): Step[] {
  const { sections } = sectioned;
  const discoveries = sections.filter(({ isDiscovery }) => isDiscovery);
  const others = sections.filter(({ isDiscovery }) => !isDiscovery);
  const bare = (section: Section): number => itemsWithin(sectioned, section, { maxLength: 0 });
  const bareOther = (section: Section): number => (section.isDiscovery ? section.itemStarts.length : bare(section));
  /** Takes time only for what it returns, because there may be a million sections. */
  const withOthers = (count: number): readonly Section[] => {
    const next = others[count];
    if (next === undefined) return sections;
    return [...sections.slice(0, next.index), ...discoveries.slice(next.index - next.place)];
  };
  return [
    itemsStep(sectioned, { group: others, shown: sections, least: 1 }),
    firstItemsStep(sectioned, others, bareOther),
    {
      most: others.length,
      keptAt: (notes) => ({ sections, itemsOf: bareOther, hasNote: ({ place }) => place < notes }),
    },
    {
      most: others.length,
      keptAt: (count) => ({ sections: withOthers(count), itemsOf: bareOther, hasNote: () => false }),
    },
    itemsStep(sectioned, { group: discoveries, shown: discoveries, least: 0 }),
    {
      most: discoveries.length,
      keptAt: (headings) => ({ sections: discoveries.slice(0, headings), itemsOf: bare }),
    },
  ];
}

/** Keeps the first item of as many sections of the group as fit, the shortest items first. */
function firstItemsStep(sectioned: SectionedText, group: readonly Section[], bare: (section: Section) => number): Step {
  /** The rank of each section by the length of its heading and first item. */
  let ranks: Uint32Array | undefined;
  const rank = () => {
    const length = ({ start, end, itemStarts }: Section) => (itemStarts[1] ?? end) - start;
    const sorted = group.toSorted((one, two) => length(one) - length(two) || one.place - two.place);
    const ranked = new Uint32Array(group.length);
    for (const [index, { place }] of sorted.entries()) ranked[place] = index;
    return ranked;
  };
  return {
    most: group.length,
    keptAt: (count) => ({
      sections: sectioned.sections,
      itemsOf(section) {
        if (section.isDiscovery) return bare(section);
        ranks ??= rank();
        if (ranks[section.place]! >= count) return bare(section);
        return itemsWithin(sectioned, section, { maxLength: 0, least: 1 });
      },
    }),
  };
}

/** Limits all sections of the group to the same number of characters, so that the longest one is cut next, or the
 *  last of equals. Each section keeps `least` items in any case. */
function itemsStep(
  sectioned: SectionedText,
  {
    group,
    shown,
    least,
  }: { readonly group: readonly Section[]; readonly shown: readonly Section[]; readonly least: 0 | 1 },
): Step {
  const longest = group.reduce((most, { start, end }) => Math.max(most, end - start), 0);
  const gives = group[0]?.isDiscovery;
  return {
    most: longest * group.length,
    keptAt: (characters) => ({
      sections: shown,
      itemsOf(section) {
        if (section.isDiscovery !== gives) return section.itemStarts.length;
        const maxLength = Math.ceil((characters - section.place) / group.length);
        return itemsWithin(sectioned, section, { maxLength, least });
      },
    }),
  };
}

/** If no item fits, shows the beginning of the first one. It still counts as omitted. */
function withFirstItem(
  { text, bare }: RenderedSections,
  {
    sectioned,
    counter,
    limit,
  }: { readonly sectioned: SectionedText; readonly counter: Counter; readonly limit: number },
): string {
  if (bare === undefined) return text;
  const [start, end = bare.section.end] = bare.section.itemStarts;
  const item = sectioned.text.slice(start, end).trim();
  const around = { opening: text.slice(0, bare.at), ending: `\n${text.slice(bare.at)}` };
  const cut = truncateText(item, { counter, limit, ...around });
  // In characters. A shorter beginning is useless.
  const leastBeginning = 40;
  // A whole item must not be reported as omitted.
  return cut.kept < leastBeginning || cut.kept === item.length ? text : cut.text;
}

// Sections of the fabric layer with their items, as offsets in the text.

/** One section. It holds only offsets, because there may be a million of them. */
export interface Section {
  /** Where its heading starts. */
  readonly start: number;
  /** Where its heading ends, or `start` without a heading. */
  readonly headingEnd: number;
  /** At most one blank line after its last line with text. More could be millions. */
  readonly end: number;
  /** What its items are called. */
  readonly noun: string;
  readonly isDiscovery: boolean;
  /** Number of sections before it. */
  readonly index: number;
  /** Number of sections before it of the same kind, discovery or other. */
  readonly place: number;
  /** Where each item starts. It ends at the next start, or with the section. A `####` heading belongs to the item
   *  after it and counts as an item only if none follows. */
  readonly itemStarts: readonly number[];
}

/** Splits at `## ` and `### ` headings. Text before the first one is a section too. */
function readSections(text: string): Section[] {
  const sections: Section[] = [];
  const places = { discoveries: 0, others: 0 };
  const reader: Reader = { section: { ...noSection, itemStarts: [] }, parent: "", ...atHeading };
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
  /** The `## ` heading above, without its brackets. */
  parent: string;
  /** Start of a `####` heading that no item has followed yet. */
  groupStart: number | undefined;
  /** Whether the previous line is part of a comment. */
  inComment: boolean;
  /** Whether the previous line is not blank. */
  hasText: boolean;
}

const atHeading = { groupStart: undefined, inComment: false, hasText: false } as const;

const noSection = { start: 0, headingEnd: 0, end: 0, noun: "items", isDiscovery: false, index: 0, place: 0 } as const;

function openSection(reader: Reader, { text, line: { start, end }, level }: Omit<BodyLine, "kind">): void {
  const heading = text.slice(start, end);
  // Text in brackets, such as counts, does not describe the sections below. Nothing after the last closing bracket is
  // searched, so that each opening one is not searched to the end of the heading.
  if (level === 2) {
    const closing = heading.lastIndexOf(")") + 1;
    reader.parent = heading.slice(0, closing).replaceAll(/\([^)]*\)/g, "") + heading.slice(closing);
  }
  const isDiscovery = discovery.test(heading) || discovery.test(reader.parent);
  const noun = nouns.find(([pattern]) => pattern.test(heading))?.[1] ?? (isDiscovery ? "discoveries" : "items");
  Object.assign(reader, atHeading);
  const places = { start, headingEnd: end, end };
  reader.section = { ...noSection, ...places, noun, isDiscovery, itemStarts: [] };
}

const discovery = /discover/i;

const nouns: readonly (readonly [RegExp, string])[] = [
  [discovery, "discoveries"],
  [/entanglement/i, "entanglements"],
  [/claim/i, "claims"],
  [/phase/i, "phases"],
  [/note/i, "notes"],
];

/** Returns 0 for a line that is not a heading. */
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

/** An item is an unindented line with the indented lines below it, a fence with its code, or a comment. */
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

interface SectionedText {
  readonly text: string;
  readonly sections: readonly Section[];
  /** Number of items of all sections. */
  readonly items: number;
}

/** Sections in order, and how many of its first items each keeps. All other sections are removed. */
interface KeptSections {
  readonly sections: readonly Section[];
  itemsOf(section: Section): number;
  /** Whether a section says how many items are missing. All do by default. */
  hasNote?(section: Section): boolean;
}

interface RenderedSections {
  readonly text: string;
  readonly omitted: number;
  /** The first section that has only its heading left, and the offset of the line that says so. */
  readonly bare?: { readonly section: Section; readonly at: number } | undefined;
}

/** Renders the kept items with a line about missing ones in each section, and a last line with the total. */
function renderSections({ text, items }: SectionedText, kept: KeptSections): RenderedSections {
  const { sections, itemsOf, hasNote = () => true } = kept;
  let omitted = items;
  let bare: RenderedSections["bare"];
  let length = 0;
  const parts = sections.map((section) => {
    const count = itemsOf(section);
    const isNoted = hasNote(section);
    const isWhole = count === section.itemStarts.length;
    const part = isWhole ? text.slice(section.start, section.end) : `${shorten(text, section, { count, isNoted })}\n\n`;
    omitted -= count;
    if (count === 0 && isNoted && section.itemStarts.length > 0)
      bare ??= { section, at: length + part.lastIndexOf(noteOf(section, 0)) };
    length += part.length;
    return part;
  });
  const body = closeFence(parts.join("").trimEnd());
  return { text: wellFormed(body === "" ? marker(omitted) : `${body}\n\n${marker(omitted)}`), omitted, bare };
}

function marker(omitted: number): string {
  return `[... truncated, ${omitted} items omitted]`;
}

/** Returns how many items a section keeps within `maxLength` characters, heading included: `least` in any case. The line
 *  about missing items must be shorter than they are, so a few more items are removed for it, or none if that cannot
 *  help. */
function itemsWithin(
  { text }: SectionedText,
  section: Section,
  { maxLength, least = 0 }: { readonly maxLength: number; readonly least?: 0 | 1 },
): number {
  const { itemStarts, start, end } = section;
  if (itemStarts.length <= least || end - start <= maxLength) return itemStarts.length;
  const whole = text.slice(start, end).trimEnd().length;
  let kept = Math.max(least, lastAtMost(itemStarts, start + maxLength));
  while (kept >= least && shorten(text, section, { count: kept, isNoted: true }).length >= whole) kept--;
  return kept >= least ? kept : itemStarts.length;
}

/** Returns the number of items that end before `place`. */
function lastAtMost(starts: readonly number[], place: number): number {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= place) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** Keeps the first `count` items of a section. If `isNoted`, a line says how many are missing. */
function shorten(
  text: string,
  section: Section,
  { count, isNoted }: { readonly count: number; readonly isNoted: boolean },
): string {
  const { start, headingEnd, itemStarts } = section;
  const beginning = text.slice(start, count === 0 ? headingEnd : itemStarts[count]!).trimEnd();
  return [beginning, isNoted ? noteOf(section, count) : ""].filter((part) => part !== "").join("\n");
}

function noteOf({ itemStarts, noun }: Section, kept: number): string {
  return `... and ${itemStarts.length - kept} more ${noun}`;
}
