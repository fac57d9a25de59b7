/** packs → trim → render → adapter → file, one target after the other. A target that fails is reported and never stops the others. */
import { ContextError } from "../errors.ts";
import { changeFile, type Environment, type FileChange } from "../workspace/index.ts";
import type { Adapter } from "./adapter.ts";
import {
  type Draft,
  type DraftOptions,
  draftFile,
  emptyDraft,
  type Settings,
  settingsOf,
} from "./fit/draft-file.ts";
import { restOfChain } from "./targets/chain.ts";
import { removeFrom, stateOf } from "./targets/file-target.ts";
import { findImports } from "./targets/imports.ts";
import { keepCopy } from "./targets/keep-copy.ts";
import { type FileTarget, fileTargets, type Places } from "./targets/targets.ts";

export interface EngineOptions extends DraftOptions {
  readonly adapters: readonly Adapter[];
  readonly places: Places;
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
  const targets = await fileTargets(options.adapters, options.places);
  const imports = await findImports(targets, options.places);
  const results: TargetResult[] = [];
  for (const target of targets) results.push(await injectTarget(target, imports.get(target), options));
  return results;
}

async function injectTarget(
  target: FileTarget,
  importedFrom: string | undefined,
  options: EngineOptions,
): Promise<TargetResult> {
  const settings = settingsOf(target.adapters, options);
  const about = { ...settings, adapters: target.adapters, path: target.path };
  let draft: Draft = emptyDraft;
  const writing = { root: options.places.root, env: options.env, dryRun: options.dryRun };
  try {
    if (importedFrom !== undefined) {
      const change = await changeFile(target.path, {
        ...writing,
        change: (current) => withoutBlock(current, target),
      });
      return { ...about, ...emptyDraft, status: "imported", importedFrom, change };
    }
    const chain = await restOfChain(target);
    if (options.force && !options.dryRun) await keepCopy(target, writing);
    const change = await changeFile(target.path, {
      ...writing,
      change: (current) => {
        const state = stateOf(current, target.target);
        draft = { ...emptyDraft, state };
        draft = draftFile(current, { target, state, chain, settings }, options);
        return draft.file;
      },
    });
    return { ...about, ...draft, change };
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    return { ...about, ...draft, status: "failed", problem: error };
  }
}

/** A block from before the import would stay as it was for ever; one that a person edited is theirs. */
function withoutBlock(current: string | undefined, { target }: FileTarget): string | undefined {
  return current !== undefined && stateOf(current, target) === "injected"
    ? removeFrom(current, target)
    : current;
}
