/** packs → trim → render → adapter → file, one target after the other. A target that fails is reported and never stops the others. */
import { basename } from "node:path";
import { ContextError } from "../errors.ts";
import { adoptBlock } from "../text/index.ts";
import type { Environment, FileChange, ProjectTree } from "../workspace/index.ts";
import type { Adapter } from "./adapter.ts";
import { chainsOf } from "./audit/tool-chains.ts";
import {
  type Draft,
  type DraftOptions,
  draftFile,
  emptyDraft,
  type Settings,
  settingsOf,
} from "./fit/draft-file.ts";
import { changeTarget, type TargetChange } from "./targets/change-target.ts";
import { removeFrom, stateOf } from "./targets/file-target.ts";
import { findImports } from "./targets/imports.ts";
import { type FileTarget, fileTargets, type Places } from "./targets/targets.ts";

export interface EngineOptions extends DraftOptions {
  readonly adapters: readonly Adapter[];
  /** Everything that could be chosen. */
  readonly known: readonly Adapter[];
  /** Ids of tools that keep a file of their own though they read another one of the run. */
  readonly ownFiles: readonly string[];
  readonly places: Places;
  readonly tree: ProjectTree;
  readonly env: Environment;
  readonly dryRun: boolean;
}

/** What became of one target, and all that a report says of it. */
export interface TargetResult extends Settings, Omit<Draft, "file"> {
  readonly adapters: readonly Adapter[];
  readonly path: string;
  /** Absent when nothing was to be done or the target failed. */
  readonly change?: FileChange;
  /** The file that this one imports: it shows the other's block. */
  readonly importedFrom?: string;
  readonly problem?: ContextError;
}

export async function injectFiles(options: EngineOptions): Promise<TargetResult[]> {
  const targets = await fileTargets(options.adapters, options.places, options.ownFiles);
  const imports = await findImports(targets, options.places);
  const results = new Map<FileTarget, TargetResult>();
  for (const target of targets) {
    if (!imports.has(target)) results.set(target, await injectTarget(target, options));
  }
  for (const [target, imported] of imports) {
    results.set(target, await leaveToImport(target, results.get(imported)!, options));
  }
  return targets.map((target) => results.get(target)!);
}

async function injectTarget(target: FileTarget, options: EngineOptions): Promise<TargetResult> {
  const settings = settingsOf(target.adapters, options);
  const about = { ...settings, adapters: target.adapters, path: target.path };
  let draft: Draft = emptyDraft;
  try {
    const chains = await chainsOf(target, { ...options, adapters: options.known });
    const change = await changeTarget(target.path, {
      ...writingOf(target, options),
      change: (current) => {
        const own = current === undefined ? undefined : adopted(current, target);
        const state = stateOf(own, target.target);
        draft = { ...emptyDraft, state };
        draft = draftFile(own, { target, state, chains, settings }, options);
        return draft.status === "ok" ? draft.file : current;
      },
    });
    return { ...about, ...draft, change };
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    return { ...about, ...draft, status: "failed", problem: error };
  }
}

/** A block that an adapter with another section left in the file becomes the one of this target. */
function adopted(current: string, { target }: FileTarget): string {
  return target.mode === "replace-file" ? current : adoptBlock(current, target.section);
}

/** A block from before the import goes, or it would stay as it was for ever; but only once the other file holds one, and not if a
 *  person edited it. */
async function leaveToImport(
  target: FileTarget,
  imported: TargetResult,
  options: EngineOptions,
): Promise<TargetResult> {
  const { adapters, path } = target;
  const about = { ...settingsOf(adapters, options), adapters, path, ...emptyDraft };
  const change = (current: string | undefined) =>
    current !== undefined && stateOf(current, target.target) === "injected"
      ? removeFrom(current, target.target)
      : current;
  try {
    if (imported.status !== "ok") {
      throw new ContextError(
        "refused_target",
        `stays as it is: it imports ${basename(imported.path)}, which was not written`,
        {
          file: path,
        },
      );
    }
    const changed = await changeTarget(path, { ...writingOf(target, options), change });
    return { ...about, status: "imported", importedFrom: imported.path, change: changed };
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    return { ...about, status: "failed", problem: error };
  }
}

function writingOf(
  { target }: FileTarget,
  { places, env, dryRun, force }: EngineOptions,
): Omit<TargetChange, "change"> {
  return { root: places.root, env, dryRun, force, targets: [target] };
}
