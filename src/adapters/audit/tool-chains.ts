/** What tools read together, folder by folder, by the arithmetic of `audit`: how much room a block has, and which limits are broken.
 *  Nothing outside of the repository is looked at. */
import { existsSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Counter } from "../../tokens/index.ts";
import { followLinks, isIgnoredFolder, type ProjectTree } from "../../workspace/index.ts";
import type { Adapter, ToolLimit } from "../adapter.ts";
import { isEnforced, type MeasuredChain } from "../fit/limits.ts";
import { measure } from "../fit/measure.ts";
import type { FileTarget } from "../targets/targets.ts";
import { type LoadedFile, loadChain } from "./audit-chain.ts";
import { sharedFiles, type ToolFiles, toolFiles } from "./audit-files.ts";
import { countsToward, limitsOf, reportLimit } from "./audit-limits.ts";
import { createFileReader, type FileReader, type TextFile } from "./audit-reader.ts";

/** The tools of the table, and those that only an adapter tells about, by its targets. */
export function knownTools(adapters: readonly Adapter[]): ToolFiles[] {
  const known = new Set([...toolFiles.map((tool) => tool.id), ...sharedFiles]);
  const files = adapters.filter((adapter) => adapter.type === "file-inject");
  const ids = new Set(files.flatMap((adapter) => [adapter.id, ...adapter.reads]));
  const others = [...ids].filter((id) => !known.has(id)).map((id) => toolOfAdapters(id, files));
  return [...toolFiles, ...others].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function toolOfAdapters(id: string, adapters: readonly Adapter[]): ToolFiles {
  const sharing = adapters.filter((adapter) => adapter.id === id || adapter.reads.includes(id));
  const targets = sharing.flatMap((adapter) => adapter.targets);
  const paths = (scope: string) =>
    targets.filter((target) => target.scope === scope).map(({ path }) => [path]);
  const own = adapters.find((adapter) => adapter.id === id);
  // A limit on the chain says that the tool reads files of that name in every folder down to the current one.
  const hasChain = own?.limits.some((limit) => limit.scope === "chain") === true;
  const project = hasChain ? { down: paths("project").map(inEveryFolder) } : { root: paths("project") };
  return { id, name: own?.name ?? id, user: paths("global"), ...project };
}

/** `.tool/rules.md` is looked for in each folder, of `sub/RULES.md` the name. */
function inEveryFolder(names: readonly string[]): string[] {
  return names.map((name) => (name.startsWith(".") ? name : basename(name)));
}

export interface ChainOptions {
  /** Everything that is known: limits of one adapter can be about the tool of another. */
  readonly adapters: readonly Adapter[];
  readonly tree: ProjectTree;
  readonly counter: Counter;
}

/** With what each tool that limits the whole chain reads a target, in every folder below it. */
export async function chainsOf(
  target: FileTarget,
  options: ChainOptions,
): Promise<ReadonlyMap<ToolLimit, readonly MeasuredChain[]>> {
  const chains = new Map<ToolLimit, readonly MeasuredChain[]>();
  const limits = target.limits.filter(({ scope }) => scope === "chain");
  if (limits.length === 0) return chains;
  const reader = readerWith(target, createFileReader(undefined, rootOf(options.tree)));
  for (const tool of knownTools(options.adapters)) {
    const own = limitsOf(tool, options.adapters).filter((limit) => limits.includes(limit));
    const folders = own.length === 0 ? [] : await foldersOf(tool, options.tree, dirname(target.path));
    const read = await Promise.all(folders.map((folder) => filesIn(folder, { ...options, tool, reader })));
    for (const limit of own) {
      const measured = read.map((files, index) => {
        const counted = files.filter((file) => countsToward(limit, file, tool));
        const others = counted.filter(({ realPath }) => realPath !== target.realPath);
        return {
          folder: folders[index]!,
          copies: counted.length - others.length,
          others: others.reduce((sum, { text }) => sum + measure(text, limit.unit, options.counter), 0),
        };
      });
      chains.set(limit, [...(chains.get(limit) ?? []), ...measured.filter(({ copies }) => copies > 0)]);
    }
  }
  return chains;
}

/** The target is there for whoever looks, though it may be about to be created. Its text counts only for the files that it imports. */
function readerWith({ names, realPath, adapters }: FileTarget, reader: FileReader): FileReader {
  const mayImport = adapters.some(({ imports }) => imports);
  const created = async (path: string): Promise<TextFile> => {
    const entry = await lstat(path).catch(() => undefined);
    return { path, realPath, isLink: entry?.isSymbolicLink() === true, text: "", bytes: 0, tokens: 0 };
  };
  return {
    ...reader,
    read: async (path) => {
      const isNamed = names.includes(path);
      const file = isNamed && !mayImport ? undefined : await reader.read(path);
      if (file === undefined) return isNamed ? created(path) : undefined;
      const isTarget = !("text" in file) && (await followLinks(path).catch(() => path)) === realPath;
      return isTarget ? created(path) : file;
    },
  };
}

/** The folders in which the tool would find another file than further up, and `start`. Not those that git ignores: packages and what
 *  is built bring such files too, and nobody works there. */
async function foldersOf(tool: ToolFiles, tree: ProjectTree, start: string): Promise<string[]> {
  const { repository, folders, otherFolders } = tree;
  // Without a repository a tool takes each folder for itself.
  if (repository === undefined) return [start];
  const names = [...(tool.down ?? []), tool.otherwise ?? []].flat();
  const places = names.map((name) => (name.includes("*") ? name.slice(0, name.indexOf("*")) : name));
  const hasFile = (folder: string) => places.some((place) => existsSync(join(folder, place)));
  const found = new Set([start, ...folders.filter(hasFile)]);
  for (const folder of otherFolders.filter(hasFile))
    if (!(await isIgnoredFolder(folder, repository))) found.add(folder);
  return [...found];
}

async function filesIn(
  folder: string,
  { tool, tree, adapters, reader }: ChainOptions & { readonly tool: ToolFiles; readonly reader: FileReader },
): Promise<readonly LoadedFile[]> {
  const imports = adapters.find(({ id }) => id === tool.id)?.imports === true;
  const { files } = await loadChain(tool, {
    ...{ reader, imports },
    ...{ directory: folder, root: tree.repository ?? folder },
  });
  return files;
}

/** A tool that loses something of what it is given. */
export interface BrokenLimit {
  readonly tool: string;
  readonly limit: ToolLimit;
  readonly used: number;
  /** The last file that it reads there, or the one that is too large. */
  readonly path: string;
  readonly bytes: number;
}

/** Where `audit` would say OVER THE LIMIT: for each limit of these tools the folder where most of it is used. `ids` name tools and
 *  adapters; a shared file's adapter stands for the tools that have a limit on it. */
export async function brokenLimits(ids: readonly string[], options: ChainOptions): Promise<BrokenLimit[]> {
  const reader = createFileReader(undefined, rootOf(options.tree));
  const broken: BrokenLimit[] = [];
  const tools = knownTools(options.adapters).filter(
    (tool) => ids.includes(tool.id) || (tool.limitsFrom !== undefined && ids.includes(tool.limitsFrom)),
  );
  for (const tool of tools) {
    const limits = limitsOf(tool, options.adapters).filter(isEnforced);
    if (limits.length === 0) continue;
    const worst = new Map<ToolLimit, BrokenLimit>();
    for (const folder of await foldersOf(tool, options.tree, options.tree.root)) {
      const files = await filesIn(folder, { ...options, tool, reader });
      for (const limit of limits) {
        const found = breach(limit, files, { tool, counter: options.counter });
        if (found !== undefined && found.used > (worst.get(limit)?.used ?? 0)) worst.set(limit, found);
      }
    }
    broken.push(...worst.values());
  }
  return broken;
}

function breach(
  limit: ToolLimit,
  files: readonly LoadedFile[],
  { tool, counter }: { readonly tool: ToolFiles; readonly counter: Counter },
): BrokenLimit | undefined {
  const words = { name: tool.name, counter, show: (path: string) => path };
  const { used, exceeded } = reportLimit(limit, files, { ...words, tool });
  if (!exceeded) return undefined;
  const read = files.filter((file) => countsToward(limit, file, tool));
  const largest = read.find(({ text }) => measure(text, limit.unit, counter) === used);
  const shown = limit.scope === "chain" ? read.at(-1) : largest;
  const bytes = limit.scope === "chain" ? read.reduce((sum, file) => sum + file.bytes, 0) : shown!.bytes;
  return { tool: tool.id, limit, used, path: shown!.path, bytes };
}

function rootOf({ repository, root }: ProjectTree): string {
  return repository ?? root;
}
