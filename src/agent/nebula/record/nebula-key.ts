import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** Names a nebula in the store and in folders: the same for every path that leads to its folder, with a name in it that people know. */
export function nebulaKey(directory: string): string {
  const path = realPath(directory);
  const hash = createHash("sha256").update(path).digest("hex").slice(0, 10);
  const name = basename(path)
    .replaceAll(/[^\w.-]+/g, "-")
    .slice(0, 40);
  return [name, hash].filter((part) => part !== "").join("-");
}

/** Names the runs of a nebula that keep their state in one store: runs with another store have nothing to do with them. */
export function runKey(directory: string, storeFile: string): string {
  const hash = createHash("sha256").update(realPath(storeFile)).digest("hex").slice(0, 10);
  return `${nebulaKey(directory)}-${hash}`;
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
