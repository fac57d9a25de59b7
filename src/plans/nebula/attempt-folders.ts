import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, type Stats } from "node:fs";
import { readdir, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Environment, isAlive, removeTree, stateDirectory } from "../../host/index.ts";
import {
  type AgentUsage,
  agentPresets,
  attemptFiles,
  createEventReader,
  defaultAgentLimits,
  findSpokenStream,
  type OutputName,
  openAttempt,
  sendSignal,
} from "../agent/index.ts";
import { runKey } from "./nebula-key.ts";
import type { PhaseRun } from "./nebula-record.ts";

/** The attempts of a nebula's runs with one store: one folder per attempt, and only the last attempt of each phase. */
export interface Attempts {
  /** Returns a folder that was never used. A late agent of a killed run must not find its folder in use. */
  newFolder(phase: string, attempt: number): string;
  list(): Promise<string[]>;
  /** Whether a folder is a whole attempt that this program created. */
  isOwn(attemptFolder: string): boolean;
  /** Removes the folder of an attempt that has ended. */
  remove(attemptFolder: string): Promise<void>;
  /** Returns variables that mark every process of the attempt. */
  environment(attemptFolder: string): Record<string, string>;
  /** Ends processes that the attempt left behind. */
  endLeftovers(attemptFolder: string): Promise<void>;
}

/** Opens the attempts of the runs with this key (see `runKey`). */
export function openAttempts(key: string, env: Environment): Attempts {
  const attemptsFolder = join(stateDirectory(env), "runs", key);
  return {
    newFolder(phase, attempt) {
      const name = phase.replaceAll(/[^\w.-]+/g, "-").slice(0, 60);
      return join(attemptsFolder, `${name}.${attempt}-${randomBytes(4).toString("hex")}`);
    },
    list: () => listFolder(attemptsFolder),
    isOwn: (attemptFolder) =>
      isOwnFolder(attemptFolder, attemptsFolder) &&
      Object.values(attemptFiles).every((name) => {
        const stats = readStats(join(attemptFolder, name));
        return stats?.isFile() === true && stats.nlink === 1 && isOurs(stats);
      }),
    remove: (attemptFolder) => removeAttempt(attemptFolder, attemptsFolder),
    environment: (attemptFolder) => ({ [attemptVariable]: attemptFolder }),
    endLeftovers,
  };
}

async function listFolder(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort().map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** A store may come from anywhere, and the content of an attempt goes into prompts. So the folder must be among our
 *  attempts, without links, and belong only to this user. */
function isOwnFolder(folder: string, attemptsFolder: string): boolean {
  const stats = readStats(folder);
  // The names that `newFolder` creates.
  const isNamed = /^[\w.-]{1,60}\.\d+-[\da-f]{8}$/.test(basename(folder));
  if (!isNamed || stats?.isDirectory() !== true || !isOurs(stats)) return false;
  // If the folder of attempts is missing, it has no attempts.
  return readStats(attemptsFolder) !== undefined && realpathSync(dirname(folder)) === realpathSync(attemptsFolder);
}

function readStats(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function isOurs({ uid, mode }: Stats): boolean {
  return uid === (process.getuid?.() ?? uid) && (mode & 0o022) === 0;
}

/** Where the attempts of a nebula's runs are. */
export interface RunsPlace {
  /** The folder of the nebula. */
  readonly directory: string;
  readonly storeFile: string;
  readonly env: Environment;
}

function isAttemptOf(folder: string | undefined, { directory, storeFile, env }: RunsPlace): folder is string {
  return folder !== undefined && openAttempts(runKey(directory, storeFile), env).isOwn(folder);
}

/** Returns the file with the output of a failed agent, by its stream. Empty if it printed nothing, or if the folder
 *  is not an attempt. */
export function findOutputFile(
  attemptFolder: string | undefined,
  place: RunsPlace,
): { readonly [Name in OutputName]?: string } {
  if (!isAttemptOf(attemptFolder, place)) return {};
  try {
    const attempt = openAttempt(attemptFolder);
    const stdout = attempt.readOutput("stdout", { maxBytes: defaultAgentLimits.maxOutputBytes });
    const stream = findSpokenStream({ stderr: attempt.lastErrors(), stdout: stdout.toString("utf8") });
    return stream === undefined ? {} : { [stream]: join(attemptFolder, attemptFiles[stream]) };
  } catch {
    return {};
  }
}

/** The output of an attempt, while it runs or after its end. */
export interface AttemptOutput {
  /** When something was printed last, in milliseconds since 1970. */
  changedMs(): number;
  /** Returns what comes after `start` bytes of a stream. */
  read(name: OutputName, start: number): Buffer;
  hasEnded(): boolean;
}

/** Opens the output of an attempt. Returns undefined if the folder is not an attempt of these runs. */
export function openAttemptOutput(attemptFolder: string | undefined, place: RunsPlace): AttemptOutput | undefined {
  if (!isAttemptOf(attemptFolder, place)) return undefined;
  const attempt = openAttempt(attemptFolder);
  return {
    read: (name, start) => attempt.readOutput(name, { start, maxBytes: defaultAgentLimits.maxOutputBytes }),
    hasEnded: () => !mayRun(attemptFolder),
    changedMs: () => lstatSync(join(attemptFolder, attemptFiles.stdout)).mtimeMs,
  };
}

/** What an agent does now, and what its attempt has used. */
export interface Activity {
  readonly text: string;
  /** How long nothing else has happened. */
  readonly seconds: number;
  readonly usage?: AgentUsage | undefined;
  readonly costUsd?: number | undefined;
}

/** Reads what the agent of a running phase does. Undefined if its output is not here or has no events. */
export function readActivity(
  { attemptFolder, agent }: Pick<PhaseRun, "attemptFolder" | "agent">,
  place: RunsPlace,
): Activity | undefined {
  const output = openAttemptOutput(attemptFolder, place);
  const prints = agent === undefined ? undefined : agentPresets[agent]?.prints;
  if (output === undefined || prints === undefined) return undefined;
  const reader = createEventReader(prints);
  const lines = [...reader.read("stderr", output.read("stderr", 0).toString("utf8"))];
  lines.push(...reader.read("stdout", output.read("stdout", 0).toString("utf8")));
  const { usage, costUsd } = reader.report() ?? {};
  const text = lines.at(-1)?.text ?? "starts";
  const seconds = Math.max(0, Math.round((Date.now() - output.changedMs()) / 1000));
  return { text, seconds, ...(usage !== undefined && { usage }), ...(costUsd !== undefined && { costUsd }) };
}

/** Finds the folders of all attempts on this machine: those that have ended, and those whose agent still runs or may be
 *  about to start. `removeEnded` removes the former, and folders of nebulas that become empty. */
export async function findAttempts(env: Environment): Promise<{
  readonly ended: readonly string[];
  readonly running: readonly string[];
  removeEnded(): Promise<void>;
}> {
  const runs = await listFolder(join(stateDirectory(env), "runs"));
  const listed = (await Promise.all(runs.map(listFolder))).flat();
  const folders = listed.filter((folder) => isOwnFolder(folder, dirname(folder)));
  const ended = folders.filter((folder) => !mayRun(folder));
  return {
    ended,
    running: folders.filter(mayRun),
    async removeEnded() {
      for (const folder of ended) await removeAttempt(folder, dirname(folder));
      for (const parent of new Set(ended.map(dirname))) await rmdir(parent).catch(() => {});
    },
  };
}

/** Whether the agent may run. A damaged folder has no agent. */
function mayRun(folder: string): boolean {
  try {
    const attempt = openAttempt(folder);
    if (attempt.status() !== undefined) return false;
    const { pid, started } = attempt.identity();
    // Before its wrapper starts there is no process to check. A wrapper that has not started after a minute never will.
    return Number.isNaN(pid) ? Date.now() - attempt.startedMs() < 60_000 : isAlive({ pid, started });
  } catch {
    return false;
  }
}

/** Removes the folder of an attempt that has ended. */
async function removeAttempt(attemptFolder: string, attemptsFolder: string): Promise<void> {
  if (!isOwnFolder(attemptFolder, attemptsFolder)) return;
  // Removes the prompt first. A wrapper that starts late stops when it sees the state file. Without that file it would
  // run the prompt, so the prompt must go first. Once that file is gone, the wrapper must not find a prompt. If
  // something cannot be removed, the next run tries again.
  await removeTree(attemptFolder, { first: attemptFiles.prompt }).catch(() => {});
}

/** Every process that an agent starts inherits this variable with the attempt's folder. */
const attemptVariable = "PLIMSOLL_ATTEMPT";

/** Ends processes that an attempt left behind: first a request, after 2 s a kill. On Linux these are all processes that
 *  still have the attempt's variable, whatever group they are in. Elsewhere they are those of the agent's group. */
async function endLeftovers(attemptFolder: string): Promise<void> {
  const find = () => (existsSync("/proc/self/environ") ? findProcesses(attemptFolder) : findGroup(attemptFolder));
  const deadline = performance.now() + 2_000;
  let left = find();
  for (const pid of left) sendSignal(pid, "SIGTERM");
  while (left.length > 0 && performance.now() < deadline) {
    await sleep(20);
    left = find();
  }
  for (const pid of left) sendSignal(pid, "SIGKILL");
}

function findProcesses(attemptFolder: string): number[] {
  const setting = Buffer.from(`${attemptVariable}=${attemptFolder}\0`);
  return readdirSync("/proc").flatMap((name) => {
    const pid = Number(name);
    if (!(pid > 1) || pid === process.pid) return [];
    try {
      return readFileSync(`/proc/${name}/environ`).includes(setting) ? pid : [];
    } catch {
      // The process has ended, or belongs to another user.
      return [];
    }
  });
}

function findGroup(attemptFolder: string): number[] {
  try {
    const { pid } = openAttempt(attemptFolder).identity();
    return pid > 1 && sendSignal(-pid, 0) ? [-pid] : [];
  } catch {
    return [];
  }
}
