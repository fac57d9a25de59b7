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
  /** The process of the wrapper. The pid is NaN if it cannot belong to an agent: 0 and 1 would mean our own group and
   *  every process. `started` is undefined if the system does not report it. */
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
  /** Reads at most `maxBytes` of a stream, from the byte `start` (0 by default). The bytes may be invalid UTF-8. */
  readOutput(name: OutputName, options: { readonly start?: number; readonly maxBytes: number }): Buffer;
  /** The end of stderr, where programs print why they stop. */
  lastErrors(): string;
}

/** The first line of an attempt that never runs. */
const abandoned = "abandoned";

/** At most this many characters of stderr are kept. A character has at most four bytes. */
const maxErrorCharacters = 20_000;

export function openAttempt(folder: string): Attempt {
  const stateFile = join(folder, attemptFiles.state);
  const readState = () => readFileSync(stateFile, "utf8");
  const sizeInBytes = (name: OutputName) => statSync(join(folder, attemptFiles[name])).size;
  const status = () => {
    // Other processes may have added lines too late.
    const code = /^\d+ \d*\n(?:.*\n)*?(\d+)\n/.exec(readState())?.[1];
    return code === undefined ? undefined : Number(code);
  };
  return {
    create(prompt) {
      makeFolder(folder);
      const { prompt: promptFile, stdout, stderr, state } = attemptFiles;
      writeFileSync(join(folder, promptFile), prompt, { flag: "wx", mode: 0o600 });
      // Created here because the shell has the agent's umask.
      for (const name of [stdout, stderr, state]) writeFileSync(join(folder, name), "", { flag: "wx", mode: 0o600 });
    },
    abandon() {
      // Lines are appended atomically, so every process sees the same first line.
      if (readState() === "") appendFileSync(stateFile, `${abandoned}\n`);
      return readState().startsWith(abandoned);
    },
    identity() {
      const [, pid = 0, started] = /^(\d+) (\d*)\n/.exec(readState()) ?? [];
      return { pid: Number(pid) > 1 ? Number(pid) : Number.NaN, started: started || undefined };
    },
    status,
    isOutputCut: () => /^cut$/m.test(readState()),
    startedMs: () => statSync(join(folder, attemptFiles.prompt)).mtimeMs,
    endedMs: () => (status() === undefined ? undefined : statSync(stateFile).mtimeMs),
    outputBytes: () => sizeInBytes("stdout") + sizeInBytes("stderr"),
    readOutput: (name, { start = 0, maxBytes }) => readPart(join(folder, attemptFiles[name]), { start, maxBytes }),
    lastErrors() {
      const maxBytes = maxErrorCharacters * 4;
      const start = Math.max(0, sizeInBytes("stderr") - maxBytes);
      const bytes = readPart(join(folder, attemptFiles.stderr), { start, maxBytes });
      // Leaves out a character that was cut at the start. Other invalid bytes appear as U+FFFD.
      let whole = 0;
      while (start > 0 && whole < 3 && ((bytes[whole] ?? 0) & 0xc0) === 0x80) whole++;
      return bytes.toString("utf8", whole).slice(-maxErrorCharacters);
    },
  };
}

/** Creates folders one by one. Node's `recursive` loops forever below /proc, where Linux reports an existing parent
 *  as missing. */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  const parent = dirname(folder);
  if (parent !== folder) makeFolder(parent);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another phase may have created it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function readPart(file: string, { start, maxBytes }: { readonly start: number; readonly maxBytes: number }): Buffer {
  const descriptor = openSync(file, "r");
  try {
    const length = Math.max(0, Math.min(fstatSync(descriptor).size - start, maxBytes));
    const buffer = Buffer.allocUnsafe(length);
    return buffer.subarray(0, length === 0 ? 0 : readSync(descriptor, buffer, 0, length, start));
  } finally {
    closeSync(descriptor);
  }
}

/** Returns the stream on which a failed agent printed why it failed: stderr, or else stdout. */
export function findSpokenStream(output: Readonly<Record<OutputName, string>>): OutputName | undefined {
  return (["stderr", "stdout"] as const).find((name) => output[name].trim() !== "");
}
