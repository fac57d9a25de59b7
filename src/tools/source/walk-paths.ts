import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type IgnoreRules, loadIgnoreRules } from "../../workspace/index.ts";
import { diskName, nameOfBytes } from "./byte-names.ts";
import { isDenied } from "./denied.ts";

export interface Walk {
  readonly root: string;
  /** The directory to list, relative to the root; "." for the root. */
  readonly path: string;
  readonly signal: AbortSignal;
  /** Counts the directories that may not be read. */
  readonly found: { denied: number };
}

/** Files and links below a directory that git's rules do not leave out, a batch for each run of files, in the order in which git lists.
 *  Paths are relative to the root. Links are not followed; what cannot be read is left out. */
export async function* walkPaths({ root, path, signal, found }: Walk): AsyncGenerator<string[]> {
  const { openIgnoreRules } = await loadIgnoreRules();
  const directory = join(root, path);
  const [rules, entries] = [await openIgnoreRules(directory, root), await readEntries(directory, found)];
  yield* walk({ root, path: path === "." ? "" : `${path}/`, entries, rules, signal, found });
}

interface Step extends Walk {
  /** "" or with a slash at its end. */
  readonly path: string;
  readonly entries: readonly Entry[];
  /** Those that hold inside the directory. */
  readonly rules: IgnoreRules;
}

async function* walk({ root, path, entries, rules, signal, found }: Step): AsyncGenerator<string[]> {
  let files: string[] = [];
  for (const name of sortedNames(entries)) {
    if (signal.aborted) break;
    const isDirectory = name.endsWith("/");
    const entry = path + name;
    const place = `${root}/${isDirectory ? entry.slice(0, -1) : entry}`;
    if (rules.ignores(place, isDirectory ? "directory" : "file")) continue;
    if (!isDirectory) {
      files.push(entry);
      continue;
    }
    if (files.length > 0) yield files;
    files = [];
    yield* walk({ root, path: entry, ...(await enter(place, { rules, found })), signal, found });
  }
  if (files.length > 0) yield files;
}

/** Most directories have no rules of their own: their entries tell, without another look at the disk. */
async function enter(
  directory: string,
  { rules, found }: Pick<Step, "rules" | "found">,
): Promise<Pick<Step, "entries" | "rules">> {
  const entries = await readEntries(directory, found);
  if (!entries.some(({ name }) => name === ".gitignore")) return { entries, rules };
  return { entries, rules: await rules.enter(directory, diskName(join(directory, ".gitignore"))) };
}

type Entry = Pick<Dirent, "name" | "isFile" | "isDirectory" | "isSymbolicLink">;

/** A name with U+FFFD in it may be one that is not UTF-8: only then are the bytes asked for, which takes longer. */
async function readEntries(path: string, found: Walk["found"]): Promise<Entry[]> {
  const directory = diskName(path);
  const entries = await readdir(directory, { withFileTypes: true }).catch((error: unknown) => {
    if (isDenied(error)) found.denied++;
    return [];
  });
  if (!entries.some(({ name }) => name.includes("\uFFFD"))) return entries;
  const byBytes = await readdir(directory, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
  return byBytes.map((entry) => ({
    name: nameOfBytes(entry.name.toString("latin1")),
    isFile: () => entry.isFile(),
    isDirectory: () => entry.isDirectory(),
    isSymbolicLink: () => entry.isSymbolicLink(),
  }));
}

/** With a slash at its end a directory sorts where its files do. Sockets and devices are left out. */
function sortedNames(entries: readonly Entry[]): string[] {
  const names = entries.flatMap((entry) => {
    if (entry.isDirectory()) return `${entry.name}/`;
    return entry.isFile() || entry.isSymbolicLink() ? entry.name : [];
  });
  return names.sort();
}
