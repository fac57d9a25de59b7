import { lstatSync } from "node:fs";
import { join, relative } from "node:path";
import type { ProjectTree } from "../files/project-tree.ts";
import type { ToolFiles } from "./tool-files.ts";

/** Returns `start` and the folders below it in which the tools find more files. Leaves out folders that git ignores:
 *  dependencies and build output contain such files too, and nobody works there. `planned` are files that exist after
 *  the run. */
export async function findFolders(
  tools: readonly ToolFiles[],
  { tree, start, planned }: { tree: ProjectTree; start: string; planned?: ReadonlyMap<string, string> | undefined },
): Promise<string[]> {
  const { repository, folders, otherFolders } = tree;
  // Without a repository, a tool treats each folder on its own.
  if (repository === undefined) return [start];
  const names = tools.flatMap((tool) => [...(tool.down ?? []), ...(tool.current ?? []), tool.otherwise ?? []].flat());
  const places = [...new Set(names.map((name) => (name.includes("*") ? name.slice(0, name.indexOf("*")) : name)))];
  const isThere = (path: string) => {
    try {
      // A link that leads nowhere counts: this run may create the file that it leads to.
      return planned?.has(path) === true || lstatSync(path, { throwIfNoEntry: false }) !== undefined;
    } catch {
      return false;
    }
  };
  // Nobody starts a tool in a folder such as `.claude`, which holds settings.
  const isPlain = (folder: string) => !/(?:^|[/\\])\./.test(relative(start, folder));
  const hasFile = (folder: string) => isPlain(folder) && places.some((place) => isThere(join(folder, place)));
  const found = new Set([start, ...folders.filter(hasFile)]);
  for (const folder of otherFolders.filter(hasFile)) if (!(await tree.isIgnored(folder))) found.add(folder);
  return [...found];
}
