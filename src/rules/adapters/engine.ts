/** Writes packs into the tools' files, one target after the other. A target that fails is reported and never stops the
 *  others. */
import { basename, dirname } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { fromByteString } from "../../core/text/index.ts";
import {
  type Environment,
  type FileChange,
  type PlannedChange,
  readForeignBytes,
  removeEmptyFolders,
} from "../../host/index.ts";
import { isEnforced, type LimitUse, type MeasuredChain, measure } from "../audit/limits.ts";
import { measureChains } from "../audit/tool-chains.ts";
import { markedBlock } from "../files/marked-block.ts";
import type { ProjectTree } from "../files/project-tree.ts";
import type { Adapter, ToolLimit } from "./adapter.ts";
import {
  chooseSettings,
  type DraftOptions,
  type DraftPlace,
  draftBody,
  emptyDraft,
  type FileDraft,
  type Settings,
} from "./draft-file.ts";
import { type FileKind, type FilePlan, type FilePlanOptions, type PlannedFile, planFiles } from "./plan-files.ts";
import { planSkillFile, skillPathFor } from "./skills.ts";
import {
  changeTarget,
  explainRefusal,
  type FileTarget,
  once,
  placeBody,
  readOwnText,
  readTargetState,
  removeFrom,
  type TargetChange,
} from "./targets.ts";

export interface EngineOptions extends DraftOptions, Omit<FilePlanOptions, "force"> {
  readonly adapters: readonly Adapter[];
  /** All adapters that could be chosen. */
  readonly known: readonly Adapter[];
  readonly packs: DraftOptions["packs"];
  readonly tree: ProjectTree;
  readonly env: Environment;
  readonly dryRun: boolean;
}

/** The result for one target, with everything that a report needs. */
export interface TargetResult extends Settings, Omit<FileDraft, "file"> {
  readonly adapters: readonly Adapter[];
  /** These adapters, and the adapters whose own file imports this one. */
  readonly readers: readonly Adapter[];
  readonly path: string;
  readonly kind: FileKind;
  /** Absent if nothing was to do or the target failed. */
  readonly change?: FileChange;
  /** The file that this one imports. It shows the other file's block. */
  readonly importedFrom?: string;
  readonly problem?: ContextError;
}

/** Without packs there is nothing to write. `faults` are what tools of the run do not read after it, or read twice. */
export async function injectFiles(
  options: EngineOptions,
): Promise<{ readonly results: readonly TargetResult[] } & Pick<FilePlan, "files" | "faults" | "notes" | "unplaced">> {
  if (options.packs.length === 0) return { results: [], files: [], faults: [], notes: [], unplaced: [] };
  const { files, imports, faults, notes, unplaced } = await planFiles(options.adapters, options);
  const results = new Map<PlannedFile, TargetResult>();
  const isNested = (file: PlannedFile) => file.kind === "nested";
  const blocks = files.some(isNested) ? readOwnTexts(files, options.places.root) : new Map<string, string>();
  // A nested block is about the folder, so it comes first, and the block of the root leaves room for it.
  const nested = new Map<string, string>();
  for (const file of [...files.filter(isNested), ...files.filter((each) => !isNested(each))]) {
    const importing = [...imports].filter(([, imported]) => imported === file).flatMap(([each]) => each.adapters);
    if (imports.has(file)) continue;
    const input = { file, importing, planned: isNested(file) ? blocks : nested };
    const result = file.skill === undefined ? await injectTarget(input, options) : await injectSkill(file, options);
    const after = result.change?.after;
    if (isNested(file) && after !== undefined) nested.set(file.path, fromByteString(after));
    results.set(file, result);
  }
  for (const [file, imported] of imports) {
    results.set(file, await leaveToImport(file, results.get(imported)!, options));
  }
  return { results: files.map((file) => results.get(file)!), files, faults, notes, unplaced };
}

/** Returns what people wrote in the files that get a block, by path. Only tools with nested files need it. */
function readOwnTexts(files: readonly PlannedFile[], root: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const file of files.filter(({ kind, adapters }) => kind === "block" && adapters.some(({ nested }) => nested))) {
    const read = readForeignBytes(file.realPath, { within: root });
    texts.set(file.path, read === undefined ? "" : readOwnText(read, file));
  }
  return texts;
}

/** Writes the block of one file. `importing` are adapters whose own file imports this one. Their tools read its block,
 *  so their budgets apply to it. `planned` has texts of other files of the run, by path, as `measureChains` counts
 *  them. */
async function injectTarget(
  {
    file: target,
    importing,
    planned,
  }: {
    readonly file: PlannedFile;
    readonly importing: readonly Adapter[];
    readonly planned: ReadonlyMap<string, string>;
  },
  all: EngineOptions,
): Promise<TargetResult> {
  // A budget limits what a tool always loads.
  const readers = [...new Set([...target.adapters, ...importing])].map((each) =>
    target.kind === "block" ? each : { ...each, maxBytes: undefined, maxTokens: undefined },
  );
  const options = { ...all, packs: target.packs, content: chooseContent(target, all) };
  const settings = {
    ...chooseSettings(readers, options),
    ...(target.kind !== "block" && { onOverflow: "thin" as const }),
  };
  const about = { ...settings, adapters: target.adapters, readers, path: target.path, kind: target.kind };
  const chains = await measureChains(target, { ...options, planned, adapters: options.known });
  let last: { readonly current: string | undefined; readonly planned: PlannedChange<FileDraft> } | undefined;
  const plan = (current: string | undefined) => {
    // A file is planned again under its lock, and nearly always has the same content then.
    if (last === undefined || last.current !== current) {
      const place = { target: { ...target, adapters: readers }, chains, settings };
      last = { current, planned: planTarget(current, place, options) };
    }
    return last.planned;
  };
  const changed = await changeTarget(target.path, { ...chooseWriting(target, options), plan });
  const { change, facts: draft = emptyDraft, problem } = changed;
  return problem === undefined ? { ...about, ...draft, change } : { ...about, ...draft, status: "failed", problem };
}

async function injectSkill(file: PlannedFile, options: EngineOptions): Promise<TargetResult> {
  const { adapters, path, kind } = file;
  const about = { ...chooseSettings(adapters, options), adapters, readers: adapters, path, kind, budget: undefined };
  const given = { force: options.force, count: options.counter.count };
  const plan = (current: string | undefined) => planSkillFile(current, file.skill!, given);
  const isPersons = (before: string) => ["edited", "foreign"].includes(plan(before).facts.state);
  const changed = await changeTarget(path, { ...chooseWriting(file, options), isPersons, plan });
  const { change, facts: draft = emptyDraft, problem } = changed;
  if (problem !== undefined) return { ...about, ...draft, status: "failed", problem };
  if (change.written && change.after === undefined) await removeEmptyFolders(path, options.places.root);
  return { ...about, ...draft, change };
}

/** A rule is about its pack alone. Notes and facts are in the file that is always loaded. Files of tools without skills
 *  name the skills. */
function chooseContent(
  { kind, packs, adapters }: PlannedFile,
  { content, places, ...run }: EngineOptions,
): EngineOptions["content"] {
  const { title } = content;
  const own = kind === "rule" ? { title: title && packs[0]!.name } : kind === "nested" ? { title } : content;
  const isNamed = places.scope === "project" && packs.some(({ skills }) => skills.length > 0);
  if (!isNamed || adapters.every(({ skills }) => skills !== undefined)) return own;
  return { ...own, skillPath: skillPathFor(run.adapters) };
}

/** `current` and the new content are byte strings. A target that may not be changed is a problem, and its state is
 *  still reported. */
function planTarget(
  current: string | undefined,
  { target, chains, settings }: Pick<DraftPlace, "settings" | "chains"> & { readonly target: FileTarget },
  options: EngineOptions,
): PlannedChange<FileDraft> {
  // A block of another section is renamed to this target's section.
  const { mode, section } = target.target;
  const own = current === undefined || mode === "replace-file" ? current : markedBlock.adopt(current, section);
  const state = readTargetState(own, target.target);
  const { adapters, limits } = target;
  const { open, broken } = splitChains(chains, { target, current: own, counter: options.counter });
  const draftIn = (file: string | undefined) => {
    const place = (body: string) => placeBody(file, body, target.target);
    return { ...draftBody({ adapters, limits, settings, state, chains: open, place }, options), broken };
  };
  const problem = explainRefusal(state, { current: own, target: target.target, force: options.force });
  if (problem !== undefined) {
    // A block cannot be placed between broken markers, so its size is that in a new file.
    const { bytes } = draftIn(state === "orphaned" ? undefined : own);
    return { problem, facts: { ...emptyDraft, state, bytes } };
  }
  const draft = draftIn(own);
  return { after: draft.status === "ok" ? draft.file : current, facts: draft };
}

/** Separates the folders below the target in which a tool reads too much even without the block. Nothing that the block
 *  leaves out helps there, so these folders do not decide what it holds. */
function splitChains(
  chains: DraftPlace["chains"],
  {
    target,
    current,
    counter,
  }: { readonly target: FileTarget; readonly current: string | undefined } & Pick<EngineOptions, "counter">,
): { readonly open: DraftPlace["chains"]; readonly broken: readonly LimitUse[] } {
  const broken: LimitUse[] = [];
  const ownText = once(() => fromByteString((current && removeFrom(current, target.target)) ?? ""));
  const isOpen = (limit: ToolLimit, { folder, copies, others }: MeasuredChain) => {
    if (folder === undefined || folder === dirname(target.path)) return true;
    const used = others + copies * measure(ownText(), limit.unit, counter);
    if (used > limit.value && isEnforced(limit)) broken.push({ limit, used, exceeded: true, folder });
    return used <= limit.value;
  };
  const open = [...chains].map(([limit, each]) => [limit, each.filter((chain) => isOpen(limit, chain))] as const);
  return { open: new Map(open), broken };
}

/** Removes a block from before the import, which would otherwise never change again. Keeps it if the other file holds
 *  no block yet, or if a person edited it. */
async function leaveToImport(
  target: PlannedFile,
  imported: TargetResult,
  options: EngineOptions,
): Promise<TargetResult> {
  const { adapters, path, kind } = target;
  const about = { ...chooseSettings(adapters, options), adapters, readers: adapters, path, kind, ...emptyDraft };
  if (imported.status !== "ok") {
    const message = `was not changed: it imports ${basename(imported.path)}, which was not written`;
    const problem = new ContextError("refused_target", message, { file: path });
    return { ...about, status: "failed", state: "blocked", problem };
  }
  const plan = (current: string | undefined) => {
    const isOurs = current !== undefined && readTargetState(current, target.target) === "injected";
    return { after: isOurs ? removeFrom(current, target.target) : current, facts: undefined };
  };
  const { change, problem } = await changeTarget(path, { ...chooseWriting(target, options), plan });
  if (problem !== undefined) return { ...about, status: "failed", problem };
  return { ...about, status: "imported", importedFrom: imported.path, change };
}

function chooseWriting(
  { target }: FileTarget,
  { places, env, dryRun, force }: EngineOptions,
): Omit<TargetChange<unknown>, "plan"> {
  return { root: places.root, env, dryRun, force, targets: [target] };
}
