/** What the vcs tools read from a repository first. */

import { cutText } from "../../../core/text/index.ts";
import {
  decodeBytes,
  type GitProcess,
  type GitRefusal,
  gitReason,
  inspectRepository,
  type ProcessEnd,
  readGit,
  splitRecords,
} from "../../../host/index.ts";
import { isFailure, type ToolFailure } from "../../session/index.ts";
import { failure, listNames, quoteArgument, type Run, shortenLine } from "../run.ts";
import { type ContainedPath, containPath } from "./contained-path.ts";

/** Returns the whole output of a command with little output, or a failure. */
export async function gitText(run: Run, args: readonly string[]): Promise<string | ToolFailure> {
  const git = await startToolGit(run, args);
  if (isFailure(git)) return git;
  const chunks: Buffer[] = [];
  for await (const chunk of git.output) chunks.push(chunk);
  const end = await git.end;
  if (run.timedOut()) return failure("timed_out", `git took longer than ${run.timeoutMs / 1000} s.`);
  return end.code === 0 ? Buffer.concat(chunks).toString("utf8") : gitFailure(end);
}

export interface Repository {
  /** The path of the root in the repository: "" or with a slash at its end. */
  readonly prefix: string;
  /** The named path, relative to the root. "." for the root itself. */
  readonly named: string;
  readonly contained: ContainedPath;
  /** Whether the history ends because the clone is shallow. */
  readonly isShallow: boolean;
  /** The last arguments of a command. They keep git below the root and below the named path. If the root is the
   *  repository's own and no path was named, there is nothing after `--`: git is faster that way and also reports empty
   *  commits. */
  readonly paths: readonly string[];
}

export async function openRepository(run: Run, path: string | undefined): Promise<Repository | ToolFailure> {
  const contained = await containPath(run.root, path ?? ".");
  if (isFailure(contained)) return contained;
  const repository = await inspectRepository(run);
  if ("refused" in repository) return explainRefusal(repository, run);
  const { prefix, isShallow } = repository;
  const named = contained.path;
  const paths = prefix === "" && named === "." ? ["--"] : ["--", named];
  return { prefix, named, contained, isShallow, paths };
}

/** Converts a path of the repository into a path of the root. */
export function belowRoot(path: string, prefix: string): string {
  return path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

/** Files with a filter (such as git-lfs) differ from their commit although nothing was changed, because the filter does
 *  not run. `paths` are the files that git reports as changed. */
export async function filterWarning(
  run: Run,
  filters: ReadonlySet<string>,
  paths: readonly string[],
): Promise<string | undefined> {
  if (filters.size === 0 || paths.length === 0) return undefined;
  // That many names fit on a command line.
  const text = await gitText(run, ["check-attr", "-z", "filter", "--", ...paths.slice(0, 200)]);
  if (typeof text !== "string") return undefined;
  // Reads `PATH NUL filter NUL VALUE NUL` repeatedly.
  const fields = text.split("\0");
  const named = new Set(fields.filter((value, index) => index % 3 === 2 && filters.has(value)));
  if (named.size === 0) return undefined;
  const names = listNames(
    [...named].map((name) => shortenLine(name, 40)),
    3,
  );
  return `Filters do not run (${names}), so files with one may be shown as changed although they are not.`;
}

/** Returns the hash of the commit. A revision may look like an option, a hash never does. */
export async function resolveCommit(run: Run, revision: string): Promise<string | ToolFailure> {
  const wanted = `${revision}^{commit}`;
  const found = await gitText(run, ["rev-parse", "--verify", "--quiet", "--end-of-options", wanted]);
  if (typeof found === "string" && /^[\da-f]{40,64}$/.test(found.trim())) return found.trim();
  if (typeof found !== "string" && found.code !== "git_failed") return found;
  return failure(
    "unknown_revision",
    `There is no commit ${quoteArgument(revision)}.`,
    "Use a hash from vcs_log, a branch or a tag.",
  );
}

// Runs git for a tool. An error becomes a failure that the model reads.

/** Paths in `args` are literal, also `:(top)` and `*`. Put `--` before them. */
export async function startToolGit(
  run: Run,
  args: readonly string[],
  settings?: readonly string[],
): Promise<GitProcess | ToolFailure> {
  const git = await readGit(run, args, settings);
  return "refused" in git ? explainRefusal(git, run) : git;
}

function explainRefusal({ refused, reason }: GitRefusal, { timeoutMs }: Run): ToolFailure {
  switch (refused) {
    case "ended":
      return failure("timed_out", `git took longer than ${timeoutMs / 1000} s.`);
    case "no_repository":
      return failure("not_a_repository", "The root is not in a git repository.");
    case "owner":
      return failure("git_failed", `${capitalize(reason)}.`, "Ask the user to add it to git's safe.directory.");
    case "unsafe":
      return failure("refused_repository", `git does not run in this repository: ${cutText(reason, 300).text}.`);
    default:
      return failure("git_failed", `${capitalize(cutText(reason, 300).text)}.`);
  }
}

function capitalize(text: string): string {
  return text.startsWith("git ") ? text : text.charAt(0).toUpperCase() + text.slice(1);
}

/** Lists files of these kinds, each name ending with a NUL byte. Ignores a person's global excludes, so that a tree
 *  gives the same result on every machine. */
export function startListing(run: Run, kinds: readonly string[], path: string): Promise<GitProcess | ToolFailure> {
  const args = ["ls-files", "-z", ...kinds, "--exclude-standard", "--", path];
  return startToolGit(run, args, ["core.excludesFile="]);
}

export function gitFailure({ stderr }: ProcessEnd): ToolFailure {
  return failure("git_failed", cutText(gitReason(stderr), 300).text);
}

// A file of a submodule is in no commit of the outer repository, and git silently finds nothing there.

/** Returns a sentence for a call that found nothing, if `path`, relative to the root, is in a submodule. */
export async function submoduleNote(run: Run, path: string): Promise<string | undefined> {
  const names = path.split("/").slice(0, -1);
  const [top] = names;
  if (top === undefined) return undefined;
  const git = await startToolGit(run, ["ls-files", "--stage", "-z", "--", top]);
  if (isFailure(git)) return undefined;
  const directories = new Set(names.map((_, index) => names.slice(0, index + 1).join("/")));
  for await (const batch of splitRecords(git.output, "\0")) {
    for (const record of batch) {
      // `MODE HASH STAGE TAB NAME`. The mode shows whether it is a submodule.
      if (!record.startsWith("160000 ")) continue;
      const name = decodeBytes(record.slice(record.indexOf("\t") + 1));
      if (directories.has(name)) {
        return `${quoteArgument(path)} is in the submodule ${quoteArgument(name)}, which has its own history.`;
      }
    }
  }
  return undefined;
}

/** Returns what a model has to know about changes that git reported. `empty` is the named path if nothing was found. */
export async function listGitNotes(
  run: Run,
  { filters, notes }: GitProcess,
  { changed, empty }: { readonly changed: readonly string[]; readonly empty: string | false },
): Promise<string[]> {
  if (run.timedOut()) return [];
  const submodule = empty === false ? undefined : await submoduleNote(run, empty);
  return [submodule ?? [], (await filterWarning(run, filters, changed)) ?? [], notes].flat();
}
