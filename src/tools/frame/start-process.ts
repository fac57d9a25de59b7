/** Programs whose output is read as it comes. None outlives the call that started it. */
import { spawn } from "node:child_process";
import type { Hash } from "node:crypto";

export interface ProcessOptions {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
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

export function startProcess(
  program: string,
  args: readonly string[],
  { cwd, env, signal }: ProcessOptions,
): StartedProcess {
  const child = spawn(program, args, {
    cwd,
    env,
    stdio: ["ignore", "pipe", "pipe"],
    windowsHide: true,
  });
  // The programs only read, so there is nothing to put in order first.
  const stop = () => void child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr = (stderr + text).slice(0, mostErrorCharacters);
  });
  const end = new Promise<ProcessEnd>((resolve) => {
    child.on("error", ({ message }) => resolve({ code: null, stderr: message }));
    child.on("close", (code) => resolve({ code, stderr }));
  }).finally(() => signal.removeEventListener("abort", stop));
  return { output: readOutput(child.stdout, stop), end };
}

async function* readOutput(stdout: AsyncIterable<Buffer>, stop: () => void): AsyncGenerator<Buffer> {
  try {
    yield* stdout;
  } finally {
    stop();
  }
}

/** Lets output pass and adds it to the hash: another output has another version. */
export async function* hashed(output: AsyncIterable<Buffer>, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of output) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Cuts output at each separator, a batch for each chunk: an await for every record would cost more than the record. A character
 *  a byte, so that no name is damaged and names sort as git sorts them. What follows the last separator is half a record of a
 *  process that was ended, and left out unless it is asked for. */
export async function* splitRecords(
  output: AsyncIterable<Buffer>,
  separator: "\0" | "\n",
  lastPart: "leave" | "keep" = "leave",
): AsyncGenerator<string[]> {
  let rest = "";
  for await (const chunk of output) {
    const records = chunk.toString("latin1").split(separator);
    records[0] = rest + records[0];
    rest = records.pop() ?? "";
    if (records.length > 0) yield records;
  }
  if (rest !== "" && lastPart === "keep") yield [rest];
}

/** The text of a byte string; what is not UTF-8 is shown as U+FFFD. */
export function decodeBytes(bytes: string): string {
  return isAscii(bytes) ? bytes : Buffer.from(bytes, "latin1").toString("utf8");
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character is meant, control characters too.
  return /^[\x00-\x7f]*$/.test(text);
}
