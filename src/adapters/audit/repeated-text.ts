/** Finds text that stands in two files, line by line: copies are seldom whole. The time grows with the text, not with its square. */
import type { Counter } from "../../tokens/index.ts";
import type { TextFile } from "./audit-reader.ts";

export interface Repetition {
  readonly file: TextFile;
  /** Where the lines stand first. */
  readonly original: TextFile;
  readonly lines: readonly string[];
  /** Nothing else is in the two files. */
  readonly identical: boolean;
}

export interface RepetitionFinder {
  /** Every file against the ones before it; a line counts for the first file that has it. */
  find(files: readonly TextFile[]): Repetition[];
  /** Whether the repeated lines are at least this share of what a file says. */
  isShareOf(repetition: Repetition, file: TextFile, share: number): boolean;
  isSameText(a: TextFile, b: TextFile): boolean;
  /** The tokens of the repeated lines. */
  tokensOf(repetition: Repetition): number;
}

/** One finder serves all tools of an audit: they load the same files, so each text is split and each list compared only once. */
export function createRepetitionFinder(counter: Pick<Counter, "count">): RepetitionFinder {
  const { idsOf, lineOf, canonicalOf } = createLineIndex();
  const known = new Map<string, SharedLines[]>();
  const tokens = new WeakMap<readonly string[], number>();
  const texts = new Map<string, number>();
  const isSameText = (a: TextFile, b: TextFile) =>
    canonicalOf(a.text) !== "" && canonicalOf(a.text) === canonicalOf(b.text);
  return {
    find(files) {
      const numbers = files.map(({ text }) => {
        const number = texts.get(text) ?? texts.size;
        texts.set(text, number);
        return number;
      });
      const key = numbers.join();
      const shared =
        known.get(key) ??
        compareLines(
          files.map(({ text }) => idsOf(text)),
          lineOf,
        );
      known.set(key, shared);
      return shared.map(({ from, to, lines }) => {
        const [original, file] = [files[from]!, files[to]!];
        return { file, original, lines, identical: isSameText(file, original) };
      });
    },
    isShareOf: ({ lines }, { text }, share) => lines.length >= idsOf(text).length * share,
    isSameText,
    tokensOf({ lines }) {
      const count = tokens.get(lines) ?? counter.count(lines.join("\n"));
      tokens.set(lines, count);
      return count;
    },
  };
}

interface LineIndex {
  /** A number for each line that says something, without repeats. Equal lines have equal numbers, in every text. */
  idsOf(text: string): readonly number[];
  lineOf(id: number): string;
  canonicalOf(text: string): string;
}

function createLineIndex(): LineIndex {
  const lines: string[] = [];
  const ids = new Map<string, number>();
  const texts = new Map<string, readonly number[]>();
  const canonicals = new Map<string, string>();
  const canonicalOf = (text: string) => {
    const known = canonicals.get(text) ?? canonical(text);
    canonicals.set(text, known);
    return known;
  };
  const idOf = (line: string) => {
    const known = ids.get(line) ?? lines.length;
    if (known === lines.length) {
      ids.set(line, known);
      lines.push(line);
    }
    return known;
  };
  return {
    canonicalOf,
    lineOf: (id) => lines[id]!,
    idsOf(text) {
      const known = texts.get(text) ?? [...new Set(tellingLines(canonicalOf(text)).map(idOf))];
      texts.set(text, known);
      return known;
    },
  };
}

interface SharedLines {
  /** Places in the list of files. */
  readonly from: number;
  readonly to: number;
  readonly lines: readonly string[];
}

function compareLines(files: readonly (readonly number[])[], lineOf: LineIndex["lineOf"]): SharedLines[] {
  const firstFile = new Map<number, number>();
  const shared: SharedLines[] = [];
  if (files.length < 2) return shared;
  for (const [to, ids] of files.entries()) {
    const byFirst = new Map<number, string[]>();
    for (const id of ids) {
      const from = firstFile.get(id);
      if (from === undefined) firstFile.set(id, to);
      else if (byFirst.get(from)?.push(lineOf(id)) === undefined) byFirst.set(from, [lineOf(id)]);
    }
    for (const [from, lines] of byFirst) shared.push({ from, to, lines });
  }
  return shared;
}

/** Shorter lines are alike by chance. */
const leastLength = 8;

/** What a file says: not its front matter, headings, comments and rules, which are alike in files that say different things. */
function tellingLines(canonicalText: string): string[] {
  const lines = canonicalText.split("\n").map((line) => line.trim());
  return lines.filter((line) => line.length >= leastLength && !/^(?:#|<!--|```|[-=|: ]+$)/.test(line));
}

function canonical(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(/^\uFEFF?(?:---\n[\s\S]*?\n---\n)?/, "")
    .trim();
}
