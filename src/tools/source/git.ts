/** git as the tools run it: what goes wrong is a failure that the model reads. */
import type { ToolFailure } from "../../session/index.ts";
import { cutText } from "../../text/index.ts";
import {
  type GitProcess,
  type GitRefusal,
  gitReason,
  type ProcessEnd,
  readGit,
} from "../../workspace/index.ts";
import { failure } from "../frame/failure.ts";
import type { Run } from "../frame/run.ts";

/** Paths in `args` stand for themselves, also `:(top)` and `*`. Put `--` before them. */
export async function startGit(
  run: Run,
  args: readonly string[],
  settings?: readonly string[],
): Promise<GitProcess | ToolFailure> {
  const git = await readGit(run, args, settings);
  return "refused" in git ? refusalFailure(git, run) : git;
}

export function refusalFailure({ refused, reason }: GitRefusal, { timeoutMs }: Run): ToolFailure {
  switch (refused) {
    case "ended":
      return failure("timed_out", `git took longer than ${timeoutMs / 1000} s.`);
    case "no_repository":
      return failure("not_a_repository", "The root is in no git repository.");
    case "owner":
      return failure("git_failed", `${capital(reason)}.`, "Let a person add it to git's safe.directory.");
    case "unsafe":
      return failure(
        "refused_repository",
        `git is not run in this repository: ${cutText(reason, 300).text}.`,
      );
    default:
      return failure("git_failed", `${capital(cutText(reason, 300).text)}.`);
  }
}

function capital(text: string): string {
  return text.startsWith("git ") ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

/** A list of files of these kinds, each name with a NUL byte at its end. A person's global excludes are not read, so that a tree gives the
 *  same on every machine. */
export function startListing(
  run: Run,
  kinds: readonly string[],
  path: string,
): Promise<GitProcess | ToolFailure> {
  const args = ["ls-files", "-z", ...kinds, "--exclude-standard", "--", path];
  return startGit(run, args, ["core.excludesFile="]);
}

export function gitFailure({ stderr }: ProcessEnd): ToolFailure {
  return failure("git_failed", cutText(gitReason(stderr), 300).text);
}
