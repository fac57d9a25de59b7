import { rmdir } from "node:fs/promises";
import { dirname } from "node:path";
import { upward } from "../../workspace/index.ts";

/** Removes the folders that were made for a file, as far as nothing else is in them. The root stays. */
export async function removeEmptyFolders(path: string, root: string): Promise<void> {
  for (const folder of upward(dirname(path), root)) {
    if (folder === root) return;
    const removed = await rmdir(folder).then(
      () => true,
      () => false,
    );
    if (!removed) return;
  }
}
