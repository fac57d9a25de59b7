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

interface RunningAgent extends ProcessGroup {
  readonly attempt: Attempt;
  /** Calls `wake` when its wrapper ends, if the system reports that. */
  onEnd?(wake: () => void): void;
  /** Milliseconds from its start until now, or until its end. */
  elapsedMs(): number;
}

/** Also the delay of an interrupt. Listeners of many agents on one signal would make Node warn of a leak. */
const pollMs = 25;
/** A wrapper ends milliseconds after its agent, unless a process that the agent started still holds its streams.
 *  Then the output is complete once nothing more comes for a while. A process that keeps printing is not waited for. */
const [quietMs, mostDrainMs] = [500, 3_000];

/** Never rejects: if its folder is gone, the agent counts as lost. */
export async function watchAgent(agent: RunningAgent, limits: AgentLimits): Promise<AgentEnd> {
  try {
    return await waitForEnd(agent, limits);
  } catch (error) {
    if (!agent.hasEnded()) await endGroup(agent);
    return endWithoutOutput("lost", `The agent's output cannot be read: ${messageOf(error)}.`);
  }
}

/** The end of an agent without output. */
export function endWithoutOutput(outcome: AgentOutcome, error: string): AgentEnd {
  return { outcome, code: null, answer: "", stderr: "", seconds: 0, error };
}

async function waitForEnd(agent: RunningAgent, limits: AgentLimits): Promise<AgentEnd> {
  const relay = createRelay(agent.attempt, limits);
  const pause = createPause(agent);
  let outcome = look(agent, limits);
  for (; outcome === undefined; outcome = look(agent, limits)) {
    relay();
    await pause(Math.min(pollMs, limits.timeoutMs - agent.elapsedMs()));
  }
  const seconds = Math.max(0, Math.round(agent.elapsedMs())) / 1000;
  if (outcome === "completed") outcome = await drained(agent, { pause, ...limits });
  if (outcome !== "completed" && !agent.hasEnded()) await endGroup(agent);
  relay();
  return { ...describeEnd(outcome, agent.attempt, limits), seconds };
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

type Pause = (waitMs: number) => Promise<void>;

/** Creates a pause that also ends with the agent. All pauses share one listener, because an agent can run for an
 *  hour. */
function createPause(agent: RunningAgent): Pause {
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

/** Waits for the rest of the output, which can reach the disk after the status and be too long. */
async function drained(
  agent: RunningAgent,
  { pause, maxOutputBytes }: AgentLimits & { readonly pause: Pause },
): Promise<Outcome> {
  const start = performance.now();
  let [bytes, quietSince] = [agent.attempt.outputBytes(), start];
  for (let now = start; now - quietSince < quietMs && now - start < mostDrainMs; now = performance.now()) {
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
  const told = { stdout: 0, stderr: 0 };
  return () => {
    for (const name of ["stdout", "stderr"] as const) {
      for (;;) {
        const left = Math.min(64 * 1024, maxOutputBytes - told.stdout - told.stderr);
        const chunk = attempt.readOutput(name, { start: told[name], maxBytes: left });
        if (chunk.length === 0) break;
        told[name] += chunk.length;
        onOutput(name, chunk);
      }
    }
  };
}

function describeEnd(outcome: Outcome, attempt: Attempt, limits: AgentLimits): Omit<AgentEnd, "seconds"> {
  // If we stopped the agent, its exit code only says how.
  const code = outcome === "completed" ? (attempt.status() ?? null) : null;
  // Asked first, because an agent whose output is cut often ends with an unrelated code.
  const cutSentence = code !== null && attempt.isOutputCut() ? unkept : undefined;
  const error = code === null ? sentenceOf(outcome, limits) : (cutSentence ?? describeCode(code));
  return {
    outcome: code === null || error === undefined ? outcome : "failed",
    code,
    answer: attempt.readOutput("stdout", { maxBytes: limits.maxOutputBytes }).toString("utf8"),
    stderr: attempt.lastErrors(),
    error,
  };
}

const unkept = "Some of the agent's output could not be stored: the disk may be full.";

function sentenceOf(outcome: Outcome, { timeoutMs, maxOutputBytes }: AgentLimits): string | undefined {
  const sentences: Record<Outcome, string | undefined> = {
    completed: undefined,
    timed_out: `The agent was stopped after ${timeoutMs / 1000} s, its time limit.`,
    too_much_output: `The agent was stopped because it printed more than ${formatNumber(maxOutputBytes)} bytes.`,
    interrupted: "The agent was stopped because the run was interrupted.",
    lost: "Another process stopped the agent, so its exit code is unknown.",
  };
  return sentences[outcome];
}

/** A shell reports a signal as 128 plus its number. */
function describeCode(code: number): string | undefined {
  if (code === 0) return undefined;
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined
    ? `The agent ended with exit code ${code}.`
    : `The agent ended with exit code ${code} (${signal}).`;
}

interface ProcessGroup {
  /** Process id of its leader, which is also the id of the group. */
  readonly pid: number;
  /** Whether the leader has ended. */
  hasEnded(): boolean;
}

/** How long an agent may take to shut down. */
const graceMs = 2_000;
/** How long other processes of the group may take after the leader. Shorter, because a group outlives its members if
 *  nobody collects them. */
const restMs = 200;

/** Ends every process of a group: sends SIGTERM, then SIGKILL. */
async function endGroup(group: ProcessGroup): Promise<void> {
  signal(group, "SIGTERM");
  await waitUntil(group.hasEnded, graceMs);
  if (group.hasEnded()) await waitUntil(() => !signal(group, 0), restMs);
  signal(group, "SIGKILL");
  await waitUntil(group.hasEnded, restMs);
}

/** Returns false if the group no longer exists. */
function signal({ pid }: ProcessGroup, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, name);
    return true;
  } catch {
    return false;
  }
}

async function waitUntil(isTrue: () => boolean, waitMs: number): Promise<void> {
  const deadline = performance.now() + waitMs;
  while (!isTrue() && performance.now() < deadline) await sleep(10);
}
