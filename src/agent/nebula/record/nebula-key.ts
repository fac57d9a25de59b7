import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { namedKey } from "../../../text/index.ts";

/** Names a nebula in the store and in folders: the same for every path that leads to its folder, with a name in it that people know. */
export function nebulaKey(directory: string): string {
  const path = realPath(directory);
  return namedKey(basename(path), path);
}

/** Names the runs of a nebula that keep their state in one store: runs with another store have nothing to do with them. */
export function runKey(directory: string, storeFile: string): string {
  return `${nebulaKey(directory)}-${namedKey("", realPath(storeFile))}`;
}

/** Of what is not there, or not yet, the folder around it must do. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const absolute = resolve(path);
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(realPath(parent), basename(absolute));
  }
}
