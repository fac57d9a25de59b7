/** One attempt of an agent on disk. Its files are all that a later process needs: what it was told, who runs it, what it
 *  said and how it ended. */
import {
  appendFileSync,
  closeSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { ProcessIdentity } from "../../workspace/index.ts";

/** By their use. All are there from the start: each costs, and so there are no more of them than needed. */
export const attemptFiles = {
  /** Written once, right before the start. */
  prompt: "prompt",
  stdout: "stdout",
  stderr: "stderr",
  /** A line for whoever decided first whether the attempt runs: its process and the start of that, or that it never runs. Then,
   *  once it has ended, a line with its exit code, and `cut` after it where not all that it said could be written. */
  state: "state",
} as const;

export type OutputName = "stdout" | "stderr";

/** Fails where the folder has been used: an attempt runs once. */
export function createAttempt(folder: string, prompt: string): void {
  makeFolder(folder);
  const { prompt: promptFile, stdout, stderr, state } = attemptFiles;
  writeFileSync(join(folder, promptFile), prompt, { flag: "wx", mode: 0o600 });
  // Made here and not by the shell, whose umask is the agent's own.
  for (const name of [stdout, stderr, state])
    writeFileSync(join(folder, name), "", { flag: "wx", mode: 0o600 });
}

/** Node's own `recursive` tries for ever below /proc, where Linux says that the folder around a new one is missing though it is there. */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const around = dirname(folder);
  if (around !== folder) makeFolder(around);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another phase may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** In the line of one who decided that the attempt never runs. */
const abandoned = "abandoned";

/** Decides that the attempt never runs, unless its wrapper was first. A line comes to the end of the file in one step: the order of the
 *  lines is the same for all. */
export function abandonAttempt(folder: string): boolean {
  const file = join(folder, attemptFiles.state);
  if (readFileSync(file, "utf8") === "") appendFileSync(file, `${abandoned}\n`);
  return readFileSync(file, "utf8").startsWith(abandoned);
}

/** Of its wrapper. No number where it cannot be one of an agent: 0 and 1 would stand for our own group and for every process there is.
 *  Where the system does not tell when a process started, only its number is there. */
export function readIdentity(folder: string): ProcessIdentity {
  const text = readFileSync(join(folder, attemptFiles.state), "utf8");
  const [, pid = 0, started] = /^(\d+) (\d*)\n/.exec(text) ?? [];
  return { pid: Number(pid) > 1 ? Number(pid) : Number.NaN, started: started || undefined };
}

/** Undefined while it runs, and for ever where it was killed together with its wrapper. */
export function readStatus(folder: string): number | undefined {
  const text = readFileSync(join(folder, attemptFiles.state), "utf8");
  // Around it may be lines of others who came too late.
  const status = /^\d+ \d*\n(?:.*\n)*?(\d+)\n/.exec(text)?.[1];
  return status === undefined ? undefined : Number(status);
}

/** Whether something is missing of what it said: it was too much, or the disk was full. Known once its wrapper has ended. */
export function isOutputCut(folder: string): boolean {
  return /^cut$/m.test(readFileSync(join(folder, attemptFiles.state), "utf8"));
}

/** When it started, by the clock. */
export function startedMs(folder: string): number {
  return statSync(join(folder, attemptFiles.prompt)).mtimeMs;
}

/** When it ended, by the clock; undefined while it runs. */
export function endedMs(folder: string): number | undefined {
  return readStatus(folder) === undefined ? undefined : statSync(join(folder, attemptFiles.state)).mtimeMs;
}

/** What it has said so far, on both streams together. */
export function outputBytes(folder: string): number {
  const size = (name: OutputName) => statSync(join(folder, attemptFiles[name])).size;
  return size("stdout") + size("stderr");
}

/** From `start` on, at most `maxBytes`. What is not UTF-8 is for the caller to show. */
export function readOutput(
  folder: string,
  name: OutputName,
  { start = 0, maxBytes }: { readonly start?: number; readonly maxBytes: number },
): Buffer {
  const descriptor = openSync(join(folder, attemptFiles[name]), "r");
  try {
    const length = Math.max(0, Math.min(fstatSync(descriptor).size - start, maxBytes));
    const buffer = Buffer.allocUnsafe(length);
    return buffer.subarray(0, length === 0 ? 0 : readSync(descriptor, buffer, 0, length, start));
  } finally {
    closeSync(descriptor);
  }
}

/** Where an agent that failed said why: on stderr, else on stdout, where some programs tell of their errors too. */
export function saidOn(said: Readonly<Record<OutputName, string>>): OutputName | undefined {
  return (["stderr", "stdout"] as const).find((name) => said[name].trim() !== "");
}

const mostErrorCharacters = 20_000;

/** The end of what it said on stderr: where programs tell why they stop. */
export function readLastErrors(folder: string): string {
  const { size } = statSync(join(folder, attemptFiles.stderr));
  // No character has more than four bytes.
  const maxBytes = mostErrorCharacters * 4;
  const start = Math.max(0, size - maxBytes);
  return decode(readOutput(folder, "stderr", { start, maxBytes }), start > 0).slice(-mostErrorCharacters);
}

/** A character that was cut at the start is left out; any other invalid byte is shown as U+FFFD. */
function decode(bytes: Buffer, isCut: boolean): string {
  let start = 0;
  while (isCut && start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.toString("utf8", start);
}
