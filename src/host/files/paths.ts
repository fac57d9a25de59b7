/** Where paths really lead, and which folders are around them. */

import { realpathSync, statSync } from "node:fs";
import { lstat, readlink } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";

/** Returns why a path below the root is not used, or `undefined` if it really is in the root. A repository must not show
 *  files elsewhere. Accepts a path that does not exist. */
export async function outsideReason(path: string, root: string): Promise<string | undefined> {
  const [real, realRoot] = await Promise.all([followLinks(path), followLinks(root)]).catch(() => []);
  if (real === undefined || realRoot === undefined || isInside(real, realRoot)) return undefined;
  return `leads through a symbolic link out of the project, to ${real}. Copy the file instead`;
}

/** Works as `realpath`, but the last parts, or the target of a link, may not exist. */
export async function followLinks(path: string): Promise<string> {
  try {
    // Waiting for another thread takes ten times as long as the question, which every call of a tool asks.
    return realpathSync.native(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || dirname(path) === path) throw error;
  }
  const directory = await followLinks(dirname(path));
  const isLink = (await lstat(path).catch(() => undefined))?.isSymbolicLink() ?? false;
  return isLink ? followLinks(resolve(directory, await readlink(path))) : join(directory, basename(path));
}

/** Compares names only. A directory is inside itself. A name may start with two dots. */
export function isInside(path: string, directory: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** Includes spellings that other file systems accept: `.GIT`, `git~1`, `.git.`, `.git::$INDEX_ALLOCATION`. */
export function isGitInternal(path: string): boolean {
  return path.split(/[/\\]/).some((name) => /^(\.git|git~\d)[. ]*(:.*)?$/i.test(name));
}

/** Yields the directory and its parents, nearest first, up to `last` or the root of the file system. */
export function* upward(directory: string, last?: string): Generator<string> {
  // A trailing slash must not hide that a directory is the last one.
  const end = last === undefined ? undefined : resolve(last);
  for (let current = resolve(directory); ; current = dirname(current)) {
    yield current;
    if (current === end || dirname(current) === current) return;
  }
}

/** Returns the folders from `root` down to `directory`, both included. */
export function foldersDown(root: string, directory: string): string[] {
  return [...upward(directory, root)].reverse();
}

/** An entry that cannot be inspected counts as existing: reading it reports the reason. */
export async function exists(path: string): Promise<boolean> {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOTDIR";
  }
}
