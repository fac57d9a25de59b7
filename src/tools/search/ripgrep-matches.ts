/** Reads the matches of files whose number of matches is known. */
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { type StartedProcess, splitRecords } from "../../workspace/index.ts";
import { diskName, isByteName, shownName } from "../source/byte-names.ts";
import { openRegular } from "../source/open-regular.ts";
import { createMatchCollector, type Match } from "./match.ts";
import { lineArguments, parseLine, type RipgrepLine, searchedLine } from "./ripgrep-lines.ts";

export interface CountedFile {
  readonly path: string;
  readonly count: number;
}

export interface MatchRange {
  readonly offset: number;
  readonly maxResults: number;
  readonly contextLines: number;
}

export interface MatchReader {
  readonly root: string;
  /** Takes the arguments before the pattern, and the files to search or one that is open. */
  start(args: readonly string[], files: readonly string[] | FileHandle): StartedProcess;
}

/** Few files are read ahead: a page seldom takes more. */
const matchesAtOnce = 100;
const filesAtOnce = 50;

/** Of each file as many matches as were counted. Those before `offset` are passed over file by file, then line by line. */
export async function* readMatches(
  reader: MatchReader,
  files: readonly CountedFile[],
  { offset, maxResults, contextLines }: MatchRange,
): AsyncGenerator<Match> {
  let { skip, at } = firstFile(files, offset);
  let left = maxResults;
  while (at < files.length && left > 0) {
    const end = endOfBatch(files, at);
    for await (const matches of readBatch(reader, files.slice(at, end), { skip, contextLines })) {
      for (const match of matches) {
        yield match;
        if (--left === 0) return;
      }
    }
    skip = 0;
    at = end;
  }
}

function firstFile(files: readonly CountedFile[], offset: number): { skip: number; at: number } {
  let skip = offset;
  let at = 0;
  for (; at < files.length && skip >= (files[at]?.count ?? 0); at++) skip -= files[at]?.count ?? 0;
  return { skip, at };
}

function endOfBatch(files: readonly CountedFile[], start: number): number {
  let matches = 0;
  let end = start;
  while (end < files.length && end < start + filesAtOnce && matches < matchesAtOnce) {
    if (isReadAlone(files[end]?.path ?? "") && end > start) break;
    matches += files[end++]?.count ?? 0;
    if (isReadAlone(files[end - 1]?.path ?? "")) break;
  }
  return end;
}

/** Node gives a program only arguments that are text, and a line break in a name would end a record. */
function isReadAlone(path: string): boolean {
  return path.includes("\n") || isByteName(path);
}

interface Passing {
  /** Matches of the first file that belong to earlier pages. */
  readonly skip: number;
  readonly contextLines: number;
}

async function* readBatch(
  reader: MatchReader,
  files: readonly CountedFile[],
  passing: Passing,
): AsyncGenerator<Match[]> {
  const [first] = files;
  if (first === undefined) return;
  const args = [...lineArguments, `--context=${passing.contextLines}`];
  if (!isReadAlone(first.path)) {
    const paths = files.map(({ path }) => `./${path}`);
    yield* parseMatches(reader.start(args, paths), { ...passing, files, root: reader.root });
    return;
  }
  const handle = await openRegular(diskName(join(reader.root, first.path))).catch(() => undefined);
  if (handle === undefined) return;
  try {
    yield* parseMatches(reader.start(args, handle), { ...passing, files, root: reader.root });
  } finally {
    await handle.close();
  }
}

interface Parsing extends Passing {
  readonly root: string;
  readonly files: readonly CountedFile[];
}

/** A batch for each part of the output. */
async function* parseMatches(process: StartedProcess, parsing: Parsing): AsyncGenerator<Match[]> {
  const reader = createFileReader(parsing);
  let dropped = Math.min(parsing.skip, parsing.contextLines);
  for await (const batch of splitRecords(process.output, "\n")) {
    const found: Match[] = [];
    for (const record of batch) {
      const line = parseLine(record);
      if (line === undefined) continue;
      found.push(...reader.enter(line.name));
      const near = reader.pass(line);
      if (near !== undefined) found.push(...(await reader.add(near)));
    }
    dropped -= found.splice(0, dropped).length;
    if (found.length > 0) yield found;
  }
  yield reader.end().slice(dropped);
}

interface FileReader {
  /** Ends the file before, where the name is another one. */
  enter(name: string): Match[];
  /** Undefined for a line that is shown on no page from here on: there may be a million, so nothing is made of them. */
  pass(line: RipgrepLine): RipgrepLine | undefined;
  add(line: RipgrepLine): Promise<Match[]>;
  end(): Match[];
}

function createFileReader({ skip, contextLines, root, files }: Parsing): FileReader {
  // As many matches before the first one shown may stand in its context.
  let unread = Math.max(skip - contextLines, 0);
  let current: { readonly name: string; readonly file: CountedFile; seen: number } | undefined;
  let collector = createMatchCollector("", contextLines);
  return {
    enter: (name) => {
      if (current?.name === name) return [];
      const ended = collector.end();
      const file = (files.length === 1 ? files[0] : files.find(({ path }) => path === name)) ?? {
        path: name,
        count: 0,
      };
      current = { name, file, seen: 0 };
      collector = createMatchCollector(shownName(file.path), contextLines);
      return ended;
    },
    pass: (line) => {
      if (line.column === undefined) return unread === 0 ? line : undefined;
      if (current !== undefined) current.seen++;
      if (unread > 0) {
        unread--;
        return undefined;
      }
      const isCounted = current !== undefined && current.seen <= current.file.count;
      return isCounted ? line : { ...line, column: undefined };
    },
    add: async (line) => collector.add(await searchedLine(line, join(root, current?.file.path ?? ""))),
    end: () => collector.end(),
  };
}
