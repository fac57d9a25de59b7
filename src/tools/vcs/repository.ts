/** What the vcs tools ask a repository before anything else. */
import type { ToolFailure } from "../../session/index.ts";
import { containPath } from "../frame/contained-path.ts";
import { failure, isFailure } from "../frame/failure.ts";
import type { Run } from "../frame/run.ts";
import { gitFailure, startGit } from "./git.ts";

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
  /** The last arguments of a command: they keep git below the root, and below the path that was named. Nothing after `--` where the
   *  root is the repository's own and nothing was named: git is faster so, and tells of empty commits too. */
  readonly paths: readonly string[];
}

export async function openRepository(run: Run, path: string | undefined): Promise<Repository | ToolFailure> {
  const contained = path === undefined ? undefined : await containPath(run.root, path);
  if (contained !== undefined && isFailure(contained)) return contained;
  const text = await gitText(run, ["rev-parse", "--show-prefix"]);
  if (typeof text !== "string") return text;
  const prefix = text.replace(/\n$/, "");
  const named = contained?.path ?? ".";
  return { prefix, paths: prefix === "" && named === "." ? ["--"] : ["--", named] };
}

/** The name of the commit, by which nothing else can be meant: a revision may look like an option. */
export async function resolveCommit(run: Run, revision: string): Promise<string | ToolFailure> {
  const wanted = `${revision}^{commit}`;
  const found = await gitText(run, ["rev-parse", "--verify", "--quiet", "--end-of-options", wanted]);
  if (typeof found === "string" && /^[\da-f]{40,64}$/.test(found.trim())) return found.trim();
  if (typeof found !== "string" && found.code !== "git_failed") return found;
  const shown = JSON.stringify(revision.slice(0, 100));
  return failure(
    "unknown_revision",
    `No commit is called ${shown}.`,
    "Take a hash from vcs_log, a branch or a tag.",
  );
}
