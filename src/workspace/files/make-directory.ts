import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** Makes a folder and those around it that are missing. Node's own `recursive` tries for ever where the system calls a new folder
 *  missing though the one around it is there, as Linux does below /proc. */
export async function makeDirectory(path: string, mode = 0o777): Promise<void> {
  const error = await tryToMake(path, mode);
  if (error === undefined) return;
  if (error.code !== "ENOENT" || dirname(path) === path) throw error;
  await makeDirectory(dirname(path), mode);
  const again = await tryToMake(path, mode);
  if (again !== undefined) throw again;
}

async function tryToMake(path: string, mode: number): Promise<NodeJS.ErrnoException | undefined> {
  try {
    await mkdir(path, { mode });
    return undefined;
  } catch (error) {
    // On a read-only disk the answer for a folder that is there need not be EEXIST.
    const isThere = await stat(path).then(
      (stats) => stats.isDirectory(),
      () => false,
    );
    return isThere ? undefined : (error as NodeJS.ErrnoException);
  }
}
