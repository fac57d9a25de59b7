/** What one tool would load: the user's files, then those of the project from the root down, each with what it imports. */
import { existsSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { isInside } from "../../workspace/index.ts";
import { importedPaths } from "../targets/imports.ts";
import type { Alternatives, ToolFiles } from "./audit-files.ts";
import type { FileReader, TextFile, UnreadFile } from "./audit-reader.ts";

export interface LoadedFile extends TextFile {
  readonly scope: "user" | "project";
  /** The file that imports it. */
  readonly importer?: string | undefined;
  /** Loaded only when its front matter says so. */
  readonly onDemand: boolean;
}

export interface Chain {
  readonly files: readonly LoadedFile[];
  /** Files that a first match keeps from being read. */
  readonly hidden: readonly { readonly file: TextFile; readonly by: TextFile }[];
  readonly ignored: readonly string[];
  readonly unread: readonly UnreadFile[];
  readonly missingImports: readonly { readonly path: string; readonly importer: string }[];
  /** Nothing of the tool's own was there, so it took another file. */
  readonly usedOtherwise: boolean;
}

export interface ChainOptions {
  readonly reader: FileReader;
  /** The folder where the tool is started. */
  readonly directory: string;
  readonly root: string;
  /** Absent: nothing outside of the root is looked at, so that the answer is the same on every machine. */
  readonly home?: string | undefined;
  readonly imports: boolean;
}

/** Claude Code and Gemini CLI stop here. */
const mostHops = 5;

export async function loadChain(tool: ToolFiles, options: ChainOptions): Promise<Chain> {
  const search: Search = {
    ...{ tool, options, seen: new Set(), usedOtherwise: false },
    ...{ files: [], hidden: [], ignored: [], unread: [], missingImports: [] },
  };
  if (options.home !== undefined) await addAll(tool.user ?? [], "user", search);
  const listed = tool.listedIn === undefined ? [] : await listedNames(tool.listedIn, options);
  const folders = foldersBetween(options.root, options.directory);
  for (const folder of folders) {
    const inRoot = folder === options.root ? [...listed.map((name) => [name]), ...(tool.root ?? [])] : [];
    await addAll([...inRoot, ...(tool.down ?? [])], folder, search);
  }
  if (tool.otherwise !== undefined && !search.files.some((file) => file.scope === "project")) {
    for (const folder of folders) await addAll([tool.otherwise], folder, search);
    search.usedOtherwise = search.files.some((file) => file.scope === "project");
  }
  return search;
}

/** The nearest folder, from here upward, that holds a repository; without one, the folder itself. */
export function repositoryRoot(directory: string): string {
  for (let current = directory; ; current = dirname(current)) {
    if (existsSync(join(current, ".git"))) return current;
    if (dirname(current) === current) return directory;
  }
}

interface Search extends Chain {
  readonly tool: ToolFiles;
  readonly options: ChainOptions;
  readonly seen: Set<string>;
  readonly files: LoadedFile[];
  readonly hidden: { file: TextFile; by: TextFile }[];
  readonly ignored: string[];
  readonly unread: UnreadFile[];
  readonly missingImports: { path: string; importer: string }[];
  usedOtherwise: boolean;
}

function foldersBetween(root: string, directory: string): string[] {
  const names = relative(root, directory).split(sep).filter(Boolean);
  return [root, ...names.map((_, index) => join(root, ...names.slice(0, index + 1)))];
}

/** The values of `read:` in a small YAML file, without a YAML parser: a name, or a list in either form. */
async function listedNames(name: string, { reader, root }: ChainOptions): Promise<string[]> {
  const file = await reader.read(join(root, name));
  if (file === undefined || !("text" in file)) return [];
  const value =
    /^read:(.*(?:\r?\n(?:[ \t]+|-[ \t]).*)*)/m.exec(file.text.replace(/(?<=^|\s)#.*$/gm, ""))?.[1] ?? "";
  return value.split(/[\s,[\]"']+/).filter((word) => word !== "" && word !== "-");
}

async function addAll(groups: readonly Alternatives[], place: string, search: Search): Promise<void> {
  for (const group of groups) await addFirst(group, place, search);
}

/** `place` is a folder of the project, or "user". */
async function addFirst(group: Alternatives, place: string, search: Search): Promise<void> {
  const scope = place === "user" ? "user" : "project";
  let winner: TextFile | undefined;
  for (const name of group) {
    const files = await readLoadable(await pathsOf(name, place, search.options), search);
    if (winner !== undefined) for (const file of files) search.hidden.push({ file, by: winner });
    else for (const file of files) await addFile(file, { scope, isRule: name.includes("*") }, search);
    winner ??= files[0];
  }
}

function pathsOf(
  name: string,
  place: string,
  { reader, home = "/" }: ChainOptions,
): Promise<readonly string[]> {
  if (place !== "user") return reader.expand(place, name);
  return name.startsWith("~/") ? reader.expand(home, name.slice(2)) : reader.expand("/", name);
}

async function readLoadable(paths: readonly string[], search: Search): Promise<TextFile[]> {
  const files: TextFile[] = [];
  for (const path of paths) {
    const file = await search.options.reader.read(path);
    if (file === undefined) continue;
    if (!("text" in file)) search.unread.push(file);
    else if (search.tool.skipsIgnored && (await search.options.reader.isIgnored(path, search.options.root)))
      search.ignored.push(path);
    else files.push(file);
  }
  return files;
}

async function addFile(
  file: TextFile,
  { scope, isRule }: { scope: LoadedFile["scope"]; isRule: boolean },
  search: Search,
): Promise<void> {
  // A link is a second way into a file: a tool that reads both names gets the text twice.
  const key = file.isLink ? file.path : file.realPath;
  if (search.seen.has(key)) return;
  search.seen.add(key).add(file.realPath);
  const onDemand = isRule && waits(frontMatterOf(file.text), search.tool);
  const loaded = { ...file, scope, onDemand };
  search.files.push(loaded);
  if (search.options.imports) await addImports(loaded, 1, search);
}

async function addImports(importer: LoadedFile, hop: number, search: Search): Promise<void> {
  if (hop > mostHops) return;
  const { reader, root, home } = search.options;
  const paths = importedPaths(importer.text, { file: importer.realPath, home: home ?? "~" });
  for (const path of paths.filter((each) => home !== undefined || isInside(each, root))) {
    const file = await reader.read(path);
    if (file === undefined) {
      // Not every @word is meant as an import: packages and people are written so too.
      if (/\.md$/i.test(path)) search.missingImports.push({ path, importer: importer.path });
    } else if (!("text" in file)) search.unread.push(file);
    else if (!search.seen.has(file.realPath)) {
      search.seen.add(file.realPath);
      const loaded = { ...file, scope: importer.scope, importer: importer.path, onDemand: importer.onDemand };
      search.files.push(loaded);
      await addImports(loaded, hop + 1, search);
    }
  }
}

function waits(frontMatter: string, { onDemand, always }: ToolFiles): boolean {
  return onDemand?.test(frontMatter) === true || always?.test(frontMatter) === false;
}

function frontMatterOf(text: string): string {
  return /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---\s*(?:\n|$)/.exec(text)?.[1] ?? "";
}
