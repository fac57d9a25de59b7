import { type ChangeOptions, changeFile } from "../../workspace/index.ts";
import { stateOf } from "./file-target.ts";
import type { FileTarget } from "./targets.ts";

/** What `--force` will overwrite, a person's file or edit, is kept beside it under a name that is free. */
export async function keepCopy(
  { path, target }: FileTarget,
  writing: Omit<ChangeOptions, "change">,
): Promise<void> {
  const { before } = await changeFile(path, { ...writing, dryRun: true, change: (current) => current });
  const state = stateOf(before, target);
  if (before === undefined || (state !== "foreign" && state !== "edited")) return;
  for (let number = 0; ; number++) {
    const copy = `${path}.bak${number === 0 ? "" : `.${number}`}`;
    const { after } = await changeFile(copy, { ...writing, change: (current) => current ?? before });
    if (after === before) return;
  }
}
