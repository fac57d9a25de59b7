import { type BudgetedTool, isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";
import { createGlob } from "../../text/index.ts";
import { defineTool, type ToolValues } from "../frame/define-tool.ts";
import { failure, shown } from "../frame/failure.ts";
import type { Place, Run } from "../frame/run.ts";
import { type ContainedPath, containExisting } from "../source/contained-path.ts";
import { isDenied } from "../source/denied.ts";
import { isIgnoredPath } from "../source/list-paths.ts";
import { openRegular } from "../source/open-regular.ts";
import { isSecretPath, refuseSecret } from "../source/secret-paths.ts";
import { compressSearch } from "./compress-search.ts";
import { findRipgrep } from "./find-ripgrep.ts";
import type { SearchRequest } from "./match.ts";
import { searchByRipgrep } from "./ripgrep-search.ts";

const parameters = {
  pattern: { type: "string", description: "Text to search for, in one line.", required: true },
  is_regex: { type: "boolean", description: "pattern is a regular expression.", default: false },
  path: { type: "string", description: "File or directory to search, relative to the root.", default: "." },
  file_pattern: {
    type: "string",
    description: "Glob for the files to search: `*.ts` at any depth, `src/**/*.ts` from the root.",
  },
  context_lines: {
    type: "integer",
    description: "Lines to show before and after each match.",
    default: 2,
    minimum: 0,
  },
  max_results: { type: "integer", description: "Matches to return at most.", default: 50, minimum: 1 },
  case_sensitive: { type: "boolean", description: "Tell upper from lower case.", default: false },
} as const;

const mostContextLines = 100;

/** `find` gives the program to search with; without one the search is done here. */
export function createSearchContent(place: Place, find: typeof findRipgrep = findRipgrep): BudgetedTool {
  const knownSecrets: SearchRequest["knownSecrets"] = new Map();
  return defineTool(
    {
      name: "search_content",
      description:
        "Search the files of the project for lines that contain a text or match a regular expression, sorted by path, without what .gitignore leaves out.",
      parameters,
      limitParameter: "max_results",
      compress: compressSearch,
      run: (values, run) => searchContent(values, run, { find, knownSecrets }),
    },
    place,
  );
}

interface Searcher extends Pick<SearchRequest, "knownSecrets"> {
  readonly find: typeof findRipgrep;
}

async function searchContent(
  values: ToolValues<typeof parameters>,
  run: Run,
  { find, knownSecrets }: Searcher,
): Promise<ToolResult | ToolFailure> {
  const { pattern, file_pattern } = values;
  if (/[\n\r]/.test(pattern)) {
    return failure("invalid_pattern", "pattern spans several lines, and lines are searched one by one.");
  }
  const contained = await containExisting(run.root, values.path);
  if (isFailure(contained)) return contained;
  if (!contained.stats.isFile() && !contained.stats.isDirectory()) {
    return failure("unreadable", `${shown(values.path)} is a pipe, socket or device.`);
  }
  if (contained.stats.isFile() && (await isDeniedFile(contained.real))) {
    return failure("unreadable", `${shown(values.path)} may not be read.`);
  }
  const refused = await refuseSecret(run, contained);
  if (refused !== undefined) return refused;
  const matches = file_pattern === undefined ? () => true : createGlob(file_pattern);
  if (matches === undefined) {
    return failure("invalid_pattern", "The braces in file_pattern make too many globs.");
  }
  const request: SearchRequest = {
    pattern,
    isRegex: values.is_regex,
    caseSensitive: values.case_sensitive,
    path: contained.path,
    knownSecrets,
    isSecret: (path) => isSecretPath(run, path, realPathOf(path, contained)),
    files: { pattern: file_pattern, matches },
    contextLines: Math.min(values.context_lines, mostContextLines),
    maxResults: values.max_results,
    offset: values.offset,
  };
  const ignored = isIgnoredPath(run, request.path);
  const result = await searchFiles(request, run, find);
  const warning = `git ignores ${request.path}; it was searched because it was named.`;
  return (await ignored) && !isFailure(result) ? warned(result, warning) : result;
}

/** Of a file below a directory that may have been named by a link. */
function realPathOf(path: string, { path: named, realPath }: ContainedPath): string {
  return named === realPath ? path : (realPath + path.slice(named.length)).replace(/^\.\//, "");
}

async function isDeniedFile(path: string): Promise<boolean> {
  try {
    await (await openRegular(path)).close();
    return false;
  } catch (error) {
    return isDenied(error);
  }
}

async function searchFiles(
  request: SearchRequest,
  run: Run,
  find: typeof findRipgrep,
): Promise<ToolResult | ToolFailure> {
  const program = await find(run.env);
  if (program !== undefined) return searchByRipgrep(program, request, run);
  const { searchByScript } = await import("./script-search.ts");
  return searchByScript(request, run);
}

function warned(result: ToolResult, warning: string): ToolResult {
  const { warnings = [] } = result;
  return { ...result, warnings: () => [warning, ...(warnings instanceof Function ? warnings() : warnings)] };
}
