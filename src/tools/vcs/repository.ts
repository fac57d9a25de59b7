/** What the vcs tools ask a repository before anything else. */
import { isFailure, type ToolFailure } from "../../session/index.ts";
import { inspectRepository } from "../../workspace/index.ts";
import { failure, shown } from "../frame/failure.ts";
import { listNames, shortened } from "../frame/phrases.ts";
import type { Run } from "../frame/run.ts";
import { type ContainedPath, containPath } from "../source/contained-path.ts";
import { gitFailure, refusalFailure, startGit } from "../source/git.ts";

/** The whole output of a command that says little, or why there is none. */
export async function gitText(run: Run, args: readonly string[]): Promise<string | ToolFailure> {
  const git = await startGit(run, args);
  if (isFailure(git)) return git;
  const chunks: Buffer[] = [];
  for await (const chunk of git.output) chunks.push(chunk);
  const end = await git.end;
  if (run.timedOut()) return failure("timed_out", `git took longer than ${run.timeoutMs / 1000} s.`);
  return end.code === 0 ? Buffer.concat(chunks).toString("utf8") : gitFailure(end);
}

export interface Repository {
  /** Where the root lies in the repository: "" or with a slash at its end. */
  readonly prefix: string;
  /** What was named, relative to the root; "." for the root itself. */
  readonly named: string;
  readonly contained: ContainedPath;
  /** History ends where the clone was cut off. */
  readonly isShallow: boolean;
  /** The last arguments of a command: they keep git below the root, and below the path that was named. Nothing after `--` where the
   *  root is the repository's own and nothing was named: git is faster so, and tells of empty commits too. */
  readonly paths: readonly string[];
}

export async function openRepository(run: Run, path: string | undefined): Promise<Repository | ToolFailure> {
  const contained = await containPath(run.root, path ?? ".");
  if (isFailure(contained)) return contained;
  const repository = await inspectRepository(run);
  if ("refused" in repository) return refusalFailure(repository, run);
  const { prefix, isShallow } = repository;
  const named = contained.path;
  const paths = prefix === "" && named === "." ? ["--"] : ["--", named];
  return { prefix, named, contained, isShallow, paths };
}

/** A path of the repository, as the root has it. */
export function belowRoot(path: string, prefix: string): string {
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

/** So many names fit a command line. */
const mostAsked = 200;

/** Files with a filter (git-lfs, for one) differ from their commit where nothing was changed: the filter that would make them equal is not
 *  run. `paths`: those that git calls changed. */
export async function filterWarning(
  run: Run,
  filters: ReadonlySet<string>,
  paths: readonly string[],
): Promise<string | undefined> {
  if (filters.size === 0 || paths.length === 0) return undefined;
  const text = await gitText(run, ["check-attr", "-z", "filter", "--", ...paths.slice(0, mostAsked)]);
  if (typeof text !== "string") return undefined;
  // `PATH NUL filter NUL VALUE NUL`, again and again.
  const fields = text.split("\0");
  const named = new Set(fields.filter((value, index) => index % 3 === 2 && filters.has(value)));
  if (named.size === 0) return undefined;
  const names = listNames(
    [...named].map((name) => shortened(name, 40)),
    3,
  );
  return `Filters are not run (${names}): files that have one may be shown as changed although they are not.`;
}

/** Why HEAD has no commit; undefined where its branch just has none yet. */
export async function headProblem(run: Run): Promise<ToolFailure | undefined> {
  const branch = await gitText(run, ["symbolic-ref", "--quiet", "HEAD"]);
  const wanted = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
  const commit = typeof branch === "string" ? await gitText(run, [...wanted, branch.trim()]) : branch;
  if (typeof commit !== "string" && commit.code === "timed_out") return commit;
  if (typeof branch === "string" && typeof commit !== "string") return undefined;
  const message = "HEAD names a commit that cannot be read: the repository is damaged.";
  return failure("git_failed", message, "Let a person look at it with `git fsck`.");
}

/** The name of the commit, by which nothing else can be meant: a revision may look like an option. */
export async function resolveCommit(run: Run, revision: string): Promise<string | ToolFailure> {
  const wanted = `${revision}^{commit}`;
  const found = await gitText(run, ["rev-parse", "--verify", "--quiet", "--end-of-options", wanted]);
  if (typeof found === "string" && /^[\da-f]{40,64}$/.test(found.trim())) return found.trim();
  if (typeof found !== "string" && found.code !== "git_failed") return found;
  return failure(
    "unknown_revision",
    `No commit is called ${shown(revision)}.`,
    "Take a hash from vcs_log, a branch or a tag.",
  );
}
