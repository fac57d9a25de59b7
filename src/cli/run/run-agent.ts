/** Runs one agent in front of a person: what it says comes through as it says it, and what ends us ends it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AgentEnd, defaultAgentLimits, startAgent } from "../../agent/index.ts";
import { takeEndSignals } from "../end-signals.ts";
import { type ExitCode, exitCodes } from "../report-error.ts";
import type { RunCall } from "./build-prompt.ts";

export interface AgentJob {
  readonly command: string;
  readonly prompt: string;
  readonly timeoutMs: number;
}

/** Does not come back where its reader has left. */
export async function runAgent(call: RunCall, job: AgentJob): Promise<AgentEnd> {
  const { cwd, env, output } = call;
  const interrupts = takeInterrupts();
  const folder = await mkdtemp(join(tmpdir(), "plimsoll-run-"));
  output.settle();
  const { end } = startAgent({
    ...job,
    cwd,
    env,
    folder: join(folder, "attempt"),
    maxOutputBytes: defaultAgentLimits.maxOutputBytes,
    signal: interrupts.signal,
    onOutput(name, chunk) {
      if (name === "stderr") process.stderr.write(chunk);
      else if (!output.json) process.stdout.write(chunk);
    },
  });
  const ended = await end;
  await rm(folder, { recursive: true, force: true });
  const exitCode = interrupts.unread();
  if (exitCode !== undefined) process.exit(exitCode);
  return ended;
}

interface Interrupts {
  readonly signal: AbortSignal;
  /** With which to leave because nobody reads; undefined where that is not so. */
  unread(): ExitCode | undefined;
}

/** The frame would leave at once, and the agent would run on without us. */
function takeInterrupts(): Interrupts {
  const controller = new AbortController();
  let unread: ExitCode | undefined;
  takeEndSignals(() => controller.abort());
  // A reader that has seen enough, such as head, is no failure, but there is no use in going on.
  process.stdout.removeAllListeners("error");
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
    unread ??= code === "EPIPE" ? exitCodes.done : exitCodes.failed;
    controller.abort();
  });
  return { signal: controller.signal, unread: () => unread };
}
