/** One phase from its prompt to its end. What is written, in this order: that it runs and where; the answer; then its end with all that it
 *  reported, in one step. Killed between any two, a later run knows what to do. */
import { type AgentRun, startAgent } from "../../process/start-agent.ts";
import type { Phase } from "../files/nebula.ts";
import { runOf } from "../record/nebula-record.ts";
import { freshRecord, startedRecord } from "../record/record-changes.ts";
import type { Application } from "./application.ts";
import type { PhaseStarted } from "./apply-event.ts";
import type { AdoptedAgent } from "./begin-run.ts";
import { changeRecord, completePhase, factsOf, failPhase, recordEnd } from "./end-phase.ts";
import { type PhasePrompt, phasePrompt } from "./phase-prompt.ts";
import { newAttemptFolder, removeAttempt } from "./state/attempt-folders.ts";

/** Runs the phase and tells the schedule how it ended. */
export async function runPhase(phase: Phase, application: Application): Promise<void> {
  const { record, tell, attemptsFolder, stop, options } = application;
  const before = (await record.read()) ?? freshRecord(undefined, application.sources.nebula);
  const prompt = await phasePrompt(phase, before, application.sources);
  const last = runOf(before, phase.id);
  const attemptFolder = newAttemptFolder(attemptsFolder, phase.id, (last?.attempts ?? 0) + 1);
  if (stop.signal.aborted) return application.schedule.hold(phase.id);
  const start = { promptTokens: prompt.tokens, attemptFolder };
  const after = await changeRecord(phase, application, (current) => startedRecord(current, phase, start));
  tell({ event: "started", phase: phase.id, ...factsOf(after, phase.id), adopted: false, ...cutsOf(prompt) });
  const { command, cwd, env, timeoutMs, maxOutputBytes } = options;
  const limits = { timeoutMs, maxOutputBytes, signal: stop.signal };
  const agent = startAgent({
    command: command(phase),
    prompt: prompt.text,
    folder: attemptFolder,
    cwd,
    env: { ...env, ...environmentOf(phase, application) },
    ...limits,
  });
  await Promise.all([
    followPhase(phase, agent, application),
    last?.attemptFolder === undefined ? undefined : removeAttempt(last.attemptFolder, attemptsFolder),
  ]);
}

/** What the agent, and every `plimsoll fabric` that it calls, knows of where it is. */
function environmentOf(phase: Phase, { sources, options }: Application): Record<string, string> {
  return {
    PLIMSOLL_NEBULA: sources.nebula.directory,
    PLIMSOLL_PHASE: phase.id,
    PLIMSOLL_STORE: options.storeFile,
  };
}

function cutsOf({ layers, overflow }: PhasePrompt): Pick<PhaseStarted, "truncated" | "overflow"> {
  return { truncated: layers.filter(({ truncated }) => truncated).map(({ name }) => name), overflow };
}

async function followPhase(phase: Phase, agent: AgentRun, application: Application): Promise<void> {
  const end = await agent.end;
  return end.outcome === "completed"
    ? completePhase(phase, end, application)
    : failPhase(phase, end, application);
}

/** Waits for an agent of the run before. One that did not complete while nobody looked is run again, as all that failed then are. */
export async function followAdopted(
  phase: Phase,
  agent: AdoptedAgent,
  application: Application,
): Promise<void> {
  const { record, tell, schedule } = application;
  const current = await record.read();
  if (current !== undefined)
    tell({ event: "started", phase: phase.id, ...factsOf(current, phase.id), adopted: true });
  const end = await agent.end;
  const wasMissed = !agent.wasRunning || end.outcome === "lost";
  if (!wasMissed || end.outcome === "completed") return followPhase(phase, agent, application);
  const { seconds, error } = end;
  await recordEnd(phase, { state: "waiting", seconds, error }, application);
  schedule.again(phase.id);
}
