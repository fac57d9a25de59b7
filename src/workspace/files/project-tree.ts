/** What belongs to a project, found so quickly that every run can afford it: git's own list, without starting git where that is possible. */
import { type Dirent, existsSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import type { Environment } from "../directories.ts";
import { decodeBytes, splitRecords } from "../processes/output-records.ts";
import { readGit } from "../processes/read-git.ts";
import { parseGitIndex } from "./git-index.ts";
import { maxTextBytes } from "./read-text.ts";
import { exists, upward } from "./upward.ts";

export interface ProjectTree {
  /** The root of the project. */
  readonly root: string;
  /** The root of the repository around it; without one there is nothing else in the tree. */
  readonly repository: string | undefined;
  /** Folders that hold something tracked, absolute, the root first. */
  readonly folders: readonly string[];
  /** Other folders, at most a few thousand. Git may have been told to ignore them: see `isIgnoredFolder`. */
  readonly otherFolders: readonly string[];
  /** The regular files that git tracks, absolute. They need not be there. */
  readonly files: readonly TrackedFile[];
}

export interface TrackedFile {
  readonly path: string;
  /** When git looked last. */
  readonly bytes: number;
}

export async function readProjectTree(root: string, env: Environment): Promise<ProjectTree> {
  const repository = await repositoryAround(root);
  if (repository === undefined) return lonelyFolder(root);
  const listed = entriesOf(repository) ?? (await askGit(repository, env)) ?? [];
  const entries = withoutLinkedFolders(listed, repository);
  const prefix = relative(repository, root).split(sep).join("/");
  const within = prefix === "" ? entries : entries.filter(({ path }) => path.startsWith(`${prefix}/`));
  // Git's names need no normalising, which for thousands of them takes longer than reading them.
  const named = (path: string) => `${repository}${sep}${sep === "/" ? path : path.replaceAll("/", sep)}`;
  const files = within.map(({ path, bytes }) => ({ path: named(path), bytes }));
  const folders = [root, ...foldersOf(within, prefix).map(named)];
  return { root, repository, folders, otherFolders: otherFolders(folders, repository), files };
}

/** A folder that git tracks may have become a link since then: what is behind one is another tree's. */
function withoutLinkedFolders(entries: readonly TrackedFile[], repository: string): readonly TrackedFile[] {
  const linked = foldersOf(entries, "").filter((folder) => isLink(join(repository, folder)));
  if (linked.length === 0) return entries;
  return entries.filter(({ path }) => !linked.some((folder) => path.startsWith(`${folder}/`)));
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}

/** For what is no project: nothing but the folder itself. */
export function lonelyFolder(root: string): ProjectTree {
  return { root, repository: undefined, folders: [root], otherFolders: [], files: [] };
}

/** Whether git leaves out a folder of its repository, or one around it. */
export async function isIgnoredFolder(folder: string, repository: string): Promise<boolean> {
  // Few projects need the library behind the rules.
  const { openIgnoreRules } = await import("./ignore-rules.ts");
  let rules = await openIgnoreRules(repository);
  for (const each of [...upward(folder, repository)].reverse().slice(1)) {
    if (rules.ignores(each, "directory")) return true;
    rules = await rules.enter(each);
  }
  return false;
}

async function repositoryAround(root: string): Promise<string | undefined> {
  for (const folder of upward(root)) if (await exists(join(folder, ".git"))) return folder;
  return undefined;
}

/** Nothing where there is no index yet. Where `.git` is a file or a link, as in a worktree, git is asked: it may lead anywhere. */
function entriesOf(repository: string): TrackedFile[] | undefined {
  const own = join(repository, ".git");
  if (lstatSync(own, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined;
  const index = readQuietly(join(own, "index"));
  return index === undefined ? [] : parseGitIndex(index);
}

async function askGit(repository: string, env: Environment): Promise<TrackedFile[] | undefined> {
  const place = { root: repository, env, signal: new AbortController().signal };
  const paths = await pathsFromGit(place, ["ls-files", "-z", "--full-name"]);
  return paths?.map((path) => ({ path, bytes: 0 }));
}

/** Undefined where git is missing, refused or fails; a search that finds nothing ends with 1. */
async function pathsFromGit(
  place: Parameters<typeof readGit>[0],
  args: readonly string[],
): Promise<string[] | undefined> {
  const git = await readGit(place, args);
  if ("refused" in git) return undefined;
  const paths: string[] = [];
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) paths.push(decodeBytes(record));
  }
  const { code } = await git.end;
  return code === 0 || code === 1 ? paths : undefined;
}

/** Without the one that is the prefix of all. */
function foldersOf(entries: readonly TrackedFile[], prefix: string): string[] {
  const folders = new Set<string>();
  for (const { path } of entries) {
    for (let end = path.lastIndexOf("/"); end > prefix.length; end = path.lastIndexOf("/", end - 1)) {
      const folder = path.slice(0, end);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return [...folders];
}

/** More folders than this are not looked through for what git does not know yet. */
const mostFolders = 2_000;

/** What lies in the tracked folders and is not tracked, without other repositories and what is plainly ignored. */
function otherFolders(tracked: readonly string[], repository: string): string[] {
  const known = new Set(tracked);
  const isLeftOut = plainlyIgnored(repository);
  const found: string[] = [];
  const look = (folder: string) => {
    for (const entry of entriesIn(folder)) {
      if (found.length >= mostFolders || !entry.isDirectory()) continue;
      const path = `${folder}${sep}${entry.name}`;
      if (!known.has(path) && !isLeftOut(folder, entry.name) && !existsSync(join(path, ".git")))
        found.push(path);
    }
  };
  for (const folder of tracked) look(folder);
  for (let index = 0; index < found.length; index++) look(found[index]!);
  return found;
}

/** Names that the root's rules leave out without a pattern, such as `dist/`: these folders are often the largest. */
function plainlyIgnored(repository: string): (folder: string, name: string) => boolean {
  const lines = (readQuietly(join(repository, ".gitignore"))?.toString("utf8") ?? "").split(/\r?\n/);
  const named = (pattern: RegExp) => new Set(lines.flatMap((line) => pattern.exec(line)?.[1] ?? []));
  const anywhere = named(/^([^!#/*?[\]\\\s][^/*?[\]\\]*?)\/?$/);
  const inRoot = named(/^\/([^/*?[\]\\]+?)\/?$/);
  const kept = named(/^!\/?([^/]+?)\/?$/);
  return (folder, name) =>
    skippedNames.has(name) ||
    (!kept.has(name) && (anywhere.has(name) || (folder === repository && inRoot.has(name))));
}

/** Nobody starts a tool there. */
const skippedNames: ReadonlySet<string> = new Set([".git", "node_modules"]);

function entriesIn(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Up to here reading the files takes less time than starting git. */
const mostRead = { files: 400, bytes: 8 * 1024 * 1024 };

/** The tracked text files that hold one of these words, as they are on the disk. */
export async function filesHolding(
  words: readonly string[],
  { root, files }: ProjectTree,
  env: Environment,
): Promise<string[]> {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const isSmall = files.length <= mostRead.files && bytes <= mostRead.bytes;
  const found = isSmall ? undefined : await searchWithGit(words, root, env);
  if (found !== undefined) return found;
  return files.map(({ path }) => path).filter((path) => holds(path, words));
}

async function searchWithGit(
  words: readonly string[],
  root: string,
  env: Environment,
): Promise<string[] | undefined> {
  const place = { root, env, signal: new AbortController().signal };
  const settings = ["-c", "grep.fullName=false", "-c", "submodule.recurse=false"];
  const patterns = words.flatMap((word) => ["-e", word]);
  const names = await pathsFromGit(place, [...settings, "grep", "-lIFz", ...patterns, "--", "."]);
  return names?.map((name) => join(root, name));
}

function holds(path: string, words: readonly string[]): boolean {
  const text = readQuietly(path);
  if (text === undefined || text.subarray(0, 8192).includes(0)) return false;
  return words.some((word) => text.includes(word));
}

/** The bytes of a regular file, without a turn of the event loop. Opening a pipe would wait for a writer, and a link leads to another
 *  file: of these, and of what cannot be read, nothing. */
export function readQuietly(path: string): Buffer | undefined {
  try {
    const stats = lstatSync(path);
    return stats.isFile() && stats.size <= maxTextBytes ? readFileSync(path) : undefined;
  } catch {
    return undefined;
  }
}
