/** Runs git for phases. Runs no hook, filter or merge driver: an agent may have changed the repository's settings. */
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../../core/errors.ts";
import { countNoun, oneLine, printable } from "../../core/text/index.ts";
import { changeGit, decodeBytes, type Environment, readGit, removeTree, splitRecords } from "../../host/index.ts";
import type { FinishedWork } from "./application.ts";
import type { Phase } from "./nebula.ts";

/** Git in one folder. */
export interface Git {
  /** Returns what git printed. Throws if it failed. */
  run(...args: readonly string[]): Promise<string>;
  /** Returns how git ended. */
  attempt(...args: readonly string[]): Promise<GitEnd>;
  commitOf(revision: string): Promise<string | undefined>;
  /** Commits everything that changed, with the id of the phase. */
  commitAll(phase: Phase): Promise<void>;
  /** Merges a commit into what is checked out. Returns why that is not possible. */
  merge(commit: string, message: string): Promise<string | undefined>;
  /** Merges a commit into what is checked out, without a commit of its own. Returns the files with a conflict, which is
   *  marked in their texts. Changes nothing and returns undefined if there is none. */
  mergeWithMarks(commit: string): Promise<readonly string[] | undefined>;
  /** Throws if tracked files have changes that are not committed. */
  refuseDirty(): Promise<void>;
}

interface GitEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The folder need not exist yet. */
export function openGit(root: string, env: Environment): Git {
  const attempt = async (...args: readonly string[]): Promise<GitEnd> => {
    const result = await changeGit({ root, env, signal: new AbortController().signal }, args);
    if (!("refused" in result)) return result;
    throw new ContextError("invalid_content", `git cannot be used: ${result.reason}`, { file: root });
  };
  const run = async (...args: readonly string[]): Promise<string> => {
    let { code, stdout, stderr } = await attempt(...args);
    // A git of a killed run, or of another agent, may still be at work.
    for (let tries = 0; code !== 0 && /\.lock'?: File exists/.test(stderr) && tries < 30; tries++) {
      await sleep(100);
      ({ code, stdout, stderr } = await attempt(...args));
    }
    if (code === 0) return stdout;
    const lock = /'([^']+\.lock)'?: File exists/.exec(stderr)?.[1];
    // In the message and not a hint, because it becomes the reason of a failed phase.
    const reason =
      lock && `there is a lock, ${lock}. If no git process is at work there, delete the file and use --resume`;
    const message = `git ${args[0]} failed: ${reason ?? oneLine(stderr || stdout)}`;
    throw new ContextError("write_failed", message, { file: root });
  };
  const conflicting = async (): Promise<string[]> => {
    const { stdout } = await attempt("diff", "--name-only", "--diff-filter=U", "-z");
    return stdout.split("\0").filter((each) => each !== "");
  };
  return {
    run,
    attempt,
    async commitOf(revision) {
      const { code, stdout } = await attempt("rev-parse", "--verify", "--quiet", revision);
      return code === 0 ? stdout.trim() : undefined;
    },
    async commitAll({ id, title }) {
      await run("add", "--all");
      if ((await attempt("diff", "--cached", "--quiet")).code === 0) return;
      const message = `${id}: ${oneLine(title)}\n\nPlimsoll-Phase: ${id}`;
      await run("commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", message);
    },
    async merge(commit, message) {
      const { code, stderr, stdout } = await attempt("merge", "--no-ff", "-m", message, commit);
      if (code === 0) return undefined;
      const files = (await conflicting()).join(", ");
      await attempt("merge", "--abort");
      return files === "" ? oneLine(stderr || stdout) : `they conflict in ${files}`;
    },
    async mergeWithMarks(commit) {
      const { code } = await attempt("merge", "--no-ff", "--no-commit", commit);
      const files = await conflicting();
      if (code !== 0 && files.length > 0) return files;
      await attempt("merge", "--abort");
      return undefined;
    },
    async refuseDirty() {
      const { stdout } = await attempt("status", "--porcelain", "--untracked-files=no", "-z");
      const names = stdout.split("\0").flatMap((record) => (record === "" ? [] : record.slice(3)));
      if (names.length === 0) return;
      const files = [...names.slice(0, 3), ...(names.length > 3 ? ["…"] : [])].join(", ");
      throw new ContextError("invalid_content", `the work tree has changes that are not committed: ${files}`, {
        hint: "Commit or stash them first, because agents work on commits.",
      });
    },
  };
}

/** Returns everything in a folder's work tree as a tree of git, with files that git does not know yet and without those
 *  that it ignores. Uses an index of its own, so it changes neither the tree nor what is staged. Undefined if git
 *  cannot do that. */
export async function snapshotTree(folder: string, env: Environment): Promise<string | undefined> {
  const indexFile = join(tmpdir(), `plimsoll-index-${randomBytes(8).toString("hex")}`);
  const place = { root: folder, env, signal: AbortSignal.timeout(120_000) };
  try {
    for (const args of [["add", "--all"], ["write-tree"]]) {
      const result = await changeGit(place, args, { indexFile });
      if ("refused" in result || result.code !== 0) return undefined;
      if (args[0] === "write-tree") return result.stdout.trim();
    }
    return undefined;
  } finally {
    await removeTree(indexFile).catch(() => {});
  }
}

/** Lines of a diff that a person is shown. */
const maxDiffLines = 400;

/** Returns what a phase has changed in its folder. Empty outside of a repository. */
export async function diffWork(
  { folder, base }: Omit<FinishedWork, "answer">,
  { env, maxLines = maxDiffLines }: { readonly env: Environment; readonly maxLines?: number | undefined },
): Promise<string> {
  const lines = await compareTrees({ folder, base }, env, []);
  const more = lines.length - maxLines;
  const rest = more > 0 ? [`… and ${countNoun(more, "more line")}. See git -C ${printable(folder)} diff ${base}`] : [];
  return [...lines.slice(0, maxLines), ...rest].join("\n");
}

/** Returns the paths that a phase has changed, relative to its folder. Undefined if that is unknown. */
export async function changedFiles(
  work: Omit<FinishedWork, "answer">,
  env: Environment,
): Promise<readonly string[] | undefined> {
  return work.base === undefined ? undefined : compareTrees(work, env, ["--name-only", "--relative", "-z"]);
}

async function compareTrees(
  { folder, base }: Omit<FinishedWork, "answer">,
  env: Environment,
  flags: readonly string[],
): Promise<string[]> {
  const after = base === undefined ? undefined : await snapshotTree(folder, env);
  if (base === undefined || after === undefined) return [];
  const place = { root: folder, env, signal: AbortSignal.timeout(30_000) };
  // The diff covers only files inside the phase's folder.
  const git = await readGit(place, ["diff", "--no-renames", ...flags, base, after, "--", "."]);
  if ("refused" in git) return [];
  const lines: string[] = [];
  const isNames = flags.length > 0;
  for await (const batch of splitRecords(git.output, isNames ? "\0" : "\n", "keep"))
    for (const line of batch) lines.push(isNames ? decodeBytes(line) : printable(decodeBytes(line)));
  await git.end;
  return lines.filter((line) => !isNames || line !== "");
}
