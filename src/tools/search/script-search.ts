/** Searches without ripgrep: file after file in the order of the list, until the page and a little more is found or time is up. */
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";
import { fileSize, numbered } from "../frame/phrases.ts";
import { lateWarning, type Run } from "../frame/run.ts";
import { createWindow, type Window } from "../frame/window.ts";
import { byteNamesWarning, diskName, isByteName, shownName } from "../source/byte-names.ts";
import { createContainedDirectories } from "../source/contained-directories.ts";
import { isDenied } from "../source/denied.ts";
import { listPaths } from "../source/list-paths.ts";
import { openRegular } from "../source/open-regular.ts";
import { secretWarning } from "../source/secret-paths.ts";
import { decodeFile } from "../source/text-encoding.ts";
import { createLineMatcher, type FoundLine, type LineMatcher } from "./line-matcher.ts";
import { createMatchCollector, deniedFilesWarning, type Match, type SearchRequest } from "./match.ts";

/** Long enough for any file of `mostFileBytes` and a harmless pattern. Nothing else runs meanwhile. */
const matchTimeoutMs = 500;
const mostFileBytes = 8 * 1024 * 1024;
/** A pattern that is too slow in so many files is so in the others too. */
const mostSlowFiles = 3;
const filesAtOnce = 16;

export async function searchByScript(request: SearchRequest, run: Run): Promise<ToolResult | ToolFailure> {
  const matcher = createLineMatcher(request.pattern, { ...request, timeoutMs: matchTimeoutMs });
  if (isFailure(matcher)) return matcher;
  const list = await listPaths(run, request.path);
  if (isFailure(list)) return list;
  const { offset, maxResults } = request;
  const search: Search = {
    request,
    run,
    matcher,
    isContained: createContainedDirectories(run.root),
    window: createWindow<Match>({ offset, limit: maxResults }),
    seen: { searched: 0, matched: 0, large: 0, denied: 0, byteNames: 0, slow: [], secret: [] },
  };
  for await (const batch of list.batches) {
    const wanted = batch.filter(request.files.matches);
    search.seen.secret.push(...wanted.filter((path) => request.isSecret(path)).map(shownName));
    await searchBatch(
      search,
      wanted.filter((path) => !request.isSecret(path)),
    );
    if (isEnough(search)) break;
  }
  search.seen.denied += list.denied();
  return describe(search);
}

interface Search {
  readonly request: SearchRequest;
  readonly run: Run;
  readonly matcher: LineMatcher;
  isContained(path: string): Promise<boolean>;
  readonly window: Window<Match>;
  readonly seen: Record<"searched" | "matched" | "large" | "denied" | "byteNames", number> & {
    slow: string[];
    secret: string[];
  };
}

/** Counting to the end of a large tree would take minutes: another page ahead is enough to go on. */
function isEnough({ window, request, run, seen }: Search): boolean {
  if (run.signal.aborted || seen.slow.length >= mostSlowFiles) return true;
  return window.total() > request.offset + 2 * request.maxResults;
}

async function searchBatch(search: Search, paths: readonly string[]): Promise<void> {
  for (let at = 0; at < paths.length && !isEnough(search); at += filesAtOnce) {
    const some = paths.slice(at, at + filesAtOnce);
    const read = await Promise.all(some.map((path) => readText(search, path)));
    search.seen.large += read.filter((each) => each === "large").length;
    search.seen.denied += read.filter((each) => each === "denied").length;
    searchTexts(
      search,
      read.filter((each) => typeof each === "object"),
    );
  }
}

interface FileText {
  readonly path: string;
  readonly lines: readonly string[];
}

/** Undefined for what is no text: binary, a link, a pipe, gone. */
async function readText(
  { run, isContained }: Search,
  path: string,
): Promise<FileText | "large" | "denied" | undefined> {
  let handle: FileHandle | undefined;
  try {
    if (!(await isContained(path))) return undefined;
    handle = await openRegular(diskName(join(run.root, path)));
    const stats = await handle.stat();
    if (!stats.isFile()) return undefined;
    if (stats.size > mostFileBytes) return "large";
    const text = decodeFile(await handle.readFile());
    return text === undefined ? undefined : { path, lines: linesOf(text) };
  } catch (error) {
    return isDenied(error) ? "denied" : undefined;
  } finally {
    await handle?.close();
  }
}

/** What follows the last line break is no line when it is empty. */
function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** When it takes too long together, each is tried alone: then it is known where. */
function searchTexts(search: Search, texts: readonly FileText[]): void {
  const together = search.matcher.find(texts.map(({ lines }) => lines));
  for (const [index, text] of texts.entries()) {
    if (isEnough(search)) return;
    const [found] = together?.slice(index, index + 1) ?? search.matcher.find([text.lines]) ?? [];
    search.seen.searched++;
    if (found === undefined) search.seen.slow.push(shownName(text.path));
    else if (found.length > 0) offerMatches(search, text, found);
  }
}

function offerMatches(
  { request, window, seen }: Search,
  { path, lines }: FileText,
  found: readonly FoundLine[],
): void {
  seen.matched++;
  if (isByteName(path)) seen.byteNames++;
  const collector = createMatchCollector(shownName(path), request.contextLines);
  for (const match of [...collectMatches(collector, { lines, found, request }), ...collector.end()]) {
    window.offer(() => match, match.text.length);
  }
}

interface FileMatches {
  readonly lines: readonly string[];
  readonly found: readonly FoundLine[];
  readonly request: SearchRequest;
}

function* collectMatches(
  collector: ReturnType<typeof createMatchCollector>,
  { lines, found, request: { contextLines } }: FileMatches,
): Generator<Match> {
  const places = new Map(found);
  let next = 0;
  for (const [line] of found) {
    for (
      next = Math.max(next, line - contextLines);
      next <= Math.min(line + contextLines, lines.length - 1);
      next++
    ) {
      yield* collector.add({ number: next + 1, text: lines[next] ?? "", at: places.get(next) });
    }
  }
}

function describe({ request, run, window, seen }: Search): ToolResult {
  const stopped = window.total() > request.offset + 2 * request.maxResults;
  const isWhole = !stopped && !run.timedOut() && seen.slow.length < mostSlowFiles;
  return {
    fields: { search_tool: "javascript", files_searched: seen.searched, files_matched: seen.matched },
    itemsName: "matches",
    items: window.items,
    offset: request.offset,
    total: isWhole ? window.total() : undefined,
    more: run.timedOut() || window.more(),
    warnings: [
      ...(run.timedOut() ? [lateWarning(run, "the search")] : []),
      ...(stopped ? [`Not all was searched: there are at least ${window.total()} matches.`] : []),
      ...(seen.large > 0 ? [notSearched(seen.large)] : []),
      ...[secretWarning(seen.secret, "searched") ?? []].flat(),
      ...(seen.denied > 0 ? [deniedFilesWarning] : []),
      ...(seen.slow.length > 0
        ? [`The pattern takes too long and was stopped in ${seen.slow.join(", ")}: simplify it.`]
        : []),
      ...[byteNamesWarning(seen.byteNames) ?? []].flat(),
    ],
  };
}

function notSearched(large: number): string {
  return `${numbered(large, ["file", "files"])} above ${fileSize(mostFileBytes)} ${large === 1 ? "was" : "were"} not searched.`;
}
