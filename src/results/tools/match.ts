import { cutText, isInsidePair } from "../../core/text/index.ts";

/** One matching line, as the model sees it. */
export interface Match {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly before?: readonly string[];
  readonly after?: readonly string[];
}

/** What both ways of searching need to know. */
export interface SearchRequest {
  readonly pattern: string;
  readonly isRegex: boolean;
  readonly caseSensitive: boolean;
  /** An existing path inside the root. */
  readonly path: string;
  /** Whether a file below it, by its path from the root, usually has secrets. */
  isSecret(path: string): boolean;
  /** Such files of earlier searches, by the path that was searched. */
  readonly knownSecrets: Map<string, { readonly paths: readonly string[]; readonly until: number }>;
  readonly files: FileFilter;
  readonly mode: SearchMode;
  readonly contextLines: number;
  readonly maxResults: number;
  readonly offset: number;
}

/** What is returned: matching lines, files with a match, or files with their number of matches. */
type SearchMode = "lines" | "files" | "count";

/** A file with matches. It has their number in the mode `count`. */
export interface MatchedFile {
  readonly path: string;
  readonly matches?: number;
}

export function createMatchedFile(path: string, matches: number, mode: SearchMode): MatchedFile {
  return mode === "count" ? { path, matches } : { path };
}

export interface FileFilter {
  /** The glob of the call. Undefined for every file. */
  readonly pattern: string | undefined;
  matches(path: string): boolean;
}

export interface SearchedLine {
  readonly number: number;
  readonly text: string;
  /** Where the match begins. Undefined for a line of context. */
  readonly at?: number | undefined;
}

/** Without a number, because ripgrep reports only that there were some. Both ways of searching say the same. */
export const deniedFilesWarning = "Some files could not be read and were not searched.";

/** Joins matches with the lines around them. Takes lines in order. Returns a match when its last line was read. */
export function createMatchCollector(
  path: string,
  contextLines: number,
): { add(line: SearchedLine): Match[]; end(): Match[] } {
  let before: SearchedLine[] = [];
  let open: { line: SearchedLine; before: string[]; after: string[] }[] = [];
  const finish = (isDone: (line: number) => boolean): Match[] => {
    const done = open.filter(({ line }) => isDone(line.number));
    open = open.filter(({ line }) => !isDone(line.number));
    return done.map(({ line, before, after }) => ({
      path,
      line: line.number,
      text: cutAround(line.text, line.at ?? 0),
      ...(before.length > 0 ? { before } : {}),
      ...(after.length > 0 ? { after } : {}),
    }));
  };
  return {
    add: (line) => {
      const done = finish((number) => number + contextLines < line.number);
      for (const each of open) each.after.push(cutAround(line.text, 0));
      const near = before.filter(({ number }) => number >= line.number - contextLines);
      if (line.at !== undefined) {
        open.push({ line, before: near.map(({ text }) => cutAround(text, 0)), after: [] });
      }
      before = contextLines === 0 ? [] : [...near, line].slice(-contextLines);
      return done;
    },
    end: () => finish(() => true),
  };
}

const maxLineCharacters = 500;

/** Returns the part of a long line around the match, with an ellipsis on each side that is cut. */
function cutAround(text: string, at: number): string {
  if (text.length <= maxLineCharacters) return text;
  const start = at + 100 <= maxLineCharacters ? 0 : Math.min(at - 100, text.length - maxLineCharacters);
  const from = isInsidePair(text, start) ? start + 1 : start;
  const part = cutText(text.slice(from), start + maxLineCharacters - from);
  return `${start > 0 ? "…" : ""}${part.text}${part.omitted > 0 ? "…" : ""}`;
}
