/** Runs git as a reader: it changes nothing, asks nothing, and starts no program that the repository names, but for the filters
 *  without which its files cannot be compared (git-lfs). */
import type { ToolFailure } from "../../session/index.ts";
import type { Environment } from "../../workspace/index.ts";
import { failure } from "../frame/failure.ts";
import { findProgram } from "../frame/find-program.ts";
import type { Run } from "../frame/run.ts";
import { type ProcessEnd, type StartedProcess, startProcess } from "../frame/start-process.ts";

/** Paths in `args` stand for themselves, also `:(top)` and `*`. Put `--` before them. */
export async function startGit(run: Run, args: readonly string[]): Promise<StartedProcess | ToolFailure> {
  const program = await findProgram("git", run.env);
  if (program === undefined) return failure("git_failed", "git is not installed, or not on PATH.");
  const { root, signal } = run;
  return startProcess(program, [...safeSettings, ...args], {
    cwd: root,
    env: gitEnvironment(run.env),
    signal,
  });
}

/** Each of these would start a program, or print what is not parsed. */
const safeSettings: readonly string[] = [
  "--no-pager",
  "--literal-pathspecs",
  ...[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "log.showSignature=false",
    "color.ui=false",
    "core.alternateRefsCommand=",
  ].flatMap((setting) => ["-c", setting]),
];

/** Which configuration files to read is the user's own choice; the rest could point git at another repository or program. */
const keptNames =
  /^GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM|EXEC_PATH)$/;

function gitEnvironment(env: Environment): Environment {
  const kept = Object.entries(env).filter(([name]) => !name.startsWith("GIT_") || keptNames.test(name));
  return {
    ...Object.fromEntries(kept),
    // Without it `status` writes the index and could lock out the person's own git.
    GIT_OPTIONAL_LOCKS: "0",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_LAZY_FETCH: "1",
    LC_ALL: "C",
  };
}

export function gitFailure({ stderr }: ProcessEnd): ToolFailure {
  if (/not a git repository/i.test(stderr)) {
    return failure("not_a_repository", "The root is in no git repository.");
  }
  if (/dubious ownership/i.test(stderr)) {
    const hint = "Let a person add it to git's safe.directory.";
    return failure("git_failed", "git does not trust this repository: it belongs to another user.", hint);
  }
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const told = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines.at(-1) ?? "git failed";
  return failure("git_failed", told.replace(/^(fatal|error):\s*/, "").slice(0, 300));
}
