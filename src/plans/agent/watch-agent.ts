/** Waits for the end of an agent, whoever started it. Stops it if it runs too long or prints too much. */
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { formatNumber, messageOf } from "../../core/text/index.ts";
import type { Attempt, OutputName } from "./attempt-folder.ts";

export type AgentOutcome =
  | "completed"
  | "failed"
  | "timed_out"
  | "too_much_output"
  | "interrupted"
  | "lost"
  | "denied"
  | "unchanged"
  | "over_budget";

/** The tokens that an agent used, as it reports them. */
export interface AgentUsage {
  /** All input tokens, those from the provider's cache included. */
  readonly inputTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
}

/** How an agent ended, and what it printed. */
export interface AgentEnd {
  /**
   * Why the agent ended. `lost` means that it was killed together with the shell around it. An agent that ended by
   * itself was `denied` a tool, left its files `unchanged` although it should change them, or reached a limit on its
   * cost (`over_budget`).
   */
  readonly outcome: AgentOutcome;
  /** Its exit code, or null if it did not end by itself. */
  readonly code: number | null;
  /** What it printed to stdout, or the answer in it. Invalid UTF-8 appears as U+FFFD. */
  readonly answer: string;
  /** The last 20,000 characters that it printed to stderr. */
  readonly stderr: string;
  /** How long it ran. */
  readonly seconds: number;
  /** One sentence for people. Absent if the agent completed. */
  readonly error?: string | undefined;
  /** What to do about the error. */
  readonly hint?: string | undefined;
  /** Tokens and dollars, if the agent reports them. */
  readonly usage?: AgentUsage | undefined;
  readonly costUsd?: number | undefined;
  /** The tools that it was not allowed to use, as far as it reports them. */
  readonly denials?: readonly string[] | undefined;
}

/** An agent that was started. */
export interface AgentRun {
  /** How the agent ended. Never rejects: a failure is an outcome. */
  readonly end: Promise<AgentEnd>;
}

/** How long an agent may run and how much it may print. */
export interface AgentLimits {
  /** The agent is ended this many milliseconds after its start. */
  readonly timeoutMs: number;
  /** The agent is ended if it prints more bytes than this to stdout and stderr together. */
  readonly maxOutputBytes: number;
  /** Ends the agent and every process that it started. */
  readonly signal?: AbortSignal | undefined;
  /** Receives the output while the agent prints it. */
  readonly onOutput?: ((name: OutputName, chunk: Buffer) => void) | undefined;
}

interface RunningAgent {
  readonly attempt: Attempt;
  /** Process id of its wrapper, which is also the id of its process group. */
  readonly pid: number;
  /** Whether the wrapper has ended. */
  hasEnded(): boolean;
  /** Calls `wake` when its wrapper ends, if the system reports that. */
  onEnd?(wake: () => void): void;
  /** Milliseconds from its start until now, or until its end. */
  elapsedMs(): number;
}

/** Never rejects: if its folder is gone, the agent counts as lost. */
export async function watchAgent(agent: RunningAgent, limits: AgentLimits): Promise<AgentEnd> {
  // Also the delay of an interrupt. Listeners of many agents on one signal would make Node warn of a leak.
  const pollMs = 25;
  try {
    const relay = createRelay(agent.attempt, limits);
    const pause = createPause(agent);
    let outcome = look(agent, limits);
    for (; outcome === undefined; outcome = look(agent, limits)) {
      relay();
      await pause(Math.min(pollMs, limits.timeoutMs - agent.elapsedMs()));
    }
    const seconds = Math.max(0, Math.round(agent.elapsedMs())) / 1000;
    if (outcome === "completed") outcome = await waitForOutput(agent, { pause, ...limits });
    if (outcome !== "completed" && !agent.hasEnded()) await endGroup(agent);
    relay();
    return { ...describeEnd(outcome, agent.attempt, limits), seconds };
  } catch (error) {
    if (!agent.hasEnded()) await endGroup(agent);
    return endWithoutOutput("lost", `The agent's output cannot be read: ${messageOf(error)}.`);
  }
}

/** The end of an agent without output. */
export function endWithoutOutput(outcome: AgentOutcome, error: string): AgentEnd {
  return { outcome, code: null, answer: "", stderr: "", seconds: 0, error };
}

/** Returns the outcome so far. "completed" means that the agent ended by itself, with any exit code. */
function look(agent: RunningAgent, { maxOutputBytes, timeoutMs, signal }: AgentLimits): Outcome | undefined {
  const { attempt } = agent;
  // Asked first, because an agent writes its status before it ends.
  const hasEnded = agent.hasEnded();
  if (attempt.outputBytes() > maxOutputBytes) return "too_much_output";
  if (attempt.status() !== undefined) return "completed";
  if (hasEnded) return "lost";
  if (signal?.aborted) return "interrupted";
  return agent.elapsedMs() >= timeoutMs ? "timed_out" : undefined;
}

type Outcome = Exclude<AgentOutcome, "failed" | "denied" | "unchanged" | "over_budget">;

/** Creates a pause that also ends with the agent. All pauses share one listener, because an agent can run for an
 *  hour. */
function createPause(agent: RunningAgent): (waitMs: number) => Promise<void> {
  let wake = () => {};
  agent.onEnd?.(() => wake());
  return (waitMs) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, waitMs);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
}

/** Waits for the rest of the output, which can reach the disk after the status and be too long. A wrapper ends
 *  milliseconds after its agent, unless a process that the agent started still holds its streams. Then the output is
 *  complete once nothing more comes for a while. A process that keeps printing is not waited for. */
async function waitForOutput(
  agent: RunningAgent,
  { pause, maxOutputBytes }: AgentLimits & { readonly pause: ReturnType<typeof createPause> },
): Promise<Outcome> {
  const [quietMs, maxWaitMs] = [500, 3_000];
  const start = performance.now();
  let [bytes, quietSince] = [agent.attempt.outputBytes(), start];
  for (let now = start; now - quietSince < quietMs && now - start < maxWaitMs; now = performance.now()) {
    const hasEnded = agent.hasEnded();
    const size = agent.attempt.outputBytes();
    if (size > maxOutputBytes) return "too_much_output";
    if (hasEnded) break;
    if (size !== bytes) [bytes, quietSince] = [size, now];
    await pause(5);
  }
  return "completed";
}

/** Passes on what is new in the two files, in small pieces. */
function createRelay(attempt: Attempt, { maxOutputBytes, onOutput }: AgentLimits): () => void {
  if (onOutput === undefined) return () => {};
  const passed = { stdout: 0, stderr: 0 };
  return () => {
    for (const name of ["stdout", "stderr"] as const) {
      for (;;) {
        const left = Math.min(64 * 1024, maxOutputBytes - passed.stdout - passed.stderr);
        const chunk = attempt.readOutput(name, { start: passed[name], maxBytes: left });
        if (chunk.length === 0) break;
        passed[name] += chunk.length;
        onOutput(name, chunk);
      }
    }
  };
}

function describeEnd(outcome: Outcome, attempt: Attempt, limits: AgentLimits): Omit<AgentEnd, "seconds"> {
  // If we stopped the agent, its exit code only says how.
  const code = outcome === "completed" ? (attempt.status() ?? null) : null;
  const sentences: Record<Outcome, string | undefined> = {
    completed: code === null ? undefined : describeCode(code, attempt),
    timed_out: `The agent was stopped after ${limits.timeoutMs / 1000} s, its time limit.`,
    too_much_output: `The agent was stopped because it printed more than ${formatNumber(limits.maxOutputBytes)} bytes.`,
    interrupted: "The agent was stopped because the run was interrupted.",
    lost: "Another process stopped the agent, so its exit code is unknown.",
  };
  const error = sentences[outcome];
  return {
    outcome: code === null || error === undefined ? outcome : "failed",
    code,
    answer: attempt.readOutput("stdout", { maxBytes: limits.maxOutputBytes }).toString("utf8"),
    stderr: attempt.lastErrors(),
    error,
  };
}

/** Returns undefined if the agent succeeded. */
function describeCode(code: number, attempt: Attempt): string | undefined {
  // Checked first, because an agent whose output is cut often ends with an unrelated code.
  if (attempt.isOutputCut()) return "Some of the agent's output could not be stored: the disk may be full.";
  if (code === 0) return undefined;
  // A shell reports a signal as 128 plus its number.
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return `The agent ended with exit code ${code}${signal === undefined ? "" : ` (${signal})`}.`;
}

/** Ends every process of an agent's group: sends SIGTERM, then SIGKILL after 2 seconds. The other processes get less
 *  time than the wrapper, because a group outlives its members if nobody collects them. */
async function endGroup({ pid, hasEnded }: RunningAgent): Promise<void> {
  const restMs = 200;
  sendSignal(-pid, "SIGTERM");
  await waitUntil(hasEnded, 2_000);
  if (hasEnded()) await waitUntil(() => !sendSignal(-pid, 0), restMs);
  sendSignal(-pid, "SIGKILL");
  await waitUntil(hasEnded, restMs);
}

/** Sends a signal to a process, or to a group if the number is negative. Returns false if it does not exist. */
export function sendSignal(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

async function waitUntil(isTrue: () => boolean, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (!isTrue() && performance.now() < deadline) await sleep(10);
}
