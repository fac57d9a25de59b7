/** Turns the instruction files of AI tools into packs. Sections of several files are kept once: a later file leaves out
 *  what an earlier one has. */

import { type LineKind, scanLines } from "../../core/text/index.ts";
import { createSeenTexts, type Duplicate, type TextPart } from "./import-duplicates.ts";
import { packGlob } from "./read-pack.ts";

/** A file that an AI tool reads. */
export interface InstructionFile {
  /** Relative to the project's root, with slashes. */
  readonly path: string;
  readonly text: string;
  /** The folder that the file is about. Empty: the whole project. */
  readonly folder: string;
  /** The files that its `@` imports name, relative to the project's root. Only those that exist. */
  readonly imports: readonly string[];
}

/** A pack that an earlier import wrote. */
export interface EarlierPack {
  readonly id: string;
  /** The path of its text. */
  readonly path: string;
  readonly text: string;
  readonly globs: readonly string[];
}

export interface ImportedPack {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly globs: readonly string[];
  readonly nested: boolean;
  /** The path of the file. */
  readonly from: string;
  /** Empty if the file says nothing new. */
  readonly text: string;
  /** Ids of the AI tools that get the pack, and of those that do not. Absent: all, and none. */
  readonly tools?: readonly string[] | undefined;
  readonly notTools?: readonly string[] | undefined;
  /** Whether the file has no text of its own. */
  readonly isEmpty: boolean;
  readonly duplicates: readonly Duplicate[];
  readonly notes: readonly string[];
}

export interface ImportOptions {
  /** Ids of packs that an imported one must not replace. */
  readonly takenIds: readonly string[];
  /** Packs that the files are compared with, except those with the same id as a new pack. */
  readonly earlier: readonly EarlierPack[];
}

/** Returns a pack for each file. Those about the whole project come first. */
export function importTexts(files: readonly InstructionFile[], { takenIds, earlier }: ImportOptions): ImportedPack[] {
  const paths = new Set(files.map(({ path }) => path));
  const read = files.map((file) => parseInstructions(file, paths));
  const ordered = [...read.filter(({ globs }) => globs.length === 0), ...read.filter(({ globs }) => globs.length > 0)];
  const ids = uniqueIds(
    ordered.map(({ file }) => file),
    takenIds,
  );
  const seen = createSeenTexts();
  for (const { id, text, ...about } of earlier)
    if (!ids.includes(id)) seen.add(splitParts(readMarkdownLines(text)), about);
  return ordered.map(({ file, title, description, globs, nested, notes, parts: all }, index) => {
    const { parts, duplicates } = seen.without(all, globs);
    seen.add(all, { path: file.path, globs });
    const id = ids[index]!;
    return {
      id,
      name: title ?? id,
      description,
      globs,
      nested,
      from: file.path,
      text: renderParts(parts),
      isEmpty: all.length === 0,
      duplicates,
      notes,
    };
  });
}

/** Reads a file into parts. `paths` are the files that are imported with it. `isWider`: as a pack it would be loaded more
 *  often than the file. */
export function parseInstructions(file: InstructionFile, paths: ReadonlySet<string>): ParsedInstructions {
  const clean = file.text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const matter = readFrontMatter(clean);
  const { globs, nested, notes } = decideScope(file, matter);
  const isWider = notes.length > 0;
  const note = (line: number, text: string) => notes.push(`line ${line}: ${text}`);
  const lines: TextLine[] = [];
  for (const line of readOwnLines(clean.slice(matter.length))) {
    const [number, isText] = [line.number + matter.lines, line.kind === "text"];
    const imported = isText ? /^\s*@(\S+)\s*$/.exec(line.text)?.[1] : undefined;
    // A line that only imports a file that becomes a pack too.
    if (imported !== undefined && paths.has(resolveBeside(file.path, imported))) continue;
    let text = withRootImports({ ...line, number }, { file, isScoped: globs.length > 0, note });
    // Comments that Plimsoll acts on become text: whoever wrote the file may have meant another tool, or copied them.
    const start = isText ? text.search(ourComment) : -1;
    // A quotation or inline code shows a comment on purpose, and nothing acts on it.
    if (start !== -1 && !/[`>]/.test(text.slice(0, start))) {
      note(number, "a comment that Plimsoll would act on is now plain text, with &lt; at its start");
      text = text.replace(new RegExp(ourComment, "g"), "&lt;!--");
    }
    lines.push({ text, kind: line.kind, number });
  }
  const parts = splitParts(lines);
  const title = parts.find(({ level }) => level === 1)?.text || undefined;
  const { description = `Imported from ${file.path}` } = matter;
  return { file, title, description, globs, nested, notes, parts, isWider };
}

export interface ParsedInstructions extends Pick<ImportedPack, "description" | "globs" | "nested"> {
  readonly file: InstructionFile;
  readonly title: string | undefined;
  readonly notes: string[];
  readonly parts: readonly TextPart[];
  readonly isWider: boolean;
}

/** `@rules.md` means a file beside the one that says so. Its text moves to other files, so the path starts at the root. */
function withRootImports(
  line: TextLine,
  {
    file,
    isScoped,
    note,
  }: {
    readonly file: InstructionFile;
    readonly isScoped: boolean;
    readonly note: (line: number, text: string) => void;
  },
): string {
  if (line.kind !== "text") return line.text;
  return line.text.replace(/`[^`]*`|(?<=^|\s)@[\w./-]*\w/g, (written) => {
    const target = written.startsWith("@") ? resolveBeside(file.path, written.slice(1)) : undefined;
    if (target === undefined || !file.imports.includes(target)) return written;
    const isMoved = written.replace(/^@(?:\.\/)*/, "") !== target;
    const moved = isMoved ? `${written} is now @${target}, a path from the project's root` : `${written} is kept`;
    const advice = "Claude Code does not load it from a rule for some files: copy its text into the pack";
    if (isMoved || isScoped) note(line.number, isScoped ? `${moved}. ${advice}` : moved);
    return isMoved ? `@${target}` : written;
  });
}

const ourComment = /<!--(?=\s*(?:sync:fetch|verbosity\s*:|plimsoll:))/;

interface TextLine {
  readonly text: string;
  readonly kind: LineKind;
  readonly number: number;
}

/** Reads the lines as Markdown. Lines of Plimsoll's own blocks are blank. */
function readOwnLines(text: string): TextLine[] {
  let lines = readMarkdownLines(text);
  // A fence in a block may hide the rest, so the rest is read again.
  for (let round = 0; round < 8; round++) {
    const blocks = findOwnBlocks(lines);
    if (blocks.length === 0) break;
    const texts = lines.map((line) => line.text);
    for (const { start, end } of blocks) texts.fill("", start, end + 1);
    lines = readMarkdownLines(texts.join("\n"));
  }
  return lines;
}

export function readMarkdownLines(text: string): TextLine[] {
  const lines: TextLine[] = [];
  scanLines(text, ({ start, end, number }, kind) => {
    lines.push({ text: text.slice(start, end), kind, number });
  });
  return lines;
}

/** Finds blocks, edited or not. Markers in code are examples. */
function findOwnBlocks(lines: readonly TextLine[]): { readonly start: number; readonly end: number }[] {
  const ends = findEndMarkers(lines);
  const blocks: { readonly start: number; readonly end: number }[] = [];
  for (const [start, { kind, text }] of lines.entries()) {
    const section = kind === "text" ? /^<!-- plimsoll:start:(\S+)/.exec(text)?.[1] : undefined;
    const places = section === undefined ? undefined : ends.get(section);
    if (places === undefined || start <= (blocks.at(-1)?.end ?? -1)) continue;
    while ((places.at(-1) ?? start) < start) places.pop();
    const end = places.pop();
    if (end !== undefined) blocks.push({ start, end });
  }
  return blocks;
}

/** Maps a section to the lines of its end markers, last first. */
function findEndMarkers(lines: readonly TextLine[]): Map<string, number[]> {
  const ends = new Map<string, number[]>();
  for (let index = lines.length - 1; index >= 0; index--) {
    const section = /^<!-- plimsoll:end:(\S+) -->\s*$/.exec(lines[index]!.text)?.[1];
    if (section !== undefined)
      ends
        .set(section, ends.get(section) ?? [])
        .get(section)!
        .push(index);
  }
  return ends;
}

/** Returns the path that a name means in a file. */
function resolveBeside(path: string, name: string): string {
  const parts = path.split("/").slice(0, -1);
  for (const part of name.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** Cuts a text into headings, paragraphs, items of lists and code. */
export function splitParts(lines: readonly TextLine[]): TextPart[] {
  const parts: TextPart[] = [];
  let open: TextLine[] = [];
  let isAfterBlank = false;
  const close = () => {
    const [first] = open;
    if (first !== undefined) {
      const text = open.map((line) => line.text).join("\n");
      parts.push({
        ...(readHeading(open) ?? { text: text.trimEnd() }),
        line: first.number,
        isCode: open.some(({ kind }) => kind !== "text"),
        isAfterBlank,
      });
    }
    open = [];
    isAfterBlank = false;
  };
  for (const [index, line] of lines.entries()) {
    const isBlank = line.kind === "text" && line.text.trim() === "";
    if (isBlank && continuesList(open, lines, index)) open.push(line);
    else if (isBlank) {
      close();
      isAfterBlank = true;
    } else if (
      open.length === 0 ||
      (line.kind === "text" && /^(?:[-*+][ \t]| {0,3}#{1,6}(?:[ \t]|$))/.test(line.text))
    ) {
      const wasBlank: boolean = open.length === 0 && isAfterBlank;
      close();
      isAfterBlank = wasBlank;
      open = [line];
    } else open.push(line);
    if (readHeading(open) !== undefined) close();
  }
  close();
  return parts;
}

/** `## Title`, or a line of text above a line of `=` or `-`. */
function readHeading(lines: readonly TextLine[]): { readonly level: number; readonly text: string } | undefined {
  const [first, second] = lines;
  if (first?.kind !== "text" || lines.length > 2) return undefined;
  const marks = lines.length === 1 ? /^ {0,3}(#{1,6})(?=[ \t]|$)/.exec(first.text) : null;
  if (marks !== null) {
    const text = first.text.slice(marks[0].length).trim();
    return { level: marks[1]!.length, text: text.replace(/(?:^|[ \t])#+$/, "").trimEnd() };
  }
  const underline = second?.kind === "text" ? /^ {0,3}(=+|-+)[ \t]*$/.exec(second.text)?.[1] : undefined;
  if (underline === undefined || !/^ {0,3}[^\s#>|*+<-]/.test(first.text) || listMark.test(first.text)) return undefined;
  return { level: underline.startsWith("=") ? 1 : 2, text: first.text.trim() };
}

const listMark = /^(?:[-*+]|\d{1,9}[.)])[ \t]/;

/** Whether the text after a blank line belongs to the item of a list above it. */
function continuesList(open: readonly TextLine[], lines: readonly TextLine[], blank: number): boolean {
  const [first] = open;
  if (first?.kind !== "text" || !listMark.test(first.text)) return false;
  const next = lines.slice(blank, blank + 8).find(({ text }) => text.trim() !== "");
  return next !== undefined && /^(?: {2}|\t)/.test(next.text);
}

/** The block usually has a title of level 1, so a pack's headings start at level 2. */
export function renderParts(
  parts: readonly TextPart[],
  { keepLevels = false }: { readonly keepLevels?: boolean } = {},
): string {
  const shift = !keepLevels && parts.some(({ level }) => level === 1) ? 1 : 0;
  const texts = parts.map(({ level, text, isAfterBlank }, index) => {
    const line = level === undefined ? text : `${"#".repeat(Math.min(6, level + shift))} ${text}`.trimEnd();
    return `${index > 0 && isAfterBlank ? "\n" : ""}${line}\n`;
  });
  return texts.join("");
}

/** What the front matter of a rule file says. */
interface FrontMatter {
  readonly length: number;
  readonly lines: number;
  readonly description: string | undefined;
  readonly globs: readonly string[];
  /** Reasons why the rule may apply to more files than its author wrote. */
  readonly problems: readonly string[];
  /** The tool loads the file only on request or for some files. */
  readonly isOnDemand: boolean;
}

/** Not quite YAML: Cursor takes globs as plain text, without quotes or brackets. */
function readFrontMatter(text: string): FrontMatter {
  const [whole = "", body = ""] = /^---[ \t]*\n([\s\S]*?\n)??---[ \t]*(?:\n|$)/.exec(text) ?? [];
  const values = readValues(body);
  const first = (key: string) => unquoted(values.get(key)?.[0] ?? "");
  const written = globKeys.flatMap((key) => (values.get(key) ?? []).map((value) => ({ key, value })));
  // `["a", "b"]`, `a, b` and `{a,b}/**`. A comma in braces belongs to the pattern.
  const patterns = written
    .filter(({ value }) => !isMalformed(value))
    .map(({ value }) => unquoted(value.slice(0, 4_000).replace(/^\[(.*)\]$/, "$1")))
    .flatMap((plain) => plain.match(/(?:\{[^}]*\}|[^,])+/g) ?? [])
    .map((glob) => unquoted(glob.trim()))
    .filter((glob) => glob !== "");
  const isForced = /^true$/i.test(first("alwaysApply"));
  const isAlways = isForced || patterns.some((glob) => /^\*\*(?:\/\*)?$/.test(glob));
  const malformed = written
    .filter(({ value }) => isMalformed(value))
    .map(({ key, value }) => `"${key}: ${value.slice(0, 60)}" in the front matter cannot be read and is left out`);
  if (whole === "" && /^---[ \t]*\n[A-Za-z_]+[ \t]*:/.test(text)) {
    malformed.push("its front matter has no end, so it is imported as text");
  }
  return {
    length: whole.length,
    lines: whole.split("\n").length - 1,
    description: first("description") || undefined,
    globs: isAlways ? [] : patterns,
    problems: isForced ? [] : [...malformed, ...(isAlways ? patterns.filter(isExclusion).map(unusable) : [])],
    isOnDemand:
      /^false$/i.test(first("alwaysApply")) ||
      /^(?:manual|model_decision|auto)$/.test(first("trigger") || first("inclusion")),
  };
}

/** Maps each key to its values. */
function readValues(body: string): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, string[]>();
  let list: string[] = [];
  for (const line of body.split("\n")) {
    const [, key, value = ""] = /^([A-Za-z_]+)[ \t]*:[ \t]*(.*)$/.exec(line) ?? [];
    const item = /^[ \t]*-[ \t]+(.*)$/.exec(line)?.[1];
    if (key !== undefined) {
      list = value.trim() === "" ? [] : [value.trim()];
      values.set(key, list);
    } else if (item !== undefined) list.push(item.trim());
    else if (/^\[[^\]]*$/.test(list[0] ?? "")) list[0] = `${list[0]} ${line}`.trim();
  }
  return values;
}

function isExclusion(glob: string): boolean {
  return glob.startsWith("!");
}

function unusable(glob: string): string {
  return `the pattern ${glob} cannot be used in a pack and is left out`;
}

/** Cursor, Continue and Devin; Copilot; Claude Code and Cline; Kiro. */
const globKeys = ["globs", "applyTo", "paths", "fileMatchPattern"];

/** Whether a bracket, brace or quote has no partner. */
function isMalformed(written: string): boolean {
  const count = (mark: string) => written.split(mark).length;
  const hasOddQuote = count('"') % 2 === 0 || count("'") % 2 === 0;
  return hasOddQuote || count("[") !== count("]") || count("{") !== count("}");
}

function unquoted(text: string): string {
  return /^(["'])([^"']*)\1$/.exec(text)?.[2] ?? text;
}

/** Returns the files that a pack is about, and what its author should know. */
function decideScope(
  { folder }: InstructionFile,
  { globs: patterns, problems, isOnDemand }: FrontMatter,
): { readonly globs: readonly string[]; readonly nested: boolean; readonly notes: string[] } {
  const written = patterns.map((glob) => glob.replace(/^(?:\.?\/)+/, ""));
  const leftOut = written.filter((glob) => !packGlob.test(glob));
  const below = (glob: string) => (folder === "" ? glob : `${folder}/${glob}`);
  const globs = written.filter((glob) => packGlob.test(glob)).map(below);
  const notes = [...problems, ...leftOut.map(unusable)];
  const files = folder === "" ? "every file" : `every file in ${folder}`;
  if (notes.length > 0 && globs.length === 0) {
    notes.push(`its scope is wider now: the pack applies to ${files}. Write globs into its pack.yaml`);
  } else if (leftOut.some(isExclusion)) {
    notes.push("its scope is wider now: the pack also applies to the files that the pattern excluded");
  } else if (isOnDemand && globs.length === 0) {
    notes.push("was loaded on request only. As a pack it is always loaded");
  }
  if (folder === "" || globs.length > 0) return { globs, nested: false, notes };
  return { globs: [`${folder}/**`], nested: true, notes };
}

/** `.cursor/rules/react.mdc` becomes `react`. */
export function uniqueIds(
  files: readonly Pick<InstructionFile, "path" | "folder">[],
  takenIds: readonly string[],
): string[] {
  const ids = new Set<string>();
  for (const { path, folder } of files) {
    const base = (path.split("/").at(-1) ?? "").replace(/(?:\.instructions)?\.[a-z]{2,4}$/i, "");
    const word = `${folder}/${base}`
      .toLowerCase()
      .replace(/[^a-z0-9._-]+/g, "-")
      .replace(/^[._-]+|[._-]+$/g, "");
    const name = word === "" ? "imported" : takenIds.includes(word) ? `project-${word}` : word;
    let id = name;
    for (let count = 2; ids.has(id) || takenIds.includes(id); count++) id = `${name}-${count}`;
    ids.add(id);
  }
  return [...ids];
}
