/** Takes back what a recorded command changed. A file that a person changed since is left alone and named. */
import { ContextError } from "../../core/errors.ts";
import type { Environment } from "../directories.ts";
import { attemptChange, keepCopy } from "./change-file.ts";
import { hashContent, type RecordedChange, type RecordedRun, removeRun } from "./change-journal.ts";
import { removeEmptyFolders } from "./folder-tree.ts";

export interface UndoneFile {
  readonly path: string;
  /** `unchanged`: the file already was as before the command. */
  readonly state: "restored" | "removed" | "unchanged" | "refused";
  readonly problem?: ContextError | undefined;
}

export interface UndoOptions {
  readonly env: Environment;
  readonly dryRun: boolean;
  /** Also restore files that a person changed since. Their text stays in a `.bak` file. */
  readonly force: boolean;
}

/** Restores the files, the last one first. Safe to repeat after a kill. The records are deleted once every file is as it
 *  was. */
export async function undoRun({ folder, changes }: RecordedRun, options: UndoOptions): Promise<UndoneFile[]> {
  const byPath = new Map<string, RecordedChange[]>();
  for (const change of changes) byPath.set(change.path, [...(byPath.get(change.path) ?? []), change]);
  const files: UndoneFile[] = [];
  for (const ofFile of [...byPath.values()].reverse()) files.push(await restoreFile(ofFile, options));
  if (!options.dryRun && files.every(({ state }) => state !== "refused")) await removeRun(folder);
  return files;
}

/** `changes` are those of one file, in order. The command may have been killed before any of them. */
async function restoreFile(changes: readonly RecordedChange[], options: UndoOptions): Promise<UndoneFile> {
  const { path, root, before, mode, newFolders } = changes[0]!;
  const { env, dryRun, force } = options;
  const hash = (content: string | null | undefined) => (content == null ? null : hashContent(content));
  const known = new Set(changes.flatMap((change) => [hash(change.before), change.after]));
  const plan = (current: string | undefined) => {
    const isOurs = known.has(hash(current)) || force;
    if (isOurs) return { after: before ?? undefined, facts: undefined };
    const hint = "Use --force to restore it anyway; your text is then kept as .bak.";
    return {
      problem: new ContextError("refused_target", "was changed since, so it stays", { hint }),
      facts: undefined,
    };
  };
  const look = await attemptChange(path, { root, env, dryRun: true, plan });
  if (look.problem !== undefined) return { path, state: "refused", problem: look.problem };
  const current = look.change.before;
  const state = current === look.change.after ? "unchanged" : before === null ? "removed" : "restored";
  if (dryRun) return { path, state };
  const isLost = current !== undefined && !known.has(hash(current));
  const failed = isLost ? await keepCopy(path, current, { root, env }) : undefined;
  // Also without a change: a killed run may have left a temporary file and empty folders.
  const { problem } = failed ? { problem: failed } : await attemptChange(path, { root, env, mode, plan });
  if (problem !== undefined) return { path, state: "refused", problem };
  if (before === null) await removeEmptyFolders(path, root, newFolders);
  return { path, state };
}
