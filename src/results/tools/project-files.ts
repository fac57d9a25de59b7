import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { createGlob, type Glob } from "../../core/text/index.ts";
import { detectFacts } from "../../host/index.ts";
import { type BudgetedTool, type CompressInput, isFailure, type PageData } from "../session/index.ts";
import { createWindow, defineTool, describeWindow } from "./define-tool.ts";
import {
  baseName,
  countNames,
  describeCount,
  failure,
  formatCount,
  linePath,
  listCounts,
  listLate,
  type Run,
  readWholeItems,
  shortenLine,
  type ToolPlace,
} from "./run.ts";
import {
  byteNamesWarning,
  createContainedDirectories,
  deniedWarning,
  diskName,
  displayName,
  isByteName,
  isDenied,
} from "./source/contained-path.ts";
import { listPaths, type PathList } from "./source/list-paths.ts";

/** What the model sees of a file. A flag is present only if it is true. */
export interface ListedFile {
  readonly path: string;
  readonly size?: number;
  readonly mtime?: string;
  readonly is_directory?: true;
  readonly is_symlink?: true;
  /** git tracks the file, but it does not exist, or its directory is now a link that leaves the root. */
  readonly is_deleted?: true;
  /** The file's directory cannot be entered, so nobody knows whether the file exists. */
  readonly is_unreadable?: true;
}

/** What the tree shows of a directory, or of a file of the listed directory itself. */
interface TreeEntry {
  /** The path of a directory ends with a slash. */
  readonly path: string;
  /** The number of files in a directory, at any depth. */
  readonly files?: number;
}

export const createProjectFiles: (place: ToolPlace) => BudgetedTool<"project_files"> = defineTool({
  name: "project_files",
  description: "List directories or files of the project, without those that .gitignore excludes.",
  parameters: {
    mode: {
      type: "string",
      enum: ["tree", "files"],
      description: "tree: directories with their number of files. files: all files.",
      default: "tree",
    },
    path: { type: "string", description: "Directory to list, relative to the root.", default: "." },
    pattern: {
      type: "string",
      description: "Glob: `*.ts` at any depth, `src/**/*.ts` from the root.",
    },
    max_depth: {
      type: "integer",
      description: "Default: 1 to 3 in a tree, else 5.",
      minimum: 1,
    },
    include_hidden: {
      type: "boolean",
      description: "Also list files and directories whose names start with a dot.",
      default: false,
    },
    max_files: { type: "integer", description: "Most entries to return. Default: as many as fit.", minimum: 1 },
  },
  limitParameter: "max_files",
  compress: compressProjectFiles,
  renderText: renderProjectFiles,
  async run(values, run) {
    const list = await listPaths(run, values.path);
    if (isFailure(list)) return list;
    const glob = values.pattern === undefined ? () => true : createGlob(values.pattern);
    if (glob === undefined) return failure("invalid_pattern", "The braces in pattern expand to too many globs.");
    const isTree = values.mode === "tree";
    const filter = { ...values, glob };
    // Looks at the project while its paths are read.
    const detected = detectFacts(run.root);
    const read = isTree ? await readTree(list, filter) : await filterPaths(list, filter, run);
    const { hidden, byteNames } = read;
    return {
      fields: {
        root: run.root,
        path: list.path,
        project_type: (await detected).find(({ name }) => name === "Language")?.value ?? "unknown",
        gitignore_respected: !list.isIgnored(),
        ...(hidden > 0 ? { hidden_files: hidden } : {}),
        ...read.fields,
      },
      itemsName: read.itemsName,
      offset: values.offset,
      ...describeWindow<unknown>(read.window, run),
      items: read.items,
      version: list.version(),
      warnings: [
        ...listLate(run, "the list of files"),
        ...[list.refusal() ?? []].flat(),
        ...(list.isIgnored() ? [`git ignores ${list.path}. It was listed because the call names it.`] : []),
        ...read.warnings,
        ...[deniedWarning(list.denied()) ?? [], byteNamesWarning(byteNames) ?? []].flat(),
      ],
    };
  },
});

interface Filter {
  readonly glob: Glob;
  /** Undefined for as many levels as are short. */
  readonly max_depth: number | undefined;
  readonly include_hidden: boolean;
  readonly max_files: number | undefined;
  readonly offset: number;
}

/** Counts the files of each directory down to `max_depth`. The directory's own files come first. */
async function readTree(list: PathList, filter: Filter) {
  const prefix = list.path === "." ? "" : `${list.path}/`;
  const directories = new Map<string, number>();
  const own: string[] = [];
  const seen = { files: 0, hidden: 0, byteNames: 0 };
  const take = (path: string): void => {
    const name = path.slice(prefix.length);
    if (isHidden(name, filter)) {
      seen.hidden++;
      return;
    }
    seen.files++;
    if (isByteName(path)) seen.byteNames++;
    if (name.includes("/")) countDirectories(directories, name, filter.max_depth ?? 3);
    else own.push(name);
  };
  for await (const batch of list.batches) {
    for (const path of batch) if (filter.glob(path)) take(path);
  }
  const depth = filter.max_depth ?? chooseDepth([...directories.keys()]);
  const window = createWindow<TreeEntry>({ offset: filter.offset, limit: filter.max_files });
  for (const name of own) window.offer(() => ({ path: displayName(prefix + name) }), name.length);
  for (const [name, files] of [...directories].sort(([left], [right]) => (left < right ? -1 : 1))) {
    if (countLevels(name) <= depth) window.offer(() => ({ path: displayName(prefix + name), files }), name.length);
  }
  const { files, ...others } = seen;
  return { window, items: window.items, itemsName: "entries", fields: { file_count: files }, warnings: [], ...others };
}

/** A call without a depth wants an overview: the deepest tree of at most 30 directories, or else the directory alone, as
 *  `ls` shows it. */
function chooseDepth(directories: readonly string[]): number {
  const count = (depth: number): number => directories.filter((name) => countLevels(name) <= depth).length;
  return [3, 2].find((depth) => count(depth) <= 30) ?? 1;
}

function countLevels(directory: string): number {
  return directory.split("/").length - 1;
}

/** A path that ends with a slash is a directory with a repository of its own, whose files are not known. */
function countDirectories(directories: Map<string, number>, name: string, maxDepth: number): void {
  let depth = 0;
  for (let at = name.indexOf("/"); at >= 0 && depth < maxDepth; at = name.indexOf("/", at + 1)) {
    depth++;
    const directory = name.slice(0, at + 1);
    directories.set(directory, (directories.get(directory) ?? 0) + (at === name.length - 1 ? 0 : 1));
  }
}

/** Reads all paths, so that the total is right. Keeps and inspects only those of this page. */
async function filterPaths(list: PathList, { max_depth = 5, ...rest }: Filter, run: Run) {
  const filter = { ...rest, max_depth };
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
  const { hidden, deeper } = left;
  const isWhole = deeper === 0;
  const what = `${formatCount(deeper, ["file is", "files are"])} deeper than max_depth ${filter.max_depth} and not listed.`;
  return {
    window,
    items: describeEach(window.items, run),
    itemsName: "files",
    fields: isWhole ? {} : { deeper_files: deeper },
    warnings: isWhole ? [] : [what],
    hidden,
    byteNames,
  };
}

/** `path` is relative to the listed directory, so a path that the caller names is never hidden. */
function reasonToLeave(path: string, filter: Filter & { readonly max_depth: number }): "hidden" | "deeper" | undefined {
  if (isHidden(path, filter)) return "hidden";
  let depth = 1;
  for (let at = path.indexOf("/"); at >= 0 && at < path.length - 1; at = path.indexOf("/", at + 1)) depth++;
  return depth > filter.max_depth ? "deeper" : undefined;
}

function isHidden(path: string, { include_hidden }: Filter): boolean {
  return !include_hidden && (path.startsWith(".") || path.includes("/."));
}

/** Few at once, so that a reader who stops early has not caused hundreds of disk reads. */
const maxAtOnce = 32;

async function* describeEach(paths: readonly string[], { root }: Run): AsyncGenerator<ListedFile> {
  const isContained = createContainedDirectories(root);
  for (let at = 0; at < paths.length; at += maxAtOnce) {
    yield* await Promise.all(paths.slice(at, at + maxAtOnce).map((path) => lookAtFile(path, { root, isContained })));
  }
}

async function lookAtFile(
  listed: string,
  tree: {
    readonly root: string;
    /** Whether the directory of a path is below the root. Nothing is read through a link that leaves the root. */
    isContained(path: string): Promise<boolean>;
  },
): Promise<ListedFile> {
  const { root, isContained } = tree;
  const name = listed.replace(/\/$/, "");
  const path = displayName(name);
  try {
    if (await isContained(name)) {
      const stats = await lstat(diskName(join(root, name)));
      // Milliseconds would cost tokens and are not useful.
      const mtime = `${stats.mtime.toISOString().slice(0, 19)}Z`;
      if (stats.isDirectory()) return { path, mtime, is_directory: true };
      return { path, size: stats.size, mtime, ...(stats.isSymbolicLink() ? { is_symlink: true } : {}) };
    }
  } catch (error) {
    if (isDenied(error)) return { path, is_unreadable: true };
  }
  return { path, is_deleted: true };
}

/** `Listed 500 of 2847 files in src (truncated). Types: .ts (234), .md (45), +6 more. Key: src/core/, src/cli/` */
function compressProjectFiles({ data }: CompressInput): string {
  if (Array.isArray(data.entries)) return compressTree(data);
  const files = readWholeItems<ListedFile>(data.files, "path");
  const where = typeof data.path === "string" && data.path !== "." ? shortenLine(data.path, 80) : "the root";
  const truncated = data.truncated === true ? " (truncated)" : "";
  const types = countNames(
    files.map(({ path }) =>
      /[^.]\.[^.]+$/.test(baseName(path)) ? path.slice(path.lastIndexOf(".")) : "(no extension)",
    ),
  );
  // Two levels are enough to distinguish the parts of most projects.
  const folders = files.map(({ path }) => path.split("/").slice(0, -1).slice(0, 2));
  const directories = countNames(folders.filter(({ length }) => length > 0).map((names) => `${names.join("/")}/`));
  return [
    `Listed ${describeCount(data, ["file", "files"])} in ${where}${truncated}.`,
    ...(types.length > 0 ? [`Types: ${listCounts(types, 3)}.`] : []),
    ...(directories.length > 0
      ? [
          `Key: ${directories
            .slice(0, 3)
            .map(([name]) => shortenLine(name, 60))
            .join(", ")}`,
        ]
      : []),
  ].join(" ");
}

/** `Listed 40 directories with 909 files in src. Largest: src/core/ (120), src/cli/ (80), +38 more` */
function compressTree(data: CompressInput["data"]): string {
  const entries = readWholeItems<TreeEntry>(data.entries, "path");
  const where = typeof data.path === "string" && data.path !== "." ? shortenLine(data.path, 80) : "the root";
  const directories = entries.flatMap(({ path, files }) => (files === undefined ? [] : [[path, files] as const]));
  const sorted = directories.sort(([a, first], [b, second]) => second - first || (a < b ? -1 : 1));
  const counts = `${formatCount(directories.length, ["directory", "directories"])} with ${formatCount(Number(data.file_count ?? 0), ["file", "files"])}`;
  return `Listed ${counts} in ${where}.${sorted.length === 0 ? "" : ` Largest: ${listCounts(sorted, 3)}`}`;
}

/** A tree begins with its number of files. Files are grouped by directory, each directory once. */
function renderProjectFiles(page: PageData): string {
  const { entries, path, file_count, hidden_files, offset } = page;
  if (entries === undefined) return renderFiles(page);
  const hidden = hidden_files === undefined ? "" : `, ${hidden_files} hidden`;
  const heading = `${path === "." ? "./" : `${path}/`} ${file_count} files${hidden}`;
  const listed = readWholeItems<TreeEntry>(entries, "path");
  const lines = listed.map((each) => `${linePath(each.path)}${each.files ? ` ${each.files}` : ""}`);
  return [...(offset === 0 ? [heading] : []), ...lines].join("\n");
}

function renderFiles({ files }: PageData): string {
  const directories = new Map<string, string[]>();
  for (const file of readWholeItems<ListedFile>(files, "path")) {
    const name = baseName(file.path);
    const directory = file.path.slice(0, file.path.length - name.length);
    const names = directories.get(directory) ?? [];
    directories.set(directory, names);
    const lost = file.is_deleted ? " (deleted)" : file.is_unreadable ? " (unreadable)" : "";
    names.push(`${linePath(name)}${file.is_directory ? "/" : file.is_symlink ? "@" : lost}`);
  }
  return [...directories].map(([directory, names]) => [linePath(directory) || "./", ...names].join("\n")).join("\n\n");
}
