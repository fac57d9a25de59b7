/** Decides which file gets which packs. A pack with globs leaves the file that a tool always loads if every tool that
 *  reads this file can load the pack for matching files only. */
import { statSync } from "node:fs";
import { basename, join } from "node:path";
import { expandBraces, oneLine } from "../../core/text/index.ts";
import { followLinks, isOtherProject, readForeignBytes } from "../../host/index.ts";
import { isLimitOn, knownTools, type ToolFiles } from "../load-model/tool-files.ts";
import { mayReach, nestedFolders, type Pack, trimPacks } from "../packs/index.ts";
import type { Adapter, AdapterTarget, ScopedRules } from "./adapter.ts";
import type { Served } from "./choose-adapters.ts";
import type { DraftOptions } from "./draft-file.ts";
import { type ChooseOptions, chooseHarmless, type HarmlessTargets } from "./harmless-targets.ts";
import { planSkills, quoteForYaml, type SkillFile } from "./skills.ts";
import {
  createOwnTextReader,
  type FileTarget,
  fileTargets,
  importedPaths,
  listTargets,
  type Places,
  readTargetState,
  resolveTargetPath,
  wholeFile,
} from "./targets.ts";

/** `block`: a file that tools always load. `nested`: a file of the same name in a folder. `rule`: a file for the globs of
 *  one pack. `skill`: a file in the folder of a skill, or the file of a command or an agent. */
export type FileKind = "block" | "nested" | "rule" | "skill";

export interface PlannedFile extends FileTarget {
  readonly kind: FileKind;
  /** In order of priority. */
  readonly packs: readonly Pack[];
  /** For `skill` only. */
  readonly skill?: SkillFile | undefined;
}

export interface FilePlan extends Pick<HarmlessTargets, "faults" | "notes"> {
  /** Blocks first, then nested files, then rules, then skills. */
  readonly files: readonly PlannedFile[];
  /** Maps each file that imports another file of the plan to that file, which holds the block. */
  readonly imports: ReadonlyMap<PlannedFile, PlannedFile>;
  readonly unplaced: readonly UnplacedPack[];
}

/** A pack that a tool should get and does not, because the tool shares its file with tools that must not get it. */
export interface UnplacedPack {
  readonly pack: string;
  readonly tool: string;
  /** Absent if the tool has no file in the project. */
  readonly path?: string | undefined;
  /** Ids of the tools that read this file too. */
  readonly sharedWith: readonly string[];
}

export interface FilePlanOptions extends ChooseOptions {
  readonly packs: readonly Pack[];
  /** Adapters that the configuration chooses, though not for this run. */
  readonly standing?: readonly Adapter[] | undefined;
  readonly served?: Served | undefined;
  readonly force?: boolean | undefined;
  /** What blocks contain besides packs. */
  readonly content: DraftOptions["content"];
}

/** Returns the files that inject writes for these adapters. */
export async function planFiles(adapters: readonly Adapter[], options: FilePlanOptions): Promise<FilePlan> {
  const { packs, places } = options;
  const mayReplace = options.content.title === "" ? compareBlocks(packs) : undefined;
  const readOwn = await createOwnTextReader(places.root);
  const { targets, faults, notes } =
    places.scope === "global"
      ? { targets: await fileTargets(adapters, places, options.ownFiles), faults: [], notes: [] }
      : await chooseHarmless(adapters, { ...options, readOwn, findImports, mayReplace });
  const imported = findImports(targets, { places, readOwn });
  const importers = (target: FileTarget) => [...imported].filter(([, other]) => other === target).map(([each]) => each);
  // Claude Code and Kiro do not load scoped rules from HOME (claude-code#21858, Kiro#9176).
  const scoped = places.scope === "global" ? [] : packs.filter(isScoped);
  // A pack that another one includes is dropped, wherever the other one goes.
  const trimmed = trimPacks(packs, 0, "full").packs;
  const kept = scoped.length === 0 ? [] : trimmed.filter(isScoped);
  const blocks = new Map<FileTarget, PlannedFile>();
  const nested = new Map<FileTarget, readonly PlannedFile[]>();
  for (const target of targets) {
    const readers = [target, ...importers(target)].flatMap((each) => each.adapters);
    const isAllowed = (pack: Pack) => readers.every(({ id }) => mayReach(pack, id));
    const inFolders = imported.has(target) ? [] : kept.filter(isAllowed);
    const below = inFolders.length === 0 ? [] : await planNested(target, inFolders, places);
    const isRule = readers.every(({ rules }) => rules !== undefined);
    const isNested = (pack: Pack) => below.some((each) => each.packs.includes(pack) || !kept.includes(pack));
    const isElsewhere = (pack: Pack) => scoped.includes(pack) && (isRule || isNested(pack));
    const own = packs.filter((pack) => isAllowed(pack) && !isElsewhere(pack));
    blocks.set(target, { ...target, kind: "block", packs: own });
    nested.set(target, below);
  }
  const readBy = (adapter: Adapter) => {
    const read = targets.filter((each) => each.adapters.includes(adapter)).map((each) => imported.get(each) ?? each);
    return read.flatMap((each) => [blocks.get(each)!, ...(doesReadNested(adapter, each) ? nested.get(each)! : [])]);
  };
  const skills: PlannedFile[] = [];
  for (const skill of planSkills(adapters, options)) {
    const path = resolveTargetPath(skill.path, places);
    skills.push({
      path,
      names: [path],
      realPath: await followLinks(path).catch(() => path),
      kind: "skill",
      target: wholeFile(skill.path),
      adapters: skill.adapters,
      limits: [],
      packs: [skill.pack],
      skill,
    });
  }
  const restricted = trimmed.filter(({ tools = [], notTools = [] }) => tools.length + notTools.length > 0);
  const alone = places.scope === "global" ? [] : restricted.filter((pack) => !isScoped(pack));
  const rules = await planRules(adapters, readBy, { ...options, packs: [...kept, ...alone] });
  // If all packs of a file are restricted to other tools, it gets no empty block, unless another file imports it.
  const isImported = (target: FileTarget) => imported.has(target) || importers(target).length > 0;
  const isBare = restricted.length > 0 || options.content.title === "";
  const isWritten = (target: FileTarget, { packs: own }: PlannedFile) =>
    own.length > 0 || packs.length === 0 || !isBare || options.content.notes?.length || isImported(target);
  const written = [...blocks].filter(([target, file]) => isWritten(target, file)).map(([, file]) => file);
  return {
    files: [...written, ...[...nested.values()].flat(), ...rules, ...skills],
    imports: new Map([...imported].map(([from, to]) => [blocks.get(from)!, blocks.get(to)!])),
    faults,
    notes,
    unplaced: restricted.flatMap((pack) => findUnplaced(pack, { adapters, rules, readBy })),
  };
}

/** Returns a function that says whether the tools of `target` can do without a file of their own. They can if they get
 *  exactly their packs from the block in `other` and from rule files. Use it only for blocks without a title, which
 *  have nothing but packs. */
function compareBlocks(packs: readonly Pack[]): (other: FileTarget, target: FileTarget) => boolean {
  const isFor = (pack: Pack, { adapters }: FileTarget) => adapters.every(({ id }) => mayReach(pack, id));
  return (other, target) => {
    const hasRules = target.adapters.every(({ rules }) => rules?.always !== undefined);
    return packs.every((pack) => (isFor(pack, other) ? isFor(pack, target) : hasRules || !isFor(pack, target)));
  };
}

function isScoped({ globs }: Pack): boolean {
  return globs.length > 0;
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
      const absolute = join(places.root, folder);
      const exists = statSync(absolute, { throwIfNoEntry: false })?.isDirectory() === true;
      if (!exists || isOtherProject(absolute, places.root)) continue;
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

function doesReadNested(adapter: Adapter, { target }: FileTarget): boolean {
  if (adapter.nested) return true;
  const tool = knownTools([adapter]).find(({ id }) => id === adapter.id);
  return [...(tool?.down ?? []), tool?.otherwise ?? []].some((names) => names.includes(basename(target.path)));
}

/** Returns the tools that should get a pack and do not. */
function findUnplaced(
  pack: Pack,
  {
    adapters,
    rules,
    readBy,
  }: {
    readonly adapters: readonly Adapter[];
    readonly rules: readonly PlannedFile[];
    readBy(adapter: Adapter): readonly PlannedFile[];
  },
): UnplacedPack[] {
  const writing = adapters.filter(({ type }) => type === "file-inject");
  // A tool without a file of its own reads the file of an adapter.
  const served = (pack.tools ?? []).filter((id) => writing.some(({ reads }) => reads.includes(id)));
  const ids = new Set([...writing.map(({ id }) => id), ...served].filter((id) => mayReach(pack, id)));
  return [...ids].flatMap((tool) => {
    const own = writing.find(({ id }) => id === tool);
    const owners = own === undefined ? writing.filter(({ reads }) => reads.includes(tool)) : [own];
    const files = [...owners.flatMap(readBy), ...rules.filter((file) => own && file.adapters.includes(own))];
    if (files.some((file) => file.packs.includes(pack))) return [];
    const readers = files[0]?.adapters ?? [];
    const sharedWith = readers.map(({ id }) => id).filter((id) => id !== tool && !mayReach(pack, id));
    return [{ pack: pack.id, tool, path: files[0]?.path, sharedWith }];
  });
}

/** Says which tools do not get a pack, and why. */
export function explainUnplaced(unplaced: readonly UnplacedPack[], show: (path: string) => string): string[] {
  return unplaced.map(({ pack, tool, path, sharedWith }) => {
    const others = sharedWith.length === 0 ? "other tools" : sharedWith.join(", ");
    const why = path === undefined ? "it has no file here" : `it shares ${show(path)} with ${others}`;
    return `${tool} does not get the pack ${pack}: ${why}`;
  });
}

/** Returns one file for each tool with scoped rules and each pack that the tool does not read elsewhere. */
async function planRules(
  adapters: readonly Adapter[],
  readBy: (adapter: Adapter) => readonly PlannedFile[],
  { packs, places, ids = [] }: Pick<FilePlanOptions, "packs" | "places" | "ids">,
): Promise<PlannedFile[]> {
  const named = knownTools(adapters).filter(({ id }) => ids.includes(id) || adapters.some((each) => each.id === id));
  const files = new Map<string, PlannedFile>();
  for (const adapter of [...adapters].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    const { rules } = adapter;
    if (rules === undefined) continue;
    const elsewhere = new Set(readBy(adapter).flatMap((file) => file.packs));
    for (const pack of packs.filter((each) => !elsewhere.has(each) && mayReach(each, adapter.id))) {
      const target = createRule(rules, pack);
      const others = target && named.filter((tool) => doesLoad(tool, target.path) && !mayReach(pack, tool.id));
      if (target === undefined || others!.length > 0) continue;
      const path = resolveTargetPath(target.path, places);
      const realPath = await followLinks(path).catch(() => path);
      const limits = adapter.limits.filter((limit) => limit.scope === "file" && isLimitOn(path, limit, adapter.id));
      const file = { path, names: [path], realPath, target, adapters: [adapter], limits, kind: "rule", packs: [pack] };
      if (!files.has(realPath)) files.set(realPath, file as PlannedFile);
    }
  }
  return [...files.values()];
}

/** Whether a tool loads this file of the root. */
function doesLoad({ root = [], down = [], ends = [], current = [] }: ToolFiles, path: string): boolean {
  return [...root, ...down, ...ends, ...current].flat().some((name) => {
    const [start = "", ...rest] = name.split("*");
    return rest.length === 0 ? path === name : path.startsWith(start) && path.endsWith(rest.at(-1)!);
  });
}

/** A pack without globs needs a rule that is always loaded. Returns `undefined` if the tool has none. */
function createRule(
  { path, preamble: scoped, always }: ScopedRules,
  { id, name, description, globs }: Pack,
): AdapterTarget | undefined {
  const preamble = globs.length > 0 ? scoped : always;
  if (preamble === undefined) return undefined;
  // A comma separates globs, so braces with commas are written out.
  const plain = globs.flatMap((glob) => expandBraces(glob) ?? [glob]);
  const values: Readonly<Record<string, string>> = {
    globs: plain.join(","),
    globs_list: `[${globs.map((glob) => JSON.stringify(glob)).join(", ")}]`,
    name: quoteForYaml(oneLine(name)),
    description: quoteForYaml(oneLine(description)),
  };
  return {
    ...wholeFile(path.replaceAll("{id}", id)),
    preamble: preamble.replace(/\{(\w+)\}/g, (text, name: string) => values[name] ?? text),
  };
}

// A file that imports another target (`@AGENTS.md` in CLAUDE.md) already shows that target's block. So it gets no block
// of its own.

/** Adds adapters to the ones that were asked for, so that the files get the same text as in a run for all tools. It
 *  adds adapters whose block the asked tools already read, and adapters that share a file with them. `isServed` says
 *  whether a tool needs no file of its own if another file shows it the block. */
export async function withRelated(
  asked: readonly Adapter[],
  {
    standing,
    places,
    isServed,
  }: { readonly standing: readonly Adapter[]; readonly places: Places; isServed(id: string): boolean },
): Promise<readonly Adapter[]> {
  const others = standing.filter((each) => !asked.includes(each));
  const { imported } = await findRelated(asked, others, places);
  const isRead = (each: Adapter) => asked.some(({ id }) => each.reads.includes(id) && isServed(id));
  const serving = (await findWithBlock(others, places)).filter((each) => imported.includes(each) || isRead(each));
  const written = [...asked, ...serving];
  const rest = others.filter((each) => !written.includes(each));
  return [...written, ...(await findRelated(written, rest, places)).sharing];
}

/** Finds adapters in `others` that show the same block as `adapters`. A file of an `imported` adapter is imported by a
 *  file of `adapters`. A `sharing` adapter has the same file as one of `adapters`, or its file imports that file. So
 *  the budgets of sharing adapters apply, too. */
async function findRelated(
  adapters: readonly Adapter[],
  others: readonly Adapter[],
  places: Places,
): Promise<{ readonly imported: readonly Adapter[]; readonly sharing: readonly Adapter[] }> {
  if (others.length === 0) return { imported: [], sharing: [] };
  const all = [...adapters, ...others];
  const targets = await fileTargets(
    all,
    places,
    all.map(({ id }) => id),
  );
  const imports = [...findImports(targets, { places, readOwn: await createOwnTextReader(places.root) })];
  const isGiven = (target: FileTarget) => target.adapters.some((each) => adapters.includes(each));
  const among = (found: readonly FileTarget[]) =>
    others.filter((each) => found.some((target) => target.adapters.includes(each)));
  return {
    imported: among(imports.filter(([from]) => isGiven(from)).map(([, to]) => to)),
    sharing: among([...targets.filter(isGiven), ...imports.filter(([, to]) => isGiven(to)).map(([from]) => from)]),
  };
}

/** Returns the adapters that have a file with our text in it. */
async function findWithBlock(adapters: readonly Adapter[], places: Places): Promise<Adapter[]> {
  const root = await followLinks(places.root);
  const found: Adapter[] = [];
  for (const { adapter, target } of listTargets(adapters, places.scope)) {
    const path = resolveTargetPath(target.path, places);
    const realPath = await followLinks(path).catch(() => path);
    const read = readForeignBytes(realPath, { within: root });
    const state = read === undefined ? "not found" : readTargetState(read, target);
    if (state === "injected" || state === "edited") found.push(adapter);
  }
  return found;
}

/** Maps each target that imports another target to that target. If two import each other, the first keeps its block. */
function findImports(
  targets: readonly FileTarget[],
  { places, readOwn }: { readonly places: Places; readOwn(target: FileTarget): string },
): Map<FileTarget, FileTarget> {
  const imports = new Map<FileTarget, FileTarget>();
  for (const target of targets) {
    if (!target.adapters.some((adapter) => adapter.imports)) continue;
    const paths = importedPaths(readOwn(target), { file: target.realPath, home: places.home });
    const imported = targets.find((other) => other !== target && !imports.has(other) && paths.includes(other.realPath));
    if (imported !== undefined) imports.set(target, imported);
  }
  return imports;
}
