/** Whether the directory in which git keeps a repository belongs to the work tree. A tree can bring a `.git` that leads to the repository
 *  of something else, and git would show that one's history, or print lines of any file in its errors. */
import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { readRegularText } from "../files/read-regular-file.ts";
import { isInside } from "../files/resolve-target.ts";

export interface GitDirectory {
  /** Real, as is what git says of its directory. */
  readonly toplevel: string;
  readonly gitDirectory: string;
  /** The directory's own settings name the work tree: that of a submodule does. */
  readonly pointsBack: boolean;
}

/** The reason not to use it; undefined where it may be used. */
export async function foreignGitDirectory(directory: GitDirectory): Promise<string | undefined> {
  const { toplevel } = directory;
  const gitDirectory = await realpath(directory.gitDirectory);
  const own = await lstat(join(toplevel, ".git")).catch(() => undefined);
  if (own === undefined) return "its work tree lies elsewhere (core.worktree)";
  const isOwn = own.isDirectory()
    ? gitDirectory === join(toplevel, ".git")
    : directory.pointsBack || (await isLinkedWorktree(gitDirectory, toplevel));
  const shared = await sharedDirectory(gitDirectory);
  const isShared = shared === gitDirectory || dirname(gitDirectory) === join(shared, "worktrees");
  if (!isOwn || !isShared) return foreign;
  for (const place of new Set([gitDirectory, shared])) {
    const link = await linkOut(place, [gitDirectory, shared]);
    if (link !== undefined) return `${JSON.stringify(link)} in its .git is a link to somewhere else`;
  }
  return undefined;
}

const foreign =
  "its .git leads to a directory that does not name this work tree (let a person set core.worktree there, or safe.directory)";

/** What `git worktree add` has made names the work tree in turn. */
async function isLinkedWorktree(gitDirectory: string, toplevel: string): Promise<boolean> {
  const text = await readLine(join(gitDirectory, "gitdir"));
  if (text === undefined) return false;
  const named = resolve(gitDirectory, text);
  const real = await realpath(dirname(named)).catch(() => undefined);
  return basename(named) === ".git" && real === toplevel;
}

/** Where linked worktrees keep what they share; for all others it is the directory itself. */
async function sharedDirectory(gitDirectory: string): Promise<string> {
  const text = await readLine(join(gitDirectory, "commondir"));
  if (text === undefined) return gitDirectory;
  const named = resolve(gitDirectory, text);
  return realpath(named).catch(() => named);
}

/** Whether history ends where the clone was cut off. Not asked of git, which prints lines of that file when they are no commits. */
export async function isShallowClone(gitDirectory: string): Promise<boolean> {
  const stats = await stat(join(await sharedDirectory(gitDirectory), "shallow")).catch(() => undefined);
  return stats !== undefined && stats.size > 0;
}

/** Folders with files that git reads by their names. */
const readFolders: readonly string[] = [
  "",
  "info",
  "objects",
  "objects/info",
  "objects/pack",
  "refs",
  "logs",
];

async function linkOut(directory: string, allowed: readonly string[]): Promise<string | undefined> {
  for (const folder of readFolders) {
    const entries = await readdir(join(directory, folder), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (!entry.isSymbolicLink()) continue;
      const real = await realpath(join(directory, folder, entry.name)).catch(() => undefined);
      if (real !== undefined && !allowed.some((each) => isInside(real, each)))
        return join(folder, entry.name);
    }
  }
  return undefined;
}

async function readLine(path: string): Promise<string | undefined> {
  const read = await readRegularText(path);
  return "text" in read ? read.text.trim() : undefined;
}
