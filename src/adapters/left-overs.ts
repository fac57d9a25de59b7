/** Blocks and files of ours that nobody wants any more: of tools that are no longer in use, of adapters with another section or path, of
 *  content that is gone. They are looked for where any known adapter could have written, and in every text file that git tracks. */
import { existsSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import { ContextError } from "../errors.ts";
import { adoptBlock, readOwnership, removeWholeBlocks } from "../text/index.ts";
import {
  type Environment,
  type FileChange,
  filesHolding,
  isInside,
  type ProjectTree,
  readQuietly,
} from "../workspace/index.ts";
import type { Adapter, AdapterTarget } from "./adapter.ts";
import { removeEmptyFolders } from "./mcp-wire/empty-folders.ts";
import { changeTarget } from "./targets/change-target.ts";
import { refuseTarget, removeFrom, stateOf } from "./targets/file-target.ts";
import {
  exportTarget,
  type FileTarget,
  type Places,
  resolveTargetPath,
  targetsOf,
} from "./targets/targets.ts";

/** Returns the adapters that have a file with our text in it. */
export function adaptersWithBlock(adapters: readonly Adapter[], places: Places): Adapter[] {
  const found: Adapter[] = [];
  for (const { adapter, target } of targetsOf(adapters, places.scope)) {
    const realPath = realPathOf(resolveTargetPath(target.path, places));
    const read = isInside(realPath, realPathOf(places.root)) ? readQuietly(realPath) : undefined;
    const state = read === undefined ? "not found" : stateOf(read.toString("latin1"), target);
    if (state === "injected" || state === "edited") found.push(adapter);
  }
  return found;
}

export interface SearchOptions {
  /** Whose files are looked at: those of every layer, also where a higher layer replaces the adapter. */
  readonly known: readonly Adapter[];
  /** What inject keeps up: of these files only the blocks of other sections are left over. */
  readonly wanted: readonly FileTarget[];
  readonly places: Places;
  /** Absent: only the files of `known` are looked at. */
  readonly tree?: ProjectTree | undefined;
  readonly env: Environment;
}

/** A file that holds something of ours. */
export interface LeftOver {
  readonly path: string;
  /** Those that could have written it; none where only the markers tell. */
  readonly adapters: readonly Adapter[];
  readonly targets: readonly AdapterTarget[];
  readonly wanted?: AdapterTarget | undefined;
}

export async function findLeftOvers(options: SearchOptions): Promise<LeftOver[]> {
  const wanted = new Map(options.wanted.map((target) => [target.realPath, target.target]));
  const places = await placesToLook(options);
  const found: LeftOver[] = [];
  for (const [realPath, place] of places) {
    const current = readQuietly(realPath)?.toString("latin1");
    const leftOver = { ...place, wanted: wanted.get(realPath) };
    if (current !== undefined && isLeftOver(current, leftOver)) found.push(leftOver);
  }
  return found;
}

/** By their real paths: a link and its target are one file. */
async function placesToLook({ known, places, tree, env }: SearchOptions): Promise<Map<string, LeftOver>> {
  const found = new Map<string, LeftOver & { adapters: Adapter[]; targets: AdapterTarget[] }>();
  const root = realPathOf(places.root);
  for (const { adapter, target } of targetsOf(known, places.scope)) {
    const path = resolveTargetPath(target.path, places);
    if (!existsSync(path)) continue;
    const realPath = realPathOf(path);
    if (!isInside(realPath, root)) continue;
    const place = found.get(realPath) ?? { path, adapters: [], targets: [] };
    if (!place.adapters.some(({ id }) => id === adapter.id)) place.adapters.push(adapter);
    place.targets.push(target);
    found.set(realPath, place);
  }
  if (tree === undefined) return found;
  for (const path of withoutOtherProjects(await filesHolding(markers, tree, env), tree)) {
    const realPath = realPathOf(path);
    if (!found.has(realPath) && isInside(realPath, root))
      found.set(realPath, { path, adapters: [], targets: [] });
  }
  return found;
}

/** Of a path that exists; a link that leads nowhere stays itself. */
function realPathOf(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

const markers = ["plimsoll:start:", "plimsoll:owns "];

/** Leaves out nested projects, which have a `.plimsoll` folder of their own, and the content in our own `.plimsoll`. */
function withoutOtherProjects(paths: readonly string[], { root, files }: ProjectTree): string[] {
  const content = `${sep}.plimsoll${sep}`;
  const projects = new Set(
    files.flatMap(({ path }) => {
      const at = path.indexOf(content, root.length);
      return at === -1 ? [] : path.slice(0, at);
    }),
  );
  projects.delete(root);
  const inner = [...projects, join(root, ".plimsoll")];
  return paths.filter((path) => !inner.some((folder) => path.startsWith(folder + sep)));
}

function isLeftOver(current: string, place: LeftOver): boolean {
  try {
    return withoutLeftOvers(current, place, false) !== current;
  } catch (error) {
    // What may not be removed without a word of the person is left over all the same.
    if (error instanceof ContextError) return true;
    throw error;
  }
}

/** The file without what nobody wants; `undefined` where it was ours alone. Blocks with a fitting hash are ours wherever they stand. One
 *  that a person edited, or a marker alone, is only known by the name of its section, and refused. */
function withoutLeftOvers(current: string, place: LeftOver, force: boolean): string | undefined {
  const { wanted, targets } = place;
  const ownership = readOwnership(current);
  if (wanted?.mode === "replace-file" && ownership.kind === "ours") return current;
  if (wanted === undefined && ownership.kind === "ours" && !ownership.edited) return undefined;
  const kept = wanted === undefined || wanted.mode === "replace-file" ? undefined : wanted.section;
  const own = kept === undefined ? current : adoptBlock(current, kept);
  const whole = removeWholeBlocks(own, (section) => section !== kept);
  let rest: string | undefined = whole === own ? current : whole;
  for (const target of targets) {
    if (rest === undefined || target.section === kept) continue;
    const state = stateOf(rest, target);
    if (state !== "edited" && state !== "orphaned") continue;
    refuseTarget(state, { current: rest, target, force });
    rest = removeFrom(rest, target);
  }
  return rest;
}

export interface RemoveOptions {
  readonly places: Places;
  readonly env: Environment;
  readonly force: boolean;
  readonly dryRun: boolean;
}

export interface RemovedFile {
  readonly adapters: readonly Adapter[];
  readonly path: string;
  /** Absent when the file could not be changed. */
  readonly change?: FileChange;
  readonly problem?: ContextError;
}

/** Takes them away; what people wrote comes back byte for byte. */
export async function removeLeftOvers(
  leftOvers: readonly LeftOver[],
  options: RemoveOptions,
): Promise<RemovedFile[]> {
  const results: RemovedFile[] = [];
  for (const leftOver of leftOvers) results.push(await removeLeftOver(leftOver, options));
  return results.filter(({ problem, change }) => problem !== undefined || change?.before !== change?.after);
}

async function removeLeftOver(
  leftOver: LeftOver,
  { places, env, force, dryRun }: RemoveOptions,
): Promise<RemovedFile> {
  const { path, adapters } = leftOver;
  const change = (current: string | undefined) =>
    current === undefined ? undefined : withoutLeftOvers(current, leftOver, force);
  try {
    const { targets } = leftOver;
    const changed = await changeTarget(path, { root: places.root, dryRun, env, force, targets, change });
    if (changed.written && changed.after === undefined) await removeEmptyFolders(path, places.root);
    return { adapters, path, change: changed };
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    return { adapters, path, problem: error };
  }
}

/** Removes everything of ours: nothing is wanted any more, exports included. */
export async function uninstallFiles(
  options: Omit<SearchOptions, "wanted"> & RemoveOptions,
): Promise<RemovedFile[]> {
  const files = await findLeftOvers({ ...options, wanted: [] });
  const exports = options.known.flatMap((adapter) => {
    const target = exportTarget(adapter, options.places);
    return target === undefined ? [] : { path: target.path, adapters: [adapter], targets: [target.target] };
  });
  return removeLeftOvers([...files, ...exports], options);
}
