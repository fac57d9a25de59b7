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
}

/** A text that another file has too. */
export interface Duplicate {
  /** The line in the file that it was left out of. */
  readonly line: number;
  readonly sameAs: Place;
}

interface Place {
  readonly path: string;
  readonly line: number;
}

/** What earlier files say. Keys include the headings. */
type Seen = Map<string, Place>;

interface Kept {
  readonly parts: readonly TextPart[];
  readonly duplicates: readonly Duplicate[];
}

interface SeenTexts {
  /** Adds the texts of a file. Call it after the file was compared: it is compared with earlier ones, not with
   *  itself. */
  add(parts: readonly TextPart[], file: { readonly path: string; readonly globs: readonly string[] }): void;
  /** Leaves out what earlier files say, and headings that then have nothing under them. */
  without(parts: readonly TextPart[], globs: readonly string[]): Kept;
}

/** Remembers the texts of files. A file is compared with files of its own scope and of the whole project: a text of
 *  another scope is not loaded together with it. */
export function createSeenTexts(): SeenTexts {
  const byScope = new Map<string, Seen>();
  const seenFor = (globs: readonly string[]) => {
    const seen = byScope.get(globs.join()) ?? new Map();
    byScope.set(globs.join(), seen);
    return seen;
  };
  return {
    add: (parts, { path, globs }) => addSeen(parts, path, seenFor(globs)),
    without: (parts, globs) => withoutSeen(parts, [seenFor(globs), seenFor([])]),
  };
}

function withoutSeen(parts: readonly TextPart[], seen: readonly Seen[]): Kept {
  const find = (key: string) => seen.find((each) => each.has(key))?.get(key);
  const removed = new Set<TextPart>();
  const duplicates: Duplicate[] = [];
  for (const section of sectionsOf(parts)) {
    for (const { key, parts: texts } of blocksOf(section)) {
      const sameAs = find(key);
      if (sameAs === undefined) continue;
      duplicates.push({ line: texts[0]!.line, sameAs });
      for (const part of texts) removed.add(part);
    }
  }
  const emptied = emptiedHeadings(parts, removed);
  return { parts: without(parts, (part) => removed.has(part) || emptied.has(part)), duplicates };
}

function addSeen(parts: readonly TextPart[], path: string, seen: Seen): void {
  for (const section of sectionsOf(parts)) {
    for (const { key, parts: texts } of blocksOf(section)) {
      if (!seen.has(key)) seen.set(key, { path, line: texts[0]!.line });
    }
  }
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

function sectionsOf(parts: readonly TextPart[]): Section[] {
  const sections: Section[] = [];
  let open: Section[] = [];
  const add = (level: number, heading?: TextPart) => {
    open = open.filter((outer) => outer.level < level);
    for (const outer of open) outer.hasInner = true;
    const path = [...open.flatMap(contextOf), ...nameOf(heading)].join("\n");
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

/** A section that ends with a label, such as `Never do any of these:`, changes the meaning of the sections in it. */
function contextOf({ heading, texts }: Section): string[] {
  const last = texts.at(-1);
  return [...nameOf(heading), ...(last !== undefined && isLabel(last) ? [`: ${keyOf(last)}`] : [])];
}

/** A heading such as `# CLAUDE.md` says nothing about the text below it. */
function nameOf(heading: TextPart | undefined): string[] {
  return heading === undefined || /^\.?[\w-]+\.mdc?$/i.test(heading.text) ? [] : [collapse(heading.text).toLowerCase()];
}

interface Block {
  readonly key: string;
  readonly parts: readonly TextPart[];
}

/** Paragraphs at the start of a section are blocks of their own. From the first label, list or code on, the rest of the
 *  section is one block. */
function blocksOf({ heading, texts, hasInner, path }: Section): Block[] {
  if (texts.length === 0) return heading === undefined || hasInner ? [] : [{ key: `${path}\n\n`, parts: [heading] }];
  const other = texts.findIndex((part, index) => !isAlone(part, texts[index + 1]));
  const count = other === -1 ? texts.length : other;
  const blocks = [...texts.slice(0, count).map((part) => [part]), texts.slice(count)];
  return blocks
    .filter((parts) => parts.length > 0)
    .map((parts) => ({ key: `${path}\n\n${parts.map(keyOf).join("\n\n")}`, parts }));
}

/** Whether a text is a paragraph that does not introduce the next text. */
function isAlone(part: TextPart, next: TextPart | undefined): boolean {
  return isParagraph(part) && !isLabel(part) && (next === undefined || isParagraph(next));
}

function isParagraph({ text, isCode }: TextPart): boolean {
  return !isCode && !/^\s*(?:[>|<#]|[-*+_=]{3}|(?:[-*+]|\d{1,9}[.)])\s)/.test(text);
}

/** Whether a text says how to read the next one: `Never:`, `Tabs?`, a few letters, or a line in bold. */
function isLabel(part: TextPart): boolean {
  const key = keyOf(part);
  return (
    Buffer.byteLength(key) < 12 || /[:?\uFF1A\uFF1F][*_]*$/.test(key) || /^(?:\*\*|__)[^*_]*(?:\*\*|__)$/.test(key)
  );
}

/** Equal for texts that differ in their line breaks and in the mark of a list. In code, spaces have a meaning. */
function keyOf({ text, isCode }: TextPart): string {
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
function emptiedHeadings(parts: readonly TextPart[], removed: ReadonlySet<TextPart>): ReadonlySet<TextPart> {
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
function without(parts: readonly TextPart[], isRemoved: (part: TextPart) => boolean): TextPart[] {
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
