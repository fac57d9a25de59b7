/** Measures what tools read together in each folder, in the same way as `audit`: how much room a block has, and which
 *  limits are exceeded. Reads nothing outside the repository. */
import { lstatSync } from "node:fs";
import { lstat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Counter } from "../../core/tokens/index.ts";
import { followLinks, type ProjectTree } from "../../host/index.ts";
import type { Adapter, ToolLimit } from "../adapters/adapter.ts";
import type { FileTarget } from "../adapters/targets.ts";
import { createFileReader, type FileReader, type LoadedFile, loadChain, type TextFile } from "./audit-chain.ts";
import { knownTools, type ToolFiles } from "./audit-files.ts";
import { countsToward, limitsOf, reportLimit } from "./audit-limits.ts";
import { isEnforced, type MeasuredChain, measure } from "./limits.ts";

export interface ToolChainOptions {
  /** All known adapters: one adapter may list limits of another adapter's tool. */
  readonly adapters: readonly Adapter[];
  readonly tree: ProjectTree;
  readonly counter: Counter;
  /** Texts that files have or will have after the run. Keys are paths. */
  readonly planned?: ReadonlyMap<string, string> | undefined;
}

/** For each limit on a chain, measures the files that a tool reads together with a target, in every folder below it. */
export async function chainsOf(
  target: FileTarget,
  options: ToolChainOptions,
): Promise<ReadonlyMap<ToolLimit, readonly MeasuredChain[]>> {
  const chains = new Map<ToolLimit, readonly MeasuredChain[]>();
  const limits = target.limits.filter(({ scope }) => scope === "chain");
  if (limits.length === 0) return chains;
  const reader = readerWith(target, withPlanned(createFileReader(undefined, rootOf(options.tree)), options.planned));
  for (const tool of knownTools(options.adapters)) {
    const own = limitsOf(tool, options.adapters).filter((limit) => limits.includes(limit));
    const folders = own.length === 0 ? [] : await foldersOf(tool, options, dirname(target.path));
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

function withPlanned(reader: FileReader, planned: ReadonlyMap<string, string> = new Map()): FileReader {
  return {
    ...reader,
    read: async (path) => {
      const [text, file] = [planned.get(path), await reader.read(path)];
      if (text === undefined || (file !== undefined && !("text" in file))) return file;
      return { path, realPath: path, isLink: false, tokens: 0, ...file, text, bytes: Buffer.byteLength(text) };
    },
  };
}

/** Returns a reader that always finds the target, even if it does not exist yet. The target's own text is needed only
 *  for its imports. */
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

/** Returns `start` and the folders below it in which the tool finds more files. Leaves out folders that git ignores:
 *  dependencies and build output contain such files too, and nobody works there. */
async function foldersOf(
  tool: ToolFiles,
  { tree, planned }: Pick<ToolChainOptions, "tree" | "planned">,
  start: string,
): Promise<string[]> {
  const { repository, folders, otherFolders } = tree;
  // Without a repository, a tool treats each folder on its own.
  if (repository === undefined) return [start];
  const names = [...(tool.down ?? []), tool.otherwise ?? []].flat();
  const places = names.map((name) => (name.includes("*") ? name.slice(0, name.indexOf("*")) : name));
  const isThere = (path: string) => planned?.has(path) === true || hasEntry(path);
  const hasFile = (folder: string) => places.some((place) => isThere(join(folder, place)));
  const found = new Set([start, ...folders.filter(hasFile)]);
  for (const folder of otherFolders.filter(hasFile)) if (!(await tree.isIgnored(folder))) found.add(folder);
  return [...found];
}

/** A link that leads nowhere counts: this run may create the file that it leads to. */
function hasEntry(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return false;
  }
}

async function filesIn(
  folder: string,
  { tool, tree, adapters, reader }: ToolChainOptions & { readonly tool: ToolFiles; readonly reader: FileReader },
): Promise<readonly LoadedFile[]> {
  const imports = adapters.find(({ id }) => id === tool.id)?.imports === true;
  const { files } = await loadChain(tool, {
    ...{ reader, imports },
    ...{ directory: folder, root: tree.repository ?? folder },
  });
  return files;
}

/** A limit that is exceeded, so the tool loses part of its input. */
export interface BrokenLimit {
  readonly tool: string;
  readonly limit: ToolLimit;
  readonly used: number;
  /** The last file that the tool reads there, or the file that is too large. */
  readonly path: string;
  readonly bytes: number;
}

/** Finds the limits for which `audit` prints OVER THE LIMIT. Each limit is reported once, for the folder that uses most
 *  of it. `ids` are tools and adapters; the adapter of a shared file includes the tools with a limit on it. */
export async function brokenLimits(ids: readonly string[], options: ToolChainOptions): Promise<BrokenLimit[]> {
  const reader = createFileReader(undefined, rootOf(options.tree));
  const broken: BrokenLimit[] = [];
  const tools = knownTools(options.adapters).filter(
    (tool) => ids.includes(tool.id) || (tool.limitsFrom !== undefined && ids.includes(tool.limitsFrom)),
  );
  for (const tool of tools) {
    const limits = limitsOf(tool, options.adapters).filter(isEnforced);
    if (limits.length === 0) continue;
    const worst = new Map<ToolLimit, BrokenLimit>();
    for (const folder of await foldersOf(tool, options, options.tree.root)) {
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
