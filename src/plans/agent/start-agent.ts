/** Starts an agent as a process, and adopts one that an earlier process started. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { messageOf } from "../../core/text/index.ts";
import { type Environment, isAlive } from "../../host/index.ts";
import { attemptFiles, openAttempt } from "./attempt-folder.ts";
import { quote } from "./presets.ts";
import { type AgentLimits, type AgentRun, endWithoutOutput, watchAgent } from "./watch-agent.ts";

/** What `startAgent` runs, and with which limits. */
export interface AgentRequest extends AgentLimits {
  /** A command line for /bin/sh. It gets the prompt on stdin. `{prompt_file}` in it is a file with the prompt. */
  readonly command: string;
  /** The text that the agent reads from stdin. */
  readonly prompt: string;
  /**
   * A folder for this attempt alone. It is created, with its parents. It holds the prompt, the output and the exit
   * code.
   */
  readonly folder: string;
  /** The working directory of the agent. */
  readonly cwd: string;
  /** The environment of the agent. */
  readonly env: Environment;
  /** An extended regular expression of lines on stdout that are not stored. */
  readonly repeats?: string | undefined;
}

/** An hour, and more output than anybody reads. */
export const defaultAgentLimits: { readonly timeoutMs: number; readonly maxOutputBytes: number } = {
  timeoutMs: 3_600_000,
  maxOutputBytes: 10_000_000,
};

/**
 * Starts an agent as a process that outlives this one. Its folder records everything about it, so a later process can
 * continue after this one was killed.
 *
 * @example
 * ```ts
 * import { mkdtempSync } from "node:fs";
 * import { tmpdir } from "node:os";
 * import { join } from "node:path";
 * import { startAgent } from "plimsoll/agent";
 *
 * const agent = startAgent({
 *   command: "claude -p",
 *   prompt: "List the open questions in README.md.",
 *   folder: join(mkdtempSync(join(tmpdir(), "agent-")), "attempt"),
 *   cwd: process.cwd(),
 *   env: process.env,
 *   timeoutMs: 600_000,
 *   maxOutputBytes: 1_000_000,
 * });
 * const { outcome, answer, error } = await agent.end;
 * console.log(outcome, answer, error);
 * ```
 */
export function startAgent(request: AgentRequest): AgentRun {
  const { command, prompt, folder, signal } = request;
  if (signal?.aborted) {
    const why = "The agent was not started because the run was interrupted.";
    return { end: Promise.resolve(endWithoutOutput("interrupted", why)) };
  }
  const notStarted = (error: unknown) =>
    endWithoutOutput("failed", `The agent could not be started: ${messageOf(error)}.`);
  try {
    const attempt = openAttempt(folder);
    attempt.create(prompt);
    const child = spawnWrapper(
      command.replaceAll("{prompt_file}", () => quote(join(folder, attemptFiles.prompt))),
      request,
    );
    const { pid } = child;
    if (pid === undefined) return { end: new Promise((resolve) => child.once("error", resolve)).then(notStarted) };
    child.on("error", () => {});
    // A process that the agent left running can keep the wrapper alive. It must not keep this process alive.
    child.unref();
    const started = performance.now();
    const agent = {
      attempt,
      pid,
      hasEnded: () => child.exitCode !== null || child.signalCode !== null,
      onEnd: (wake: () => void) => void child.once("exit", wake),
      elapsedMs: () => performance.now() - started,
    };
    return { end: watchAgent(agent, request) };
  } catch (error) {
    return { end: Promise.resolve(notStarted(error)) };
  }
}

// The shell around an agent. It has no pipe to this process, so the agent and the record of its end outlive it.

/**
 * Arguments: the attempt's folder, the agent's command, how many 512-byte blocks each stream may store at most, and a
 * sed script that deletes lines of stdout, or nothing.
 *
 * - The claim is one appended line with the process and its start (field 22 of /proc/PID/stat, if it exists). The process
 *   of the first line owns the attempt; any other wrapper exits.
 * - `cat` writes at once. `head` would buffer its input and lose it when it is killed.
 * - Not every `sed` can work line by line. One that cannot is not used.
 * - `ulimit` stops `cat` at the limit, and then the agent at its next write. The agent itself has no limit. A `cat` that
 *   fails, also on a full disk, gives its status to the pipeline, which appends `cut`.
 * - The exit code is written when the agent ends, even if a process that it started still holds its streams.
 * - Everything but the agent ignores the group's SIGTERM, so that its last output and exit code are stored. Shells and
 *   programs inherit an ignored signal, but not a trap with a command.
 * - The shell's own messages about a killed child must not look like the agent's output, so only the agent has stream 3
 *   as stderr. `exec` keeps it from the shell around the agent.
 * - Variables have our own prefix, because changing an exported one would change the agent's environment.
 */
const script = `
plimsoll_identify() { plimsoll_own="$$ \${21-}"; }
plimsoll_stat=
{ read -r plimsoll_stat </proc/$$/stat; } 2>/dev/null
plimsoll_identify "$1" \${plimsoll_stat##*) }
echo "$plimsoll_own" >>"$1/state" || exit
IFS= read -r plimsoll_first <"$1/state"
[ "$plimsoll_first" = "$plimsoll_own" ] || exit
plimsoll_copy() { exec cat; }
plimsoll_filter=plimsoll_copy
[ -n "$4" ] && sed -u -E "$4" </dev/null 2>/dev/null && plimsoll_filter="exec sed -u -E"
trap : TERM
{
  trap : TERM
  {
    trap : TERM
    (exec /bin/sh -c "$2" <"$1/prompt" 2>&3 3>&-)
    echo $? >>"$1/state"
  } | { trap '' TERM XFSZ; ulimit -f "$3"; $plimsoll_filter "$4" 3>&- >"$1/stdout"; } || echo cut >>"$1/state"
} 3>&1 | { trap '' TERM XFSZ; ulimit -f "$3"; exec cat >"$1/stderr"; } || echo cut >>"$1/state"
`;

/** Starts the wrapper as leader of a new process group. Each stream may store `maxOutputBytes` and up to one block
 *  more, so a larger file means that the output was too long. */
export function spawnWrapper(
  command: string,
  {
    folder,
    cwd,
    env,
    maxOutputBytes,
    repeats,
  }: Pick<AgentRequest, "folder" | "cwd" | "env" | "maxOutputBytes" | "repeats">,
): ChildProcess {
  const maxBlocks = Math.floor(maxOutputBytes / 512) + 1;
  const args = [
    "-c",
    script,
    "plimsoll-agent",
    folder,
    command,
    String(maxBlocks),
    repeats === undefined ? "" : `/${repeats}/d`,
  ];
  return spawn("/bin/sh", args, { cwd, env, detached: true, stdio: "ignore" });
}

/** Follows an agent that an earlier process started, whether it still runs or has ended. Returns undefined if it
 *  never started. It cannot start later, because this call takes the claim that its wrapper needs. */
export async function adoptAgent(folder: string, limits: AgentLimits): Promise<AgentRun | undefined> {
  const attempt = openAttempt(folder);
  try {
    if (attempt.abandon()) return undefined;
  } catch (error) {
    // The state file is written before anything starts, so without it there is no attempt.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const identity = attempt.identity();
  const started = attempt.startedMs();
  // Process ids are reused, and not every system reports start times. Our wrapper has the folder in its command line.
  const isOurs = isAlive(identity) && (await hasArgument(identity.pid, basename(folder)));
  const agent = {
    attempt,
    pid: identity.pid,
    hasEnded: () => !isOurs || !isAlive(identity),
    elapsedMs: () => (attempt.endedMs() ?? Date.now()) - started,
  };
  return { end: watchAgent(agent, limits) };
}

/** Returns whether a process was started with a path to a file of this name as an argument. Returns false if this is
 *  unknown. */
async function hasArgument(pid: number, name: string): Promise<boolean> {
  const isNamed = (argument: string) => basename(argument) === name;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").some(isNamed);
  } catch {
    // Without /proc, ps knows the command line, but not where each argument ends.
    return new Promise((resolve) => {
      const args = ["-ww", "-o", "args=", "-p", String(pid)];
      execFile("ps", args, (error, text) => resolve(!error && text.split(/\s/).some(isNamed)));
    });
  }
}
