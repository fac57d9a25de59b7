import { createGlob } from "../../core/text/index.ts";
import { type Environment, findProgram } from "../../host/index.ts";
import {
  type BudgetedTool,
  type CompressInput,
  isFailure,
  type PageData,
  type ParameterValues,
} from "../session/index.ts";
import { defineTool, type ToolAnswer } from "./define-tool.ts";
import type { Match, MatchedFile, SearchRequest } from "./match.ts";
import { searchByRipgrep } from "./ripgrep-search.ts";
import {
  baseName,
  countNames,
  describeCount,
  failure,
  formatCount,
  linePath,
  listCounts,
  listNames,
  quoteArgument,
  type Run,
  readWholeItems,
  shortenLine,
  type ToolPlace,
} from "./run.ts";
import { containExisting, isDenied, openRegular } from "./source/contained-path.ts";
import { listPaths } from "./source/list-paths.ts";

import { isSecretPath, refuseSecret } from "./source/secret-paths.ts";

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
    description: "Lines before and after. Default: 2.",
    default: 2,
    minimum: 0,
  },
  max_results: {
    type: "integer",
    description: "Most items to return. Default: 50 matches, or as many files as fit.",
    minimum: 1,
  },
  case_sensitive: { type: "boolean", description: "Distinguish upper and lower case.", default: false },
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
    caseSensitive: values.case_sensitive,
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
    program === undefined
      ? await (await import("./script-search.ts")).searchByScript(request, run)
      : await searchByRipgrep(program, request, run);
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
  const matches = readWholeItems<Match>(
    data.matches,
    ({ path, line, text }) => typeof path === "string" && typeof line === "number" && typeof text === "string",
  );
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
  return readWholeItems<MatchedFile>(files, ({ path }) => typeof path === "string");
}

/** Like `rg --heading -n`: each file once, then its lines in order. A line number and `:` is a match, `-` is context. */
function renderMatches(page: PageData): string {
  if (page.files !== undefined) {
    return readFiles(page)
      .map(({ path, matches }) => `${linePath(path)}${matches === undefined ? "" : `:${matches}`}`)
      .join("\n");
  }
  const files = new Map<string, Map<number, string>>();
  for (const match of readWholeItems<Match>(page.matches, ({ path }) => typeof path === "string")) {
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
