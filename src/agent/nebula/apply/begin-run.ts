/** What a run finds of the runs before it, and what it makes of that. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { adoptAgent } from "../../process/adopt-agent.ts";
import { attemptFiles, readStatus } from "../../process/attempt-folder.ts";
import type { AgentRun } from "../../process/start-agent.ts";
import type { AgentLimits } from "../../process/watch-agent.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import { renderTask } from "../files/render-task.ts";
import { type NebulaRecord, type OpenNebulaRecord, runOf } from "../record/nebula-record.ts";
import { freshRecord, resumedRecord } from "../record/record-changes.ts";
import type { SettledOptions } from "./apply-options.ts";
import { dropAnswer } from "./state/answers.ts";
import { isOwnAttempt, listAttempts, removeAttempt } from "./state/attempt-folders.ts";

export interface RunPlace {
  readonly key: string;
  readonly record: OpenNebulaRecord;
  readonly attemptsFolder: string;
  readonly options: SettledOptions;
  /** Ends agents. */
  readonly signal: AbortSignal;
}

export interface Beginning {
  readonly record: NebulaRecord;
  readonly adopted: ReadonlyMap<Phase, AdoptedAgent>;
}

/** An agent that a run before has started. */
export interface AdoptedAgent extends AgentRun {
  /** Else it ended while nobody looked. */
  readonly wasRunning: boolean;
}

/** Starts anew, or goes on where the run before stopped. What the record names is never removed, wherever a kill falls. */
export async function beginRun(nebula: Nebula, place: RunPlace): Promise<Beginning> {
  const { record, attemptsFolder, options, key } = place;
  const before = withOwnAttempts(await record.read(), attemptsFolder);
  await tellChanges(nebula, before, place);
  const adopted = await adoptRunning(nebula, options.resume ? before : undefined, place);
  const left = await endAttempts(options.resume ? foldersOf(nebula, before) : new Set(), place);
  const running = new Set([...adopted.keys()].map(({ id }) => id));
  const begun = await record.change((current) =>
    options.resume ? resumedRecord(current, nebula, running) : freshRecord(current, nebula),
  );
  for (const folder of left) await removeAttempt(folder, attemptsFolder);
  for (const id of idsGone(nebula, before)) await dropAnswer(options.store, { key, phase: id });
  return { record: begun, adopted };
}

/** The record may name any folder: what is no attempt of ours is as good as gone. */
function withOwnAttempts(record: NebulaRecord | undefined, attemptsFolder: string): NebulaRecord | undefined {
  if (record === undefined) return undefined;
  const phases = Object.entries(record.phases).map(([id, { attemptFolder, ...run }]) => {
    const isOwn = attemptFolder !== undefined && isOwnAttempt(attemptFolder, attemptsFolder);
    return [id, isOwn ? { ...run, attemptFolder } : run];
  });
  return { ...record, phases: Object.fromEntries(phases) };
}

function idsGone(nebula: Nebula, before: NebulaRecord | undefined): string[] {
  const ids = new Set(nebula.phases.map(({ id }) => id));
  return Object.keys(before?.phases ?? {}).filter((id) => !ids.has(id));
}

/** Of the attempts that the record names. */
function foldersOf(nebula: Nebula, before: NebulaRecord | undefined): Set<string> {
  const folders = nebula.phases.map(({ id }) => before && runOf(before, id)?.attemptFolder);
  return new Set(folders.filter((each) => each !== undefined));
}

/** Ends every agent of runs before that nobody waits for any more. Gives the folders that nobody needs then. */
async function endAttempts(
  kept: ReadonlySet<string>,
  { attemptsFolder, options }: RunPlace,
): Promise<readonly string[]> {
  const limits = limitsOf(options, AbortSignal.abort());
  const left = (await listAttempts(attemptsFolder)).filter((folder) => !kept.has(folder));
  for (const folder of left)
    if (isOwnAttempt(folder, attemptsFolder)) await (await adopt(folder, limits))?.end;
  return left;
}

async function adoptRunning(
  { phases }: Nebula,
  before: NebulaRecord | undefined,
  { options, signal }: RunPlace,
): Promise<Map<Phase, AdoptedAgent>> {
  const adopted = new Map<Phase, AdoptedAgent>();
  for (const phase of phases) {
    const { state, attemptFolder } = (before && runOf(before, phase.id)) ?? {};
    if (state !== "running" || attemptFolder === undefined) continue;
    const agent = await adopt(attemptFolder, limitsOf(options, signal));
    if (agent !== undefined) adopted.set(phase, agent);
  }
  return adopted;
}

/** An agent that never started is none. Nor is one whose folder somebody has damaged: its phase runs again. */
async function adopt(folder: string, limits: AgentLimits): Promise<AdoptedAgent | undefined> {
  try {
    const wasRunning = readStatus(folder) === undefined;
    const agent = await adoptAgent(folder, limits);
    return agent === undefined ? undefined : { ...agent, wasRunning };
  } catch {
    return undefined;
  }
}

function limitsOf({ timeoutMs, maxOutputBytes }: SettledOptions, signal: AbortSignal): AgentLimits {
  return { timeoutMs, maxOutputBytes, signal };
}

/** What people may not expect: nothing of it stops the run. */
async function tellChanges(
  nebula: Nebula,
  before: NebulaRecord | undefined,
  { options }: RunPlace,
): Promise<void> {
  const { resume, tell } = options;
  const notice = (message: string) => tell({ event: "notice", message });
  if (before === undefined || Object.keys(before.phases).length === 0) {
    if (resume) notice("there is no run to resume: all starts from the beginning");
    return;
  }
  const completed = nebula.phases.filter(({ id }) => runOf(before, id)?.state === "completed");
  if (!resume) {
    if (completed.length > 0)
      notice(`what had completed in the run before runs again (${completed.length}): --resume keeps it`);
    return;
  }
  for (const id of idsGone(nebula, before))
    notice(`phase ${id} is no longer in the nebula: what it reported stays, its claims go`);
  for (const phase of completed) {
    if (await hasChanged(phase, nebula, before))
      notice(
        `phase ${phase.id} has completed and is not run again, though what it is told has changed since`,
      );
  }
}

/** A prompt ends with the task, so the one that was sent tells whether the task is still the same. */
async function hasChanged(phase: Phase, nebula: Nebula, before: NebulaRecord): Promise<boolean> {
  const { attemptFolder } = runOf(before, phase.id) ?? {};
  if (attemptFolder === undefined) return false;
  try {
    const prompt = await readFile(join(attemptFolder, attemptFiles.prompt), "utf8");
    return !prompt.endsWith(renderTask(nebula, phase));
  } catch {
    return false;
  }
}
