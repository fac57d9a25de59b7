import { closeFence, wellFormed } from "../../text/index.ts";
import type { Section } from "./read-sections.ts";

export interface SectionedText {
  readonly text: string;
  readonly sections: readonly Section[];
  /** Of all sections. */
  readonly items: number;
}

/** Sections in their order, and how many of its first items each keeps. What is not among them goes with its heading. */
export interface KeptSections {
  readonly sections: readonly Section[];
  itemsOf(section: Section): number;
}

export interface RenderedSections {
  readonly text: string;
  readonly omitted: number;
  /** The first section that has only its heading left, and where the line stands that tells so. */
  readonly bare?: { readonly section: Section; readonly at: number } | undefined;
}

/** A layer from which something was left out, with a line that tells so in each section, and a last one with the total. */
export function renderSections(
  { text, items }: SectionedText,
  { sections, itemsOf }: KeptSections,
): RenderedSections {
  let omitted = items;
  let bare: RenderedSections["bare"];
  let length = 0;
  const parts = sections.map((section) => {
    const kept = itemsOf(section);
    const part = partOf(text, section, kept);
    omitted -= kept;
    if (kept === 0 && section.itemStarts.length > 0)
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

/** How many items a section keeps within so many characters, its heading included. Telling of those that are left out must take less
 *  room than they do: some more give way for that, or none where all would not be enough. */
export function itemsWithin({ text }: SectionedText, section: Section, maxLength: number): number {
  const { itemStarts, start, end } = section;
  if (itemStarts.length === 0 || end - start <= maxLength) return itemStarts.length;
  const whole = text.slice(start, end).trimEnd().length;
  let kept = lastAtMost(itemStarts, start + maxLength);
  while (kept >= 0 && shortened(text, section, kept).length >= whole) kept--;
  return kept >= 0 ? kept : itemStarts.length;
}

/** The index of the last start that is not behind `place`, which is the number of items that end before it. */
function lastAtMost(starts: readonly number[], place: number): number {
  let [low, high] = [0, starts.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= place) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

function partOf(text: string, section: Section, kept: number): string {
  if (kept === section.itemStarts.length) return text.slice(section.start, section.end);
  return `${shortened(text, section, kept)}\n\n`;
}

function shortened(text: string, section: Section, kept: number): string {
  const { start, headingEnd, itemStarts } = section;
  const beginning = text.slice(start, kept === 0 ? headingEnd : itemStarts[kept]!).trimEnd();
  return beginning === "" ? noteOf(section, kept) : `${beginning}\n${noteOf(section, kept)}`;
}

function noteOf({ itemStarts, noun }: Section, kept: number): string {
  return `... and ${itemStarts.length - kept} more ${noun}`;
}
