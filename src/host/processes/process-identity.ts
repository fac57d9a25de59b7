/** Checks whether a process that left a file still runs. A process id alone is not enough, since ids are used again. */
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { type Environment, stateDirectory } from "../directories.ts";
import { makeDirectory } from "../files/make-directory.ts";

export interface ProcessIdentity {
  readonly pid: number;
  /** The start time in the system's own unit. Absent if the system does not report it. */
  readonly started?: string | undefined;
}

export function ownIdentity(): ProcessIdentity {
  return { pid: process.pid, started: readProcessState(process.pid)?.started };
}

/** Returns false only if the process has certainly ended. A killed process that its parent has not collected yet has
 *  ended. */
export function isAlive({ pid, started }: ProcessIdentity): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    // No permission to signal the process means that it exists.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  const state = readProcessState(pid);
  if (state === undefined) return true;
  return !"ZX".includes(state.letter) && (started === undefined || started === state.started);
}

/** Reads /proc, so it works on Linux only. The name in parentheses may hold anything; the fields after it are plain. */
function readProcessState(pid: number): { letter: string; started: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [letter, started] = [fields[0], fields[19]];
    return letter === undefined || started === undefined ? undefined : { letter, started };
  } catch {
    return undefined;
  }
}

/** A machine, as others that share a store with it know it. */
export interface Machine {
  /** Differs for each host and each state directory: files and processes of another id are not here. */
  readonly id: string;
  /** The host's name, for people. */
  readonly name: string;
}

/** Returns this machine. A random text in the state directory tells hosts of one name apart. It is written with
 *  `"create"`: a machine that never ran anything needs none. */
export async function ownMachine(env: Environment, mode: "read" | "create" = "read"): Promise<Machine> {
  const directory = stateDirectory(env);
  const name = hostname();
  const word = await ownWord(directory, mode).catch(() => directory);
  return { id: createHash("sha256").update(`${name}\n${word}`).digest("hex").slice(0, 12), name };
}

async function ownWord(directory: string, mode: "read" | "create"): Promise<string> {
  const file = join(directory, "machine");
  const found = await readFile(file, "utf8").catch(() => "");
  if (found !== "") return found;
  if (mode === "read") return directory;
  makeDirectory(directory, 0o700);
  // Another process may have been faster.
  await writeFile(file, randomBytes(8).toString("hex"), { flag: "wx", mode: 0o600 }).catch(() => {});
  return readFile(file, "utf8");
}
