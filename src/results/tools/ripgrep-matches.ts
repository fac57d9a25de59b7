/** Reads the matches of files whose number of matches is known. */

import { isUtf8 } from "node:buffer";
import { createHash } from "node:crypto";
import { type FileHandle, lstat } from "node:fs/promises";
import { join } from "node:path";
import { decodeBytes, type StartedProcess, splitRecords } from "../../host/index.ts";
import { createMatchCollector, type Match, type SearchedLine } from "./match.ts";
import { diskName, displayName, isByteName, openRegular } from "./source/contained-path.ts";
import { decodeLine } from "./source/text-encoding.ts";

export interface CountedFile {
  readonly path: string;
  readonly count: number;
}

interface MatchRange {
  readonly offset: number;
  readonly maxResults: number;
  readonly contextLines: number;
}

interface MatchReader {
  readonly root: string;
  /** Starts ripgrep with arguments before the pattern, and with the files to search or an open file. */
  start(args: readonly string[], files: readonly string[] | FileHandle): StartedProcess;
}

interface OpenedMatches {
  /** As many matches of each file as were counted. They are read when they are asked for. */
  readonly matches: AsyncIterable<Match>;
  /** Changes if other files match, if they have more or fewer matches, or if one of the first files was written. */
  readonly version: string;
}

export async function openMatches(
  reader: MatchReader,
  files: readonly CountedFile[],
  range: MatchRange,
): Promise<OpenedMatches> {
  const hash = createHash("sha1");
  for (const { path, count } of files) hash.update(`${path}\0${count}\0`);
  // Checking a hundred thousand files would take longer than searching them.
  const some = files.slice(0, 1_000);
  for (let at = 0; at < some.length; at += 64) {
    const looks = some.slice(at, at + 64).map(async ({ path }) => {
      const stats = await lstat(diskName(join(reader.root, path))).catch(() => undefined);
      return stats === undefined ? "" : `${stats.size} ${stats.mtimeMs}`;
    });
    hash.update((await Promise.all(looks)).join("\0"));
  }
  return { matches: readMatches(reader, files, range), version: hash.digest("hex") };
}

/** Skips the matches before `offset`, first whole files, then lines. */
async function* readMatches(
  reader: MatchReader,
  files: readonly CountedFile[],
  { offset, maxResults, contextLines }: MatchRange,
): AsyncGenerator<Match> {
  let skip = offset;
  let at = 0;
  for (; at < files.length && skip >= (files[at]?.count ?? 0); at++) skip -= files[at]?.count ?? 0;
  let left = maxResults;
  while (at < files.length && left > 0) {
    const end = findBatchEnd(files, at);
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

function findBatchEnd(files: readonly CountedFile[], start: number): number {
  let matches = 0;
  let end = start;
  // Few files are read ahead, because a page seldom needs more.
  while (end < files.length && end < start + 50 && matches < 100) {
    if (isReadAlone(files[end]?.path ?? "") && end > start) break;
    matches += files[end++]?.count ?? 0;
    if (isReadAlone(files[end - 1]?.path ?? "")) break;
  }
  return end;
}

/** Node passes only text as arguments to a program, and a line break in a name would end a record. */
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
  const args = [
    "--text",
    "--with-filename",
    "--null",
    "--no-heading",
    "--line-number",
    "--column",
    "--byte-offset",
    `--max-columns=${maxLineBytes}`,
    "--max-columns-preview",
    "--no-context-separator",
    "--color=never",
    "--threads=1",
    `--context=${passing.contextLines}`,
  ];
  if (!isReadAlone(first.path)) {
    const paths = files.map(({ path }) => `./${path}`);
    yield* parseMatches(reader.start(args, paths), { ...passing, files, root: reader.root });
    return;
  }
  const handle = await openRegular(diskName(join(reader.root, first.path)), reader.root).catch(() => undefined);
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

/** Yields a batch for each part of the output. */
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

function createFileReader({ skip, contextLines, root, files }: Parsing) {
  // That many matches before the first shown one can be in its context.
  let unread = Math.max(skip - contextLines, 0);
  let current: { readonly name: string; readonly file: CountedFile; seen: number } | undefined;
  let collector = createMatchCollector("", contextLines);
  return {
    /** Ends the previous file if the name differs. */
    enter: (name: string): Match[] => {
      if (current?.name === name) return [];
      const ended = collector.end();
      const file = (files.length === 1 ? files[0] : files.find(({ path }) => path === name)) ?? {
        path: name,
        count: 0,
      };
      current = { name, file, seen: 0 };
      collector = createMatchCollector(displayName(file.path), contextLines);
      return ended;
    },
    /** Returns undefined for a line that no page from here on shows. There may be a million, so nothing is allocated for
     *  them. */
    pass: (line: RipgrepLine): RipgrepLine | undefined => {
      if (line.column === undefined) return unread === 0 ? line : undefined;
      if (current !== undefined) current.seen++;
      if (unread > 0) {
        unread--;
        return undefined;
      }
      const isCounted = current !== undefined && current.seen <= current.file.count;
      return isCounted ? line : { ...line, column: undefined };
    },
    add: async (line: RipgrepLine): Promise<Match[]> =>
      collector.add(await decodeMatch(line, { root, path: current?.file.path ?? "" })),
    end: (): Match[] => collector.end(),
  };
}

// Lines as ripgrep prints them: `PATH NUL LINE:COLUMN:OFFSET:TEXT`, and around a match `PATH NUL LINE-OFFSET-TEXT`. Its
// JSON is not used: it has each line with all its matches, however long, and parsing it takes longer than the search.

/** ripgrep prints this many bytes of a longer line, followed by a note. */
const maxLineBytes = 4_096;

interface RipgrepLine {
  readonly name: string;
  readonly number: number;
  /** In bytes, counted from 1. Only for matching lines. */
  readonly column: number | undefined;
  /** The offset of the line in the file. */
  readonly offset: number;
  /** A byte string. */
  readonly text: string;
}

const location = /(\d+)(?::(\d+):(\d+):|-(\d+)-)/y;

function parseLine(record: string): RipgrepLine | undefined {
  const end = record.indexOf("\0");
  location.lastIndex = end + 1;
  const found = end < 0 ? null : location.exec(record);
  if (found === null) return undefined;
  const [whole, number, column, offset = found[4]] = found;
  return {
    name: decodeBytes(record.slice(0, end)).replace(/^\.\//, ""),
    number: Number(number),
    column: column === undefined ? undefined : Number(column),
    offset: Number(offset),
    text: record.slice(end + 1 + whole.length),
  };
}

interface SearchedFile {
  readonly root: string;
  readonly path: string;
}

/** The text around a match after this column may not have been printed. */
const farBytes = 2_000;

/** If a line was printed in part, reads the text around a match far to the right from the file. */
async function decodeMatch(line: RipgrepLine, file: SearchedFile): Promise<SearchedLine> {
  const { number, column, offset } = line;
  const text = decodeLine(line.text);
  if (column === undefined) return { number, text };
  const start = column - 1;
  // The note makes the printed part longer than this. A last character that did not fit makes it a little shorter.
  const isPart = line.text.length > maxLineBytes - 64;
  const around = isPart && start > farBytes ? await readAround(file, offset + start) : undefined;
  if (around !== undefined) return { number, ...around };
  return { number, text, at: isPart && start > farBytes ? 0 : decodeLine(line.text.slice(0, start)).length };
}

/** Returns undefined if the file has other bytes than ripgrep searched (UTF-16) or can no longer be read. */
async function readAround(
  { root, path }: SearchedFile,
  at: number,
): Promise<Pick<SearchedLine, "text" | "at"> | undefined> {
  const handle = await openRegular(diskName(join(root, path)), root).catch(() => undefined);
  try {
    const mark = Buffer.alloc(2);
    await handle?.read(mark, 0, 2, 0);
    if (handle === undefined || /^(fffe|feff)$/.test(mark.toString("hex"))) return undefined;
    const bytes = Buffer.alloc(2 * farBytes);
    const { bytesRead } = await handle.read(bytes, 0, bytes.length, at - farBytes);
    const [line = ""] = bytes.toString("latin1", farBytes, bytesRead).split("\n");
    const before = decodeLine(trimCutEnds(bytes.subarray(0, farBytes)));
    return { text: before + decodeLine(trimCutEnds(Buffer.from(line, "latin1"))), at: before.length };
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}

/** Removes partial characters at both ends. Returns a byte string. */
function trimCutEnds(bytes: Buffer): string {
  for (let cut = 0; cut < 16; cut++) {
    const part = bytes.subarray(cut % 4, bytes.length - Math.floor(cut / 4));
    if (isUtf8(part)) return part.toString("latin1");
  }
  return bytes.toString("latin1");
}
