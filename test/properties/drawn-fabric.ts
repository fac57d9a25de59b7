/** Fabric layers with sections and items that can be told apart, and what must hold of them in a composed text. */
import fc from "fast-check";
import { expect } from "vitest";
import type { Counter } from "../../src/core/tokens/index.ts";

export interface DrawnSection {
  /** "" only for the first one. */
  readonly heading: string;
  readonly noun: string;
  readonly isDiscovery: boolean;
  readonly items: readonly string[];
}

const titles: readonly (readonly [title: string, noun: string])[] = [
  ["Available Entanglements", "entanglements"],
  ["Active File Claims", "claims"],
  ["Completed Phases", "phases"],
  ["Shared Notes", "notes"],
  ["Anything", "items"],
  ["Unresolved Discoveries", "discoveries"],
];

const item = fc.tuple(
  fc.integer({ min: 0, max: 60 }),
  fc.constantFrom("", "\n  and more of it", "\n\n  ```js\n  ## No heading\n  - no item\n  ```"),
);

export const drawnFabric: fc.Arbitrary<DrawnSection[]> = fc
  .array(
    fc.record({
      title: fc.constantFrom(...titles),
      level: fc.constantFrom("##", "###"),
      grouped: fc.boolean(),
      items: fc.array(item, { maxLength: 15 }),
    }),
    { minLength: 1, maxLength: 6 },
  )
  .chain((drawn) =>
    fc.boolean().map((hasHeading) => drawn.map((each, index) => toSection(each, { index, hasHeading }))),
  );

type Drawn = {
  readonly title: readonly [string, string];
  readonly level: string;
  readonly grouped: boolean;
  readonly items: readonly (readonly [number, string])[];
};

function toSection(
  { title: [title, noun], level, grouped, items }: Drawn,
  { index, hasHeading }: { readonly index: number; readonly hasHeading: boolean },
): DrawnSection {
  const isBare = index === 0 && !hasHeading;
  return {
    // A `### ` below a `## ` about discoveries would be one itself.
    heading: isBare ? "" : `${noun === "discoveries" ? "###" : level} ${title} ${index}`,
    noun: isBare ? "items" : noun,
    isDiscovery: !isBare && noun === "discoveries",
    items: items.map(([length, tail], place) => {
      const group = grouped && place % 4 === 0 ? `#### package ${index}.${place}\n` : "";
      return `${group}- item <${index}.${place}> ${"é".repeat(length)};${tail}`;
    }),
  };
}

export function fabricText(sections: readonly DrawnSection[]): string {
  return sections.map(sectionText).join("\n\n");
}

function sectionText({ heading, items }: Pick<DrawnSection, "heading" | "items">): string {
  return [heading, ...items].filter((line) => line !== "").join("\n");
}

export interface Facts {
  readonly counter: Counter;
  readonly truncated: boolean;
  readonly omitted: number;
  readonly overflow: number;
}

/** Counts, order of giving way, whole notes. */
export function checkSections(part: string, sections: readonly DrawnSection[], facts: Facts): void {
  const shown = sections.map((section) => ({ section, kept: keptItems(part, section) }));
  const left = shown.reduce((sum, { section, kept }) => sum + section.items.length - kept, 0);
  expect(facts.omitted).toBe(left);
  if (!facts.truncated) {
    const whole = fabricText(sections);
    // Blank lines around it go before anything is cut.
    expect([whole, whole.trim()]).toContain(part);
    return;
  }
  const others = shown.filter(({ section }) => !section.isDiscovery);
  const discoveries = shown.filter(({ section }) => section.isDiscovery);
  if (facts.overflow > 0) {
    expect(discoveries).not.toEqual([]);
    for (const { section } of others) expect(hasHeading(part, section)).toBe(false);
  } else {
    for (const { section } of discoveries) expect(part).toContain(sectionText(section));
  }
  checkNotes(part, shown);
  checkLongestFirst(part, facts.overflow > 0 ? discoveries : others);
}

interface Shown {
  readonly section: DrawnSection;
  readonly kept: number;
}

/** Items are a beginning of those that were given. */
function keptItems(part: string, { items }: DrawnSection): number {
  const kept = items.filter((item) => new RegExp(`${escaped(item)}$`, "m").test(part)).length;
  for (const item of items.slice(0, kept)) expect(part).toContain(item);
  return kept;
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function hasHeading(part: string, { heading }: DrawnSection): boolean {
  return heading !== "" && part.split("\n").includes(heading);
}

/** Every line that tells of items left out is whole, in its section's words, with the number that is missing. */
function checkNotes(part: string, shown: readonly Shown[]): void {
  const notes = part.split("\n").filter((line) => line.startsWith("..."));
  const cut = shown.filter(({ section, kept }) => kept < section.items.length);
  const all = cut.map(({ section, kept }) => `... and ${section.items.length - kept} more ${section.noun}`);
  for (const note of notes) expect(all).toContain(note);
  // The last thing to go before headings are these lines. Then only sections that no line makes shorter have items.
  const isUnnoted = ({ section, kept }: Shown) =>
    hasHeading(part, section) && !notes.includes(`... and ${section.items.length - kept} more ${section.noun}`);
  if (!cut.some(isUnnoted)) return;
  for (const { section, kept } of cut) if (!section.isDiscovery) expect(kept).toBe(0);
}

/** A section lost items when none was longer. */
function checkLongestFirst(part: string, shown: readonly Shown[]): void {
  const cut = shown.filter(({ section, kept }) => kept < section.items.length && hasHeading(part, section));
  for (const { section, kept } of cut) {
    const before = lengthOf(section, keptBefore(section, kept));
    for (const other of shown) {
      // The first item of every section stays longer than a second one of any, except of discoveries.
      const least = section.isDiscovery ? -1 : 0;
      const canBeShorter = other.kept > least + 1 && keptBefore(other.section, least) < other.section.items.length;
      if (canBeShorter) expect(kept).toBeGreaterThan(least);
      if (canBeShorter) expect(lengthOf(other.section, other.kept)).toBeLessThanOrEqual(before + 2);
    }
  }
}

/** A section is not shortened where the line that tells of it would be as long as what is left out. */
function keptBefore(section: DrawnSection, kept: number): number {
  const { length } = section.items;
  for (let before = kept + 1; before < length; before++) {
    const note = `\n... and ${length - before} more ${section.noun}`;
    if (lengthOf(section, before) + note.length < lengthOf(section, length)) return before;
  }
  return length;
}

function lengthOf({ heading, items }: DrawnSection, kept: number): number {
  return sectionText({ heading, items: items.slice(0, kept) }).length;
}
