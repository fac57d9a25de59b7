import type { ChildProcess } from "node:child_process";
import { messageOf } from "../../text/index.ts";
import type { Environment } from "../../workspace/index.ts";
import { createAttempt } from "./attempt-folder.ts";
import { type AgentEnd, type AgentLimits, endWithoutOutput, watchAgent } from "./watch-agent.ts";
import { spawnWrapper } from "./wrapper.ts";

export interface AgentRequest extends AgentLimits {
  /** A command line for /bin/sh. It gets the prompt on stdin. */
  readonly command: string;
  readonly prompt: string;
  /** Of this attempt alone; made here, with the folders above it. */
  readonly folder: string;
  readonly cwd: string;
  readonly env: Environment;
}

export interface AgentRun {
  /** Never fails: what went wrong is its outcome. */
  readonly end: Promise<AgentEnd>;
}

/** Runs an agent apart from us on purpose: the attempt's folder holds all that is known of it, so that a run that was killed
 *  finds what its agents did. */
export function startAgent(request: AgentRequest): AgentRun {
  const { command, prompt, folder, signal } = request;
  if (signal?.aborted) {
    const why = "The agent was not started because the run was interrupted.";
    return { end: Promise.resolve(endWithoutOutput("interrupted", why)) };
  }
  try {
    createAttempt(folder, prompt);
    return { end: follow(spawnWrapper(command, request), request) };
  } catch (error) {
    return { end: Promise.resolve(notStarted(error)) };
  }
}

async function follow(child: ChildProcess, request: AgentRequest): Promise<AgentEnd> {
  const started = performance.now();
  const elapsedMs = () => performance.now() - started;
  const { pid } = child;
  if (pid === undefined) return notStarted(await new Promise((resolve) => child.once("error", resolve)));
  child.on("error", () => {});
  // A process that the agent left behind can keep the wrapper: that must not keep us.
  child.unref();
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const onEnd = (wake: () => void) => void child.once("exit", wake);
  return watchAgent({ folder: request.folder, pid, hasEnded, onEnd, elapsedMs }, request);
}

function notStarted(error: unknown): AgentEnd {
  return endWithoutOutput("failed", `The agent could not be started: ${messageOf(error)}.`);
}
