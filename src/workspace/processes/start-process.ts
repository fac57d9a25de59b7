/** Programs whose output is read as it comes. None outlives the call that started it, nor does what it started itself: a filter that
 *  git runs, or the real program behind a wrapper. */
import { type ChildProcess, spawn } from "node:child_process";

export interface ProcessOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** An open file that the program reads as its input. Without it there is none. */
  readonly input?: number | undefined;
}

export interface StartedProcess {
  /** Read once, to its end or not; leaving early ends the process. */
  readonly output: AsyncIterable<Buffer>;
  /** Comes when the output was read or left. */
  readonly end: Promise<ProcessEnd>;
}

export interface ProcessEnd {
  /** Null when it was ended by a signal or never started. */
  readonly code: number | null;
  readonly stderr: string;
}

const mostErrorCharacters = 20_000;

/** What a killed process had written by then is still in its pipes, and read at once. */
const lastWordsMs = 200;

export function startProcess(
  program: string,
  args: readonly string[],
  { cwd, env, signal, input }: ProcessOptions,
): StartedProcess {
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: [input ?? "ignore", "pipe", "pipe"],
    windowsHide: true,
    // A group of its own, which can be ended as a whole. On Windows this would open a console.
    detached: process.platform !== "win32",
  });
  let stopped = false;
  // The programs only read, so there is nothing to put in order first.
  const stop = () => {
    if (stopped) return;
    stopped = true;
    if (child.exitCode === null && child.signalCode === null) endGroup(child);
    // A process that left the group may hold the pipes open for as long as it likes.
    setTimeout(() => closePipes(child), lastWordsMs).unref();
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  let stderr = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(0, mostErrorCharacters);
  });
  const end = new Promise<ProcessEnd>((resolve) => {
    child.on("error", ({ message }) => resolve({ code: null, stderr: message }));
    // Its number is still that of the group: what the program left running ends here, and with it the pipes.
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
    // Nobody is left in the group.
  }
}

function closePipes({ stdout, stderr }: ChildProcess): void {
  stdout?.destroy();
  stderr?.destroy();
}

async function* readOutput({ stdout }: ChildProcess, stop: () => void): AsyncGenerator<Buffer> {
  try {
    yield* stdout ?? [];
  } catch (error) {
    // Closed while it was read: what came until then is the output.
    if ((error as NodeJS.ErrnoException).code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
  } finally {
    stop();
  }
}
