/** Tells whether the process that left something behind still runs. A number alone is not enough: numbers are used again. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";

export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, in the system's own measure; absent where the system does not say. */
  readonly started?: string | undefined;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, started: readState(process.pid)?.started };
}

/** False only if it has certainly ended. A process that was killed but not yet collected by its parent has ended. */
export function isAlive({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // No permission to signal it means that it is there.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  const state = readState(pid);
  if (state === undefined) return true;
  return !"ZX".includes(state.letter) && (started === undefined || started === state.started);
}

/** Whether a process was started with an argument that is a path to a file of this name. False where nobody can tell. */
export async function commandNames(pid: number, name: string, processes = "/proc"): Promise<boolean> {
  try {
    const text = readFileSync(`${processes}/${pid}/cmdline`, "utf8");
    return text.split("\0").some((argument) => basename(argument) === name);
  } catch {
    return (await listedCommand(pid)).split(/\s/).some((argument) => basename(argument) === name);
  }
}

/** As ps tells it, where there is no /proc: what stands between its arguments is lost. */
async function listedCommand(pid: number): Promise<string> {
  const { execFile } = await import("node:child_process");
  return new Promise((resolve) => {
    execFile("ps", ["-ww", "-o", "args=", "-p", String(pid)], (error, text) => resolve(error ? "" : text));
  });
}

/** From /proc, so on Linux only. The name in parentheses may hold anything, the fields behind it are plain. */
function readState(pid: number): { letter: string; started: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [letter, started] = [fields[0], fields[19]];
    return letter === undefined || started === undefined ? undefined : { letter, started };
  } catch {
    return undefined;
  }
}
