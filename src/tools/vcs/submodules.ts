/** What lies in a submodule is in no commit of the repository around it, and git finds nothing there without a word. */
import { isFailure } from "../../session/index.ts";
import { decodeBytes, splitRecords } from "../../workspace/index.ts";
import { shown } from "../frame/failure.ts";
import type { Run } from "../frame/run.ts";
import { startGit } from "../source/git.ts";

/** A sentence for a call that found nothing, where `path`, relative to the root, lies in a submodule. */
export async function submoduleNote(run: Run, path: string): Promise<string | undefined> {
  const submodule = await submoduleAround(run, path);
  if (submodule === undefined) return undefined;
  return `${shown(path)} lies in the submodule ${shown(submodule)}, which has a history of its own.`;
}

async function submoduleAround(run: Run, path: string): Promise<string | undefined> {
  const names = path.split("/").slice(0, -1);
  const [top] = names;
  if (top === undefined) return undefined;
  const git = await startGit(run, ["ls-files", "--stage", "-z", "--", top]);
  if (isFailure(git)) return undefined;
  const directories = new Set(names.map((_, index) => names.slice(0, index + 1).join("/")));
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) {
      // `MODE HASH STAGE TAB NAME`; the mode tells a submodule.
      if (!record.startsWith("160000 ")) continue;
      const name = decodeBytes(record.slice(record.indexOf("\t") + 1));
      if (directories.has(name)) return name;
    }
  }
  return undefined;
}
