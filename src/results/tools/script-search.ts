/** Searches without ripgrep: file by file in the order of the list, until there is enough for the page and a little
 *  more, or until time is up. */
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { createContext, Script } from "node:vm";
import { cutText } from "../../core/text/index.ts";
import { isFailure, type ToolFailure, type ToolResult } from "../session/index.ts";
import { createWindow, type Window } from "./define-tool.ts";
import {
  createMatchCollector,
  createMatchedFile,
  deniedFilesWarning,
  type Match,
  type MatchedFile,
  type SearchRequest,
} from "./match.ts";
import { failure, formatCount, formatSize, listLate, type Run } from "./run.ts";
import {
  byteNamesWarning,
  createContainedDirectories,
  diskName,
  displayName,
  isByteName,
  isDenied,
  openRegular,
} from "./source/contained-path.ts";
import { listPaths } from "./source/list-paths.ts";
import { secretWarning } from "./source/secret-paths.ts";
import { decodeFile } from "./source/text-encoding.ts";

const maxFileBytes = 8 * 1024 * 1024;
/** A pattern that is too slow in that many files is too slow in the others too. */
const maxSlowFiles = 3;
const maxAtOnce = 16;

export async function searchByScript(request: SearchRequest, run: Run): Promise<ToolResult | ToolFailure> {
  // Long enough for any file of `maxFileBytes` and a harmless pattern. Nothing else runs during that time.
  const matcher = createLineMatcher(request.pattern, { ...request, timeoutMs: 500 });
  if (isFailure(matcher)) return matcher;
  const list = await listPaths(run, request.path);
  if (isFailure(list)) return list;
  const { offset, maxResults } = request;
  const search: Search = {
    request,
    run,
    matcher,
    isContained: createContainedDirectories(run.root),
    window: createWindow<Match | MatchedFile>({ offset, limit: maxResults }),
    seen: { searched: 0, matched: 0, large: 0, denied: 0, byteNames: 0, slow: [], secret: [] },
  };
  for await (const batch of list.batches) {
    const wanted = batch.filter(request.files.matches);
    search.seen.secret.push(...wanted.filter((path) => request.isSecret(path)).map(displayName));
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
  readonly window: Window<Match | MatchedFile>;
  readonly seen: Record<"searched" | "matched" | "large" | "denied" | "byteNames", number> & {
    slow: string[];
    secret: string[];
  };
}

/** Counting to the end of a large tree would take minutes. Searching one page ahead is enough to continue. */
function isEnough({ window, request, run, seen }: Search): boolean {
  if (run.signal.aborted || seen.slow.length >= maxSlowFiles) return true;
  return window.total() > request.offset + 2 * request.maxResults;
}

async function searchBatch(search: Search, paths: readonly string[]): Promise<void> {
  for (let at = 0; at < paths.length && !isEnough(search); at += maxAtOnce) {
    const some = paths.slice(at, at + maxAtOnce);
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

/** Returns undefined if the path is not a text file: binary, a link, a pipe, or gone. */
async function readText(
  { run, isContained }: Search,
  path: string,
): Promise<FileText | "large" | "denied" | undefined> {
  let handle: FileHandle | undefined;
  try {
    if (!(await isContained(path))) return undefined;
    handle = await openRegular(diskName(join(run.root, path)), run.root);
    const stats = await handle.stat();
    if (!stats.isFile()) return undefined;
    if (stats.size > maxFileBytes) return "large";
    const text = decodeFile(await handle.readFile());
    if (text === undefined) return undefined;
    const lines = text.split(/\r?\n/);
    // Text after the last line break is a line only if it is not empty.
    if (lines.at(-1) === "") lines.pop();
    return { path, lines };
  } catch (error) {
    return isDenied(error) ? "denied" : undefined;
  } finally {
    await handle?.close();
  }
}

/** If the texts together take too long, each is tried alone, to find the slow one. */
function searchTexts(search: Search, texts: readonly FileText[]): void {
  const together = search.matcher.find(texts.map(({ lines }) => lines));
  for (const [index, text] of texts.entries()) {
    if (isEnough(search)) return;
    const [found] = together?.slice(index, index + 1) ?? search.matcher.find([text.lines]) ?? [];
    search.seen.searched++;
    if (found === undefined) search.seen.slow.push(displayName(text.path));
    else if (found.length > 0) offerMatches(search, text, found);
  }
}

function offerMatches({ request, window, seen }: Search, { path, lines }: FileText, found: readonly FoundLine[]): void {
  seen.matched++;
  if (isByteName(path)) seen.byteNames++;
  if (request.mode !== "lines") {
    window.offer(() => createMatchedFile(displayName(path), found.length, request.mode), path.length);
    return;
  }
  const { contextLines } = request;
  const collector = createMatchCollector(displayName(path), contextLines);
  const places = new Map(found);
  const matches: Match[] = [];
  let next = 0;
  for (const [line] of found) {
    for (next = Math.max(next, line - contextLines); next <= Math.min(line + contextLines, lines.length - 1); next++) {
      matches.push(...collector.add({ number: next + 1, text: lines[next] ?? "", at: places.get(next) }));
    }
  }
  for (const match of [...matches, ...collector.end()]) window.offer(() => match, match.text.length);
}

function describe({ request, run, window, seen }: Search): ToolResult {
  const itemsName = request.mode === "lines" ? "matches" : "files";
  const stopped = window.total() > request.offset + 2 * request.maxResults;
  const isWhole = !stopped && !run.timedOut() && seen.slow.length < maxSlowFiles;
  return {
    fields: { search_tool: "javascript", files_searched: seen.searched, files_matched: seen.matched },
    itemsName,
    items: window.items,
    offset: request.offset,
    total: isWhole ? window.total() : undefined,
    more: run.timedOut() || window.more(),
    warnings: [
      ...listLate(run, "the search"),
      ...(stopped ? [`Not all files were searched. There are at least ${window.total()} ${itemsName}.`] : []),
      ...(seen.large > 0
        ? [
            `${formatCount(seen.large, ["file", "files"])} above ${formatSize(maxFileBytes)} ${seen.large === 1 ? "was" : "were"} not searched.`,
          ]
        : []),
      ...[secretWarning(seen.secret, "searched") ?? []].flat(),
      ...(seen.denied > 0 ? [deniedFilesWarning] : []),
      ...(seen.slow.length > 0
        ? [`The pattern takes too long and was stopped in ${seen.slow.join(", ")}. Simplify it.`]
        : []),
      ...[byteNamesWarning(seen.byteNames) ?? []].flat(),
    ],
  };
}

/** A regular expression with a time limit. Node's own engine backtracks: `(a+)+$` on forty letters never ends and
 *  blocks everything else. A `vm` script can be stopped. A worker would take longer to start than most searches. */
export interface LineMatcher {
  /** Returns the matching lines of each text, counted from 0, and where the match begins. Undefined if it took too
   *  long. */
  find(texts: readonly (readonly string[])[]): readonly (readonly FoundLine[])[] | undefined;
}

type FoundLine = readonly [line: number, at: number];

export function createLineMatcher(
  pattern: string,
  options: {
    readonly isRegex: boolean;
    readonly caseSensitive: boolean;
    /** For one call. Starting a script with a limit costs as much as reading a file, so pass several texts. */
    readonly timeoutMs: number;
  },
): LineMatcher | ToolFailure {
  const { isRegex, caseSensitive, timeoutMs } = options;
  // ripgrep's way to ignore case. Node's engine does not know it at the start of a pattern.
  const [, inline = "", plain = pattern] = (isRegex && /^\(\?([ims]+)\)(.*)$/s.exec(pattern)) || [];
  const source = isRegex ? plain : pattern.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  const flags = [...new Set(`${inline}${caseSensitive ? "" : "i"}`)].join("");
  const expression = isRegex ? compile(source, flags) : new RegExp(source, flags);
  if (typeof expression === "string") return failure("invalid_pattern", expression, "Check the regular expression.");
  const context = createContext({ expression, texts: [] as readonly (readonly string[])[] });
  return {
    find: (texts) => {
      context.texts = texts;
      try {
        return script.runInContext(context, { timeout: timeoutMs });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ERR_SCRIPT_EXECUTION_TIMEOUT") return undefined;
        throw error;
      } finally {
        context.texts = [];
      }
    },
  };
}

const script = new Script(`
  texts.map((lines) => {
    const found = [];
    for (let line = 0; line < lines.length; line++) {
      const at = lines[line].search(expression);
      if (at >= 0) found.push([line, at]);
    }
    return found;
  });
`);

/** Uses Unicode mode if the pattern allows it. That mode rejects `\-`, which ripgrep accepts. */
function compile(source: string, flags: string): RegExp | string {
  try {
    return new RegExp(source, `${flags}u`);
  } catch {
    // The code below does without it.
  }
  try {
    return new RegExp(source, flags);
  } catch (error) {
    return `The pattern is not valid: ${cutText((error as Error).message, 300).text}.`;
  }
}
