/** Begins a run of a plan: settles what earlier runs left, adopts their agents, and reports what has changed since. */

import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ContextError } from "../../core/errors.ts";
import { countNoun, formatNumber } from "../../core/text/index.ts";
import { readForeignText, textLimit } from "../../host/index.ts";
import { type AgentLimits, type AgentRun, adoptAgent, attemptFiles, openAttempt } from "../agent/index.ts";
import type { SettledOptions } from "./application.ts";
import type { Attempts } from "./attempt-folders.ts";
import { isDeadHere, leasedRecord, leaseOf, lostLeases, type OwnRun, otherLeases } from "./leases.ts";
import { type Nebula, type Phase, withDependents } from "./nebula.ts";
import {
  type Lease,
  mapRuns,
  type NebulaRecord,
  type OpenNebulaRecord,
  type PhaseRun,
  runOf,
  writeAnswer,
} from "./nebula-record.ts";
import { renderTask, withoutClaims } from "./phase-prompt.ts";
import { freshRecord, resetRecord, resumedRecord } from "./record-changes.ts";
import { existsError } from "./shared-branch.ts";
import { nameBranches } from "./worktrees.ts";

/** Where a run finds the state of earlier runs. */
interface RunPlace {
  readonly key: string;
  readonly record: OpenNebulaRecord;
  readonly attempts: Attempts;
  readonly options: SettledOptions;
  readonly signal: AbortSignal;
  readonly own: OwnRun;
  /** Whether the nebula's branch was on the remote before. */
  readonly hasBranch: boolean;
}

export interface Beginning {
  readonly record: NebulaRecord;
  readonly adopted: ReadonlyMap<Phase, AdoptedAgent>;
  /** Whether another machine has started the run. */
  readonly joins: boolean;
}

/** An agent that an earlier run started. */
export interface AdoptedAgent extends AgentRun {
  /** False if it ended while no run was watching. */
  readonly wasRunning: boolean;
}

/** Starts again, continues the last run, or joins the run of another machine. Never removes what the record names, even
 *  if it is killed at any point. */
export async function beginRun(nebula: Nebula, place: RunPlace): Promise<Beginning> {
  const { record, attempts, options, key, own } = place;
  const again = new Set(withDependents(nebula.phases, options.rerun ?? []).map(({ id }) => id));
  let admission = await admitRun(nebula, place);
  const continues = options.resume || admission.joins;
  const found = await record.read();
  const before =
    found &&
    resetRecord(
      mapRuns(found, (run) => dropForeignAttempt(run, place)),
      again,
    );
  checkOnly(nebula, before, options);
  if (!admission.joins) await reportChanges(nebula, before, options);
  const adopted = await adoptRunning(nebula, continues ? before : undefined, place);
  const runs = nebula.phases.flatMap(({ id }) => {
    const run = continues && before && runOf(before, id);
    return run ? { id, ...run } : [];
  });
  const left = await endAttempts(new Set(runs.map(({ attemptFolder }) => attemptFolder)), place);
  const running = new Set([...adopted.keys()].map(({ id }) => id));
  const reviewed = runs.filter(
    ({ awaits, machine }) => awaits !== undefined && (machine === undefined || machine.id === own.machine.id),
  );
  const kept = new Set([...running, ...reviewed.map(({ id }) => id)]);
  const begin = (current: NebulaRecord) => {
    // Another machine has the worktree that waits for a merge, so the phase runs again here.
    const settled = mapRuns(lostLeases(current, admission.dead, kept), ({ awaits, ...run }) => {
      const isElsewhere = awaits === "merge" && run.machine?.id !== own.machine.id;
      return awaits === undefined || isElsewhere ? run : { ...run, awaits };
    });
    const resumed = () => resumedRecord(resetRecord(settled, again), nebula, running);
    const next = admission.joins ? settled : options.resume ? resumed() : freshRecord(settled, nebula);
    return leasedRecord(next, own, kept);
  };
  let begun: NebulaRecord | undefined;
  while (begun === undefined) {
    let isSame = false;
    const after = await record.change((current) => {
      const live = Object.keys(current.leases ?? {}).filter((id) => !admission.dead.includes(id));
      isSame = live.length === admission.live.length && live.every((id) => admission.live.includes(id));
      return isSame ? begin(current) : current;
    });
    if (isSame) begun = after;
    // Another run has begun or ended at the same moment.
    else admission = await admitRun(nebula, place);
  }
  for (const folder of left) await attempts.remove(folder);
  if (!admission.joins)
    for (const id of findRemovedIds(nebula, before)) await writeAnswer(options.store, { key, phase: id }, undefined);
  return { record: begun, adopted, joins: admission.joins };
}

/** Finds out who works on the nebula: `live` runs, and `dead` ones that have ended without giving up their lease. Throws if
 *  this run must not join the live ones. */
async function admitRun(nebula: Nebula, { record, options, own, hasBranch, signal }: RunPlace) {
  const current = (await record.read()) ?? freshRecord(undefined, nebula);
  const dead: string[] = [];
  const live: [id: string, lease: Lease][] = [];
  for (const [id, lease] of otherLeases(current, own.id)) {
    const isAlive = !isDeadHere(lease, own) && (await isRunAlive([id, lease], { record, options, signal }));
    if (isAlive) live.push([id, lease]);
    else dead.push(id);
  }
  for (const [, lease] of live) requireSharing(nebula, lease, { own, options });
  if (options.resume && current.remote !== undefined && own.remote === undefined) {
    const hint = `Use --worktrees --remote ${current.remote}, or leave --resume out to start again.`;
    throw new ContextError("invalid_content", `the last run was shared through ${current.remote}`, { hint });
  }
  if (live.length === 0 && hasBranch && !options.resume)
    throw existsError(nameBranches(nebula.name).branch, own.remote!);
  for (const [, { machine }] of live)
    options.onEvent({ event: "notice", message: `joins the run that ${machine.name} is working on` });
  return { dead, joins: live.length > 0, live: live.map(([id]) => id) };
}

/** Whether a run is alive. If its lease looks expired, waits for a renewal as long as the lease lasts, because the
 *  clocks of the two machines may differ. */
async function isRunAlive(
  [id, lease]: readonly [id: string, lease: Lease],
  { record, options, signal }: Pick<RunPlace, "record" | "options" | "signal">,
): Promise<boolean> {
  const { machine, leaseMs, renewed } = lease;
  if (Date.now() - Date.parse(renewed) < leaseMs) return true;
  const seconds = formatNumber(Math.ceil(leaseMs / 1000));
  const message = `${machine.name} was last seen at ${renewed}. Waiting up to ${seconds} s for a sign from it`;
  options.onEvent({ event: "notice", message });
  const deadline = performance.now() + leaseMs;
  while (performance.now() < deadline && !signal.aborted) {
    await sleep(Math.min(leaseMs / 10, 1_000), undefined, { signal }).catch(() => {});
    const current = await record.read();
    const now = current && leaseOf(current, id);
    if (now?.beats !== lease.beats) return now !== undefined;
  }
  return false;
}

/** Throws unless this run and another one that is alive can share their work. */
function requireSharing(nebula: Nebula, lease: Lease, { own, options }: Pick<RunPlace, "own" | "options">): void {
  const isHere = lease.machine.id === own.machine.id;
  const who = isHere ? `process ${lease.process.pid}` : `the machine ${lease.machine.name}`;
  const refuse = (why: string, hint: string) => {
    throw new ContextError("write_failed", `${who} is already applying the nebula ${nebula.name}${why}`, { hint });
  };
  if (own.remote === undefined)
    refuse("", "Wait until it ends, or share the run: use --worktrees and --remote NAME on every machine.");
  if (lease.remote === undefined)
    refuse(", and works alone", "Stop it, and start it again with --worktrees and --remote NAME.");
  if (lease.plan !== own.plan)
    refuse(" with other phases or tasks", "Check out the same version of the nebula on every machine.");
  if (options.rerun !== undefined) refuse("", "Use --rerun when it has ended.");
}

/** Throws if a phase in `only` depends on a phase that has not completed and is not in `only` itself. */
function checkOnly({ phases }: Nebula, before: NebulaRecord | undefined, { only = [] }: SettledOptions): void {
  const isCompleted = (id: string) => before !== undefined && runOf(before, id)?.state === "completed";
  for (const { id, dependsOn } of phases.filter((phase) => only.includes(phase.id))) {
    const missing = dependsOn.filter((each) => !isCompleted(each) && !only.includes(each));
    if (missing.length === 0) continue;
    throw new ContextError("invalid_argument", `phase ${id} needs ${missing.join(", ")}, not completed yet`, {
      hint: "Run these phases first, or name them too.",
    });
  }
}

/** Drops an attempt folder that this program did not create on this machine. */
function dropForeignAttempt({ attemptFolder, ...run }: PhaseRun, { attempts, own }: RunPlace): PhaseRun {
  const isHere = run.machine === undefined || run.machine.id === own.machine.id;
  return attemptFolder !== undefined && isHere && attempts.isOwn(attemptFolder) ? { ...run, attemptFolder } : run;
}

/** Returns the ids of phases in the record that are no longer in the nebula. */
function findRemovedIds(nebula: Nebula, before: NebulaRecord | undefined): string[] {
  const ids = new Set(nebula.phases.map(({ id }) => id));
  return Object.keys(before?.phases ?? {}).filter((id) => !ids.has(id));
}

/** Ends agents of earlier runs that are no longer needed. Returns the folders to remove. */
async function endAttempts(
  kept: ReadonlySet<string | undefined>,
  { attempts, options }: RunPlace,
): Promise<readonly string[]> {
  const limits = { ...options, signal: AbortSignal.abort() };
  const left = (await attempts.list()).filter((folder) => !kept.has(folder));
  for (const folder of left) {
    if (!attempts.isOwn(folder)) continue;
    await (await adopt(folder, limits))?.end;
    await attempts.endLeftovers(folder);
  }
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
    const agent = await adopt(attemptFolder, { ...options, signal });
    if (agent !== undefined) adopted.set(phase, agent);
  }
  return adopted;
}

/** Adopts an agent. Returns undefined if it never started or its folder is damaged: then its phase runs again. */
async function adopt(
  folder: string,
  { timeoutMs, maxOutputBytes, signal }: AgentLimits,
): Promise<AdoptedAgent | undefined> {
  try {
    const wasRunning = openAttempt(folder).status() === undefined;
    const agent = await adoptAgent(folder, { timeoutMs, maxOutputBytes, signal });
    return agent === undefined ? undefined : { ...agent, wasRunning };
  } catch {
    return undefined;
  }
}

/** Reports what people may not expect. None of it stops the run. */
async function reportChanges(
  nebula: Nebula,
  before: NebulaRecord | undefined,
  { resume, onEvent }: SettledOptions,
): Promise<void> {
  const notice = (message: string) => onEvent({ event: "notice", message });
  if (before === undefined || Object.keys(before.phases).length === 0) {
    if (resume) notice("there is no run to resume, so every phase starts");
    return;
  }
  const completed = nebula.phases.filter(({ id }) => runOf(before, id)?.state === "completed");
  if (!resume) {
    if (completed.length > 0)
      notice(
        `${countNoun(completed.length, "completed phase")} of the last run will run again. Use --resume to keep the results`,
      );
    return;
  }
  for (const id of findRemovedIds(nebula, before))
    notice(`phase ${id} is no longer in the nebula; its reports stay, its claims are removed`);
  for (const phase of completed) {
    const { attemptFolder } = runOf(before, phase.id) ?? {};
    if (attemptFolder === undefined) continue;
    const prompt = readForeignText(join(attemptFolder, attemptFiles.prompt), { refuseLink: true, ...textLimit });
    // A prompt ends with the task, so the stored prompt shows whether the task has changed. An agent that continues its
    // session gets a prompt without the task, so such a prompt is not compared.
    if (
      "text" in prompt &&
      prompt.text.includes("\n## This phase\n") &&
      !withoutClaims(prompt.text).endsWith(withoutClaims(renderTask(nebula, phase)))
    )
      notice(`phase ${phase.id} has completed and does not run again, although its task has changed since then`);
  }
}
