/** Finds and removes Plimsoll's blocks and files that nobody needs any more: of tools that are no longer used, of
 *  adapters with another section or path, of deleted content. It searches every file that a known adapter names and
 *  every text file that git tracks. */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { ContextError } from "../../core/errors.ts";
import {
  type Environment,
  type FileChange,
  isInside,
  isOtherProject,
  keptCopies,
  readForeignBytes,
  removeEmptyFolders,
} from "../../host/index.ts";
import { blockHash, markedBlock, readOwnership } from "../files/marked-block.ts";
import type { ProjectTree } from "../files/project-tree.ts";
import { nestedFolders, type Pack } from "../packs/index.ts";
import type { Adapter, AdapterTarget } from "./adapter.ts";
import { type FilePlanOptions, planFiles } from "./plan-files.ts";
import { findSkillFiles, type WrittenSkillFile } from "./skills.ts";
import {
  changeTarget,
  explainRefusal,
  exportTarget,
  type FileTarget,
  listTargets,
  type Places,
  readTargetState,
  removeFrom,
  resolveTargetPath,
  wholeFile,
} from "./targets.ts";

interface SearchOptions {
  /** The adapters of every layer, including adapters that a higher layer replaces. Their files are searched. */
  readonly known: readonly Adapter[];
  /** The targets that inject keeps. In these files only the blocks of other sections are left over. */
  readonly wanted: readonly FileTarget[];
  readonly places: Places;
  readonly tree: ProjectTree;
  /** Search only the files of `known`, not every text file that git tracks. */
  readonly onlyKnown?: boolean | undefined;
  readonly packs: readonly Pack[];
}

/** A file that holds text of Plimsoll that nobody needs. */
export interface LeftOver {
  readonly path: string;
  /** The adapters that could have written it. Empty if only the markers show that the text is Plimsoll's. */
  readonly adapters: readonly Adapter[];
  readonly targets: readonly AdapterTarget[];
  readonly wanted?: AdapterTarget | undefined;
  /** The file is in a folder of the team, which stays even if it is empty. */
  readonly isNested?: boolean | undefined;
  /** For a file of a skill: the skill's folder, and the hash of the file unless it holds its own. */
  readonly skill?: Omit<WrittenSkillFile, "adapter" | "target"> | undefined;
}

export interface LeftOverOptions extends FilePlanOptions {
  readonly adapters: readonly Adapter[];
  /** The adapters of every layer. Any of them may have written a file that is left over. */
  readonly everyAdapter: readonly Adapter[];
  /** Adapters that the configuration chooses. Their files are kept too, whatever this run chooses. */
  readonly standing: readonly Adapter[];
  /** Packs that the configuration chooses for them, if this run has others. */
  readonly standingPacks?: readonly Pack[] | undefined;
  readonly tree: ProjectTree;
}

/** Returns Plimsoll's texts that neither this run nor the configuration needs. `planned` are the files of this run. */
export async function listLeftOvers(options: LeftOverOptions, planned: readonly FileTarget[]): Promise<LeftOver[]> {
  const { adapters, standing, packs, standingPacks = packs, places, everyAdapter, tree } = options;
  const isOther = standingPacks.length > 0 && (standingPacks !== packs || standing !== adapters);
  const served = options.served && { run: options.served.standing, standing: options.served.standing };
  const kept = isOther ? (await planFiles(standing, { ...options, packs: standingPacks, served })).files : [];
  const wanted = [...planned, ...kept];
  return findLeftOvers({ known: everyAdapter, wanted, places, tree, packs: [...packs, ...standingPacks] });
}

async function findLeftOvers(options: SearchOptions): Promise<LeftOver[]> {
  const wanted = new Map(options.wanted.map((target) => [target.realPath, target.target]));
  const places = await findPlaces(options);
  const found: LeftOver[] = [];
  for (const [realPath, place] of places) {
    const current = readForeignBytes(realPath, { within: options.places.root });
    const leftOver = { ...place, wanted: wanted.get(realPath) };
    // A folder in the place of a skill's file is found too, so that the removal can report it.
    const isUnread = leftOver.wanted === undefined && place.skill?.isEdited === true;
    if (current === undefined) {
      if (isUnread) found.push(leftOver);
      continue;
    }
    try {
      if (withoutLeftOvers(current, leftOver, false) !== current) found.push(leftOver);
    } catch (error) {
      // A text that cannot be removed without the person's consent is still left over.
      if (!(error instanceof ContextError)) throw error;
      found.push(leftOver);
    }
  }
  return found;
}

/** Keys are real paths: a link and its target are one file. */
async function findPlaces(options: SearchOptions): Promise<Map<string, LeftOver>> {
  const { places, tree } = options;
  const found = new Map<string, LeftOver & { adapters: Adapter[]; targets: AdapterTarget[] }>();
  const root = resolveLinks(places.root);
  for (const { adapter, target, ...more } of listKnownFiles(options)) {
    const path = resolveTargetPath(target.path, places);
    if (!existsSync(path)) continue;
    const realPath = resolveLinks(path);
    if (!isInside(realPath, root)) continue;
    const place = found.get(realPath) ?? { path, adapters: [], targets: [], ...more };
    if (!place.adapters.some(({ id }) => id === adapter.id)) place.adapters.push(adapter);
    place.targets.push(target);
    found.set(realPath, place);
  }
  const content = join(tree.root, ".plimsoll") + sep;
  const tracked = options.onlyKnown === true ? [] : await tree.filesHolding(["plimsoll:start:", "plimsoll:owns "]);
  // Not nested projects, and not the content in our own `.plimsoll`.
  const isOurs = (path: string) => !path.startsWith(content) && !isOtherProject(dirname(path), tree.root);
  for (const path of tracked.filter(isOurs)) {
    const realPath = resolveLinks(path);
    if (!found.has(realPath) && isInside(realPath, root)) found.set(realPath, { path, adapters: [], targets: [] });
  }
  return found;
}

/** Returns the files that the adapters could have written, whether they exist or not. */
function listKnownFiles(
  options: SearchOptions,
): (Pick<LeftOver, "skill" | "isNested"> & { readonly adapter: Adapter; readonly target: AdapterTarget })[] {
  const { known, places, tree, packs } = options;
  const targets = listTargets(known, places.scope);
  if (places.scope === "global") return targets;
  const all = [...tree.folders, ...tree.otherFolders].map((folder) => relative(tree.root, folder));
  const folders = new Set([...all, ...packs.flatMap(nestedFolders)]);
  const nested = targets
    .filter(({ adapter }) => adapter.nested)
    .flatMap(({ adapter, target }) =>
      [...folders].map((folder) => ({
        adapter,
        target: { ...target, path: join(folder, target.path) },
        isNested: true,
      })),
    )
    .filter(({ target }) => {
      const path = resolveTargetPath(target.path, places);
      return existsSync(path) && !isOtherProject(dirname(path), places.root);
    });
  const skills = findSkillFiles(known, options).map(({ adapter, target, ...skill }) => ({ adapter, target, skill }));
  const single = known.flatMap((adapter) => {
    const [commands, agents] = [adapter.commands, adapter.agents].map((each) => each?.paths.slice(0, 1) ?? []);
    const patterns = [...(adapter.rules === undefined ? [] : [adapter.rules.path]), ...commands!, ...agents!];
    return patterns.flatMap((pattern) => listMatching(pattern, places).map((target) => ({ adapter, target })));
  });
  return [...targets, ...nested, ...single, ...skills];
}

/** Returns the files that have the name of a rule, a command or an agent. */
function listMatching(pattern: string, places: Places): AdapterTarget[] {
  const folder = dirname(pattern);
  const [start = "", end = ""] = basename(pattern).split(/\{\w+\}/);
  let names: string[] = [];
  try {
    names = readdirSync(resolveTargetPath(folder, places)).sort();
  } catch {
    // Without the folder there are no files.
  }
  return names
    .filter((name) => name.startsWith(start) && name.endsWith(end))
    .map((name) => wholeFile(join(folder, name)));
}

/** Returns the real path. A link that leads nowhere keeps its own path. */
function resolveLinks(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    return path;
  }
}

/** Returns the file without the text that nobody needs, or `undefined` if nothing else was in the file. */
function withoutLeftOvers(current: string, place: LeftOver, force: boolean): string | undefined {
  const { wanted, targets, skill } = place;
  if (skill === undefined) return withoutBlocks(current, place, force);
  if (wanted !== undefined) return current;
  if (isEditedFile(current, skill)) {
    refuse("edited", { current, target: targets[0]!, force, skill: basename(skill.folder) });
  }
  return undefined;
}

function refuse(...given: Parameters<typeof explainRefusal>): void {
  const problem = explainRefusal(...given);
  if (problem !== undefined) throw problem;
}

function isEditedFile(current: string, { written }: NonNullable<LeftOver["skill"]>): boolean {
  if (written !== undefined) return blockHash(current) !== written;
  const ownership = readOwnership(current);
  return ownership.kind === "foreign" || ownership.edited;
}

/** A block whose hash matches is Plimsoll's, wherever it is. An edited block or a single marker is known only by the
 *  name of its section, so removing it is refused. */
function withoutBlocks(current: string, { wanted, targets }: LeftOver, force: boolean): string | undefined {
  const ownership = readOwnership(current);
  if (wanted?.mode === "replace-file" && ownership.kind === "ours") return current;
  if (wanted === undefined && ownership.kind === "ours" && !ownership.edited) return undefined;
  const kept = wanted === undefined || wanted.mode === "replace-file" ? undefined : wanted.section;
  const own = kept === undefined ? current : markedBlock.adopt(current, kept);
  const whole = markedBlock.removeWhole(own, (section) => section !== kept);
  let rest: string | undefined = whole === own ? current : whole;
  for (const target of targets) {
    if (rest === undefined || target.section === kept) continue;
    const state = readTargetState(rest, target);
    if (state !== "edited" && state !== "orphaned") continue;
    refuse(state, { current: rest, target, force });
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
  /** Absent if the file could not be changed. */
  readonly change?: FileChange;
  /** Files that hold the text that `--force` replaced. */
  readonly copies?: readonly string[];
  readonly problem?: ContextError;
}

/** Removes the blocks. Text that people wrote is restored byte for byte. */
export async function removeLeftOvers(leftOvers: readonly LeftOver[], options: RemoveOptions): Promise<RemovedFile[]> {
  const results: RemovedFile[] = [];
  const kept = new Set<string>();
  for (const leftOver of leftOvers) {
    const { folder, written, isHeld, isEdited } = leftOver.skill ?? {};
    if (isHeld === true && isEdited !== true && !options.force) continue;
    // The list in SKILL.md is needed until all files of the skill are gone.
    if (folder !== undefined && written === undefined && kept.has(folder)) continue;
    const result = await removeLeftOver(leftOver, options);
    if (folder !== undefined && result.problem !== undefined) kept.add(folder);
    results.push(result);
  }
  return results.filter(({ problem, change }) => problem !== undefined || change?.before !== change?.after);
}

async function removeLeftOver(leftOver: LeftOver, { places, env, force, dryRun }: RemoveOptions): Promise<RemovedFile> {
  const { path, adapters, targets, skill } = leftOver;
  const { root } = places;
  const isPersons = skill && ((before: string) => isEditedFile(before, skill));
  const plan = (current: string | undefined) => ({
    after: current === undefined ? undefined : withoutLeftOvers(current, leftOver, force),
    facts: undefined,
  });
  const { change, problem } = await changeTarget(path, { root, dryRun, env, force, targets, isPersons, plan });
  if (problem !== undefined) return { adapters, path, problem };
  if (change.written && change.after === undefined && leftOver.isNested !== true) await removeEmptyFolders(path, root);
  return { adapters, path, change, copies: keptCopies(path) };
}

/** Removes all of Plimsoll's blocks and files, including exports. */
export async function uninstallFiles(options: Omit<SearchOptions, "wanted"> & RemoveOptions): Promise<RemovedFile[]> {
  const files = await findLeftOvers({ ...options, wanted: [] });
  const exports = options.known.flatMap((adapter) => {
    const target = exportTarget(adapter, options.places);
    return target === undefined ? [] : { path: target.path, adapters: [adapter], targets: [target.target] };
  });
  return removeLeftOvers([...files, ...exports], options);
}
