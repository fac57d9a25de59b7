/** git as the tools run it: what goes wrong is a failure that the model reads. */
import type { ToolFailure } from "../../session/index.ts";
import { cutText } from "../../text/index.ts";
import { gitReason, type ProcessEnd, readGit, type StartedProcess } from "../../workspace/index.ts";
import { failure } from "../frame/failure.ts";
import type { Run } from "../frame/run.ts";

/** Paths in `args` stand for themselves, also `:(top)` and `*`. Put `--` before them. */
export async function startGit(run: Run, args: readonly string[]): Promise<StartedProcess | ToolFailure> {
  return (await readGit(run, args)) ?? failure("git_failed", "git is not installed, or not on PATH.");
}

/** A list of files of these kinds, each name with a NUL byte at its end. A person's global excludes are not read, so that a tree gives the
 *  same on every machine. */
export function listing(...kinds: readonly string[]): string[] {
  return ["-c", "core.excludesFile=", "ls-files", "-z", ...kinds, "--exclude-standard"];
}

export function gitFailure({ stderr }: ProcessEnd): ToolFailure {
  if (/not a git repository/i.test(stderr)) {
    return failure("not_a_repository", "The root is in no git repository.");
  }
  if (/dubious ownership/i.test(stderr)) {
    const hint = "Let a person add it to git's safe.directory.";
    return failure("git_failed", "git does not trust this repository: it belongs to another user.", hint);
  }
  return failure("git_failed", cutText(gitReason(stderr), 300).text);
}
