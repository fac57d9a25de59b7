/** Finds the files that one tool would load: the user's files, then the project's files from the root down, each with
 *  its imports. */
import { lstatSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Counter } from "../../core/tokens/index.ts";
import {
  foldersAbove,
  foldersDown,
  isInside,
  listFiles,
  listForeign,
  readForeignText,
  textLimit,
} from "../../host/index.ts";
import { importedPaths } from "../adapters/targets.ts";
import type { Alternatives, ToolFiles } from "./tool-files.ts";

export interface LoadedFile extends TextFile {
  readonly scope: "user" | "project";
  /** The file that imports it. */
  readonly importer?: string | undefined;
  /** The tool loads the file only when the file's front matter applies. */
  readonly onDemand: boolean;
  /** For a skill, the part that the tool always loads: its name and description. */
  readonly alwaysText?: string | undefined;
}

export interface Chain {
  readonly files: readonly LoadedFile[];
  /** Files that the tool skips because it found an alternative first. */
  readonly hidden: readonly { readonly file: TextFile; readonly by: TextFile }[];
  readonly ignored: readonly string[];
  readonly unread: readonly UnreadFile[];
  readonly missingImports: readonly { readonly path: string; readonly importer: string }[];
  /** The tool found none of its own files, so it read another file. */
  readonly usedOtherwise: boolean;
}

export interface ChainOptions {
  readonly reader: FileReader;
  /** The folder where the tool is started. */
  readonly directory: string;
  readonly root: string;
  /** Without it, nothing outside the root is read, so the result is the same on every machine. */
  readonly home?: string | undefined;
  readonly imports: boolean;
  /** Folders of the root with skills. */
  readonly skills?: readonly string[] | undefined;
}

/** A file of 1 MB has room for 90,000 imports. Each is looked up, and nobody reads advice on so many. */
const maxImports = 2_000;

export async function loadChain(tool: ToolFiles, options: ChainOptions): Promise<Chain> {
  const { reader, root, directory, home } = options;
  const search: Search = {
    tool,
    options,
    seen: new Set(),
    imports: 0,
    usedOtherwise: false,
    files: [],
    hidden: [],
    ignored: [],
    unread: [],
    missingImports: [],
  };
  if (home !== undefined) await addAll(tool.user ?? [], "user", search);
  const listed = tool.listedIn === undefined ? [] : await readListed(join(root, tool.listedIn), reader);
  const above = listAbove(tool, options);
  for (const folder of above) await addAll(tool.down ?? [], folder, search);
  const folders = foldersDown(root, directory);
  await addAll(
    listed.map((name) => [name]),
    root,
    search,
  );
  for (const [index, folder] of folders.entries()) {
    const [isRoot, isCurrent] = [index === 0, index === folders.length - 1];
    const { root: inRoot, down, ends, between, current } = tool;
    const groups = [isRoot && inRoot, down, isRoot || isCurrent ? ends : between, isCurrent && current];
    await addAll(
      groups.flatMap((group) => group || []),
      folder,
      search,
    );
  }
  if (tool.otherwise !== undefined) await addOtherwise(tool.otherwise, [...above, ...folders], search);
  for (const folder of options.skills ?? []) await addSkills(folder, search);
  return search;
}

/** In a project's check, what is above the repository does not count: other clones do not have it. */
function listAbove(tool: ToolFiles, { root, home }: ChainOptions): readonly string[] {
  return tool.above && home !== undefined ? foldersAbove(root, home) : [];
}

/** Adds the files that a tool reads if it finds none of its own. Otherwise these files are hidden. */
async function addOtherwise(group: Alternatives, folders: readonly string[], search: Search): Promise<void> {
  const { unless } = search.tool;
  const blocking = unless && new Set(folders.flatMap((folder) => unless.map((name) => join(folder, name))));
  const own = search.files.filter(({ scope, importer }) => scope === "project" && importer === undefined);
  const by = own.find(({ path }) => blocking === undefined || blocking.has(path));
  if (by === undefined) {
    for (const folder of folders) await addAll([group], folder, search);
    search.usedOtherwise = search.files.length > own.length;
    return;
  }
  for (const folder of folders)
    for (const name of group)
      for (const file of await readLoadable(await search.options.reader.expand(folder, name), search))
        if (!search.seen.has(file.realPath)) search.hidden.push({ file, by });
}

/** Reads the `read:` names from a small YAML file without a YAML parser: one name, or a list in either form. */
async function readListed(path: string, reader: FileReader): Promise<string[]> {
  const file = await reader.read(path);
  if (file === undefined || !("text" in file)) return [];
  const value = /^read:(.*(?:\r?\n(?:[ \t]+|-[ \t]).*)*)/m.exec(file.text.replace(/(?<=^|\s)#.*$/gm, ""))?.[1] ?? "";
  return value.split(/[\s,[\]"']+/).filter((word) => word !== "" && word !== "-");
}

async function addSkills(folder: string, { options, seen, files }: Search): Promise<void> {
  for (const path of await options.reader.expand(options.root, `${folder}/**/SKILL.md`)) {
    const file = await options.reader.read(path);
    if (file === undefined || !("text" in file) || seen.has(file.realPath)) continue;
    // Several tools of a project may need a copy each, and a tool that reads two of their folders finds one skill.
    const skill = `${basename(dirname(path))}\n${file.text}`;
    if (seen.has(skill)) continue;
    seen.add(file.realPath).add(skill);
    const keys = readFrontMatter(file.text).match(/^(?:name|description):.*(?:\r?\n[ \t]+.*)*/gm) ?? [];
    files.push({ ...file, scope: "project", onDemand: true, alwaysText: keys.join("\n") });
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
  /** How many imports were looked up. */
  imports: number;
  usedOtherwise: boolean;
}

/** Adds the first of each group that exists. `place` is a folder of the project, or "user". */
async function addAll(groups: readonly Alternatives[], place: string, search: Search): Promise<void> {
  const { reader, home = "/" } = search.options;
  const scope = place === "user" ? "user" : "project";
  const expand = (name: string) => {
    const isBelowHome = scope === "user" && name.startsWith("~/");
    return isBelowHome ? reader.expand(home, name.slice(2)) : reader.expand(scope === "user" ? "/" : place, name);
  };
  for (const group of groups) {
    let winner: TextFile | undefined;
    for (const name of group) {
      const files = await readLoadable(await expand(name), search);
      for (const file of files) {
        if (winner !== undefined) search.hidden.push({ file, by: winner });
        else await addFile(file, { scope, isRule: name.includes("*") }, search);
      }
      winner ??= files[0];
    }
  }
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
  // A link is a second name of a file. A tool that reads both names gets the text twice.
  const key = file.isLink ? file.path : file.realPath;
  if (search.seen.has(key)) return;
  if (search.tool.sendsTextOnce && search.files.some(({ text }) => text === file.text)) return;
  search.seen.add(key).add(file.realPath);
  const frontMatter = readFrontMatter(file.text);
  const { onDemand, always } = search.tool;
  const isWaiting = isRule && (onDemand?.test(frontMatter) === true || always?.test(frontMatter) === false);
  const loaded = { ...file, scope, onDemand: isWaiting };
  search.files.push(loaded);
  const { directory, imports } = search.options;
  const { from, onlyInCurrent } = search.tool.imports ?? {};
  const isImporter = from?.includes(basename(file.path)) !== false;
  const isHere = !onlyInCurrent || scope === "user" || isInside(file.path, directory);
  if ((imports || search.tool.imports !== undefined) && isImporter && isHere) await addImports(loaded, 1, search);
}

async function addImports(importer: LoadedFile, hop: number, search: Search): Promise<void> {
  // Claude Code and Gemini CLI stop after this many imports in a row.
  if (hop > 5) return;
  const { reader, root, home } = search.options;
  const paths = importedPaths(importer.text, { file: importer.realPath, home: home ?? "~" });
  for (const path of paths.filter((each) => home !== undefined || isInside(each, root))) {
    if (!takeImport(path, search)) return;
    const file = await reader.read(path);
    if (file === undefined) {
      // Not every @word is an import: package names and people's names look the same.
      if (/\.md$/i.test(path)) search.missingImports.push({ path, importer: importer.path });
    } else if (!("text" in file)) search.unread.push(file);
    else if (isNewImport(file, search)) {
      const loaded = { ...file, scope: importer.scope, importer: importer.path, onDemand: importer.onDemand };
      search.files.push(loaded);
      await addImports(loaded, hop + 1, search);
    }
  }
}

/** Some tools send an imported file again, although they load it anyway. */
function isNewImport({ realPath }: TextFile, { seen, tool }: Search): boolean {
  if (tool.imports?.repeats) return true;
  const isNew = !seen.has(realPath);
  seen.add(realPath);
  return isNew;
}

/** Returns false for an import beyond the limit. The first of these is reported. */
function takeImport(path: string, search: Search): boolean {
  search.imports++;
  if (search.imports === maxImports + 1) {
    search.unread.push({ path, reason: `comes after ${maxImports} other imports` });
  }
  return search.imports <= maxImports;
}

function readFrontMatter(text: string): string {
  return /^\uFEFF?---\r?\n([\s\S]*?)\r?\n---\s*(?:\n|$)/.exec(text)?.[1] ?? "";
}

/** One text file that tools load. Each file is read once, however many tools load it. */
export interface TextFile {
  readonly path: string;
  /** The path with links resolved. */
  readonly realPath: string;
  readonly isLink: boolean;
  readonly text: string;
  readonly bytes: number;
  /** 0 if the reader has no counter. */
  readonly tokens: number;
}

interface UnreadFile {
  readonly path: string;
  readonly reason: string;
}

export interface FileReader {
  /** Returns `undefined` if there is no regular file at the path. */
  read(path: string): Promise<TextFile | UnreadFile | undefined>;
  /** Returns the files in a folder that match a name or a pattern, sorted by name. */
  expand(folder: string, name: string): Promise<readonly string[]>;
  /** Returns whether git ignores a file of the repository. */
  isIgnored(path: string, root: string): Promise<boolean>;
}

/** With a root, links that lead out of the project are not followed. */
export function createFileReader(counter?: Counter, root?: string): FileReader {
  const within = root === undefined ? undefined : { root, realRoot: realpathSync.native(root) };
  const read = remember(async (path) => readFile(path, counter, within));
  const expand = remember(listPattern);
  // What git does not ignore.
  const listed = remember(async (folder) => {
    const { files, skipped } = await listFiles(folder);
    return new Set([...files, ...skipped.map((entry) => entry.path)]);
  });
  return {
    read,
    expand: (folder, name) => expand(join(folder, name)),
    async isIgnored(path, root) {
      if (!isInside(path, root)) return false;
      const entries = await listed(root);
      // A link counts for everything below it.
      for (let current = path; current !== root; current = dirname(current)) if (entries.has(current)) return false;
      return true;
    },
  };
}

function remember<Value>(compute: (key: string) => Promise<Value>): (key: string) => Promise<Value> {
  const known = new Map<string, Promise<Value>>();
  return (key) => {
    const value = known.get(key) ?? compute(key);
    known.set(key, value);
    return value;
  };
}

/** Asks for the entry first: most names that a tool looks for do not exist. Waits for no other thread, which would take
 *  longer than the answers. */
function readFile(
  path: string,
  counter: Counter | undefined,
  within: { readonly root: string; readonly realRoot: string } | undefined,
): TextFile | UnreadFile | undefined {
  let isLink = false;
  let realPath: string;
  try {
    const entry = lstatSync(path, { throwIfNoEntry: false });
    if (entry === undefined) return undefined;
    isLink = entry.isSymbolicLink();
    realPath = realpathSync.native(path);
    if (within !== undefined && !isInside(realPath, within.realRoot))
      return { path, reason: "leads out of the project" };
    if (!statSync(realPath).isFile()) return undefined;
  } catch {
    return isLink ? { path, reason: "is a link that leads nowhere" } : undefined;
  }
  const file = readForeignText(path, { within: within?.root, ...textLimit });
  if (!("text" in file)) return { path, reason: `cannot be read (${file.reason})` };
  return { path, realPath, isLink, ...file, tokens: counter?.count(file.text) ?? 0 };
}

async function listPattern(pattern: string): Promise<readonly string[]> {
  const star = pattern.indexOf("*");
  if (star === -1) return [pattern];
  const folder = pattern.slice(0, star);
  const ending = pattern.slice(pattern.lastIndexOf("*") + 1);
  const recursive = pattern.startsWith("**", star);
  return listBelow(folder, recursive)
    .filter((name) => name.endsWith(ending))
    .sort()
    .map((name) => join(folder, name));
}

/** Follows links, as Claude Code does with its rules, but enters each folder once: links can lead in circles. */
function listBelow(folder: string, recursive: boolean): string[] {
  const names: string[] = [];
  const entered = new Set<string>();
  const enter = (below: string): void => {
    const real = resolveFolder(join(folder, below));
    // A link may lead to the whole disk. No folder of rules has so many folders.
    if (real === undefined || entered.has(real) || entered.size >= 1_000) return;
    entered.add(real);
    const entries = listForeign(real);
    for (const entry of Array.isArray(entries) ? entries : []) {
      const name = join(below, entry.name);
      names.push(name);
      if (recursive && (entry.isDirectory() || entry.isSymbolicLink())) enter(name);
    }
  };
  enter("");
  return names;
}

function resolveFolder(path: string): string | undefined {
  try {
    const real = realpathSync.native(path);
    return statSync(real).isDirectory() ? real : undefined;
  } catch {
    return undefined;
  }
}
