/** Writes packs into the tools' files, one target after the other. A target that fails is reported and never stops the
 *  others. */
import { basename } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { fromByteString } from "../../core/text/index.ts";
import {
  type Environment,
  type FileChange,
  type PlannedChange,
  type ProjectTree,
  readForeignBytes,
  removeEmptyFolders,
} from "../../host/index.ts";
import { chainsOf } from "../audit/tool-chains.ts";
import { markedBlock } from "../files/marked-block.ts";
import type { Adapter } from "./adapter.ts";
import {
  type DraftOptions,
  type DraftPlace,
  draftBody,
  emptyDraft,
  type FileDraft,
  type Settings,
  settingsOf,
} from "./draft-file.ts";
import { type FileKind, type FilePlanOptions, ownText, type PlannedFile, planFiles } from "./plan-files.ts";
import { planSkillFile, skillPathFor } from "./skills.ts";
import {
  changeTarget,
  type FileTarget,
  placeBody,
  refusalOf,
  removeFrom,
  type TargetChange,
  targetFileOf,
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

/** Without packs there is nothing to write. */
export async function injectFiles(options: EngineOptions): Promise<TargetResult[]> {
  if (options.packs.length === 0) return [];
  const { files, imports } = await planFiles(options.adapters, options);
  const results = new Map<PlannedFile, TargetResult>();
  const isNested = (file: PlannedFile) => file.kind === "nested";
  const blocks = files.filter(isNested).length === 0 ? new Map<string, string>() : ownTexts(files, options.places.root);
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
  return files.map((file) => results.get(file)!);
}

/** Returns the people's texts in the files that hold a block, by path. */
function ownTexts(files: readonly PlannedFile[], root: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const file of files.filter(({ kind, adapters }) => kind === "block" && adapters.some(({ nested }) => nested))) {
    const read = readForeignBytes(file.realPath, { within: root });
    texts.set(file.path, read === undefined ? "" : ownText(read, file));
  }
  return texts;
}

interface TargetInput {
  readonly file: PlannedFile;
  /** The adapters whose own file imports this one. Their tools read its block, so their budgets apply. */
  readonly importing: readonly Adapter[];
  /** The texts that other files of the run have, or will have. Keys are paths. */
  readonly planned: ReadonlyMap<string, string>;
}

async function injectTarget(
  { file: target, importing, planned }: TargetInput,
  all: EngineOptions,
): Promise<TargetResult> {
  const readers = [...new Set([...target.adapters, ...importing])].map((each) => withBudgetOf(target, each));
  const options = { ...all, packs: target.packs, content: contentOf(target, all) };
  const settings = { ...settingsOf(readers, options), ...(target.kind !== "block" && { onOverflow: "thin" as const }) };
  const about = { ...settings, adapters: target.adapters, readers, path: target.path, kind: target.kind };
  const chains = await chainsOf(target, { ...options, planned, adapters: options.known });
  const {
    change,
    facts: draft = emptyDraft,
    problem,
  } = await changeTarget(target.path, {
    ...writingOf(target, options),
    plan: rememberPlan((current) =>
      planTarget(current, { target: { ...target, adapters: readers }, chains, settings }, options),
    ),
  });
  return problem === undefined ? { ...about, ...draft, change } : { ...about, ...draft, status: "failed", problem };
}

/** A file is planned again under its lock, and nearly always has the same content then. */
function rememberPlan<Facts>(plan: TargetChange<Facts>["plan"]): TargetChange<Facts>["plan"] {
  let last: { readonly current: string | undefined; readonly planned: PlannedChange<Facts> } | undefined;
  return (current) => {
    if (last === undefined || last.current !== current) last = { current, planned: plan(current) };
    return last.planned;
  };
}

async function injectSkill(file: PlannedFile, options: EngineOptions): Promise<TargetResult> {
  const { adapters, path, kind } = file;
  const about = { ...settingsOf(adapters, options), adapters, readers: adapters, path, kind, budget: undefined };
  const given = { force: options.force, count: options.counter.count };
  const plan = (current: string | undefined) => planSkillFile(current, file.skill!, given);
  const isPersons = (before: string) => ["edited", "foreign"].includes(plan(before).facts.state);
  const {
    change,
    facts: draft = emptyDraft,
    problem,
  } = await changeTarget(path, { ...writingOf(file, options), isPersons, plan });
  if (problem !== undefined) return { ...about, ...draft, status: "failed", problem };
  if (change.written && change.after === undefined) await removeEmptyFolders(path, options.places.root);
  return { ...about, ...draft, change };
}

/** A budget limits what a tool always loads. */
function withBudgetOf({ kind }: PlannedFile, adapter: Adapter): Adapter {
  return kind === "block" ? adapter : { ...adapter, maxBytes: undefined, maxTokens: undefined };
}

/** A rule is about its pack alone. Notes and facts are in the file that is always loaded. Files of tools without skills
 *  name the skills. */
function contentOf(
  { kind, packs, adapters }: PlannedFile,
  { content, places, ...run }: EngineOptions,
): EngineOptions["content"] {
  const own = kind === "rule" ? { title: packs[0]!.name } : kind === "nested" ? { title: content.title } : content;
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
  const own = current === undefined ? undefined : adopted(current, target);
  const state = targetFileOf(own, target.target);
  const { adapters, limits } = target;
  const draftIn = (file: string | undefined) => {
    const place = (body: string) => placeBody(file, body, target.target);
    return draftBody({ adapters, limits, settings, state, chains, place }, options);
  };
  const problem = refusalOf(state, { current: own, target: target.target, force: options.force });
  if (problem !== undefined) {
    // A block cannot be placed between broken markers, so its size is that in a new file.
    const { bytes } = draftIn(state === "orphaned" ? undefined : own);
    return { problem, facts: { ...emptyDraft, state, bytes } };
  }
  const draft = draftIn(own);
  return { after: draft.status === "ok" ? draft.file : current, facts: draft };
}

/** Returns the file with a block of another section renamed to this target's section. */
function adopted(current: string, { target }: FileTarget): string {
  return target.mode === "replace-file" ? current : markedBlock.adopt(current, target.section);
}

/** Removes a block from before the import, which would otherwise never change again. Keeps it if the other file holds
 *  no block yet, or if a person edited it. */
async function leaveToImport(
  target: PlannedFile,
  imported: TargetResult,
  options: EngineOptions,
): Promise<TargetResult> {
  const { adapters, path, kind } = target;
  const about = { ...settingsOf(adapters, options), adapters, readers: adapters, path, kind, ...emptyDraft };
  if (imported.status !== "ok") {
    const message = `was not changed: it imports ${basename(imported.path)}, which was not written`;
    const problem = new ContextError("refused_target", message, { file: path });
    return { ...about, status: "failed", state: "blocked", problem };
  }
  const plan = (current: string | undefined) => {
    const isOurs = current !== undefined && targetFileOf(current, target.target) === "injected";
    return { after: isOurs ? removeFrom(current, target.target) : current, facts: undefined };
  };
  const { change, problem } = await changeTarget(path, { ...writingOf(target, options), plan });
  if (problem !== undefined) return { ...about, status: "failed", problem };
  return { ...about, status: "imported", importedFrom: imported.path, change };
}

function writingOf(
  { target }: FileTarget,
  { places, env, dryRun, force }: EngineOptions,
): Omit<TargetChange<unknown>, "plan"> {
  return { root: places.root, env, dryRun, force, targets: [target] };
}
