/** Decides which file gets which packs. A pack with globs leaves the file that a tool always loads if every tool that
 *  reads this file can load the pack for matching files only. */
import { statSync } from "node:fs";
import { basename, join } from "node:path";
import { expandBraces, fromByteString, oneLine } from "../../core/text/index.ts";
import { followLinks, isInside, isOtherProject, readForeignBytes } from "../../host/index.ts";
import { isLimitOn, knownTools } from "../audit/audit-files.ts";
import { markedBlock } from "../files/marked-block.ts";
import { nestedFolders, type Pack, trimPacks } from "../packs/index.ts";
import type { Adapter, AdapterTarget, ScopedRules } from "./adapter.ts";
import { planSkills, type SkillFile } from "./skills.ts";
import {
  type FileTarget,
  fileTargets,
  importedPaths,
  type Places,
  resolveTargetPath,
  targetFileOf,
  targetsOf,
  wholeFile,
} from "./targets.ts";

/** `block`: a file that tools always load. `nested`: a file of the same name in a folder. `rule`: a file for the globs of
 *  one pack. `skill`: a file in the folder of a skill. */
export type FileKind = "block" | "nested" | "rule" | "skill";

export interface PlannedFile extends FileTarget {
  readonly kind: FileKind;
  /** In order of priority. */
  readonly packs: readonly Pack[];
  /** For `skill` only. */
  readonly skill?: SkillFile | undefined;
}

export interface FilePlan {
  /** Blocks first, then nested files, then rules, then skills. */
  readonly files: readonly PlannedFile[];
  /** Maps each file that imports another file of the plan to that file, which holds the block. */
  readonly imports: ReadonlyMap<PlannedFile, PlannedFile>;
}

export interface FilePlanOptions {
  readonly packs: readonly Pack[];
  readonly places: Places;
  /** Ids of tools that keep their own file although they read another file of the run. */
  readonly ownFiles: readonly string[];
  /** Adapters that the configuration chooses, though not for this run. */
  readonly standing?: readonly Adapter[] | undefined;
  readonly force?: boolean | undefined;
}

/** Returns the files that inject writes for these adapters. */
export async function planFiles(adapters: readonly Adapter[], options: FilePlanOptions): Promise<FilePlan> {
  const { packs, places, ownFiles } = options;
  const targets = await fileTargets(adapters, places, ownFiles);
  const imported = await findImports(targets, places);
  const importers = (target: FileTarget) => [...imported].filter(([, other]) => other === target).map(([each]) => each);
  const scoped = places.scope === "global" ? [] : packs.filter(isScoped);
  // A pack that another one includes is dropped, wherever the other one goes.
  const kept = scoped.length === 0 ? [] : trimPacks(packs, 0, "full").packs.filter(isScoped);
  const blocks = new Map<FileTarget, PlannedFile>();
  const nested = new Map<FileTarget, readonly PlannedFile[]>();
  for (const target of targets) {
    const readers = [target, ...importers(target)].flatMap((each) => each.adapters);
    const below = imported.has(target) || kept.length === 0 ? [] : await planNested(target, kept, places);
    const isRule = readers.every(({ rules }) => rules !== undefined);
    const isNested = (pack: Pack) => below.some((each) => isIn(pack, each) || !kept.includes(pack));
    const isElsewhere = (pack: Pack) => scoped.includes(pack) && (isRule || isNested(pack));
    blocks.set(target, { ...target, kind: "block", packs: packs.filter((pack) => !isElsewhere(pack)) });
    nested.set(target, below);
  }
  const readBy = (adapter: Adapter) => {
    const read = targets.filter((each) => each.adapters.includes(adapter)).map((each) => imported.get(each) ?? each);
    const readsNested = (target: FileTarget) => doesReadNested(adapter, target);
    return read.flatMap((each) => [blocks.get(each)!, ...(readsNested(each) ? nested.get(each)! : [])]);
  };
  return {
    files: [
      ...blocks.values(),
      ...[...nested.values()].flat(),
      ...(await planRules(adapters, readBy, { places, packs: kept })),
      ...(await skillTargets(planSkills(adapters, options), places)),
    ],
    imports: new Map([...imported].map(([from, to]) => [blocks.get(from)!, blocks.get(to)!])),
  };
}

/** A user's packs are not scoped: Claude Code and Kiro do not load such rules from HOME (claude-code#21858,
 *  Kiro#9176). */
function isScoped({ globs }: Pack): boolean {
  return globs.length > 0;
}

function isIn(pack: Pack, { packs }: PlannedFile): boolean {
  return packs.includes(pack);
}

/** Returns the files for nested packs, one for each folder that exists. A pack stays in the block of `target` if a file
 *  of its folders is a link to that block. */
async function planNested(target: FileTarget, packs: readonly Pack[], places: Places): Promise<PlannedFile[]> {
  const isNested = target.adapters.some((adapter) => adapter.nested) && target.target.mode !== "replace-file";
  if (!isNested) return [];
  const readers = target.adapters.filter((adapter) => doesReadNested(adapter, target));
  const files = new Map<string, PlannedFile & { packs: Pack[] }>();
  for (const pack of packs) {
    const own: PlannedFile[] = [];
    for (const folder of nestedFolders(pack)) {
      if (!isOwnFolder(join(places.root, folder), places.root)) continue;
      const path = join(places.root, folder, target.target.path);
      const realPath = await followLinks(path).catch(() => path);
      const inFolder = { ...target.target, path: join(folder, target.target.path) };
      own.push({
        ...target,
        adapters: readers,
        path,
        names: [path],
        realPath,
        target: inFolder,
        kind: "nested",
        packs: [],
      });
    }
    if (own.some(({ realPath }) => realPath === target.realPath)) continue;
    for (const file of own) {
      const known = files.get(file.realPath) ?? { ...file, packs: [] };
      known.packs.push(pack);
      files.set(file.realPath, known);
    }
  }
  return [...files.values()];
}

/** Returns whether a folder exists and belongs to this project. */
function isOwnFolder(folder: string, root: string): boolean {
  return statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true && !isOtherProject(folder, root);
}

function doesReadNested(adapter: Adapter, { target }: FileTarget): boolean {
  if (adapter.nested) return true;
  const tool = knownTools([adapter]).find(({ id }) => id === adapter.id);
  return tool?.down?.some((names) => names.includes(basename(target.path))) === true;
}

/** Returns one file for each tool with scoped rules and each pack that the tool does not read elsewhere. */
async function planRules(
  adapters: readonly Adapter[],
  readBy: (adapter: Adapter) => readonly PlannedFile[],
  { packs, places }: Pick<FilePlanOptions, "packs" | "places">,
): Promise<PlannedFile[]> {
  const files = new Map<string, PlannedFile>();
  for (const adapter of [...adapters].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const { rules } = adapter;
    if (rules === undefined) continue;
    const elsewhere = new Set(readBy(adapter).flatMap((file) => file.packs));
    for (const pack of packs.filter((each) => !elsewhere.has(each))) {
      const target = ruleTarget(rules, pack);
      const path = resolveTargetPath(target.path, places);
      const realPath = await followLinks(path).catch(() => path);
      const limits = adapter.limits.filter((limit) => limit.scope === "file" && isLimitOn(path, limit, adapter.id));
      const file = { path, names: [path], realPath, target, adapters: [adapter], limits, kind: "rule", packs: [pack] };
      if (!files.has(realPath)) files.set(realPath, file as PlannedFile);
    }
  }
  return [...files.values()];
}

function ruleTarget({ path, preamble }: ScopedRules, { id, name, description, globs }: Pack): AdapterTarget {
  // A comma separates globs, so braces with commas are written out.
  const plain = globs.flatMap((glob) => expandBraces(glob) ?? [glob]);
  const values: Readonly<Record<string, string>> = {
    globs: plain.join(","),
    globs_list: `[${globs.map((glob) => JSON.stringify(glob)).join(", ")}]`,
    name: JSON.stringify(oneLine(name)),
    description: JSON.stringify(oneLine(description)),
  };
  return {
    ...wholeFile(path.replaceAll("{id}", id)),
    preamble: preamble.replace(/\{(\w+)\}/g, (text, name: string) => values[name] ?? text),
  };
}

async function skillTargets(skills: readonly SkillFile[], places: Places): Promise<PlannedFile[]> {
  const files: PlannedFile[] = [];
  for (const skill of skills) {
    const path = resolveTargetPath(skill.path, places);
    const realPath = await followLinks(path).catch(() => path);
    const about = { target: wholeFile(skill.path), adapters: skill.adapters, limits: [], packs: [skill.pack] };
    files.push({ path, names: [path], realPath, kind: "skill", ...about, skill });
  }
  return files;
}

// A file that imports another target (`@AGENTS.md` in CLAUDE.md) already shows that target's block, so it gets no block
// itself.

interface RelatedAdapters {
  /** Their file is imported by a file of the given adapters. */
  readonly imported: readonly Adapter[];
  /** They have the same file as the given adapters, or their file imports it. So their budgets apply to it. */
  readonly sharing: readonly Adapter[];
}

/** Adds the adapters with a block that these tools read, and those that share a file with them: what is written is then
 *  the same as in a run for all tools. `isServed` says whether a tool needs no own file if another file shows the
 *  block. */
export async function withRelated(
  asked: readonly Adapter[],
  { standing, places, isServed }: RelatedOptions,
): Promise<readonly Adapter[]> {
  const others = standing.filter((each) => !asked.includes(each));
  const { imported } = await relatedAdapters(asked, others, places);
  const isRead = (each: Adapter) => asked.some(({ id }) => each.reads.includes(id) && isServed(id));
  const serving = (await adaptersWithBlock(others, places)).filter((each) => imported.includes(each) || isRead(each));
  const written = [...asked, ...serving];
  const rest = others.filter((each) => !written.includes(each));
  return [...written, ...(await relatedAdapters(written, rest, places)).sharing];
}

interface RelatedOptions {
  readonly standing: readonly Adapter[];
  readonly places: Places;
  isServed(id: string): boolean;
}

/** Finds the adapters of `others` that show the same block as the given ones. */
async function relatedAdapters(
  adapters: readonly Adapter[],
  others: readonly Adapter[],
  places: Places,
): Promise<RelatedAdapters> {
  if (others.length === 0) return { imported: [], sharing: [] };
  const all = [...adapters, ...others];
  const targets = await fileTargets(
    all,
    places,
    all.map(({ id }) => id),
  );
  const imports = [...(await findImports(targets, places))];
  const isGiven = (target: FileTarget) => target.adapters.some((each) => adapters.includes(each));
  const among = (found: readonly FileTarget[]) =>
    others.filter((each) => found.some((target) => target.adapters.includes(each)));
  return {
    imported: among(imports.filter(([from]) => isGiven(from)).map(([, to]) => to)),
    sharing: among([...targets.filter(isGiven), ...imports.filter(([, to]) => isGiven(to)).map(([from]) => from)]),
  };
}

/** Returns the adapters that have a file with our text in it. */
async function adaptersWithBlock(adapters: readonly Adapter[], places: Places): Promise<Adapter[]> {
  const root = await followLinks(places.root);
  const found: Adapter[] = [];
  for (const { adapter, target } of targetsOf(adapters, places.scope)) {
    const path = resolveTargetPath(target.path, places);
    const realPath = await followLinks(path).catch(() => path);
    const read = readForeignBytes(realPath, { within: root });
    const state = read === undefined ? "not found" : targetFileOf(read, target);
    if (state === "injected" || state === "edited") found.push(adapter);
  }
  return found;
}

/** Maps each target that imports another target to that target. If two import each other, the first keeps its block. */
async function findImports(
  targets: readonly FileTarget[],
  { root, home }: Places,
): Promise<Map<FileTarget, FileTarget>> {
  const realRoot = await followLinks(root);
  const imports = new Map<FileTarget, FileTarget>();
  for (const target of targets) {
    // A target outside the root is refused later, so it is not read here.
    if (!target.adapters.some((adapter) => adapter.imports) || !isInside(target.realPath, realRoot)) continue;
    const file = readForeignBytes(target.realPath, { within: realRoot }) ?? "";
    const paths = importedPaths(ownText(file, target), { file: target.realPath, home });
    const imported = targets.find((other) => other !== target && !imports.has(other) && paths.includes(other.realPath));
    if (imported !== undefined) imports.set(target, imported);
  }
  return imports;
}

/** Returns the text that a person wrote in the file of a block. `file` is a byte string. A pack that mentions
 *  `@AGENTS.md` must not turn its file into an importing file. */
export function ownText(file: string, { target }: FileTarget): string {
  const found = markedBlock.find(file, target.section);
  return fromByteString(found.kind === "block" ? file.slice(0, found.block.start) + file.slice(found.block.end) : file);
}
