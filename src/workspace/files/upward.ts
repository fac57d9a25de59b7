import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** The directory and those around it, nearest first: up to `last`, or up to the root of the file system. */
export function* upward(directory: string, last?: string): Generator<string> {
  // A trailing slash must not hide that a directory is the last one.
  const end = last === undefined ? undefined : resolve(last);
  for (let current = resolve(directory); ; current = dirname(current)) {
    yield current;
    if (current === end || dirname(current) === current) return;
  }
}

/** An entry that is there and cannot be looked at counts as there: reading it then says why. */
export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => error.code !== "ENOENT" && error.code !== "ENOTDIR",
  );
}
