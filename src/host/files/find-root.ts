/** Finds the root of a project. Every search upward uses the same borders, and only a repository that git itself would
 *  use counts as one: sandboxes of agents leave empty `.git` folders behind, mostly in the temporary directory. */

import { accessSync, constants, lstatSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { homeDirectory } from "../directories.ts";
import { foldersDown, upward } from "./paths.ts";
import { readForeign } from "./read-foreign.ts";

/** Returns the root of the project around a folder: the nearest folder with a repository or a `.plimsoll` folder in use.
 *  Without one, returns the folder itself. */
export function projectRoot(cwd: string, home: string): string {
  for (const { path, repository } of searchUpward(cwd, home)) {
    if (repository !== undefined || hasProjectFolder(path)) return path;
  }
  return resolve(cwd);
}

/** Returns the nearest folder, from here upward, that holds a repository. */
export function repositoryAround(
  directory: string,
  home: string = homeDirectory(process.env),
): (GitDirectories & { readonly root: string }) | undefined {
  for (const { path, repository } of searchUpward(directory, home))
    if (repository) return { root: path, ...repository };
  return undefined;
}

/** Returns whether a folder of the project at `root` belongs to another project: it or a folder above it has a
 *  `.plimsoll` of its own. */
export function isOtherProject(folder: string, root: string): boolean {
  return foldersDown(root, folder).slice(1).some(hasProjectFolder);
}

/** Returns whether git takes a folder for the top of a work tree. */
export function hasRepository(folder: string): boolean {
  return typeof findRepository(folder) === "object";
}

interface SearchedFolder {
  readonly path: string;
  readonly repository: GitDirectories | undefined;
}

/** Yields the folders that may be the root of the project around `start`, nearest first. The last one holds a
 *  repository, or the next one is a border: the home or temporary directory, which contain projects and are not one,
 *  another file system (as for git), or a folder of another user. `start` itself is always searched. */
export function* searchUpward(start: string, home: string): Generator<SearchedFolder> {
  const holders = [findStats(home), findStats(tmpdir())];
  const [first = start, ...above] = upward(start);
  const nearest = findStats(first) ?? above.map((path) => findStats(path)).find((stats) => stats !== undefined);
  const repository = findRepository(first);
  yield toSearched(first, repository);
  if (repository !== undefined || matchesAny(findStats(first), holders)) return;
  for (const path of above) {
    const stats = findStats(path);
    if (matchesAny(stats, holders) || (stats !== undefined && stats.dev !== nearest?.dev)) return;
    const isTheirs = isOther(stats, [nearest]);
    // Whoever reads the `.plimsoll` of another user refuses it, unless the person trusts that folder.
    if (isTheirs && findStats(join(path, ".plimsoll"), lstatSync) === undefined) return;
    const found = findRepository(path, [stats, nearest]);
    yield toSearched(path, found);
    if (isTheirs || found !== undefined) return;
  }
}

/** Returns the folders above a project in which a person keeps files for all projects, outermost first: up to and with the
 *  home directory, and below the temporary directory. */
export function foldersAbove(root: string, home: string): string[] {
  const [ownHome, temporary] = [findStats(home), findStats(tmpdir())];
  const found: string[] = [];
  if (matchesAny(findStats(root), [ownHome, temporary])) return found;
  for (const path of upward(dirname(resolve(root)))) {
    const stats = findStats(path);
    if (matchesAny(stats, [temporary])) break;
    found.unshift(path);
    if (matchesAny(stats, [ownHome])) break;
  }
  return found;
}

function toSearched(path: string, found: ReturnType<typeof findRepository>): SearchedFolder {
  return { path, repository: found === "unusable" ? undefined : found };
}

/** Names can differ: the temporary directory of macOS is behind a link. */
function matchesAny(stats: Stats | undefined, others: readonly (Stats | undefined)[]): boolean {
  return stats !== undefined && others.some((other) => stats.ino === other?.ino && stats.dev === other.dev);
}

/** Returns whether an entry belongs to neither the person, root, nor an owner of the others. If the search starts in
 *  another user's folder, that user's folders count: in a container, the whole project often belongs to somebody else. */
function isOther(entry: Stats | undefined, others: readonly (Stats | undefined)[]): boolean {
  const own = process.geteuid?.();
  if (entry === undefined || own === undefined) return false;
  return ![own, 0, ...others.map((stats) => stats?.uid)].includes(entry.uid);
}

function hasProjectFolder(folder: string): boolean {
  // What of `.plimsoll` makes its folder a project. An empty one was left behind.
  const projectNames: readonly string[] = ["config.yaml", "packs", "profiles", "adapters", "notes.yaml"];
  const own = join(folder, ".plimsoll");
  return findStats(own)?.isDirectory() === true && projectNames.some((name) => findStats(join(own, name), lstatSync));
}

// The rules of git's setup.c for `.git` (read_gitfile_gently, is_git_directory, validate_headref). Variables such as
// GIT_DIR do not count. Settings such as core.worktree are judged where git is started.

/** The directory of a work tree, and the one that all linked work trees share. */
interface GitDirectories {
  readonly own: string;
  readonly shared: string;
}

/** Returns `unusable` where git stops without a work tree: a `.git` file that leads nowhere, a bare repository, or a
 *  `.git` that belongs to none of the `owners`. Everybody can put one into a folder such as /var/tmp. */
function findRepository(
  folder: string,
  owners?: readonly (Stats | undefined)[],
): GitDirectories | "unusable" | undefined {
  const path = join(folder, ".git");
  const stats = findStats(path);
  const directories = stats && readGitDirectories(stats.isFile() ? (readGitFile(path, folder) ?? "") : path);
  if (directories !== undefined)
    return owners && isOther(findStats(path, lstatSync), owners) ? "unusable" : directories;
  return stats?.isFile() || readGitDirectories(folder) !== undefined ? "unusable" : undefined;
}

/** Returns the directory that a `.git` file names, as in submodules and linked work trees. */
function readGitFile(path: string, folder: string): string | undefined {
  const text = readSmall(path) ?? "";
  return text.startsWith("gitdir: ") && text.length > 8 ? resolve(folder, text.slice(8)) : undefined;
}

function readGitDirectories(own: string): GitDirectories | undefined {
  if (own === "" || !hasHead(own)) return undefined;
  const commonFile = join(own, "commondir");
  const named = findStats(commonFile, lstatSync) && (readSmall(commonFile) ?? "");
  const shared = named === undefined ? own : resolve(own, named);
  return named !== "" && ["objects", "refs"].every((name) => canEnter(join(shared, name)))
    ? { own, shared }
    : undefined;
}

/** `HEAD` names a branch or a commit. Old repositories have a link there. */
function hasHead(directory: string): boolean {
  const path = join(directory, "HEAD");
  const stats = findStats(path, lstatSync);
  if (stats === undefined) return false;
  if (stats.isSymbolicLink()) return readlinkSync(path).startsWith("refs/");
  return /^(ref:[ \t\r\n]*refs\/|[0-9a-f]{40})/i.test(readSmall(path) ?? "");
}

function canEnter(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns a text without the line breaks at its end. */
function readSmall(path: string): string | undefined {
  // Git reads no larger `.git` file.
  const maxBytes = 1024 * 1024;
  try {
    const read = readForeign(realpathSync.native(path), { maxBytes });
    const text = Buffer.isBuffer(read) ? read.toString("utf8") : "";
    let end = text.length;
    while (text[end - 1] === "\n" || text[end - 1] === "\r") end--;
    return text.slice(0, end);
  } catch {
    return undefined;
  }
}

/** A folder that cannot be inspected is not a root, as in git. */
function findStats(path: string, look: typeof statSync | typeof lstatSync = statSync): Stats | undefined {
  try {
    return look(path, { throwIfNoEntry: false }) as Stats | undefined;
  } catch {
    return undefined;
  }
}
