/** Finds the files and folders of a project, fast enough for every run. Reads git's own list, and starts git only if
 *  needed. */
import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import {
  decodeBytes,
  type Environment,
  hasRepository,
  homeDirectory,
  maxTextBytes,
  readForeign,
  readGit,
  repositoryAround,
  splitRecords,
} from "../../host/index.ts";

export interface ProjectTree {
  /** The root of the project. */
  readonly root: string;
  /** The root of the repository around it. Without a repository, the tree holds only the root. */
  readonly repository: string | undefined;
  /** Absolute paths of folders with tracked files, the root first. */
  readonly folders: readonly string[];
  /** Other folders, at most a few thousand. Git may ignore them: see `isIgnored`. */
  readonly otherFolders: readonly string[];
  /** Absolute paths of the regular files that git tracks. They may not exist. */
  readonly files: readonly TrackedFile[];
  /** Returns the tracked text files that contain one of these words, as they are on the disk. */
  filesHolding(words: readonly string[]): Promise<string[]>;
  /** Returns whether git ignores a folder of the repository, or a folder around it. */
  isIgnored(folder: string): Promise<boolean>;
  /** Returns whether git ignores a file of the repository, so that only this clone has it. */
  isIgnoredFile(path: string): Promise<boolean>;
}

export interface TrackedFile {
  readonly path: string;
  /** The size at git's last check; 0 if unknown. */
  readonly bytes: number;
}

export async function readProjectTree(root: string, env: Environment): Promise<ProjectTree> {
  const repository = repositoryAround(root, homeDirectory(env))?.root;
  if (repository === undefined) return lonelyFolder(root);
  const listed = readTrackedFiles(repository) ?? (await askGit(repository, env)) ?? [];
  const entries = withoutLinkedFolders(listed, repository);
  const prefix = relative(repository, root).split(sep).join("/");
  const within = prefix === "" ? entries : entries.filter(({ path }) => path.startsWith(`${prefix}/`));
  // Git's names need no normalising, which would take longer than reading them.
  const named = (path: string) => `${repository}${sep}${sep === "/" ? path : path.replaceAll("/", sep)}`;
  const files = within.map(({ path, bytes }) => ({ path: named(path), bytes }));
  const folders = [root, ...listFolders(within, prefix).map(named)];
  return {
    ...{ root, repository, folders, files },
    otherFolders: otherFolders(folders, repository),
    filesHolding: (words) => filesHolding(words, { root, files, env }),
    isIgnored: (folder) => isIgnored(repository, folder),
    async isIgnoredFile(path) {
      return !files.some((each) => each.path === path) && (await isIgnored(repository, dirname(path), path));
    },
  };
}

/** A tracked folder may have been replaced with a link. Files behind it belong to another tree. */
function withoutLinkedFolders(entries: readonly TrackedFile[], repository: string): readonly TrackedFile[] {
  const linked = listFolders(entries, "").filter(
    (folder) => lstatSync(join(repository, folder), { throwIfNoEntry: false })?.isSymbolicLink() === true,
  );
  if (linked.length === 0) return entries;
  return entries.filter(({ path }) => !linked.some((folder) => path.startsWith(`${folder}/`)));
}

/** Returns a tree with only the folder itself. */
export function lonelyFolder(root: string): ProjectTree {
  return {
    ...{ root, repository: undefined, folders: [root], otherFolders: [], files: [] },
    filesHolding: async () => [],
    isIgnored: async () => false,
    isIgnoredFile: async () => false,
  };
}

/** Whether git ignores a folder, or a file in it. */
async function isIgnored(repository: string, folder: string, file?: string): Promise<boolean> {
  // Few projects need this library.
  const { openRulesBelow } = await import("../../host/files/ignore-rules.ts");
  const rules = await openRulesBelow(repository, folder);
  return rules === undefined || (file !== undefined && rules.ignores(file, "file"));
}

/** Returns an empty list if there is no index yet. If `.git` is a file or a link, as in a worktree, git must be asked:
 *  it may lead anywhere. */
function readTrackedFiles(repository: string): TrackedFile[] | undefined {
  const own = join(repository, ".git");
  if (lstatSync(own, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined;
  const index = readForeign(join(own, "index"), { within: own, refuseLink: true, maxBytes: maxTextBytes });
  return Buffer.isBuffer(index) ? parseGitIndex(index) : [];
}

async function askGit(repository: string, env: Environment): Promise<TrackedFile[] | undefined> {
  const place = { root: repository, env, signal: new AbortController().signal };
  const paths = await pathsFromGit(place, ["ls-files", "-z", "--full-name"]);
  return paths?.map((path) => ({ path, bytes: 0 }));
}

/** Returns `undefined` if git is missing, refused or fails. A search without results ends with 1. */
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

/** Leaves out the folder `prefix` itself. */
function listFolders(entries: readonly TrackedFile[], prefix: string): string[] {
  const folders = new Set<string>();
  let before = "";
  for (const { path } of entries) {
    // In git's order, most files are in the folder of the file before them.
    const folder = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (folder === before) continue;
    before = folder;
    for (let end = path.lastIndexOf("/"); end > prefix.length; end = path.lastIndexOf("/", end - 1)) {
      const folder = path.slice(0, end);
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return [...folders];
}

/** Returns the folders in tracked folders that are not tracked, without other repositories and clearly ignored
 *  names. */
function otherFolders(tracked: readonly string[], repository: string): string[] {
  // The search for folders that git does not track stops after this many.
  const maxFolders = 2_000;
  const known = new Set(tracked);
  const isLeftOut = plainlyIgnored(repository);
  const found: string[] = [];
  const look = (folder: string) => {
    for (const entry of entriesIn(folder)) {
      if (found.length >= maxFolders || !entry.isDirectory()) continue;
      const path = `${folder}${sep}${entry.name}`;
      if (!known.has(path) && !isLeftOut(folder, entry.name) && !hasRepository(path)) found.push(path);
    }
  };
  for (const folder of tracked) look(folder);
  for (let index = 0; index < found.length; index++) look(found[index]!);
  return found;
}

/** Matches names that the root's rules ignore without a pattern, such as `dist/`. These folders are often the
 *  largest. */
function plainlyIgnored(repository: string): (folder: string, name: string) => boolean {
  const rules = readForeign(join(repository, ".gitignore"), { refuseLink: true });
  const lines = Buffer.isBuffer(rules) ? rules.toString("utf8").split(/\r?\n/) : [];
  const named = (pattern: RegExp) => new Set(lines.flatMap((line) => pattern.exec(line)?.[1] ?? []));
  const anywhere = named(/^([^!#/*?[\]\\\s][^/*?[\]\\]*?)\/?$/);
  const inRoot = named(/^\/([^/*?[\]\\]+?)\/?$/);
  const kept = named(/^!\/?([^/]+?)\/?$/);
  return (folder, name) =>
    skippedNames.has(name) || (!kept.has(name) && (anywhere.has(name) || (folder === repository && inRoot.has(name))));
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

/** Up to these sizes, reading the files is faster than starting git. */
const mostRead = { files: 400, bytes: 8 * 1024 * 1024 };

async function filesHolding(
  words: readonly string[],
  { root, files, env }: Pick<ProjectTree, "root" | "files"> & { readonly env: Environment },
): Promise<string[]> {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const isSmall = files.length <= mostRead.files && bytes <= mostRead.bytes;
  const found = isSmall ? undefined : await searchWithGit(words, root, env);
  if (found !== undefined) return found;
  return files
    .map(({ path }) => path)
    .filter((path) => {
      const text = readForeign(path, { within: root, refuseLink: true, maxBytes: maxTextBytes });
      if (!Buffer.isBuffer(text) || text.subarray(0, 8192).includes(0)) return false;
      return words.some((word) => text.includes(word));
    });
}

async function searchWithGit(words: readonly string[], root: string, env: Environment): Promise<string[] | undefined> {
  const place = { root, env, signal: new AbortController().signal };
  const settings = ["-c", "grep.fullName=false", "-c", "submodule.recurse=false"];
  const patterns = words.flatMap((word) => ["-e", word]);
  const names = await pathsFromGit(place, [...settings, "grep", "-lIFz", ...patterns, "--", "."]);
  return names?.map((name) => join(root, name));
}

// Reads the list of tracked files from git's index, which takes a millisecond instead of twenty for starting git. The
// format is described in git's Documentation/gitformat-index.adoc.

/** Returns the regular files of an index, or `undefined` for an unknown format: then ask git. Paths start at the root of
 *  the repository and have slashes. */
function parseGitIndex(index: Buffer): TrackedFile[] | undefined {
  if (index.length < 12 || index.toString("latin1", 0, 4) !== "DIRC") return undefined;
  const version = index.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  // The file does not name its hash. With the wrong hash size, the first name does not have the length in its entry.
  return parseEntries(index, version, 20) ?? parseEntries(index, version, 32);
}

function parseEntries(index: Buffer, version: number, hashBytes: number): TrackedFile[] | undefined {
  const modeAt = 24;
  const sizeAt = 36;
  const regularFile = 0o100_000;
  const end = index.length - hashBytes;
  // Parts of one text cost much less than a buffer for each name.
  const text = index.toString("latin1");
  const entries: TrackedFile[] = [];
  let at = 12;
  let before = "";
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    const read = readName(index, at, { text, version, hashBytes, before });
    if (read === undefined || read.next > end) return undefined;
    const { name, next } = read;
    // A file in conflict has an entry for each of its versions.
    const isFile = (index.readUInt32BE(at + modeAt) & 0o170_000) === regularFile && name !== before;
    const path = isFile ? fromLatin1(name) : "";
    // Rejects names that git itself would not write, or that are not UTF-8.
    if (!path.includes("\uFFFD") && !/(?:^|\/)(?:\.{0,2}|\.git)(?:\/|$)/.test(path))
      entries.push({ path, bytes: index.readUInt32BE(at + sizeAt) });
    before = name;
    at = next;
  }
  return isSplit(index, at, end) ? undefined : entries;
}

function fromLatin1(name: string): string {
  return /[\x80-\xff]/.test(name) ? Buffer.from(name, "latin1").toString("utf8") : name;
}

interface EntryShape {
  /** The index, a character for each byte. */
  readonly text: string;
  readonly version: number;
  readonly hashBytes: number;
  /** The name of the entry before. */
  readonly before: string;
}

/** The largest length of a name that the flags can state. It means that the name is at least this long. */
const longestStated = 0xfff;

function readName(
  index: Buffer,
  entryAt: number,
  { text, version, hashBytes, before }: EntryShape,
): { readonly name: string; readonly next: number } | undefined {
  // Times, device, inode, mode, owner and size come before the hash, and two bytes of flags after it.
  const beforeHash = 40;
  const extended = 0x4000;
  const flagsAt = entryAt + beforeHash + hashBytes;
  if (flagsAt + 4 > index.length) return undefined;
  const flags = index.readUInt16BE(flagsAt);
  let at = flagsAt + ((flags & extended) === 0 ? 2 : 4);
  let kept = "";
  if (version === 4) {
    // The name states how many bytes to remove from the end of the previous name, then the bytes to add.
    let byte = index[at++] ?? 0;
    let removed = byte & 0x7f;
    while ((byte & 0x80) !== 0 && at < index.length) {
      byte = index[at++]!;
      removed = (removed + 1) * 128 + (byte & 0x7f);
    }
    if (removed > before.length) return undefined;
    kept = before.slice(0, before.length - removed);
  }
  const nul = text.indexOf("\0", at);
  if (nul === -1) return undefined;
  const name = kept + text.slice(at, nul);
  const stated = flags & longestStated;
  const hasLength = stated === longestStated ? name.length >= stated : name.length === stated;
  // Before version 4, one to eight NUL bytes make the entry a multiple of eight bytes.
  const next = version === 4 ? nul + 1 : entryAt + ((nul - entryAt + 8) & ~7);
  return name !== "" && hasLength ? { name, next } : undefined;
}

/** The extension `link` names a second file with the other entries. */
function isSplit(index: Buffer, from: number, end: number): boolean {
  for (let at = from; at + 8 <= end; at += 8 + index.readUInt32BE(at + 4)) {
    if (index.toString("latin1", at, at + 4) === "link") return true;
  }
  return false;
}
