import { createHash } from "node:crypto";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { diskName } from "../source/byte-names.ts";
import type { CountedFile } from "./ripgrep-matches.ts";

/** Looking at a hundred thousand files would take longer than searching them. */
const mostLookedAt = 1_000;
const atOnce = 64;

/** Differs when other files match, when their matches are more or fewer, or when one of the first of them was written since. */
export async function versionOfFiles(root: string, files: readonly CountedFile[]): Promise<string> {
  const hash = createHash("sha1");
  for (const { path, count } of files) hash.update(`${path}\0${count}\0`);
  const some = files.slice(0, mostLookedAt);
  for (let at = 0; at < some.length; at += atOnce) {
    const looks = some.slice(at, at + atOnce).map(({ path }) => stampOf(join(root, path)));
    hash.update((await Promise.all(looks)).join("\0"));
  }
  return hash.digest("hex");
}

async function stampOf(path: string): Promise<string> {
  const stats = await lstat(diskName(path)).catch(() => undefined);
  return stats === undefined ? "" : `${stats.size} ${stats.mtimeMs}`;
}
