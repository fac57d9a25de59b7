import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** Makes a folder and those around it that are missing. Node's own `recursive` tries for ever where the system calls a new folder
 *  missing though the one around it is there, as Linux does below /proc. */
export async function makeDirectory(path: string, mode = 0o777): Promise<void> {
  if (await isDirectory(path)) return;
  const error = await tryToMake(path, mode);
  if (error === undefined) return;
  if (error.code !== "ENOENT" || dirname(path) === path) throw error;
  await makeDirectory(dirname(path), mode);
  const again = await tryToMake(path, mode);
  if (again !== undefined) throw again;
}

/** Nothing where another process was faster. */
async function tryToMake(path: string, mode: number): Promise<NodeJS.ErrnoException | undefined> {
  try {
    await mkdir(path, { mode });
    return undefined;
  } catch (error) {
    return (await isDirectory(path)) ? undefined : (error as NodeJS.ErrnoException);
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}
