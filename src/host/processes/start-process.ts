/** Starts programs and streams their output. A program ends with the call that started it, and so do its own children,
 *  such as a filter of git or the program behind a wrapper. */
import { type ChildProcess, spawn } from "node:child_process";

export interface StartedProcess {
  /** Read it once, completely or not. Leaving early ends the process. */
  readonly output: AsyncIterable<Buffer>;
  /** Resolves when the output was read or left. */
  readonly end: Promise<ProcessEnd>;
}

export interface ProcessEnd {
  /** Null if a signal ended the process or it never started. */
  readonly code: number | null;
  readonly stderr: string;
}

/** `input` is an open file that the program reads. Without it there is no input. */
export function startProcess(
  program: string,
  args: readonly string[],
  {
    cwd,
    env,
    signal,
    input,
  }: {
    readonly cwd: string;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
    readonly input?: number | undefined;
  },
): StartedProcess {
  const maxErrorCharacters = 20_000;
  // The output of a killed process is still in its pipes and can be read at once.
  const lastWordsMs = 200;
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: [input ?? "ignore", "pipe", "pipe"],
    windowsHide: true,
    // The program gets its own group, which can be ended as a whole. On Windows this would open a console.
    detached: process.platform !== "win32",
  });
  let stopped = false;
  // The programs only read, so nothing must be cleaned up first.
  const stop = () => {
    if (stopped) return;
    stopped = true;
    if (child.exitCode === null && child.signalCode === null) endGroup(child);
    // A process that left the group may hold the pipes open for any time.
    setTimeout(() => {
      child.stdout?.destroy();
      child.stderr?.destroy();
    }, lastWordsMs).unref();
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(0, maxErrorCharacters);
  });
  const end = new Promise<ProcessEnd>((resolve) => {
    child.on("error", ({ message }) => resolve({ code: null, stderr: message }));
    // The process id is still that of the group: this ends the program's children, and with them the pipes.
    child.on("exit", () => endGroup(child));
    child.on("close", (code) => resolve({ code, stderr }));
  }).finally(() => signal.removeEventListener("abort", stop));
  return { output: readOutput(child, stop), end };
}

function endGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill("SIGKILL");
    else process.kill(-child.pid, "SIGKILL");
  } catch {
    // The group is empty.
  }
}

async function* readOutput({ stdout }: ChildProcess, stop: () => void): AsyncGenerator<Buffer> {
  try {
    yield* stdout ?? [];
  } catch (error) {
    // Closed while reading: the output up to then counts.
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  } finally {
    stop();
  }
}
