import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";

export interface SessionFiles {
  /** Absolute, each once, those of a directory in the order of their names. */
  readonly files: readonly string[];
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[];
}

/** The files that were named, and those of directories whose name ends in .jsonl or .json. What .gitignore leaves out counts, too:
 *  recordings are seldom committed. Links in directories are not followed. */
export async function findSessionFiles(paths: readonly string[], cwd: string): Promise<SessionFiles> {
  const files = new Set<string>();
  const unreadable: { path: string; reason: string }[] = [];
  const pending = paths.map((path) => resolve(cwd, path)).reverse();
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (!(await isDirectory(path))) {
      files.add(path);
      continue;
    }
    try {
      const entries = await readdir(path, { withFileTypes: true });
      pending.push(...sessionsAmong(entries, path).reverse());
    } catch (error) {
      unreadable.push({ path, reason: `cannot be listed (${(error as NodeJS.ErrnoException).code})` });
    }
  }
  return { files: [...files], unreadable };
}

/** What is wrong with a path is said when it is read. */
async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
}

function sessionsAmong(entries: readonly Dirent[], directory: string): string[] {
  const isWanted = (entry: Dirent): boolean =>
    entry.isDirectory() || (entry.isFile() && /\.jsonl?$/.test(entry.name));
  const names = entries.filter(isWanted).map(({ name }) => name);
  return names.sort((left, right) => (left < right ? -1 : 1)).map((name) => join(directory, name));
}
