/** Gives every phase a git worktree and a branch of its own, and merges what it did into one branch of the nebula. Runs
 *  no hook, filter or merge driver: an agent may have changed the repository's settings. */
import { existsSync } from "node:fs";
import { cp, mkdir, realpath, rm } from "node:fs/promises";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../errors.ts";
import { messageOf, oneLine } from "../text/index.ts";
import {
  changeGit,
  type Environment,
  type GitRemote,
  inspectRepository,
  isInside,
  makeDirectory,
  stateDirectory,
} from "../workspace/index.ts";
import type { Nebula, Phase } from "./nebula.ts";
import type { LostAttempt } from "./nebula-record.ts";
import { openSharedBranch, type SharedWork } from "./shared-branch.ts";

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

export interface Sharing {
  readonly remote: GitRemote;
  /** Whether another machine has started the run, and with it the branch. */
  readonly joins: boolean;
}

export async function openWorktrees({ name }: Pick<Nebula, "name">, options: WorktreeOptions): Promise<Worktrees> {
  const { cwd, env, key, copy, sharing } = options;
  const { toplevel, prefix } = await repositoryOf(cwd, env);
  const { branch, branchOf } = branchesOf(name);
  const folder = join(stateDirectory(env), "worktrees", key);
  const pathOf = ({ id }: Phase) => join(folder, "phases", id);
  const alone = createQueue();
  const git = (root: string, ...args: string[]) => runGit(root, args, env);
  const merged = await openMerged(branch, { ...options, toplevel, folder });
  const mergeCommit = (commit: string, message: string) => mergeIn(merged, { commit, message, env });
  const atMerged = (...args: string[]) => git(merged, ...args);
  // The branch here follows the one of the remote, unless a person has it checked out.
  const onTip = (tip: string) => attempt(toplevel, ["branch", "--force", "--no-track", branch, tip], env);
  const shared = sharing && openSharedBranch({ ...sharing, branch, branchOf, git: atMerged, mergeCommit, onTip });
  const base = async () => (shared === undefined ? branch : shared.update());
  const mergeAlone = (phase: Phase, commit: string) =>
    mergeCommit(commit, `Merge phase ${phase.id}: ${oneLine(phase.title)}`);
  return {
    branch,
    folderOf: (phase) => join(pathOf(phase), prefix),
    open: (phase) =>
      alone(async () => {
        const [path, from] = [pathOf(phase), await base()];
        const isThere = existsSync(path) && (await commitOf(path, "HEAD", env)) !== undefined;
        if (!isThere) {
          await makeWorktree(path, ["-B", branchOf(phase), path, from], { toplevel, env });
          for (const each of copy) await copyIgnored(each, { from: toplevel, to: path, options });
        }
        await mkdir(join(path, prefix), { recursive: true });
        return { base: (await git(path, "merge-base", "HEAD", from)).trim(), isNew: !isThere };
      }),
    merge: (phase, work) =>
      alone(async () => {
        const path = pathOf(phase);
        if (!existsSync(path)) return undefined;
        await commitAll(path, phase, env);
        const commit = (await git(path, "rev-parse", "HEAD")).trim();
        const why = await (shared === undefined ? mergeAlone(phase, commit) : shared.merge(phase, { ...work, commit }));
        if (why === undefined) return undefined;
        return `Its changes could not be merged into ${branch}: ${why}. They are in ${path}, on the branch ${branchOf(phase)}. Merge them by hand and use --resume.`;
      }),
    takeOver: (phase, lost) => alone(async () => (shared === undefined ? false : shared.takeOver(phase, lost))),
    close: (phase) =>
      alone(async () => {
        if (!existsSync(pathOf(phase))) return;
        await attempt(toplevel, ["worktree", "remove", "--force", pathOf(phase)], env);
        await attempt(toplevel, ["branch", "--quiet", "-D", branchOf(phase)], env);
      }),
    end: () =>
      alone(async () => {
        await shared?.update().catch(() => undefined);
        await attempt(toplevel, ["worktree", "remove", "--force", merged], env);
      }),
  };
}

interface MergedPlace extends WorktreeOptions {
  readonly toplevel: string;
  readonly folder: string;
}

/** Opens the worktree in which the work of all phases is merged. Returns its folder. */
async function openMerged(branch: string, place: MergedPlace): Promise<string> {
  const { toplevel, folder, env, resume, sharing } = place;
  const merged = join(folder, "merged");
  const git = (root: string, ...args: string[]) => runGit(root, args, env);
  const joins = sharing?.joins === true;
  if (!joins) await checkStart(toplevel, { branch, resume, env });
  if (!resume && !joins) await rm(folder, { recursive: true, force: true });
  await git(toplevel, "worktree", "prune");
  await makeDirectory(folder, 0o700);
  const start = sharing === undefined ? undefined : await startBranch(branch, { toplevel, env, resume, ...sharing });
  if (start === undefined && (await commitOf(toplevel, `refs/heads/${branch}`, env)) === undefined)
    await git(toplevel, "branch", "--no-track", branch, "HEAD");
  // A branch that is pushed moves only after the push, so merges happen beside it.
  const where = start === undefined ? [branch] : ["--detach", start];
  if (!(await isUsable(merged, where, env))) await makeWorktree(merged, [merged, ...where], { toplevel, env });
  return merged;
}

/** Checks out what a worktree should have. A killed run may have left half a merge, or a lock of git. */
async function isUsable(path: string, where: readonly string[], env: Environment): Promise<boolean> {
  if (!existsSync(path)) return false;
  try {
    await runGit(path, ["reset", "--quiet", "--hard"], env);
    await runGit(path, ["checkout", "--quiet", ...where], env);
    return true;
  } catch {
    return false;
  }
}

interface Repository {
  readonly toplevel: string;
  readonly env: Environment;
}

/** Makes a worktree in place of what is there. Git locks a worktree while it makes it, so one that it did not finish
 *  stays locked. */
async function makeWorktree(path: string, args: readonly string[], { toplevel, env }: Repository): Promise<void> {
  await attempt(toplevel, ["worktree", "unlock", path], env);
  await rm(path, { recursive: true, force: true });
  await runGit(toplevel, ["worktree", "prune"], env);
  await runGit(toplevel, ["worktree", "add", "--quiet", ...args], env);
}

/** Names the branch of a nebula, and those of its phases. Two phases never get the same one. */
export function branchesOf(name: string): {
  readonly branch: string;
  branchOf(phase: Pick<Phase, "id">): string;
} {
  const plain = name.replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  const slug = plain.replaceAll(/^[.-]+|(?:\.lock|[.-])+$|\.(?=\.)/g, "") || "plan";
  // Git refuses two dots, a dot at the end, and .lock there. No id has a percent sign.
  const partOf = (id: string): string => id.replaceAll(/\.(?=\.|$|lock$)/g, "%2E");
  return { branch: `nebula/${slug}`, branchOf: ({ id }) => `nebula-phase/${slug}/${partOf(id)}` };
}

interface BranchStart extends Sharing {
  readonly resume: boolean;
  readonly toplevel: string;
  readonly env: Environment;
}

/** How long the machine that starts a run may take to push its branch. */
const mostStartMs = 60_000;

/** Returns the commit of the nebula's branch on the remote, and creates the branch if it is new. */
async function startBranch(branch: string, { toplevel, env, resume, remote, joins }: BranchStart): Promise<string> {
  const local = await commitOf(toplevel, `refs/heads/${branch}`, env);
  const deadline = performance.now() + mostStartMs;
  let tip = await remote.fetch(branch);
  for (; tip === undefined && joins && performance.now() < deadline; tip = await remote.fetch(branch)) await sleep(500);
  if (tip === undefined && joins) {
    throw new ContextError(
      "invalid_content",
      `${remote.name} has no branch ${branch}, which the other machine works on`,
      {
        hint: "Use the same git remote on every machine.",
      },
    );
  }
  if (tip !== undefined && !joins && !resume) throw existsError(branch, remote.name);
  if (tip === undefined) {
    const first = local ?? (await runGit(toplevel, ["rev-parse", "--verify", "HEAD"], env)).trim();
    await remote.move(branch, { from: undefined, to: first });
    tip = (await remote.fetch(branch)) ?? first;
  }
  if (local === undefined || (await runGit(toplevel, ["rev-list", "-1", local, "--not", tip], env)).trim() === "")
    return tip;
  throw new ContextError("invalid_content", `the branch ${branch} here has commits that ${remote.name} does not have`, {
    hint: `Push them with git push ${remote.name} ${branch}, or delete the branch here with git branch -D ${branch}.`,
  });
}

export function existsError(branch: string, remote: string): ContextError {
  return new ContextError("invalid_content", `the branch ${branch} already exists on ${remote}`, {
    hint: `Use --resume to continue, or merge it and delete it with git push ${remote} --delete ${branch}.`,
  });
}

async function commitOf(root: string, revision: string, env: Environment): Promise<string | undefined> {
  const { code, stdout } = await attempt(root, ["rev-parse", "--verify", "--quiet", revision], env);
  return code === 0 ? stdout.trim() : undefined;
}

interface MergeIn {
  readonly commit: string;
  readonly message: string;
  readonly env: Environment;
}

/** Merges a commit into what is checked out. Returns why that is not possible. */
async function mergeIn(root: string, { commit, message, env }: MergeIn): Promise<string | undefined> {
  const { code, stderr, stdout } = await attempt(root, ["merge", "--no-ff", "-m", message, commit], env);
  if (code === 0) return undefined;
  const names = (await attempt(root, ["diff", "--name-only", "--diff-filter=U", "-z"], env)).stdout.split("\0");
  await attempt(root, ["merge", "--abort"], env);
  const files = names.filter((each) => each !== "").join(", ");
  return files === "" ? oneLine(stderr || stdout) : `they conflict in ${files}`;
}

/** Commits everything that changed, with the id of the phase. Returns whether something had changed. */
export async function commitAll(root: string, { id, title }: Phase, env: Environment): Promise<boolean> {
  await runGit(root, ["add", "--all"], env);
  if ((await attempt(root, ["diff", "--cached", "--quiet"], env)).code === 0) return false;
  const message = `${id}: ${oneLine(title)}\n\nPlimsoll-Phase: ${id}`;
  await runGit(root, ["commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", message], env);
  return true;
}

/** Throws if tracked files have changes that are not committed. */
export async function refuseDirty(root: string, env: Environment): Promise<void> {
  const { stdout } = await attempt(root, ["status", "--porcelain", "--untracked-files=no", "-z"], env);
  const names = stdout.split("\0").flatMap((record) => (record === "" ? [] : record.slice(3)));
  if (names.length === 0) return;
  const shown = [...names.slice(0, 3), ...(names.length > 3 ? ["…"] : [])].join(", ");
  throw new ContextError("invalid_content", `the work tree has changes that are not committed: ${shown}`, {
    hint: "Commit or stash them first, because agents work on commits.",
  });
}

async function repositoryOf(cwd: string, env: Environment): Promise<{ toplevel: string; prefix: string }> {
  const repository = await inspectRepository({ root: cwd, env, signal: new AbortController().signal });
  if (!("refused" in repository)) return repository;
  throw new ContextError("invalid_content", `worktrees need a git repository: ${repository.reason}`, {
    hint: "Run it in a repository, or without --worktrees.",
  });
}

interface Beginning {
  readonly branch: string;
  readonly resume: boolean;
  readonly env: Environment;
}

async function checkStart(root: string, { branch, resume, env }: Beginning): Promise<void> {
  const isThere = (await commitOf(root, `refs/heads/${branch}`, env)) !== undefined;
  if (resume && isThere) return;
  if (isThere) {
    throw new ContextError("invalid_content", `the branch ${branch} already exists`, {
      hint: `Use --resume to continue, or merge it and delete it with git branch -d ${branch}.`,
    });
  }
  if ((await commitOf(root, "HEAD", env)) === undefined) {
    throw new ContextError("invalid_content", "the repository has no commit yet", { hint: "Make a first commit." });
  }
  await refuseDirty(root, env);
}

interface CopyPlace {
  readonly from: string;
  readonly to: string;
  readonly options: WorktreeOptions;
}

/** Copies a file or folder that git ignores. A file that is not ignored would become part of the phase's commit. */
async function copyIgnored(name: string, { from, to, options: { env, notice } }: CopyPlace): Promise<void> {
  const path = normalize(name);
  if (isAbsolute(path) || path.startsWith("..")) return notice(`${name} is not copied: it is not in the repository`);
  if (!existsSync(join(from, path)) || existsSync(join(to, path))) return;
  // check-ignore refuses literal paths, which every use of git here has.
  const ignored = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "--", path];
  if ((await attempt(from, ignored, env)).stdout === "") return notice(`${name} is not copied: git does not ignore it`);
  try {
    await mkdir(dirname(join(to, path)), { recursive: true });
    const parent = await realpath(dirname(join(to, path)));
    if (!isInside(parent, await realpath(to)))
      return notice(`${name} is not copied: a link leads out of the repository`);
    await cp(join(from, path), join(to, path), { recursive: true, verbatimSymlinks: true, mode: 2 });
  } catch (error) {
    notice(`${name} could not be copied: ${messageOf(error)}`);
  }
}

/** Two changes of one repository at a time would meet each other's locks. */
function createQueue(): <Result>(work: () => Promise<Result>) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const result = last.then(work, work);
    last = result.catch(() => {});
    return result;
  };
}

interface GitEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function attempt(root: string, args: readonly string[], env: Environment): Promise<GitEnd> {
  const result = await changeGit({ root, env, signal: new AbortController().signal }, args);
  if (!("refused" in result)) return result;
  throw new ContextError("invalid_content", `git cannot be used: ${result.reason}`, { file: root });
}

const mostTries = 30;

/** Returns what git printed. Throws if it failed. */
async function runGit(root: string, args: readonly string[], env: Environment): Promise<string> {
  let { code, stdout, stderr } = await attempt(root, args, env);
  // A git of a killed run, or of another agent, may still be at work.
  for (let tries = 0; code !== 0 && /\.lock'?: File exists/.test(stderr) && tries < mostTries; tries++) {
    await sleep(100);
    ({ code, stdout, stderr } = await attempt(root, args, env));
  }
  if (code === 0) return stdout;
  const lock = /'([^']+\.lock)'?: File exists/.exec(stderr)?.[1];
  // In the message and not a hint, because it becomes the reason of a failed phase.
  const told = lock && `there is a lock, ${lock}. If no git process is at work there, delete the file and use --resume`;
  throw new ContextError("write_failed", `git ${args[0]} failed: ${told ?? oneLine(stderr || stdout)}`, { file: root });
}
