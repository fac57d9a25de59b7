import { randomBytes } from "node:crypto";
import { readdir, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Environment, stateDirectory } from "../../../../workspace/index.ts";
import { attemptFiles } from "../../../process/attempt-folder.ts";

/** Where the attempts of a nebula's agents are kept, by the key of its runs: one folder an attempt, of each phase only the last. */
export function attemptsFolder(key: string, env: Environment): string {
  return join(stateDirectory(env), "runs", key);
}

/** A name that none had before: an agent of a killed run that is late to start must never find its folder in use by another. */
export function newAttempt(folder: string, phase: string, attempt: number): string {
  const name = phase.replaceAll(/[^\w.-]+/g, "-").slice(0, 60);
  return join(folder, `${name}.${attempt}-${randomBytes(4).toString("hex")}`);
}

export async function listAttempts(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort().map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Removes the folder of an attempt that has ended. The record may name any path: only what lies where attempts do is ours. */
export async function removeAttempt(attempt: string, folder: string): Promise<void> {
  if (dirname(attempt) !== folder || basename(attempt) === "..") return;
  // The prompt first: a wrapper that is late must not find it where the state, which would stop it, is gone already.
  // What cannot be removed is tried again when the next run begins.
  await rm(join(attempt, attemptFiles.prompt), { force: true })
    .then(() => rm(attempt, { recursive: true, force: true }))
    .catch(() => {});
}
