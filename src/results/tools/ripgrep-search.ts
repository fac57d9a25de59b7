/** Searches with ripgrep in two steps: one run counts the matches of every file on all cores, then the few files of the
 *  page are read. So totals are right and the order is fixed. ripgrep alone can do that only on one core. */

import { createHash } from "node:crypto";
import { type FileHandle, lstat } from "node:fs/promises";
import { join } from "node:path";
import { cutText, expandBraces } from "../../core/text/index.ts";
import { decodeBytes, loadProcesses, type ProcessEnd, type StartedProcess, splitRecords } from "../../host/index.ts";
import { isFailure, type ToolFailure, type ToolResult } from "../session/index.ts";
import {
  createMatchCollector,
  createMatchedFile,
  deniedFilesWarning,
  type FileFilter,
  type Match,
  type SearchedLine,
  type SearchRequest,
} from "./match.ts";
import { failure, listLate, type Run, startRun } from "./run.ts";
import {
  byteNamesWarning,
  createContainedDirectories,
  decodeName,
  diskName,
  displayName,
  isByteName,
  openRegular,
} from "./source/contained-path.ts";
import { startListing } from "./source/repository.ts";
import { secretWarning } from "./source/secret-paths.ts";
import { decodeLine, sampleEncoding, trimCutEnds } from "./source/text-encoding.ts";

export async function searchByRipgrep(
  program: string,
  request: SearchRequest,
  run: Run,
): Promise<ToolResult | ToolFailure> {
  const pattern = listPatternArguments(request);
  const { startProcess } = await loadProcesses();
  const start = (args: readonly string[], { root: cwd, env, signal }: Run, input?: number) =>
    startProcess(program, ["--no-config", ...args], { cwd, env, signal, input });
  // Leaves a part of the time to show what was found.
  const count = startRun(run, { signal: run.signal, timeoutMs: run.timeoutMs * 0.7 });
  const counting = start(
    [...countArguments, ...typeArguments(request.files), ...pattern, "--", `./${request.path}`],
    count,
  );
  const passedOver = countPassedOver(request, count, (paths) =>
    readCounts(start([...countArguments, ...pattern, "--", ...paths], count)),
  );
  const listing = findSecrets(request, count, (args) => start([...args, "--", `./${request.path}`], count));
  const found = await readCounts(counting);
  const tracked = await passedOver;
  const listed = await listing;
  const secrets = [...new Set([...listed, ...tracked.secrets])].sort();
  // In an ignored directory that a call names, ripgrep finds the same files.
  const known = new Set(found.files.map(({ path }) => path));
  const files = [...found.files, ...tracked.files.filter(({ path }) => !known.has(path))];
  const searched = found.searched && found.searched + tracked.searched - listed.length;
  const problem = explainFailure(await counting.end);
  count.finish();
  if (problem !== undefined && files.length === 0) return problem;
  const wanted = files.filter(({ path }) => request.files.matches(path) && !request.isSecret(path));
  wanted.sort((a, b) => (a.path < b.path ? -1 : 1));
  const startOn = (args: readonly string[], on: readonly string[] | FileHandle) =>
    "fd" in on ? start([...args, ...pattern, "--", "-"], run, on.fd) : start([...args, ...pattern, "--", ...on], run);
  const reader = { root: run.root, contextLines: request.contextLines, start: startOn };
  const version = await hashMatches(run.root, wanted);
  const isLate = (): boolean => count.timedOut() || run.timedOut();
  const isLines = request.mode === "lines";
  const total = isLines ? wanted.reduce((sum, { count }) => sum + count, 0) : wanted.length;
  const { mode, offset, maxResults } = request;
  return {
    fields: {
      search_tool: "ripgrep",
      files_searched: searched,
      files_matched: wanted.length,
    },
    itemsName: isLines ? "matches" : "files",
    items: isLines
      ? readMatches(reader, wanted, request)
      : wanted
          .slice(offset, offset + maxResults)
          .map(({ path, count }) => createMatchedFile(displayName(path), count, mode)),
    offset,
    total: () => (isLate() ? undefined : total),
    more: () => isLate() || offset + maxResults < total,
    version,
    warnings: () => [
      ...listLate({ ...run, timedOut: isLate }, "the search"),
      ...(found.denied || tracked.denied ? [deniedFilesWarning] : []),
      ...[secretWarning(secrets, "searched") ?? []].flat(),
      ...[byteNamesWarning(wanted.filter(({ path }) => isByteName(path)).length) ?? []].flat(),
    ],
  };
}

/** `-e` and `--` make sure that neither a pattern nor a path is read as an option. */
function listPatternArguments({ pattern, isRegex, caseSensitive }: SearchRequest): string[] {
  const mode = caseSensitive ? "--case-sensitive" : "--ignore-case";
  return ["--crlf", mode, ...(isRegex ? [] : ["--fixed-strings"]), "-e", pattern];
}

/** Searches hidden files, as git does. Skips what .gitignore files exclude, inside a repository or not. Ignores a
 *  person's own settings, so that a tree gives the same result on every machine. */
const walkArguments: readonly string[] = [
  "--null",
  "--no-messages",
  "--color=never",
  "--hidden",
  "--glob=!.git",
  "--no-require-git",
  "--no-ignore-global",
  "--no-ignore-dot",
];

const countArguments: readonly string[] = ["--count", "--with-filename", "--stats", ...walkArguments];

/** A ripgrep type is faster than checking every file, and unlike `--glob` it respects .gitignore. It knows names only,
 *  and only plain globs mean the same there, so our own glob is checked afterwards. */
function typeArguments({ pattern }: FileFilter): string[] {
  const globs = pattern === undefined ? [] : (expandBraces(pattern) ?? []);
  if (globs.length === 0 || !globs.every((glob) => /^[\w.*-]+$/.test(glob))) return [];
  return [...globs.map((glob) => `--type-add=wanted:${glob}`), "--type=wanted"];
}

/** Finds the searched files that usually have secrets. Their matches are dropped. They are named even without a match,
 *  because a search must not reveal what is in them. */
async function findSecrets(
  request: SearchRequest,
  { signal }: Run,
  start: (args: readonly string[]) => StartedProcess,
): Promise<string[]> {
  const { path, files, knownSecrets } = request;
  const known = knownSecrets.get(path);
  const isKnown = known !== undefined && known.until > performance.now();
  const paths: string[] = isKnown ? [...known.paths] : [];
  if (!isKnown) {
    for await (const batch of splitRecords(start(["--files", ...walkArguments]).output, "\0")) {
      const names = batch.map((record) => decodeName(record).replace(/^(\.\/)+/, ""));
      paths.push(...names.filter((name) => request.isSecret(name)));
    }
    paths.sort();
  }
  if (!isKnown && !signal.aborted) {
    knownSecrets.clear();
    // Walking a large tree a second time takes long, and its result seldom changes.
    knownSecrets.set(path, { paths, until: performance.now() + 30_000 });
  }
  return paths.filter((each) => files.matches(each)).map(displayName);
}

/** Reads `PATH NUL COUNT LF` repeatedly, and at the end the output of `--stats`. */
async function readCounts({ output, end: ending }: StartedProcess): Promise<Counts> {
  const files: CountedFile[] = [];
  let path: string | undefined;
  let rest = "";
  for await (const batch of splitRecords(output, "\0", "keep")) {
    for (const record of batch) {
      const end = path === undefined ? -1 : record.indexOf("\n");
      if (path !== undefined && end > 0) files.push({ path, count: Number(record.slice(0, end)) });
      rest = record.slice(end + 1);
      path = decodeName(rest).replace(/^(\.\/)+/, "");
    }
  }
  const searched = /^(\d+) files? searched$/m.exec(rest)?.[1];
  const denied = isDeniedEnd(await ending);
  return { files, searched: searched === undefined ? undefined : Number(searched), denied };
}

/** Exit code 2 is an error in the call. Files that could not be read give it too, without a message. */
function isDeniedEnd({ code, stderr }: ProcessEnd): boolean {
  return code === 2 && stderr.trim() === "";
}

function explainFailure(end: ProcessEnd): ToolFailure | undefined {
  const { code, stderr } = end;
  if (code !== 2 || isDeniedEnd(end)) return undefined;
  const line = /^error: (.+)$/m.exec(stderr)?.[1] ?? stderr.replace(/^rg: /, "").split("\n")[0] ?? "";
  const reason = cutText(line, 300).text;
  const hint = /look-around|backreference/.test(reason)
    ? "Rewrite it without look-around and backreferences."
    : "Check the regular expression.";
  return /regex|literal/.test(stderr)
    ? failure("invalid_pattern", `The pattern is not valid: ${reason}.`, hint)
    : failure("search_failed", `ripgrep failed: ${reason}`);
}

/** Files that git tracks although .gitignore excludes them. ripgrep skips them but the list of files has them. So they
 *  are searched by name. Then ripgrep also searches links and binary files, which are removed here. */
interface Counts {
  readonly files: readonly CountedFile[];
  /** Undefined if ripgrep did not finish. */
  readonly searched: number | undefined;
  /** Whether some files could not be read. */
  readonly denied: boolean;
}

/** `count` counts the matches of the given files. */
async function countPassedOver(
  { path, files: filter, isSecret }: SearchRequest,
  run: Run,
  count: (paths: readonly string[]) => Promise<Counts>,
): Promise<Counts & { readonly searched: number; readonly secrets: readonly string[] }> {
  const all = (await listTrackedIgnored(run, path)).filter(filter.matches);
  const secrets = all.filter((each) => isSecret(each));
  const tracked = all.filter((each) => !isSecret(each));
  const isContained = createContainedDirectories(run.root);
  const readable = await choose(
    tracked,
    async (each) => (await isContained(each)) && (await lstat(join(run.root, each))).isFile(),
  );
  const found: CountedFile[] = [];
  let searched = 0;
  let denied = false;
  // That many names fit on a command line.
  for (let at = 0; at < readable.length && !run.signal.aborted; at += 200) {
    const counts = await count(readable.slice(at, at + 200).map((each) => `./${each}`));
    found.push(...counts.files);
    searched += counts.searched ?? 0;
    denied ||= counts.denied;
  }
  const files = await choose(found, async (file) => {
    const handle = await openRegular(join(run.root, file.path), run.root);
    try {
      return (await handle.stat()).isFile() && (await sampleEncoding(handle)) !== "binary";
    } finally {
      await handle.close();
    }
  });
  return { files, searched, denied, secrets };
}

async function listTrackedIgnored(run: Run, path: string): Promise<string[]> {
  const git = await startListing(run, ["--cached", "--ignored"], path);
  if (isFailure(git)) return [];
  const paths = new Set<string>();
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) paths.add(decodeName(record));
  }
  // A name that is not text cannot be an argument, and a line break would end a name in ripgrep's output.
  return [...paths].filter((each) => !isByteName(each) && !each.includes("\n"));
}

/** Skips what cannot be read: it is gone or not permitted. */
async function choose<Each>(all: readonly Each[], isChosen: (each: Each) => Promise<boolean>): Promise<Each[]> {
  const chosen: Each[] = [];
  for (let at = 0; at < all.length; at += 64) {
    const some = all.slice(at, at + 64);
    const answers = await Promise.all(some.map((each) => isChosen(each).catch(() => false)));
    chosen.push(...some.filter((_, index) => answers[index]));
  }
  return chosen;
}

interface CountedFile {
  readonly path: string;
  readonly count: number;
}

/** Returns a text that changes if other files match, if they have more or fewer matches, or if one of the first files was
 *  written. */
async function hashMatches(root: string, files: readonly CountedFile[]): Promise<string> {
  const hash = createHash("sha1");
  for (const { path, count } of files) hash.update(`${path}\0${count}\0`);
  // Checking a hundred thousand files would take longer than searching them.
  const some = files.slice(0, 1_000);
  for (let at = 0; at < some.length; at += 64) {
    const looks = some.slice(at, at + 64).map(async ({ path }) => {
      const stats = await lstat(diskName(join(root, path))).catch(() => undefined);
      return stats === undefined ? "" : `${stats.size} ${stats.mtimeMs}`;
    });
    hash.update((await Promise.all(looks)).join("\0"));
  }
  return hash.digest("hex");
}

interface MatchReader {
  readonly root: string;
  readonly contextLines: number;
  /** Starts ripgrep with arguments before the pattern, and with the files to search or an open file. */
  start(args: readonly string[], files: readonly string[] | FileHandle): StartedProcess;
}

/** Yields as many matches of each file as were counted. They are read when they are asked for. Skips the matches before
 *  `offset`, first whole files, then lines. */
async function* readMatches(
  reader: MatchReader,
  files: readonly CountedFile[],
  { offset, maxResults }: Pick<SearchRequest, "offset" | "maxResults">,
): AsyncGenerator<Match> {
  let skip = offset;
  let at = 0;
  for (; at < files.length && skip >= (files[at]?.count ?? 0); at++) skip -= files[at]?.count ?? 0;
  let left = maxResults;
  while (at < files.length && left > 0) {
    const end = findBatchEnd(files, at);
    for await (const matches of readBatch(reader, files.slice(at, end), skip)) {
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

/** `skip` is the number of matches of the first file that belong to earlier pages. */
async function* readBatch(reader: MatchReader, files: readonly CountedFile[], skip: number): AsyncGenerator<Match[]> {
  const { root, contextLines } = reader;
  const parsing = { root, contextLines, files, skip };
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
    `--context=${contextLines}`,
  ];
  if (!isReadAlone(first.path)) {
    const paths = files.map(({ path }) => `./${path}`);
    yield* parseMatches(reader.start(args, paths), parsing);
    return;
  }
  const handle = await openRegular(diskName(join(root, first.path)), root).catch(() => undefined);
  if (handle === undefined) return;
  try {
    yield* parseMatches(reader.start(args, handle), parsing);
  } finally {
    await handle.close();
  }
}

interface Parsing extends Pick<MatchReader, "root" | "contextLines"> {
  readonly files: readonly CountedFile[];
  readonly skip: number;
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
      collector.add(await decodeMatch(line, root, current?.file.path ?? "")),
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

/** The text around a match after this column may not have been printed. */
const farBytes = 2_000;

/** If a line was printed in part, reads the text around a match far to the right from the file. */
async function decodeMatch(line: RipgrepLine, root: string, path: string): Promise<SearchedLine> {
  const { number, column, offset } = line;
  const text = decodeLine(line.text);
  if (column === undefined) return { number, text };
  const start = column - 1;
  // The note makes the printed part longer than this. A last character that did not fit makes it a little shorter.
  const isPart = line.text.length > maxLineBytes - 64;
  const around = isPart && start > farBytes ? await readAround(join(root, path), root, offset + start) : undefined;
  if (around !== undefined) return { number, ...around };
  return { number, text, at: isPart && start > farBytes ? 0 : decodeLine(line.text.slice(0, start)).length };
}

/** Returns undefined if the file has other bytes than ripgrep searched (UTF-16) or can no longer be read. */
async function readAround(
  path: string,
  root: string,
  at: number,
): Promise<Pick<SearchedLine, "text" | "at"> | undefined> {
  const handle = await openRegular(diskName(path), root).catch(() => undefined);
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
