/** Waits for the end of an agent, whoever started it, and ends it where it takes too long or says too much. */
import { constants } from "node:os";
import { formatNumber, messageOf } from "../../text/index.ts";
import {
  isOutputCut,
  type OutputName,
  outputBytes,
  readLastErrors,
  readOutput,
  readStatus,
} from "./attempt-folder.ts";
import { endGroup, type ProcessGroup } from "./end-group.ts";

export type AgentOutcome = "completed" | "failed" | "timed_out" | "too_much_output" | "interrupted" | "lost";

export interface AgentEnd {
  readonly outcome: AgentOutcome;
  /** Null where it did not end by itself. */
  readonly code: number | null;
  /** What it said on stdout; what is not UTF-8 is shown as U+FFFD. */
  readonly answer: string;
  /** The last 20,000 characters of it. */
  readonly stderr: string;
  readonly seconds: number;
  /** One sentence for people; absent where it completed. */
  readonly error?: string | undefined;
}

export interface AgentLimits {
  /** From the agent's start. */
  readonly timeoutMs: number;
  /** Of both streams together, on disk and in the answer. */
  readonly maxOutputBytes: number;
  /** Ends the agent and every process that it started. */
  readonly signal?: AbortSignal | undefined;
  /** What it says, as it comes. */
  readonly onOutput?: ((name: OutputName, chunk: Buffer) => void) | undefined;
}

export interface RunningAgent extends ProcessGroup {
  readonly folder: string;
  /** Calls when its wrapper, the group's leader, ends, where the system tells us. */
  onEnd?(wake: () => void): void;
  /** Since its start; once it has ended, until then. */
  elapsedMs(): number;
}

/** An hour; more than any answer that is read. */
export const defaultAgentLimits: { readonly timeoutMs: number; readonly maxOutputBytes: number } = {
  timeoutMs: 3_600_000,
  maxOutputBytes: 10_000_000,
};

/** Also how long an interrupt waits: many agents with a listener each on one signal make Node warn of a leak. */
const pollMs = 25;
/** A wrapper follows its agent within milliseconds, unless the agent left a process behind that holds its streams. Then what the
 *  agent said is on disk when nothing more comes for a while; one that goes on talking is not waited for. */
const [quietMs, mostDrainMs] = [500, 3_000];

/** Never fails: where its folder is gone, the agent is lost. */
export async function watchAgent(agent: RunningAgent, limits: AgentLimits): Promise<AgentEnd> {
  try {
    return await waitForEnd(agent, limits);
  } catch (error) {
    if (!agent.hasEnded()) await endGroup(agent);
    return endWithoutOutput("lost", `What the agent did cannot be read: ${messageOf(error)}.`);
  }
}

/** Of an agent of which nothing was heard. */
export function endWithoutOutput(outcome: AgentOutcome, error: string): AgentEnd {
  return { outcome, code: null, answer: "", stderr: "", seconds: 0, error };
}

async function waitForEnd(agent: RunningAgent, limits: AgentLimits): Promise<AgentEnd> {
  const relay = createRelay(agent.folder, limits);
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
  return { ...describeEnd(outcome, agent.folder, limits), seconds };
}

/** "completed" here: it ended by itself, with whatever code. */
function look(agent: RunningAgent, { maxOutputBytes, timeoutMs, signal }: AgentLimits): Outcome | undefined {
  const { folder } = agent;
  // Asked first: what has ended now has left its status before.
  const hasEnded = agent.hasEnded();
  if (outputBytes(folder) > maxOutputBytes) return "too_much_output";
  if (readStatus(folder) !== undefined) return "completed";
  if (hasEnded) return "lost";
  if (signal?.aborted) return "interrupted";
  return agent.elapsedMs() >= timeoutMs ? "timed_out" : undefined;
}

type Outcome = Exclude<AgentOutcome, "failed">;

type Pause = (waitMs: number) => Promise<void>;

/** A pause ends early with the agent. One listener for all pauses: an agent can take an hour. */
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

/** Its last words can come to the disk after its status, and be too many. */
async function drained(
  agent: RunningAgent,
  { pause, maxOutputBytes }: AgentLimits & { readonly pause: Pause },
): Promise<Outcome> {
  const start = performance.now();
  let [bytes, quietSince] = [outputBytes(agent.folder), start];
  for (let now = start; now - quietSince < quietMs && now - start < mostDrainMs; now = performance.now()) {
    const hasEnded = agent.hasEnded();
    const size = outputBytes(agent.folder);
    if (size > maxOutputBytes) return "too_much_output";
    if (hasEnded) break;
    if (size !== bytes) [bytes, quietSince] = [size, now];
    await pause(5);
  }
  return "completed";
}

/** Hands on what is new in the two files, in pieces that take no memory to speak of. */
function createRelay(folder: string, { maxOutputBytes, onOutput }: AgentLimits): () => void {
  if (onOutput === undefined) return () => {};
  const told = { stdout: 0, stderr: 0 };
  return () => {
    for (const name of ["stdout", "stderr"] as const) {
      for (;;) {
        const left = Math.min(64 * 1024, maxOutputBytes - told.stdout - told.stderr);
        const chunk = readOutput(folder, name, { start: told[name], maxBytes: left });
        if (chunk.length === 0) break;
        told[name] += chunk.length;
        onOutput(name, chunk);
      }
    }
  };
}

function describeEnd(outcome: Outcome, folder: string, limits: AgentLimits): Omit<AgentEnd, "seconds"> {
  // After an outcome of ours its code tells only how it died of us.
  const code = outcome === "completed" ? (readStatus(folder) ?? null) : null;
  // Asked first: an agent whose words nobody takes any more often ends with a code that says only that.
  const cutSentence = code !== null && isOutputCut(folder) ? unkept : undefined;
  const error = code === null ? sentenceOf(outcome, limits) : (cutSentence ?? describeCode(code));
  return {
    outcome: code === null || error === undefined ? outcome : "failed",
    code,
    answer: readOutput(folder, "stdout", { maxBytes: limits.maxOutputBytes }).toString("utf8"),
    stderr: readLastErrors(folder),
    error,
  };
}

const unkept = "Not all that the agent said could be kept: the disk may be full.";

function sentenceOf(outcome: Outcome, { timeoutMs, maxOutputBytes }: AgentLimits): string | undefined {
  const sentences: Record<Outcome, string | undefined> = {
    completed: undefined,
    timed_out: `The agent was ended after ${timeoutMs / 1000} s, the most that it may take.`,
    too_much_output: `The agent was ended because it printed more than ${formatNumber(maxOutputBytes)} bytes.`,
    interrupted: "The agent was ended because the run was interrupted.",
    lost: "The agent was ended from outside before it could say how it ended.",
  };
  return sentences[outcome];
}

/** A shell tells of a signal as 128 and its number. */
function describeCode(code: number): string | undefined {
  if (code === 0) return undefined;
  const signal = Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
  return signal === undefined
    ? `The agent ended with exit code ${code}.`
    : `The agent ended with exit code ${code} (${signal}).`;
}
