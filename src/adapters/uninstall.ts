/** Takes blocks and files of ours away again; what people wrote comes back byte for byte. */
import { ContextError } from "../errors.ts";
import type { Environment, FileChange } from "../workspace/index.ts";
import type { Adapter } from "./adapter.ts";
import { removeEmptyFolders } from "./mcp-wire/empty-folders.ts";
import { changeTarget } from "./targets/change-target.ts";
import { refuseTarget, removeFrom, stateOf } from "./targets/file-target.ts";
import { exportTarget, type FileTarget, fileTargets, type Places } from "./targets/targets.ts";

export interface UninstallOptions {
  readonly adapters: readonly Adapter[];
  readonly places: Places;
  readonly env: Environment;
  readonly force: boolean;
  readonly dryRun: boolean;
}

export interface UninstallResult {
  readonly adapters: readonly Adapter[];
  readonly path: string;
  /** Absent when the target failed. */
  readonly change?: FileChange;
  readonly problem?: ContextError;
}

/** One result for every target that holds something of ours. */
export async function uninstallFiles(options: UninstallOptions): Promise<UninstallResult[]> {
  const results: UninstallResult[] = [];
  const { adapters, places } = options;
  const whole = adapters.flatMap((adapter) => exportTarget(adapter, places) ?? []);
  for (const target of [...(await fileTargets(adapters, places)), ...whole]) {
    const result = await uninstallTarget(target, options);
    if (result.problem !== undefined || result.change?.before !== result.change?.after) results.push(result);
  }
  return results;
}

async function uninstallTarget(
  whole: FileTarget,
  { places, env, force, dryRun }: UninstallOptions,
): Promise<UninstallResult> {
  const { path, target, adapters } = whole;
  const change = (current: string | undefined) => {
    const state = stateOf(current, target);
    const ours = state === "injected" || state === "edited" || state === "orphaned";
    if (current === undefined || !ours) return current;
    refuseTarget(state, { current, target, force });
    return removeFrom(current, target);
  };
  try {
    const changed = await changeTarget(whole, { root: places.root, dryRun, env, force, change });
    if (changed.written && changed.after === undefined) await removeEmptyFolders(path, places.root);
    return { adapters, path, change: changed };
  } catch (error) {
    if (!(error instanceof ContextError)) throw error;
    return { adapters, path, problem: error };
  }
}
