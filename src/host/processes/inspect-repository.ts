/** Finds out what git would use of a repository, and refuses one that leads elsewhere. */

import { type Dirent, existsSync, lstatSync, readdirSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { homeDirectory } from "../directories.ts";
import { repositoryAround } from "../files/find-root.ts";
import { isInside, upward } from "../files/paths.ts";
import { readForeignText } from "../files/read-foreign.ts";
import { maxTextBytes } from "../files/read-text.ts";
import { decodeBytes } from "./byte-records.ts";
import { type Asked, createFileMemory } from "./file-memory.ts";
import { collectOutput, type GitPlace, gitReason, noGitReason, reading, startGit } from "./start-git.ts";

/** The reason why git was not run. */
export interface GitRefusal {
  readonly refused: "no_git" | "no_repository" | "owner" | "unsafe" | "failed" | "ended";
  /** Continues a sentence about the repository. */
  readonly reason: string;
}

/** What is known of a repository before git reads it. */
export interface GitRepository {
  readonly toplevel: string;
  /** The root's path in the work tree: "" or with a slash at its end. */
  readonly prefix: string;
  /** The history is cut off. */
  readonly isShallow: boolean;
  /** As git names it, with links. */
  readonly gitDirectory: string;
  /** From every file that git reads settings from. */
  readonly settings: readonly GitSetting[];
}

/** Asks git for the root's place and settings, once per signal and root. Later signals get the same answer while the
 *  files that git read are unchanged. What can change without them is checked each time. */
export function inspectRepository(
  place: GitPlace,
  // Asks git in any case with `again`, because an agent may be changing the repository just now.
  { again = false }: { readonly again?: boolean } = {},
): Promise<GitRepository | GitRefusal> {
  const ask = async (key: string) => (again ? (await askGit(place)).answer : memory(key, () => askGit(place)));
  const known = inspected.get(place.signal) ?? new Map<string, Promise<GitRepository | GitRefusal>>();
  inspected.set(place.signal, known);
  const answer = known.get(place.root) ?? judgeAnswer(ask(JSON.stringify([place.root, place.env])));
  known.set(place.root, answer);
  return answer;
}

type Answer = GitAnswer | GitRefusal;

const inspected = new WeakMap<AbortSignal, Map<string, Promise<GitRepository | GitRefusal>>>();
const memory = createFileMemory<Answer>();

/** What git said of a root, before it is judged. */
interface GitAnswer {
  readonly inside: string | undefined;
  /** The root's real path. */
  readonly root: string;
  /** How many folders the root is below the work tree's top. */
  readonly depth: number;
  readonly toplevel: string;
  readonly gitDirectory: string;
  readonly settings: readonly GitSetting[];
}

async function askGit(place: GitPlace): Promise<Asked<Answer>> {
  // Only the last answer can contain line breaks, whatever the folder's name is.
  const questions = ["--is-inside-work-tree", "--show-cdup", "--absolute-git-dir"];
  const root = realpathSync.native(place.root);
  // Git itself also searches above the home and temporary directories.
  if (repositoryAround(root, homeDirectory(place.env)) === undefined) return { answer: noRepository };
  const waiting = waitingFile(root);
  if (waiting !== undefined) {
    return {
      answer: { refused: "unsafe", reason: `${waiting} is a pipe, a device or too large, and git would wait for it` },
    };
  }
  const [placed, configured] = await Promise.all([
    gitBytes(place, ["rev-parse", ...questions]),
    gitBytes(place, ["config", "--list", "-z", "--show-scope", "--show-origin"]),
  ]);
  if ("refused" in placed) return { answer: placed };
  if ("refused" in configured) return { answer: configured };
  const [inside, up = "", ...lines] = placed.bytes.toString("utf8").split("\n");
  const answer: GitAnswer = {
    inside,
    root,
    depth: up.split("/").length - 1,
    toplevel: resolve(root, up),
    gitDirectory: lines.slice(0, -1).join("\n"),
    settings: parseSettings(configured.bytes.toString("latin1")),
  };
  return { answer, files: inside === "true" ? await filesBehind(answer, place) : undefined };
}

/** Returns the file that git would wait for, or `undefined` if there is none. */
function waitingFile(root: string): string | undefined {
  // Files that git opens by their name, in a work tree and in its `.git`.
  const inGit = "HEAD config config.worktree commondir index packed-refs shallow info/exclude info/attributes".split(
    " ",
  );
  const opened = [".gitignore", ".gitattributes", ".gitmodules", ".mailmap", ".git"];
  opened.push(...inGit.map((name) => `.git/${name}`));
  // A repository with millions of files has large ones.
  const mayBeLarge = /(index|packed-refs)$/;
  for (const folder of upward(root)) {
    const found = opened.find((name) => {
      const stats = unlessFailed(() => statSync(join(folder, name), { throwIfNoEntry: false }));
      if (stats === undefined || stats.isDirectory()) return false;
      return !stats.isFile() || (stats.size > maxTextBytes && !mayBeLarge.test(name));
    });
    if (found !== undefined) return found;
    if (existsSync(join(folder, ".git"))) break;
  }
  return undefined;
}

/** Returns the files that decide where git finds the repository and which settings it reads. `undefined` if they
 *  cannot all be named. */
async function filesBehind(answer: GitAnswer, { root: named, env }: GitPlace): Promise<string[] | undefined> {
  const { root, toplevel, depth, gitDirectory, settings } = answer;
  const shared = await sharedDirectory(gitDirectory);
  const inGit = ["", "HEAD", "commondir", "config", "config.worktree", "objects", "refs"];
  const home = homeDirectory(env);
  const files = new Set([
    named,
    root,
    // A new `.git` closer to the root would win.
    ...Array.from({ length: depth + 1 }, (_, up) => resolve(root, "../".repeat(up), ".git")),
    ...[gitDirectory, shared].flatMap((directory) => inGit.map((name) => join(directory, name))),
    join(home, ".gitconfig"),
    join(env.XDG_CONFIG_HOME || join(home, ".config"), "git/config"),
    "/etc/gitconfig",
    ...[env.GIT_CONFIG_SYSTEM, env.GIT_CONFIG_GLOBAL].filter((path) => path !== undefined),
  ]);
  for (const { key, value, origin } of settings) {
    const file = origin.startsWith("file:") ? resolve(toplevel, decodeBytes(origin.slice(5))) : undefined;
    if (file !== undefined) files.add(file);
    if (!/^include(if)?\./.test(key)) continue;
    // Other conditions depend on more than files, and other paths on where git is installed.
    const path = decodeBytes(value).replace(/^~(?=\/)/, home);
    if (file === undefined || /^[~%]/.test(path) || !/^include(if\.gitdir(\/i)?:.*)?\.path$/s.test(key))
      return undefined;
    files.add(resolve(dirname(file), path));
  }
  return [...files];
}

async function judgeAnswer(asked: Promise<Answer>): Promise<GitRepository | GitRefusal> {
  const answer = await asked;
  if ("refused" in answer) return answer;
  const { inside, root, depth, toplevel, gitDirectory, settings } = answer;
  if (inside === "false") {
    return { refused: "unsafe", reason: "its work tree does not hold this folder (core.worktree)" };
  }
  if (inside !== "true") return { refused: "failed", reason: "git did not say where its work tree is" };
  const prefix = depth === 0 ? "" : `${root.split(sep).slice(-depth).join("/")}/`;
  const pointsBack = settings.some(({ isOwn, key }) => isOwn && key === "core.worktree");
  const real = realpathSync.native(gitDirectory);
  const shared = await sharedDirectory(real);
  // A person has allowed git to use exactly this folder. `*` does not count.
  const reason = settings.some(
    ({ isOwn, key, value }) => !isOwn && key === "safe.directory" && decodeBytes(value) === toplevel,
  )
    ? undefined
    : await foreignGitDirectory({ toplevel, real, shared, pointsBack });
  if (reason !== undefined) return { refused: "unsafe", reason };
  // Returns whether the clone is shallow. Git is not asked, because it prints lines of that file that are not
  // commits.
  const stats = unlessFailed(() => statSync(join(shared, "shallow"), { throwIfNoEntry: false }));
  return { toplevel, prefix, isShallow: stats !== undefined && stats.size > 0, gitDirectory, settings };
}

async function gitBytes(place: GitPlace, args: readonly string[]): Promise<{ bytes: Buffer } | GitRefusal> {
  const git = await startGit(place, args, reading);
  if (git === undefined) return { refused: "no_git", reason: noGitReason };
  const bytes = await collectOutput(git.output);
  const { code, stderr } = await git.end;
  if (place.signal.aborted) return { refused: "ended", reason: "git was stopped" };
  if (code === 0) return { bytes };
  if (/not a git repository|cannot use bare repository|must be run in a work tree/i.test(stderr)) {
    return noRepository;
  }
  if (/dubious ownership/i.test(stderr)) {
    return { refused: "owner", reason: "git does not trust this repository: it belongs to another user" };
  }
  return { refused: "failed", reason: gitReason(stderr) };
}

const noRepository: GitRefusal = { refused: "no_repository", reason: "the folder is not in a git repository" };

export interface GitSetting {
  /** Set by the repository itself, not by the user or the system. */
  readonly isOwn: boolean;
  /** `file:PATH` for a file, relative to the top of the work tree. A byte string. */
  readonly origin: string;
  /** Section and name in lower case. A byte string, as is the value. */
  readonly key: string;
  readonly value: string;
}

/** Parses `git config --list -z --show-scope --show-origin`, as a byte string: `SCOPE NUL ORIGIN NUL KEY LF VALUE NUL`. */
function parseSettings(listed: string): GitSetting[] {
  const fields = listed.split("\0");
  const settings: GitSetting[] = [];
  for (let at = 0; at + 2 < fields.length; at += 3) {
    const [scope = "", origin = "", entry = ""] = fields.slice(at, at + 3);
    const end = entry.indexOf("\n");
    const key = end < 0 ? entry : entry.slice(0, end);
    settings.push({
      isOwn: scope === "local" || scope === "worktree",
      origin,
      key,
      value: end < 0 ? "" : entry.slice(end + 1),
    });
  }
  return settings;
}

// Checks whether git's directory belongs to the work tree. A tree may bring a `.git` that leads to another repository.
// Git would then show that repository's history, or print lines of any file in its errors.

/** Returns the reason not to use git's directory, or `undefined` if it may be used. `real` is its real path, and `shared`
 *  the one that linked worktrees share. `pointsBack`: its own settings name the work tree, as in a submodule. */
async function foreignGitDirectory({
  toplevel,
  real,
  shared,
  pointsBack,
}: Readonly<Record<"toplevel" | "real" | "shared", string>> & { readonly pointsBack: boolean }): Promise<
  string | undefined
> {
  const own = unlessFailed(() => lstatSync(join(toplevel, ".git")));
  if (own === undefined) return "its work tree is elsewhere (core.worktree)";
  const isOwn = own.isDirectory()
    ? real === join(toplevel, ".git")
    : pointsBack || (await isLinkedWorktree(real, toplevel));
  const isShared = shared === real || dirname(real) === join(shared, "worktrees");
  const foreign =
    "its .git leads to a directory that does not name this work tree (set core.worktree there, or safe.directory)";
  if (!isOwn || !isShared) return foreign;
  const places = [...new Set([real, shared])];
  const link = places.map((place) => linkOut(place, places)).find((each) => each !== undefined);
  return link && `${JSON.stringify(link)} in its .git is a link out of it`;
}

/** A directory made by `git worktree add` names its work tree. */
async function isLinkedWorktree(gitDirectory: string, toplevel: string): Promise<boolean> {
  const text = await readTrimmed(join(gitDirectory, "gitdir"));
  if (text === undefined) return false;
  const named = resolve(gitDirectory, text);
  const real = unlessFailed(() => realpathSync.native(dirname(named)));
  return basename(named) === ".git" && real === toplevel;
}

/** Returns the directory that linked worktrees share. For all others it is the directory itself. */
async function sharedDirectory(gitDirectory: string): Promise<string> {
  const text = await readTrimmed(join(gitDirectory, "commondir"));
  if (text === undefined) return gitDirectory;
  const named = resolve(gitDirectory, text);
  return unlessFailed(() => realpathSync.native(named)) ?? named;
}

function linkOut(directory: string, allowed: readonly string[]): string | undefined {
  // Folders with files that git reads by name.
  const readFolders: readonly string[] = ["", "info", "objects", "objects/info", "objects/pack", "refs", "logs"];
  const entriesOf = (folder: string): Dirent[] =>
    unlessFailed(() => readdirSync(join(directory, folder), { withFileTypes: true })) ?? [];
  const links = readFolders.flatMap((folder) =>
    entriesOf(folder).flatMap((entry) => (entry.isSymbolicLink() ? join(folder, entry.name) : [])),
  );
  return links.find((link) => {
    const real = unlessFailed(() => realpathSync.native(join(directory, link)));
    return real !== undefined && !allowed.some((each) => isInside(real, each));
  });
}

async function readTrimmed(path: string): Promise<string | undefined> {
  if (unlessFailed(() => lstatSync(path, { throwIfNoEntry: false })) === undefined) return undefined;
  const read = readForeignText(path);
  return "text" in read ? read.text.trim() : undefined;
}

/** The looks are at most a few dozen per call. Each takes some microseconds, a tenth of the way to another thread. */
function unlessFailed<Value>(look: () => Value): Value | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}
