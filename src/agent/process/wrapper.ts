/** The shell around an agent. It holds no pipe to us, so that the agent and the record of its end outlive us. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Environment } from "../../workspace/index.ts";

/**
 * The arguments: the attempt's folder, the agent's command, the most blocks of 512 bytes that reach the disk of either stream.
 * The claim is one line with the process and its start (field 22 of /proc/PID/stat, where there is one), appended in one write:
 * whose line is the first has the attempt. Where that is another process, nothing runs.
 * cat writes what it reads at once, where head would hold back what fills no buffer, and lose it when it is killed. It may not make
 * a file larger than the limit, whoever watches: then it ends, and at its next word so does the agent, on whom there is no limit.
 * A cat that fails, there or on a full disk, is the last of its pipeline, whose status it gives: that leaves a mark. An agent whose
 * words fit into the pipe would not notice. Beside the claim the mark needs no more of the disk.
 * The status is written when the agent itself ends, even if a process that it left behind still holds its streams.
 * All but the agent outlive a SIGTERM, which goes to the whole group: its last words and its status are kept. (A trap that does
 * something is not inherited, neither by a subshell nor by a program; one that ignores is, by both.)
 * What a shell itself says of a child that was killed is not the agent's word, so only the agent has stream 3 as its stderr (exec:
 * else the shell around it would have it as well).
 * Names of our own: what the environment exports would go on to the agent changed.
 */
const script = `
plimsoll_identify() { plimsoll_own="$$ \${21-}"; }
plimsoll_stat=
{ read -r plimsoll_stat </proc/$$/stat; } 2>/dev/null
plimsoll_identify "$1" \${plimsoll_stat##*) }
echo "$plimsoll_own" >>"$1/state" || exit
IFS= read -r plimsoll_first <"$1/state"
[ "$plimsoll_first" = "$plimsoll_own" ] || exit
trap : TERM
{
  trap : TERM
  {
    trap : TERM
    (exec /bin/sh -c "$2" <"$1/prompt" 2>&3 3>&-)
    echo $? >>"$1/state"
  } | { trap '' TERM XFSZ; ulimit -f "$3"; exec cat >"$1/stdout" 3>&-; } || echo cut >>"$1/state"
} 3>&1 | { trap '' TERM XFSZ; ulimit -f "$3"; exec cat >"$1/stderr"; } || echo cut >>"$1/state"
`;

/** What a shell counts files in. */
const blockBytes = 512;

export interface WrapperOptions {
  readonly folder: string;
  readonly cwd: string;
  readonly env: Environment;
  readonly maxOutputBytes: number;
}

/** In a process group of its own, whose number is the wrapper's. More than `maxOutputBytes` on disk means that there was more: each
 *  stream has room for that, and for less than a block beyond. */
export function spawnWrapper(
  command: string,
  { folder, cwd, env, maxOutputBytes }: WrapperOptions,
): ChildProcess {
  const args = [
    "-c",
    script,
    "plimsoll-agent",
    folder,
    command,
    String(Math.floor(maxOutputBytes / blockBytes) + 1),
  ];
  return spawn("/bin/sh", args, { cwd, env, detached: true, stdio: "ignore" });
}
