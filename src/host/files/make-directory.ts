import { mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";

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
