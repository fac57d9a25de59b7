/** One attempt of an agent on disk. Its files are all that a later process needs: the prompt, the process, the
 *  output and the exit code. */
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
import type { ProcessIdentity } from "../../host/index.ts";

/** File names by use. All files are created at the start. */
export const attemptFiles = {
  /** Written once, before the start. */
  prompt: "prompt",
  stdout: "stdout",
  stderr: "stderr",
  /** Its first line says who decided first whether the attempt runs: the process and its start time, or `abandoned`.
   *  After the end follows a line with the exit code, and `cut` if some output could not be written. */
  state: "state",
} as const;

export type OutputName = "stdout" | "stderr";

/** One attempt of an agent, by its folder. Reading throws if the folder is gone. */
export interface Attempt {
  /** Creates the folder and its files. Throws if the folder was used before: an attempt runs once. */
  create(prompt: string): void;
  /** Decides that the attempt never runs, unless its wrapper was first. Returns whether it never runs. */
  abandon(): boolean;
  /** The process of the wrapper. */
  identity(): ProcessIdentity;
  /** The exit code. Undefined while the agent runs, and forever if it was killed together with its wrapper. */
  status(): number | undefined;
  /** Whether some output is missing because it was too long or the disk was full. Known after the wrapper has ended. */
  isOutputCut(): boolean;
  /** When it started, in milliseconds since 1970. */
  startedMs(): number;
  /** When it ended, in milliseconds since 1970; undefined while it runs. */
  endedMs(): number | undefined;
  /** Bytes that it has printed so far on both streams. */
  outputBytes(): number;
  /** Reads at most `maxBytes` of a stream. The bytes may be invalid UTF-8. */
  readOutput(name: OutputName, options: ReadOutputOptions): Buffer;
  /** The end of stderr, where programs print why they stop. */
  lastErrors(): string;
}

export interface ReadOutputOptions {
  /** Offset of the first byte. @default 0 */
  readonly start?: number;
  readonly maxBytes: number;
}

export function openAttempt(folder: string): Attempt {
  return {
    create: (prompt) => createAttempt(folder, prompt),
    abandon: () => abandonAttempt(folder),
    identity: () => readIdentity(folder),
    status: () => readStatus(folder),
    isOutputCut: () => isOutputCut(folder),
    startedMs: () => statSync(join(folder, attemptFiles.prompt)).mtimeMs,
    endedMs: () => (readStatus(folder) === undefined ? undefined : statSync(join(folder, attemptFiles.state)).mtimeMs),
    outputBytes: () => sizeOf(folder, "stdout") + sizeOf(folder, "stderr"),
    readOutput: (name, options) => readOutput(folder, name, options),
    lastErrors: () => readLastErrors(folder),
  };
}

function sizeOf(folder: string, name: OutputName): number {
  return statSync(join(folder, attemptFiles[name])).size;
}

function createAttempt(folder: string, prompt: string): void {
  makeFolder(folder);
  const { prompt: promptFile, stdout, stderr, state } = attemptFiles;
  writeFileSync(join(folder, promptFile), prompt, { flag: "wx", mode: 0o600 });
  // Created here because the shell has the agent's umask.
  for (const name of [stdout, stderr, state]) writeFileSync(join(folder, name), "", { flag: "wx", mode: 0o600 });
}

/** Creates folders one by one. Node's `recursive` loops forever below /proc, where Linux reports an existing parent
 *  as missing. */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const around = dirname(folder);
  if (around !== folder) makeFolder(around);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another phase may have created it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** The first line of an attempt that never runs. */
const abandoned = "abandoned";

/** Lines are appended atomically, so everybody sees the same first line. */
function abandonAttempt(folder: string): boolean {
  const file = join(folder, attemptFiles.state);
  if (readFileSync(file, "utf8") === "") appendFileSync(file, `${abandoned}\n`);
  return readFileSync(file, "utf8").startsWith(abandoned);
}

/** Reads the process of the wrapper. The pid is NaN if it cannot belong to an agent: 0 and 1 would mean our own
 *  group and every process. `started` is undefined if the system does not report it. */
function readIdentity(folder: string): ProcessIdentity {
  const text = readFileSync(join(folder, attemptFiles.state), "utf8");
  const [, pid = 0, started] = /^(\d+) (\d*)\n/.exec(text) ?? [];
  return { pid: Number(pid) > 1 ? Number(pid) : Number.NaN, started: started || undefined };
}

function readStatus(folder: string): number | undefined {
  const text = readFileSync(join(folder, attemptFiles.state), "utf8");
  // Other processes may have added lines too late.
  const status = /^\d+ \d*\n(?:.*\n)*?(\d+)\n/.exec(text)?.[1];
  return status === undefined ? undefined : Number(status);
}

function isOutputCut(folder: string): boolean {
  return /^cut$/m.test(readFileSync(join(folder, attemptFiles.state), "utf8"));
}

function readOutput(folder: string, name: OutputName, { start = 0, maxBytes }: ReadOutputOptions): Buffer {
  const descriptor = openSync(join(folder, attemptFiles[name]), "r");
  try {
    const length = Math.max(0, Math.min(fstatSync(descriptor).size - start, maxBytes));
    const buffer = Buffer.allocUnsafe(length);
    return buffer.subarray(0, length === 0 ? 0 : readSync(descriptor, buffer, 0, length, start));
  } finally {
    closeSync(descriptor);
  }
}

/** The stream on which a failed agent said why: stderr, or else stdout. */
export function saidOn(said: Readonly<Record<OutputName, string>>): OutputName | undefined {
  return (["stderr", "stdout"] as const).find((name) => said[name].trim() !== "");
}

const mostErrorCharacters = 20_000;

function readLastErrors(folder: string): string {
  const { size } = statSync(join(folder, attemptFiles.stderr));
  // A character has at most four bytes.
  const maxBytes = mostErrorCharacters * 4;
  const start = Math.max(0, size - maxBytes);
  return decode(readOutput(folder, "stderr", { start, maxBytes }), start > 0).slice(-mostErrorCharacters);
}

/** Leaves out a character that was cut at the start. Shows other invalid bytes as U+FFFD. */
function decode(bytes: Buffer, isCut: boolean): string {
  let start = 0;
  while (isCut && start < 3 && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.toString("utf8", start);
}
