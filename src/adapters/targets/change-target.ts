import { type ChangeOptions, changeFile, type FileChange } from "../../workspace/index.ts";
import type { AdapterTarget } from "../adapter.ts";
import { stateOf } from "./file-target.ts";

export interface TargetChange extends ChangeOptions {
  /** What we can be in the file. */
  readonly targets: readonly AdapterTarget[];
  readonly force: boolean;
}

/** Changes the file of a target. What `force` overwrites, a person's file or edit, is first kept beside it. */
export async function changeTarget(path: string, options: TargetChange): Promise<FileChange> {
  if (options.force && !options.dryRun) {
    const { before, after } = await changeFile(path, { ...options, dryRun: true });
    const states = options.targets.map((target) => stateOf(before, target));
    const isPersons = states.some((state) => state === "foreign" || state === "edited");
    if (before !== undefined && before !== after && isPersons) await keepCopy(path, before, options);
  }
  return changeFile(path, options);
}

/** Under a name that is free, or that holds the same already. */
async function keepCopy(path: string, content: string, options: ChangeOptions): Promise<void> {
  for (let number = 0; ; number++) {
    const copy = `${path}.bak${number === 0 ? "" : `.${number}`}`;
    const { after } = await changeFile(copy, { ...options, change: (current) => current ?? content });
    if (after === content) return;
  }
}
