import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { createContext, Script } from "node:vm";
import { createGlob, cutText } from "../../core/text/index.ts";
import { type Environment, findProgram } from "../../host/index.ts";
import {
  type BudgetedTool,
  type CompressInput,
  isFailure,
  type PageData,
  type ParameterValues,
  type ToolFailure,
  type ToolResult,
} from "../session/index.ts";
import { createWindow, defineTool, type ToolAnswer, type Window } from "./define-tool.ts";
import {
  createMatchCollector,
  createMatchedFile,
  deniedFilesWarning,
  type Match,
  type MatchedFile,
  type SearchRequest,
} from "./match.ts";
import { searchByRipgrep } from "./ripgrep-search.ts";
import {
  baseName,
  countNames,
  describeCount,
  failure,
  formatCount,
  formatSize,
  linePath,
  listCounts,
  listLate,
  listNames,
  quoteArgument,
  type Run,
  readWholeItems,
  shortenLine,
  type ToolPlace,
} from "./run.ts";
import {
  byteNamesWarning,
  containExisting,
  createContainedDirectories,
  diskName,
  displayName,
  isByteName,
  isDenied,
  openRegular,
} from "./source/contained-path.ts";
import { listPaths } from "./source/list-paths.ts";
import { isSecretPath, refuseSecret, secretWarning } from "./source/secret-paths.ts";
import { decodeFile } from "./source/text-encoding.ts";

const parameters = {
  pattern: { type: "string", description: "Text within one line.", required: true },
  is_regex: { type: "boolean", description: "pattern is a regular expression.", default: false },
  mode: {
    type: "string",
    enum: ["lines", "files", "count"],
    description: "files: only paths. count: paths and how many matches.",
    default: "lines",
  },
  path: { type: "string", description: "File or directory to search, relative to the root.", default: "." },
  file_pattern: {
    type: "string",
    description: "Glob: `*.ts` at any depth, `src/**/*.ts` from the root.",
  },
  context_lines: {
    type: "integer",
    description: "Default: 0.",
    default: 0,
    minimum: 0,
  },
  max_results: {
    type: "integer",
    description: "Most items to return. Default: 50 matches, or as many files as fit.",
    minimum: 1,
  },
  case_sensitive: { type: "boolean", description: "Default: if pattern has capitals." },
} as const;

/** `find` returns the program to search with. Without one, the search runs in this process. */
export function createSearchContent(
  place: ToolPlace,
  find: typeof findRipgrep = findRipgrep,
): BudgetedTool<"search_content"> {
  const knownSecrets: SearchRequest["knownSecrets"] = new Map();
  return defineTool({
    name: "search_content",
    description: "Find a text or a regular expression in files, without those that .gitignore excludes.",
    parameters,
    limitParameter: "max_results",
    compress: compressSearch,
    renderText: renderMatches,
    run: (values, run) => searchContent(values, run, { find, knownSecrets }),
  })(place);
}

async function searchContent(
  values: ParameterValues<typeof parameters> & { readonly offset: number },
  run: Run,
  searcher: Pick<SearchRequest, "knownSecrets"> & {
    readonly find: typeof findRipgrep;
  },
): Promise<ToolAnswer> {
  const { find, knownSecrets } = searcher;
  const { pattern, file_pattern } = values;
  if (/[\n\r]/.test(pattern)) {
    return failure("invalid_pattern", "pattern has several lines, but lines are searched one by one.");
  }
  const contained = await containExisting(run.root, values.path);
  if (isFailure(contained)) return contained;
  if (!contained.stats.isFile() && !contained.stats.isDirectory()) {
    return failure("unreadable", `${quoteArgument(values.path)} is a pipe, socket or device.`);
  }
  if (contained.stats.isFile() && (await isDeniedFile(contained.real, run.root))) {
    return failure("unreadable", `${quoteArgument(values.path)} cannot be read: permission denied.`);
  }
  const refused = await refuseSecret(run, contained);
  if (refused !== undefined) return refused;
  const matches = file_pattern === undefined ? () => true : createGlob(file_pattern);
  if (matches === undefined) {
    return failure("invalid_pattern", "The braces in file_pattern expand to too many globs.");
  }
  const { path: named, realPath } = contained;

  const request: SearchRequest = {
    pattern,
    isRegex: values.is_regex,
    // Programs with smart case do the same: a capital after a backslash, as in \\W, does not count.
    caseSensitive: values.case_sensitive ?? /\p{Lu}/u.test(pattern.replaceAll(/\\./gsu, "")),
    path: contained.path,
    knownSecrets,
    isSecret: (path) => {
      // The directory may have been named by a link.
      const real = named === realPath ? path : (realPath + path.slice(named.length)).replace(/^\.\//, "");
      return isSecretPath(run, path, real);
    },
    files: { pattern: file_pattern, matches },
    contextLines: Math.min(values.context_lines, 100),
    mode: values.mode,
    maxResults: values.max_results ?? (values.mode === "lines" ? 50 : Number.POSITIVE_INFINITY),
    offset: values.offset,
  };
  const ignored = isIgnoredPath(run, request.path);
  const program = await find(run.env);
  const result =
    program === undefined ? await searchByScript(request, run) : await searchByRipgrep(program, request, run);
  if (!(await ignored) || isFailure(result)) return result;
  const warning = `git ignores ${request.path}. It was searched because the call names it.`;
  const { warnings = [] } = result;
  return { ...result, warnings: () => [warning, ...(warnings instanceof Function ? warnings() : warnings)] };
}

async function isDeniedFile(path: string, root: string): Promise<boolean> {
  try {
    await (await openRegular(path, root)).close();
    return false;
  } catch (error) {
    return isDenied(error);
  }
}

/** `Found 50 matches for 'createStore' in 12 files: store.ts (9), main.ts (5), +10 more. First: src/store.ts:14 export
 *  function …` */
function compressSearch({ args, data }: CompressInput): string {
  const pattern = shortenLine(String(args.pattern ?? ""), 60);
  const matches = readWholeItems<Match>(data.matches, "path", "text");
  if (Array.isArray(data.files)) return compressFiles(pattern, data);
  const found = `Found ${describeCount(data, ["match", "matches"])} for '${pattern}'`;
  const [first] = matches;
  if (first === undefined) return found;
  const files = countNames(matches.map(({ path }) => path));
  const place = `${shortenLine(first.path, 100)}:${first.line} ${shortenLine(first.text, 80)}`;
  const where = formatCount(files.length, ["file", "files"]);
  return `${found} in ${where}: ${listCounts(nameFiles(files), 2)}. First: ${place}`;
}

/** `Found 'createStore' in 12 files: store.ts, main.ts, +10 more` */
function compressFiles(pattern: string, data: CompressInput["data"]): string {
  const files = readFiles(data);
  const names = listNames(
    files.map(({ path }) => shortenLine(baseName(path), 40)),
    3,
  );
  return `Found '${pattern}' in ${describeCount(data, ["file", "files"])}${files.length === 0 ? "" : `: ${names}`}`;
}

function readFiles({ files }: Readonly<Record<string, unknown>>): MatchedFile[] {
  return readWholeItems<MatchedFile>(files, "path");
}

/** Like `rg --heading -n`: each file once, then its lines in order. A line number and `:` is a match, `-` is context. */
function renderMatches(page: PageData): string {
  if (page.files !== undefined) {
    return readFiles(page)
      .map(({ path, matches }) => `${linePath(path)}${matches === undefined ? "" : `:${matches}`}`)
      .join("\n");
  }
  const files = new Map<string, Map<number, string>>();
  for (const match of readWholeItems<Match>(page.matches, "path")) {
    const lines = files.get(match.path) ?? new Map<number, string>();
    files.set(match.path, lines);
    // Context that is a match itself, or that another match shows too, is shown once.
    const { line, text, before = [], after = [] } = match;
    const addContext = (number: number, context: string): void => {
      if (!lines.has(number)) lines.set(number, `-${context}`);
    };
    for (const [index, context] of before.entries()) addContext(line - before.length + index, context);
    lines.set(line, `:${text}`);
    for (const [index, context] of after.entries()) addContext(line + 1 + index, context);
  }
  const blocks = [...files].map(([path, lines]) => {
    const sorted = [...lines].sort(([left], [right]) => left - right);
    return [linePath(path), ...sorted.map(([line, text]) => `${line}${text}`)].join("\n");
  });
  return blocks.join("\n\n");
}

/** The last part of a path is enough, unless two files share it. */
function nameFiles(files: readonly (readonly [string, number])[]): [string, number][] {
  const shared = new Map(countNames(files.map(([path]) => baseName(path))));
  return files.map(([path, count]) => {
    const name = baseName(path);
    return [(shared.get(name) ?? 0) > 1 ? path : name, count];
  });
}

/** Returns the ripgrep on PATH, or the one of the optional dependency. Undefined if there is neither. */
export async function findRipgrep(env: Environment): Promise<string | undefined> {
  const program = await findProgram("rg", env);
  if (program !== undefined) return program;
  try {
    const { rgPath } = await import("@vscode/ripgrep");
    return rgPath;
  } catch {
    // The package is missing or has no program for this machine.
    return undefined;
  }
}

/** Whether git ignores the named path. The result says so, because nobody would see it otherwise. */
async function isIgnoredPath(run: Run, path: string): Promise<boolean> {
  const list = path === "." ? undefined : await listPaths(run, path);
  if (list === undefined || isFailure(list)) return false;
  for await (const batch of list.batches) if (batch.length > 0) break;
  return list.isIgnored();
}

const maxFileBytes = 8 * 1024 * 1024;
/** A pattern that is too slow in that many files is too slow in the others too. */
const maxSlowFiles = 3;
const maxAtOnce = 16;

/** Searches without ripgrep: file by file in the order of the list, until there is enough for the page and a little more,
 *  or until time is up. */
async function searchByScript(request: SearchRequest, run: Run): Promise<ToolResult | ToolFailure> {
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
  return describeSearch(search);
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
    const read = await Promise.all(some.map((path) => readFileLines(search, path)));
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
async function readFileLines(
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

function describeSearch({ request, run, window, seen }: Search): ToolResult {
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
