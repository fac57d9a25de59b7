/** Gives every phase a git worktree and a branch of its own, and merges what it did into one branch of the nebula. */
import { existsSync } from "node:fs";
import { basename, dirname, isAbsolute, join, normalize } from "node:path";
import { ContextError } from "../../core/errors.ts";
import { messageOf, oneLine } from "../../core/text/index.ts";
import {
  copyTree,
  type Environment,
  followLinks,
  inspectRepository,
  isInside,
  makeDirectory,
  openFolder,
  removeTree,
  stateDirectory,
} from "../../host/index.ts";
import type { Nebula, Phase } from "./nebula.ts";
import type { LostAttempt } from "./nebula-record.ts";
import { type Git, openGit } from "./open-git.ts";
import { openSharedBranch, type SharedBranch, type SharedWork, type Sharing } from "./shared-branch.ts";

export interface Worktrees {
  /** The branch that gets the work of all phases. */
  readonly branch: string;
  /** Returns where a phase works. */
  folderOf(phase: Phase): string;
  /** Creates the worktree of a phase from the work of all others so far, or keeps the one that an earlier attempt left.
   *  `base` is the commit that it is compared with. */
  open(phase: Phase): Promise<{ readonly base: string; readonly isNew: boolean }>;
  /** Commits what the phase left and merges it. Returns a sentence if that is not possible. Doing it twice does no
   *  harm. */
  merge(phase: Phase, work: Omit<SharedWork, "commit">): Promise<string | undefined>;
  /** Brings the branch into the worktree of a phase whose work conflicts with it. Returns the files with the conflict,
   *  which is marked in their texts. Undefined if that is not possible. */
  takeIn(phase: Phase): Promise<readonly string[] | undefined>;
  /** Makes sure that a lost attempt of another machine can no longer be merged. Returns whether it was merged before. */
  takeOver(phase: Phase, lost: LostAttempt): Promise<boolean>;
  /** Removes the worktree of a phase. */
  close(phase: Phase): Promise<void>;
  /** Lets people check the branch out. */
  end(): Promise<void>;
}

export interface WorktreeOptions {
  readonly cwd: string;
  readonly env: Environment;
  /** Names the folder of the worktrees. */
  readonly key: string;
  readonly resume: boolean;
  /** Ignored files and folders that each worktree gets a copy of, relative to the repository. */
  readonly copy: readonly string[];
  /** How the work is shared with other machines. Absent if this machine works alone. */
  readonly sharing?: Sharing | undefined;
  notice(message: string): void;
}

export async function openWorktrees({ name }: Pick<Nebula, "name">, options: WorktreeOptions): Promise<Worktrees> {
  const { cwd, env, key, copy, resume, sharing } = options;
  const repository = await inspectRepository({ root: cwd, env, signal: new AbortController().signal });
  if ("refused" in repository) {
    throw new ContextError("invalid_content", `worktrees need a git repository: ${repository.reason}`, {
      hint: "Run it in a repository, or without --worktrees.",
    });
  }
  const { toplevel, prefix } = repository;
  const { branch, branchOf } = nameBranches(name);
  const folder = join(stateDirectory(env), "worktrees", key);
  const pathOf = ({ id }: Phase) => join(folder, "phases", id);
  const mergedPath = join(folder, "merged");
  const alone = createQueue();
  const [git, merged] = [openGit(toplevel, env), openGit(mergedPath, env)];
  const shared = sharing && openSharedBranch({ ...sharing, branch, branchOf, resume, git, merged });
  await openMerged(mergedPath, { ...options, branch, folder, git, merged, shared });
  const base = async () => (shared === undefined ? branch : shared.update());
  const mergeAlone = (phase: Phase, commit: string) =>
    merged.merge(commit, `Merge phase ${phase.id}: ${oneLine(phase.title)}`);
  return {
    branch,
    folderOf: (phase) => join(pathOf(phase), prefix),
    open: (phase) =>
      alone(async () => {
        const [path, from] = [pathOf(phase), await base()];
        const own = openGit(path, env);
        const isThere = existsSync(path) && (await own.commitOf("HEAD")) !== undefined;
        if (!isThere) {
          await makeWorktree(git, path, ["-B", branchOf(phase), path, from]);
          for (const each of copy) await copyIgnored(each, { git, from: toplevel, to: path, notice: options.notice });
        }
        openFolder(await followLinks(join(path, prefix)), { root: await followLinks(path), mode: 0o777 })?.close();
        // During a merge, the base is the commit that is being merged in.
        const merging = isThere ? await own.commitOf("MERGE_HEAD") : undefined;
        return { base: merging ?? (await own.run("merge-base", "HEAD", from)).trim(), isNew: !isThere };
      }),
    merge: (phase, work) =>
      alone(async () => {
        const path = pathOf(phase);
        if (!existsSync(path)) return undefined;
        const own = openGit(path, env);
        await own.commitAll(phase);
        const commit = (await own.run("rev-parse", "HEAD")).trim();
        const why = await (shared === undefined ? mergeAlone(phase, commit) : shared.merge(phase, { ...work, commit }));
        if (why === undefined) return undefined;
        return `Its changes could not be merged into ${branch}: ${why}. They are in ${path}, on the branch ${branchOf(phase)}. Merge them by hand and use --resume.`;
      }),
    takeIn: (phase) =>
      alone(async () => {
        const [own, from] = [openGit(pathOf(phase), env), await base()];
        return own.mergeWithMarks(from);
      }),
    takeOver: (phase, lost) => alone(async () => (shared === undefined ? false : shared.takeOver(phase, lost))),
    close: (phase) =>
      alone(async () => {
        if (!existsSync(pathOf(phase))) return;
        await removeWorktree(git, pathOf(phase));
        await git.attempt("branch", "--quiet", "-D", branchOf(phase));
      }),
    end: () =>
      alone(async () => {
        await shared?.update().catch(() => undefined);
        await removeWorktree(git, mergedPath);
      }),
  };
}

/** Opens the worktree in which the work of all phases is merged. */
async function openMerged(
  path: string,
  place: WorktreeOptions & {
    readonly branch: string;
    readonly folder: string;
    readonly git: Git;
    readonly merged: Git;
    readonly shared: SharedBranch | undefined;
  },
): Promise<void> {
  const { branch, folder, git, merged, resume, shared } = place;
  const joins = place.sharing?.joins === true;
  if (!joins) await checkStart(git, branch, resume);
  if (!resume && !joins) await removeTree(folder);
  await git.run("worktree", "prune");
  makeDirectory(folder, 0o700);
  const start = await shared?.start();
  if (start === undefined && (await git.commitOf(`refs/heads/${branch}`)) === undefined)
    await git.run("branch", "--no-track", branch, "HEAD");
  // A shared branch moves only after the push has succeeded, so merges are made on a detached commit.
  const where = start === undefined ? [branch] : ["--detach", start];
  try {
    if (existsSync(path)) {
      await merged.run("reset", "--quiet", "--hard");
      await merged.run("checkout", "--quiet", ...where);
      return;
    }
  } catch {
    // A killed run may have left half a merge, or a lock of git.
  }
  await makeWorktree(git, path, [path, ...where]);
}

/** Makes a worktree in place of what is there. Git locks a worktree while it makes it, so one that it did not finish
 *  stays locked. */
async function makeWorktree(git: Git, path: string, args: readonly string[]): Promise<void> {
  await git.attempt("worktree", "unlock", path);
  await removeTree(path);
  await git.run("worktree", "prune");
  await git.run("worktree", "add", "--quiet", ...args);
}

/** Removes a worktree without `git worktree remove`. The agent's processes may still run and replace a folder by a
 *  link, and git would follow that link. */
async function removeWorktree(git: Git, path: string): Promise<void> {
  await removeTree(path).catch(() => {});
  await git.attempt("worktree", "prune");
}

/** Names the branch of a nebula, and those of its phases. Two phases never get the same one. */
export function nameBranches(name: string): {
  readonly branch: string;
  branchOf(phase: Pick<Phase, "id">): string;
} {
  const plain = name.replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  const slug = plain.replaceAll(/^[.-]+|(?:\.lock|[.-])+$|\.(?=\.)/g, "") || "plan";
  // Git refuses two dots, a dot at the end, and .lock there. No id has a percent sign.
  const partOf = (id: string): string => id.replaceAll(/\.(?=\.|$|lock$)/g, "%2E");
  return { branch: `nebula/${slug}`, branchOf: ({ id }) => `nebula-phase/${slug}/${partOf(id)}` };
}

async function checkStart(git: Git, branch: string, resume: boolean): Promise<void> {
  const isThere = (await git.commitOf(`refs/heads/${branch}`)) !== undefined;
  if (resume && isThere) return;
  if (isThere) {
    throw new ContextError("invalid_content", `the branch ${branch} already exists`, {
      hint: `Use --resume to continue, or merge it and delete it with git branch -d ${branch}.`,
    });
  }
  if ((await git.commitOf("HEAD")) === undefined) {
    throw new ContextError("invalid_content", "the repository has no commit yet", { hint: "Make a first commit." });
  }
  await git.refuseDirty();
}

/** Copies a file or folder that git ignores. A file that is not ignored would become part of the phase's commit. `git`
 *  runs in `from`. */
async function copyIgnored(
  name: string,
  {
    git,
    from,
    to,
    notice,
  }: { readonly git: Git; readonly from: string; readonly to: string; readonly notice: WorktreeOptions["notice"] },
): Promise<void> {
  const path = normalize(name);
  if (isAbsolute(path) || path.startsWith("..")) return notice(`${name} is not copied: it is not in the repository`);
  if (!existsSync(join(from, path)) || existsSync(join(to, path))) return;
  // `git check-ignore` refuses `--literal-pathspecs`, which every git command here has, so this uses `ls-files`.
  const ignored = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "--", path];
  if ((await git.attempt(...ignored)).stdout === "") return notice(`${name} is not copied: git does not ignore it`);
  try {
    const [root, parent] = [await followLinks(to), await followLinks(dirname(join(to, path)))];
    if (!isInside(parent, root)) return notice(`${name} is not copied: a link leads out of the repository`);
    const realFrom = await followLinks(from);
    const source = openFolder(dirname(join(realFrom, path)), { root: realFrom });
    const target = openFolder(parent, { root, mode: 0o777 });
    try {
      if (source && target) await copyTree(basename(path), { from: source, to: target });
    } finally {
      source?.close();
      target?.close();
    }
  } catch (error) {
    notice(`${name} could not be copied: ${messageOf(error)}`);
  }
}

/** Runs one change at a time, because git locks the repository. */
function createQueue(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work, work);
    last = result.catch(() => {});
    return result;
  };
}
