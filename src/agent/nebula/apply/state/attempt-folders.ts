import { randomBytes } from "node:crypto";
import { lstatSync, realpathSync, type Stats } from "node:fs";
import { readdir, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Environment, isAlive, stateDirectory } from "../../../../workspace/index.ts";
import {
  attemptFiles,
  type OutputName,
  readIdentity,
  readLastErrors,
  readOutput,
  readStatus,
  saidOn,
  startedMs,
} from "../../../process/attempt-folder.ts";
import { defaultAgentLimits } from "../../../process/watch-agent.ts";
import { runKey } from "../../record/nebula-key.ts";

/** Where the attempts of a nebula's agents are kept, by the key of its runs: one folder an attempt, of each phase only the last. */
export function attemptsFolderOf(key: string, env: Environment): string {
  return join(stateDirectory(env), "runs", key);
}

/** A name that none had before: an agent of a killed run that is late to start must never find its folder in use by another. */
export function newAttemptFolder(attemptsFolder: string, phase: string, attempt: number): string {
  const name = phase.replaceAll(/[^\w.-]+/g, "-").slice(0, 60);
  return join(attemptsFolder, `${name}.${attempt}-${randomBytes(4).toString("hex")}`);
}

export async function listAttempts(attemptsFolder: string): Promise<string[]> {
  try {
    return (await readdir(attemptsFolder)).sort().map((name) => join(attemptsFolder, name));
  } catch {
    return [];
  }
}

/** Whether a folder that a record or a listing names is an attempt that we made, and whole. A store may come from anywhere, and what an
 *  attempt holds goes into prompts: it must lie among our attempts, without a link on the way, and belong to this user alone. */
export function isOwnAttempt(folder: string, attemptsFolder: string): boolean {
  const isOwnFile = (name: string) => {
    const stats = lookAt(join(folder, name));
    return stats?.isFile() === true && stats.nlink === 1 && isOurs(stats);
  };
  return isOwnFolder(folder, attemptsFolder) && Object.values(attemptFiles).every(isOwnFile);
}

/** As `newAttemptFolder` names them. */
const attemptName = /^[\w.-]{1,60}\.\d+-[\da-f]{8}$/;

function isOwnFolder(folder: string, attemptsFolder: string): boolean {
  const stats = lookAt(folder);
  if (!attemptName.test(basename(folder)) || stats?.isDirectory() !== true || !isOurs(stats)) return false;
  // Where attempts lie is there, or nothing lies there.
  return (
    lookAt(attemptsFolder) !== undefined && realpathSync(dirname(folder)) === realpathSync(attemptsFolder)
  );
}

function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function isOurs({ uid, mode }: Stats): boolean {
  return uid === (process.getuid?.() ?? uid) && (mode & 0o022) === 0;
}

/** Where the attempts of a nebula's runs lie. */
export interface RunsPlace {
  /** The nebula's. */
  readonly directory: string;
  readonly storeFile: string;
  readonly env: Environment;
}

/** The file with all that the agent of a failed attempt said, by its stream. None where it said nothing, or the folder is no attempt. */
export function lastWords(
  attemptFolder: string | undefined,
  { directory, storeFile, env }: RunsPlace,
): { readonly [Name in OutputName]?: string } {
  const attemptsFolder = attemptsFolderOf(runKey(directory, storeFile), env);
  if (attemptFolder === undefined || !isOwnAttempt(attemptFolder, attemptsFolder)) return {};
  try {
    const stdout = readOutput(attemptFolder, "stdout", { maxBytes: defaultAgentLimits.maxOutputBytes });
    const said = saidOn({ stderr: readLastErrors(attemptFolder), stdout: stdout.toString("utf8") });
    return said === undefined ? {} : { [said]: join(attemptFolder, attemptFiles[said]) };
  } catch {
    return {};
  }
}

export interface EndedAttempts {
  /** Folders of attempts that have ended. */
  readonly ended: readonly string[];
  /** Folders of attempts whose agent still runs, or may be about to start. */
  readonly running: readonly string[];
}

/** All attempts of all nebulas on this machine. */
export async function findAttempts(env: Environment): Promise<EndedAttempts> {
  const runs = await listAttempts(join(stateDirectory(env), "runs"));
  const listed = (await Promise.all(runs.map(listAttempts))).flat();
  const folders = listed.filter((folder) => isOwnFolder(folder, dirname(folder)));
  return {
    ended: folders.filter((folder) => !mayRun(folder)),
    running: folders.filter(mayRun),
  };
}

/** Removes the folders of attempts, and those of nebulas that are empty then. */
export async function removeAttempts(folders: readonly string[]): Promise<void> {
  for (const folder of folders) await removeAttempt(folder, dirname(folder));
  for (const parent of new Set(folders.map(dirname))) await rmdir(parent).catch(() => {});
}

/** A folder that is no attempt, or is damaged, has no agent. */
function mayRun(folder: string): boolean {
  try {
    if (readStatus(folder) !== undefined) return false;
    const { pid, started } = readIdentity(folder);
    // Until its wrapper has come there is no process to ask.
    return Number.isNaN(pid) ? Date.now() - startedMs(folder) < mostStartMs : isAlive({ pid, started });
  } catch {
    return false;
  }
}

/** A wrapper that has not come by then never will. */
const mostStartMs = 60_000;

/** Removes the folder of an attempt that has ended. */
export async function removeAttempt(attemptFolder: string, attemptsFolder: string): Promise<void> {
  if (!isOwnFolder(attemptFolder, attemptsFolder)) return;
  // The prompt first: a wrapper that is late must not find it where the state, which would stop it, is gone already.
  // What cannot be removed is tried again when the next run begins.
  await rm(join(attemptFolder, attemptFiles.prompt), { force: true })
    .then(() => rm(attemptFolder, { recursive: true, force: true }))
    .catch(() => {});
}
