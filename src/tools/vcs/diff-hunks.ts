/** Reads the output of `git diff` line by line and gives its hunks, long ones in parts. */
import { decodeBytes } from "../../workspace/index.ts";
import { decodeLine } from "../read/text-encoding.ts";
import { changeOf, type FileChange, nameOf } from "./diff-header.ts";

/** One hunk, or a file that changed without one: renamed, binary, another mode. */
export interface DiffHunk extends FileChange {
  readonly path: string;
  /** `@@ -1,3 +1,4 @@ function open() {` */
  readonly header?: string;
  readonly text?: string;
}

export interface DiffReader {
  read(line: string): void;
  /** After the last line. */
  end(): void;
  facts(): DiffFacts;
}

export interface DiffFacts {
  readonly files_changed: number;
  readonly insertions: number;
  readonly deletions: number;
  /** The first ones: the names of all could fill a page by themselves, and the hunks tell them. */
  readonly files: readonly string[];
}

const mostNames = 20;

/** A part of this size fits a page with room to spare. */
const mostPartLines = 200;
const mostPartCharacters = 8_000;
const mostLineCharacters = 2_000;
/** Of a longer line git's output was read in part. */
const mostCounted = 1_000_000;

/** Lines are byte strings. `take` gets each hunk when it is complete. */
export function createDiffReader(take: (hunk: DiffHunk) => void): DiffReader {
  const files: string[] = [];
  const counts = { files_changed: 0, insertions: 0, deletions: 0 };
  let header: string[] = [];
  let part: Part | undefined;
  let hunks = 0;
  const finishPart = () => {
    if (part === undefined || part.lines.length === 0) return;
    take({ ...fileOf(header), header: headerOf(part), text: part.lines.join("\n") });
    hunks++;
  };
  const finishFile = () => {
    finishPart();
    part = undefined;
    if (header.length === 0) return;
    if (hunks === 0) take(fileOf(header));
    counts.files_changed++;
    if (files.length < mostNames) files.push(nameOf(header));
    header = [];
    hunks = 0;
  };
  const readContent = (line: string, open: Part) => {
    if (line.startsWith("+")) counts.insertions++;
    if (line.startsWith("-")) counts.deletions++;
    if (open.lines.length >= mostPartLines || open.characters > mostPartCharacters) {
      finishPart();
      part = nextPart(open);
    }
    addLine(part ?? open, line);
  };
  const read = (line: string) => {
    // Lines of a file begin with a blank, + or -, so these can be none.
    if (line.startsWith("diff --")) {
      finishFile();
      header = [line];
    } else if (line.startsWith("@@")) {
      finishPart();
      part = partOf(decodeBytes(line.slice(0, mostLineCharacters)));
    } else if (part !== undefined) readContent(line, part);
    else if (header.length > 0) header.push(line);
  };
  return { read, end: finishFile, facts: () => ({ ...counts, files }) };
}

function fileOf(header: readonly string[]): DiffHunk {
  return { path: nameOf(header), ...changeOf(header) };
}

interface Part {
  /** As git wrote it. */
  readonly given: string;
  readonly isFirst: boolean;
  readonly start: { readonly old: number; readonly new: number };
  readonly count: { old: number; new: number };
  readonly lines: string[];
  characters: number;
}

function partOf(given: string): Part {
  const [, old, now] = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(given) ?? [];
  const start = { old: Number(old ?? 0), new: Number(now ?? 0) };
  return { given, isFirst: true, start, count: { old: 0, new: 0 }, lines: [], characters: 0 };
}

function nextPart({ given, start, count }: Part): Part {
  const next = { old: start.old + count.old, new: start.new + count.new };
  return { given, isFirst: false, start: next, count: { old: 0, new: 0 }, lines: [], characters: 0 };
}

function addLine(part: Part, line: string): void {
  if (!line.startsWith("+") && !line.startsWith("\\")) part.count.old++;
  if (!line.startsWith("-") && !line.startsWith("\\")) part.count.new++;
  const text = decodeLine(line);
  const cut = text.length - mostLineCharacters;
  const left = cut < mostCounted ? cut : `at least ${mostCounted}`;
  const shown = cut > 0 ? `${text.slice(0, mostLineCharacters)}… [${left} more characters]` : text;
  part.lines.push(shown);
  part.characters += shown.length + 1;
}

/** A part has the lines' real numbers. The hunk of a merge has several old sides and keeps git's header. */
function headerOf({ given, isFirst, start, count }: Part): string {
  const heading = /^@@ [^@]+ @@(.*)$/.exec(given)?.[1];
  if (heading === undefined) return isFirst ? given : `${given} (continued)`;
  return `@@ -${start.old},${count.old} +${start.new},${count.new} @@${heading}`;
}
