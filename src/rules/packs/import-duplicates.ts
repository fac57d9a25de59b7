/** Finds the texts that an earlier file has too. A text means something else under another heading or label, so it is a
 *  duplicate only together with both. */
import { Buffer } from "../../core/bytes.ts";

/** A heading, a paragraph, an item of a list or a code block. Blank lines between parts are not kept apart: a part knows
 *  whether one is above it. */
export interface TextPart {
  /** A heading's level. Absent for other text. */
  readonly level?: number | undefined;
  /** Without line break at the end. A heading is without its marks. */
  readonly text: string;
  /** The number of its first line in the file. */
  readonly line: number;
  /** Whether it is or has code. */
  readonly isCode: boolean;
  readonly isAfterBlank: boolean;
  /** A title that does not change what the text below it means. */
  readonly isTitle?: true | undefined;
}

/** A text that another file has too. */
export interface Duplicate {
  /** The line in the file that it was left out of. */
  readonly line: number;
  readonly sameAs: { readonly path: string; readonly line: number };
}

/** Remembers the texts of files. A file is compared with files of its own scope and of the whole project: a text of
 *  another scope is not loaded together with it. */
export function createSeenTexts(): {
  /** Adds the texts of a file. Call it after the file was compared: it is compared with earlier ones, not with
   *  itself. */
  add(parts: readonly TextPart[], file: { readonly path: string; readonly globs: readonly string[] }): void;
  /** Leaves out what earlier files say, and headings that then have nothing under them. */
  without(
    parts: readonly TextPart[],
    globs: readonly string[],
  ): { readonly parts: readonly TextPart[]; readonly duplicates: readonly Duplicate[] };
} {
  /** What earlier files say, by scope. Keys include the headings. */
  const byScope = new Map<string, Map<string, Duplicate["sameAs"]>>();
  return {
    add(parts, { path, globs }) {
      const seen = byScope.get(globs.join()) ?? new Map();
      byScope.set(globs.join(), seen);
      for (const block of listBlocks(parts)) {
        if (!seen.has(block.key)) seen.set(block.key, { path, line: block.parts[0]!.line });
      }
    },
    without(parts, globs) {
      const removed = new Set<TextPart>();
      const duplicates: Duplicate[] = [];
      for (const block of listBlocks(parts)) {
        const sameAs = byScope.get(globs.join())?.get(block.key) ?? byScope.get("")?.get(block.key);
        if (sameAs === undefined) continue;
        duplicates.push({ line: block.parts[0]!.line, sameAs });
        for (const part of block.parts) removed.add(part);
      }
      const emptied = findEmptied(parts, removed);
      return { parts: leaveOut(parts, (part) => removed.has(part) || emptied.has(part)), duplicates };
    },
  };
}

/** A text that is moved or left out as a whole, with its headings and labels in the key. */
export interface TextBlock {
  readonly key: string;
  readonly parts: readonly TextPart[];
}

export function listBlocks(parts: readonly TextPart[]): readonly TextBlock[] {
  return splitSections(parts).flatMap(splitBlocks);
}

/** Returns the parts without those of other blocks, and without headings that then have nothing under them. */
export function keepBlocks(parts: readonly TextPart[], isKept: (block: TextBlock) => boolean): readonly TextPart[] {
  const others = listBlocks(parts).filter((block) => !isKept(block));
  const removed = new Set(others.flatMap((block) => block.parts));
  const emptied = findEmptied(parts, removed);
  return leaveOut(parts, (part) => removed.has(part) || emptied.has(part));
}

/** A heading and the text up to the next heading. */
interface Section {
  readonly level: number;
  readonly heading?: TextPart | undefined;
  readonly texts: TextPart[];
  /** Whether a heading below belongs to it. */
  hasInner: boolean;
  /** The headings from the top, as one text. */
  readonly path: string;
}

function splitSections(parts: readonly TextPart[]): Section[] {
  const sections: Section[] = [];
  let open: Section[] = [];
  const add = (level: number, heading?: TextPart) => {
    open = open.filter((outer) => outer.level < level);
    for (const outer of open) outer.hasInner = true;
    const names = open.flatMap(({ heading: above, texts }) => {
      // A section that ends with a label, such as `Never do any of these:`, changes the meaning of the sections in it.
      const last = texts.at(-1);
      return [...readName(above), ...(last !== undefined && isLabel(last) ? [`: ${createKey(last)}`] : [])];
    });
    const path = [...names, ...readName(heading)].join("\n");
    const section = { level, heading, texts: [], hasInner: false, path };
    sections.push(section);
    open.push(section);
  };
  add(0);
  for (const part of parts) {
    if (part.level === undefined) sections.at(-1)!.texts.push(part);
    else add(part.level, part);
  }
  return sections;
}

/** A heading such as `# CLAUDE.md` says nothing about the text below it. */
function readName(heading: TextPart | undefined): string[] {
  if (heading === undefined || heading.isTitle || /^\.?[\w-]+\.mdc?$/i.test(heading.text)) return [];
  return [collapse(heading.text).toLowerCase()];
}

/** Paragraphs at the start of a section are blocks of their own. From the first label, list or code on, the rest of the
 *  section is one block. */
function splitBlocks({ heading, texts, hasInner, path }: Section): TextBlock[] {
  if (texts.length === 0) return heading === undefined || hasInner ? [] : [{ key: `${path}\n\n`, parts: [heading] }];
  // The first text that is no paragraph, or that introduces the next one.
  const other = texts.findIndex((part, index) => {
    const next = texts[index + 1];
    return !isParagraph(part) || isLabel(part) || (next !== undefined && !isParagraph(next));
  });
  const count = other === -1 ? texts.length : other;
  const blocks = [...texts.slice(0, count).map((part) => [part]), texts.slice(count)];
  return blocks
    .filter((parts) => parts.length > 0)
    .map((parts) => ({ key: `${path}\n\n${parts.map(createKey).join("\n\n")}`, parts }));
}

function isParagraph({ text, isCode }: TextPart): boolean {
  return !isCode && !/^\s*(?:[>|<#]|[-*+_=]{3}|(?:[-*+]|\d{1,9}[.)])\s)/.test(text);
}

/** Whether a text says how to read the next one: `Never:`, `Tabs?`, a few letters, or a line in bold. */
function isLabel(part: TextPart): boolean {
  const key = createKey(part);
  return (
    Buffer.byteLength(key) < 12 || /[:?\uFF1A\uFF1F][*_]*$/.test(key) || /^(?:\*\*|__)[^*_]*(?:\*\*|__)$/.test(key)
  );
}

/** Equal for texts that differ in their line breaks and in the mark of a list. In code, spaces have a meaning. */
function createKey({ text, isCode }: TextPart): string {
  return isCode
    ? text
        .split("\n")
        .map((line) => line.trimEnd())
        .join("\n")
    : collapse(text.replace(/^[*+-][ \t]+/, "- "));
}

function collapse(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** Returns the headings under which everything was removed. */
function findEmptied(parts: readonly TextPart[], removed: ReadonlySet<TextPart>): ReadonlySet<TextPart> {
  const emptied = new Set<TextPart>();
  // Inner headings come after outer ones, so the last ones are decided first.
  for (let index = parts.length - 1; index >= 0; index--) {
    const { level } = parts[index]!;
    if (level === undefined) continue;
    let end = index + 1;
    while (end < parts.length && (parts[end]!.level ?? 7) > level) end++;
    const below = parts.slice(index + 1, end);
    if (below.length > 0 && below.every((part) => removed.has(part) || emptied.has(part))) emptied.add(parts[index]!);
  }
  return emptied;
}

/** A blank line above a part that goes belongs to the next one. */
function leaveOut(parts: readonly TextPart[], isRemoved: (part: TextPart) => boolean): TextPart[] {
  const kept: TextPart[] = [];
  let isAfterBlank = false;
  for (const part of parts) {
    isAfterBlank ||= part.isAfterBlank;
    if (isRemoved(part)) continue;
    kept.push(isAfterBlank === part.isAfterBlank ? part : { ...part, isAfterBlank });
    isAfterBlank = false;
  }
  return kept;
}
