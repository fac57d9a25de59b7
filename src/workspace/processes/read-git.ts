/** Runs git so that it asks nothing and starts no program that the repository names, but for the filters without which its files
 *  cannot be compared (git-lfs). */
import type { Environment } from "../directories.ts";
import { findProgram } from "./find-program.ts";
import type { StartedProcess } from "./start-process.ts";

export interface GitPlace {
  readonly root: string;
  readonly env: Environment;
  /** Ends git. */
  readonly signal: AbortSignal;
}

/** As a reader: it changes nothing. Paths in `args` stand for themselves, also `:(top)` and `*`. Put `--` before them. Undefined
 *  where there is no git. */
export async function readGit(place: GitPlace, args: readonly string[]): Promise<StartedProcess | undefined> {
  return startGit(place, args, reading);
}

/** What one use of git has beside what all have. */
export interface GitUse {
  readonly settings?: readonly string[] | undefined;
  readonly variables: Environment;
  /** Which of the variables around us that begin with `GIT_` hold. */
  readonly keptNames: RegExp;
}

export async function startGit(
  { root, env, signal }: GitPlace,
  args: readonly string[],
  { settings = [], variables, keptNames }: GitUse,
): Promise<StartedProcess | undefined> {
  const program = await findProgram("git", env);
  if (program === undefined) return undefined;
  const kept = Object.entries(env).filter(([name]) => !name.startsWith("GIT_") || keptNames.test(name));
  const around = { ...Object.fromEntries(kept), GIT_TERMINAL_PROMPT: "0", LC_ALL: "C", ...variables };
  const options = [...safeOptions, ...[...safeSettings, ...settings].flatMap((each) => ["-c", each])];
  // Most commands start no program, and what Node needs for it takes a while to load.
  const { startProcess } = await import("./start-process.ts");
  return startProcess(program, [...options, ...args], { cwd: root, env: around, signal });
}

const reading: GitUse = {
  variables: {
    // Without it `status` writes the index and could lock out the person's own git.
    GIT_OPTIONAL_LOCKS: "0",
    GIT_NO_LAZY_FETCH: "1",
  },
  // Which configuration files to read is the user's own choice; the rest could point git at another repository or program.
  keptNames:
    /^GIT_(CONFIG_(GLOBAL|SYSTEM|NOSYSTEM)|CEILING_DIRECTORIES|DISCOVERY_ACROSS_FILESYSTEM|EXEC_PATH)$/,
};

const safeOptions: readonly string[] = ["--no-pager", "--literal-pathspecs"];

/** Each of these would start a program, or print what is not parsed. */
const safeSettings: readonly string[] = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "core.quotePath=false",
  "log.showSignature=false",
  "color.ui=false",
  "core.alternateRefsCommand=",
];

/** The line of stderr that says why git failed, without git's own prefix. */
export function gitReason(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const told = lines.find((line) => /^(fatal|error):/.test(line)) ?? lines.at(-1) ?? "git failed";
  return told.replace(/^(fatal|error):\s*/, "").trim();
}
