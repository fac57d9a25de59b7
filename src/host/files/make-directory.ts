import { mkdirSync, rmdirSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { type OpenFolder, openFolder } from "./open-folder.ts";
import { followLinks, upward } from "./paths.ts";

/** Creates a folder and its missing parents. Node's `recursive` loops forever if the system reports a new folder as
 *  missing although its parent exists, as Linux does below /proc. */
export function makeDirectory(path: string, mode = 0o777): void {
  if (isDirectory(path)) return;
  const error = tryToMake(path, mode);
  if (error === undefined) return;
  if (error.code !== "ENOENT" || dirname(path) === path) throw error;
  makeDirectory(dirname(path), mode);
  const again = tryToMake(path, mode);
  if (again !== undefined) throw again;
}

/** Returns `undefined` if another process was faster. */
function tryToMake(path: string, mode: number): NodeJS.ErrnoException | undefined {
  try {
    mkdirSync(path, { mode });
    return undefined;
  } catch (error) {
    return isDirectory(path) ? undefined : (error as NodeJS.ErrnoException);
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Removes the folders that were made for a file, as far as nothing else is in them. The root stays, and so do folders
 *  that are not in `only`. */
export async function removeEmptyFolders(path: string, root: string, only?: readonly string[]): Promise<void> {
  for (const folder of upward(dirname(path), root)) {
    if (folder === root || only?.includes(folder) === false) return;
    // A killed run may have made only the outer folders.
    if (isDirectory(folder) && !(await removeFolder(folder, root))) return;
  }
}

/** Removes an empty folder in the root. Returns whether it did. */
async function removeFolder(path: string, root: string): Promise<boolean> {
  let around: OpenFolder | undefined;
  try {
    around = openFolder(await followLinks(dirname(path)), { root: await followLinks(root) });
    if (around === undefined) return false;
    rmdirSync(around.at(basename(path)));
    return true;
  } catch {
    return false;
  } finally {
    around?.close();
  }
}
