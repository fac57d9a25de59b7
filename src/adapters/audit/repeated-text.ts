/** Finds text that stands in two files, line by line: copies are seldom whole. */
import type { TextFile } from "./audit-reader.ts";

export interface Repetition {
  readonly file: TextFile;
  /** Where the lines stand first. */
  readonly original: TextFile;
  readonly lines: readonly string[];
  /** Nothing else is in the two files. */
  readonly identical: boolean;
}

/** Shorter lines are alike by chance. */
const leastLength = 8;

/** Every file against the ones before it; a line counts for the first file that has it. */
export function findRepetitions(files: readonly TextFile[]): Repetition[] {
  const firstFile = new Map<string, TextFile>();
  const repetitions: Repetition[] = [];
  for (const file of files) {
    const byOriginal = new Map<TextFile, string[]>();
    for (const line of tellingLines(file.text)) {
      const original = firstFile.get(line);
      if (original === undefined) firstFile.set(line, file);
      else if (original !== file) byOriginal.set(original, [...(byOriginal.get(original) ?? []), line]);
    }
    for (const [original, lines] of byOriginal) {
      repetitions.push({ file, original, lines, identical: isSameText(file, original) });
    }
  }
  return repetitions;
}

/** Whether the repeated lines are at least this share of what a file says. */
export function isShareOf(file: TextFile, { lines }: Repetition, share: number): boolean {
  return lines.length >= tellingLines(file.text).size * share;
}

export function isSameText(a: TextFile, b: TextFile): boolean {
  return a.text.trim() !== "" && canonical(a.text) === canonical(b.text);
}

/** What a file says: not its front matter, headings, comments and rules, which are alike in files that say different things. */
function tellingLines(text: string): Set<string> {
  const lines = canonical(text)
    .split("\n")
    .map((line) => line.trim());
  return new Set(
    lines.filter((line) => line.length >= leastLength && !/^(?:#|<!--|```|[-=|: ]+$)/.test(line)),
  );
}

function canonical(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/^\uFEFF?(?:---\n[\s\S]*?\n---\n)?/, "")
    .trim();
}
