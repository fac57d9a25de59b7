/** Measures what tools read together in each folder, in the same way as `audit`: how much room a block has, and which
 *  limits are exceeded. Reads nothing outside the repository. */
import { lstat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Counter } from "../../core/tokens/index.ts";
import { followLinks } from "../../host/index.ts";
import type { Adapter, ToolLimit } from "../adapters/adapter.ts";
import type { FileTarget } from "../adapters/targets.ts";
import type { ProjectTree } from "../files/project-tree.ts";
import { findFolders } from "../load-model/find-folders.ts";
import {
  createFileReader,
  type FileReader,
  type LoadedFile,
  loadChain,
  type TextFile,
} from "../load-model/load-files.ts";
import { knownTools, type ToolFiles } from "../load-model/tool-files.ts";
import { countsToward, findLimits, reportLimit } from "./audit-limits.ts";
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
export async function measureChains(
  target: FileTarget,
  options: ToolChainOptions,
): Promise<ReadonlyMap<ToolLimit, readonly MeasuredChain[]>> {
  const chains = new Map<ToolLimit, readonly MeasuredChain[]>();
  const limits = target.limits.filter(({ scope }) => scope === "chain");
  if (limits.length === 0) return chains;
  const { repository, root } = options.tree;
  const reader = createTargetReader(target, createFileReader(undefined, repository ?? root), options.planned);
  for (const tool of knownTools(options.adapters)) {
    const own = findLimits(tool, options.adapters).filter((limit) => limits.includes(limit));
    const folders = own.length === 0 ? [] : await findFolders([tool], { ...options, start: dirname(target.path) });
    const read = await Promise.all(folders.map((folder) => readFiles(folder, { ...options, tool, reader })));
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

/** Returns a reader that always finds the target, even if it does not exist yet. The target's own text is needed only
 *  for its imports. */
function createTargetReader(
  { names, realPath, adapters }: FileTarget,
  reader: FileReader,
  planned: ReadonlyMap<string, string> = new Map(),
): FileReader {
  const readPlanned = async (path: string) => {
    const [text, file] = [planned.get(path), await reader.read(path)];
    if (text === undefined || (file !== undefined && !("text" in file))) return file;
    return { path, realPath: path, isLink: false, tokens: 0, ...file, text, bytes: Buffer.byteLength(text) };
  };
  const mayImport = adapters.some(({ imports }) => imports);
  const created = async (path: string): Promise<TextFile> => {
    const entry = await lstat(path).catch(() => undefined);
    return { path, realPath, isLink: entry?.isSymbolicLink() === true, text: "", bytes: 0, tokens: 0 };
  };
  return {
    ...reader,
    read: async (path) => {
      const isNamed = names.includes(path);
      const file = isNamed && !mayImport ? undefined : await readPlanned(path);
      if (file === undefined) return isNamed ? created(path) : undefined;
      const isTarget = !("text" in file) && (await followLinks(path).catch(() => path)) === realPath;
      return isTarget ? created(path) : file;
    },
  };
}

async function readFiles(
  folder: string,
  { tool, tree, adapters, reader }: ToolChainOptions & { readonly tool: ToolFiles; readonly reader: FileReader },
): Promise<readonly LoadedFile[]> {
  const imports = adapters.find(({ id }) => id === tool.id)?.imports === true;
  const { files } = await loadChain(tool, {
    reader,
    imports,
    directory: folder,
    root: tree.repository ?? folder,
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
  const reader = createFileReader(undefined, options.tree.repository ?? options.tree.root);
  const broken: BrokenLimit[] = [];
  const tools = knownTools(options.adapters).filter(
    (tool) => ids.includes(tool.id) || (tool.limitsFrom !== undefined && ids.includes(tool.limitsFrom)),
  );
  for (const tool of tools) {
    const limits = findLimits(tool, options.adapters).filter(isEnforced);
    if (limits.length === 0) continue;
    const worst = new Map<ToolLimit, BrokenLimit>();
    for (const folder of await findFolders([tool], { ...options, start: options.tree.root })) {
      const files = await readFiles(folder, { ...options, tool, reader });
      for (const limit of limits) {
        const found = findBreach(limit, files, { tool, counter: options.counter });
        if (found !== undefined && found.used > (worst.get(limit)?.used ?? 0)) worst.set(limit, found);
      }
    }
    broken.push(...worst.values());
  }
  return broken;
}

function findBreach(
  limit: ToolLimit,
  files: readonly LoadedFile[],
  { tool, counter }: { readonly tool: ToolFiles; readonly counter: Counter },
): BrokenLimit | undefined {
  const { used, exceeded } = reportLimit(limit, files, { name: tool.name, counter, show: (path) => path, tool });
  if (!exceeded) return undefined;
  const read = files.filter((file) => countsToward(limit, file, tool));
  const isChain = limit.scope === "chain";
  const last = isChain ? read.at(-1)! : read.find(({ text }) => measure(text, limit.unit, counter) === used)!;
  const bytes = isChain ? read.reduce((sum, file) => sum + file.bytes, 0) : last.bytes;
  return { tool: tool.id, limit, used, path: last.path, bytes };
}
