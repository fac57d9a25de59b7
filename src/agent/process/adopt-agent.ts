import { basename } from "node:path";
import { commandNames, isAlive } from "../../workspace/index.ts";
import { abandonAttempt, endedMs, readIdentity, startedMs } from "./attempt-folder.ts";
import type { AgentRun } from "./start-agent.ts";
import { type AgentLimits, watchAgent } from "./watch-agent.ts";

/** Follows an agent that a process before us started, running or ended. Undefined: it never started, and from now on it cannot,
 *  because the claim that its wrapper would need is ours. */
export async function adoptAgent(folder: string, limits: AgentLimits): Promise<AgentRun | undefined> {
  if (isAbandoned(folder)) return undefined;
  const identity = readIdentity(folder);
  const started = startedMs(folder);
  // Numbers are used again, and not every system tells when a process started: our wrapper has the folder in its command line.
  const isOurs = isAlive(identity) && (await commandNames(identity.pid, basename(folder)));
  const agent = {
    folder,
    pid: identity.pid,
    hasEnded: () => !isOurs || !isAlive(identity),
    elapsedMs: () => (endedMs(folder) ?? Date.now()) - started,
  };
  return { end: watchAgent(agent, limits) };
}

function isAbandoned(folder: string): boolean {
  try {
    return abandonAttempt(folder);
  } catch (error) {
    // Without its state there is no attempt: that is made before anything is started.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return true;
    throw error;
  }
}
