import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { diskName, nameOfBytes } from "../frame/byte-names.ts";
import { createIgnoredEntries, type IgnoredEntries } from "./ignored-entries.ts";

export interface Walk {
  readonly root: string;
  /** The directory to list, relative to the root; "." for the root. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/** Files and links below a directory that `.gitignore` files from the root down do not leave out, a batch for each run of files, in the
 *  order in which git lists. Paths are relative to the root. Links are not followed; what cannot be read is left out. */
export async function* walkPaths({ root, path, signal }: Walk): AsyncGenerator<string[]> {
  const prefix = path === "." ? "" : `${path}/`;
  yield* walk({ root, path: prefix, ignored: await rulesAround(root, prefix), signal });
}

/** Those of the directories above. A directory that they leave out was named on purpose, so for it they do not count. */
async function rulesAround(root: string, prefix: string): Promise<IgnoredEntries> {
  const none = await createIgnoredEntries();
  let rules = none;
  for (let end = prefix.indexOf("/"), above = ""; end >= 0; end = prefix.indexOf("/", end + 1)) {
    rules = await rules.enter(above, root);
    above = prefix.slice(0, end + 1);
    if (rules.ignores(above)) return none;
  }
  return rules;
}

interface Step {
  readonly root: string;
  /** "" or with a slash at its end. */
  readonly path: string;
  readonly ignored: IgnoredEntries;
  readonly signal: AbortSignal;
}

async function* walk({ root, path, ignored: outer, signal }: Step): AsyncGenerator<string[]> {
  const entries = await readEntries(`${root}/${path}`);
  const hasRules = entries.some(({ name }) => name === ".gitignore");
  const ignored = hasRules ? await outer.enter(path, root) : outer;
  let files: string[] = [];
  for (const name of sortedNames(entries)) {
    if (signal.aborted) break;
    const entry = path + name;
    if (/^\.git\/?$/.test(name) || ignored.ignores(entry)) continue;
    if (!name.endsWith("/")) {
      files.push(entry);
      continue;
    }
    if (files.length > 0) yield files;
    files = [];
    yield* walk({ root, path: entry, ignored, signal });
  }
  if (files.length > 0) yield files;
}

/** A name with U+FFFD in it may be one that is not UTF-8: only then are the bytes asked for, which takes longer. */
async function readEntries(path: string): Promise<Pick<Dirent, EntryFacts>[]> {
  const directory = diskName(path);
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  if (!entries.some(({ name }) => name.includes("\uFFFD"))) return entries;
  const byBytes = await readdir(directory, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
  return byBytes.map((entry) => ({
    name: nameOfBytes(entry.name.toString("latin1")),
    isFile: () => entry.isFile(),
    isDirectory: () => entry.isDirectory(),
    isSymbolicLink: () => entry.isSymbolicLink(),
  }));
}

type EntryFacts = "name" | "isFile" | "isDirectory" | "isSymbolicLink";

/** With a slash at its end a directory sorts where its files do. Sockets and devices are left out. */
function sortedNames(entries: readonly Pick<Dirent, EntryFacts>[]): string[] {
  const names = entries.flatMap((entry) => {
    if (entry.isDirectory()) return `${entry.name}/`;
    return entry.isFile() || entry.isSymbolicLink() ? entry.name : [];
  });
  return names.sort();
}
