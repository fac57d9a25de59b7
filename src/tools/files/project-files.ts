import type { Stats } from "node:fs";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { type BudgetedTool, isFailure, type ToolFailure, type ToolResult } from "../../session/index.ts";
import { createGlob, type Glob } from "../../text/index.ts";
import { detectFacts } from "../../workspace/index.ts";
import { defineTool, type ToolValues } from "../frame/define-tool.ts";
import { failure } from "../frame/failure.ts";
import { numbered } from "../frame/phrases.ts";
import { lateWarning, type Place, type Run } from "../frame/run.ts";
import { createWindow, type Window } from "../frame/window.ts";
import { byteNamesWarning, diskName, isByteName, shownName } from "../source/byte-names.ts";
import { createContainedDirectories } from "../source/contained-directories.ts";
import { deniedWarning, isDenied } from "../source/denied.ts";
import { listPaths, type PathList } from "../source/list-paths.ts";
import { compressProjectFiles } from "./compress-project-files.ts";

/** What the model sees of a file. The flags stand only where they hold. */
export interface ListedFile {
  readonly path: string;
  readonly size?: number;
  readonly mtime?: string;
  readonly is_directory?: true;
  readonly is_symlink?: true;
  /** git tracks it, and it is not there, or its directory has become a link that leaves the root. */
  readonly is_deleted?: true;
  /** It lies in a directory that may not be entered, and may be there or not. */
  readonly is_unreadable?: true;
}

const parameters = {
  path: { type: "string", description: "Directory to list, relative to the root.", default: "." },
  pattern: {
    type: "string",
    description:
      "Glob for the files to list: `*.ts` at any depth, `src/**/*.ts` from the root, `{a,b}` for either.",
  },
  max_depth: {
    type: "integer",
    description: "Directories to go down at most. 1: only the files of the directory itself.",
    default: 5,
    minimum: 1,
  },
  include_hidden: {
    type: "boolean",
    description: "List files whose names, or whose directories' names, begin with a dot.",
    default: false,
  },
  max_files: { type: "integer", description: "Files to return at most.", default: 500, minimum: 1 },
} as const;

export function createProjectFiles(place: Place): BudgetedTool {
  return defineTool(
    {
      name: "project_files",
      description:
        "List the files of the project with size and time of change, sorted by path, without what .gitignore leaves out.",
      parameters,
      limitParameter: "max_files",
      compress: compressProjectFiles,
      run: listProjectFiles,
    },
    place,
  );
}

async function listProjectFiles(
  values: ToolValues<typeof parameters>,
  run: Run,
): Promise<ToolResult | ToolFailure> {
  const list = await listPaths(run, values.path);
  if (isFailure(list)) return list;
  const glob = values.pattern === undefined ? () => true : createGlob(values.pattern);
  if (glob === undefined) return failure("invalid_pattern", "The braces in pattern make too many globs.");
  return describe(list, run, { ...values, glob });
}

interface Filter {
  readonly glob: Glob;
  readonly max_depth: number;
  readonly include_hidden: boolean;
  readonly max_files: number;
  readonly offset: number;
}

async function describe(list: PathList, run: Run, filter: Filter): Promise<ToolResult> {
  const facts = detectFacts(run.root);
  const { window, hidden, deeper, byteNames } = await filterPaths(list, filter);
  const late = run.timedOut();
  const language = (await facts).find(({ name }) => name === "Language")?.value;
  return {
    fields: {
      root: run.root,
      path: list.path,
      project_type: language ?? "unknown",
      gitignore_respected: !list.isIgnored(),
      ...(hidden > 0 ? { hidden_files: hidden } : {}),
      ...(deeper > 0 ? { deeper_files: deeper } : {}),
    },
    itemsName: "files",
    items: lookAt(window.items, run),
    offset: filter.offset,
    total: late ? undefined : window.total(),
    more: late || window.more(),
    version: list.version(),
    warnings: [
      ...(late ? [lateWarning(run, "the list of files")] : []),
      ...[list.refusal() ?? []].flat(),
      ...(list.isIgnored() ? [`git ignores ${list.path}; it was listed because it was named.`] : []),
      ...(deeper > 0
        ? [
            `${numbered(deeper, ["file lies", "files lie"])} deeper than max_depth ${filter.max_depth}: not listed.`,
          ]
        : []),
      ...[deniedWarning(list.denied()) ?? [], byteNamesWarning(byteNames) ?? []].flat(),
    ],
  };
}

interface FilteredPaths {
  readonly window: Window<string>;
  readonly hidden: number;
  readonly deeper: number;
  /** Listed, on this page or another one. */
  readonly byteNames: number;
}

/** All paths pass by, so that the total is true; only those of this page are kept and looked at. */
async function filterPaths(list: PathList, filter: Filter): Promise<FilteredPaths> {
  const window = createWindow<string>({ offset: filter.offset, limit: filter.max_files });
  const left = { hidden: 0, deeper: 0 };
  let byteNames = 0;
  const prefix = list.path === "." ? 0 : list.path.length + 1;
  for await (const batch of list.batches) {
    for (const path of batch) {
      if (!filter.glob(path)) continue;
      const reason = reasonToLeave(path.slice(prefix), filter);
      if (reason !== undefined) {
        left[reason]++;
        continue;
      }
      window.offer(() => path, path.length);
      if (isByteName(path)) byteNames++;
    }
  }
  return { window, ...left, byteNames };
}

/** `path` is relative to what was listed: what a person names is never hidden. */
function reasonToLeave(path: string, filter: Filter): "hidden" | "deeper" | undefined {
  if (!filter.include_hidden && (path.startsWith(".") || path.includes("/."))) return "hidden";
  let depth = 1;
  for (let at = path.indexOf("/"); at >= 0 && at < path.length - 1; at = path.indexOf("/", at + 1)) depth++;
  return depth > filter.max_depth ? "deeper" : undefined;
}

/** Few at once: leaving early must not have asked the disk for hundreds. */
const atOnce = 32;

async function* lookAt(paths: readonly string[], { root }: Run): AsyncGenerator<ListedFile> {
  const isContained = createContainedDirectories(root);
  for (let at = 0; at < paths.length; at += atOnce) {
    yield* await Promise.all(
      paths.slice(at, at + atOnce).map((path) => lookAtFile(path, { root, isContained })),
    );
  }
}

interface Tree {
  readonly root: string;
  /** Whether the directory of a path lies below the root: nothing is asked through a link that leaves it. */
  isContained(path: string): Promise<boolean>;
}

async function lookAtFile(listed: string, { root, isContained }: Tree): Promise<ListedFile> {
  const name = listed.replace(/\/$/, "");
  const path = shownName(name);
  try {
    if (await isContained(name)) return describeFile(path, await lstat(diskName(join(root, name))));
  } catch (error) {
    if (isDenied(error)) return { path, is_unreadable: true };
  }
  return { path, is_deleted: true };
}

function describeFile(path: string, stats: Stats): ListedFile {
  // Milliseconds cost tokens and tell nothing.
  const mtime = `${stats.mtime.toISOString().slice(0, 19)}Z`;
  if (stats.isDirectory()) return { path, mtime, is_directory: true };
  return { path, size: stats.size, mtime, ...(stats.isSymbolicLink() ? { is_symlink: true } : {}) };
}
