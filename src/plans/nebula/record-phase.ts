/** Writes what happens to a phase into the record, if the phase still belongs to this run, and reports it. */
import { findSpokenStream } from "../agent/index.ts";
import type { Application } from "./application.ts";
import { findOutputFile } from "./attempt-folders.ts";
import { claimedRecord, type OwnRun } from "./leases.ts";
import type { Phase } from "./nebula.ts";
import { type NebulaRecord, runOf } from "./nebula-record.ts";
import { type ChangedRecord, type End, endedRecord, type Start, startedRecord } from "./record-changes.ts";
import { type Grant, grantFor } from "./spending.ts";
import type { VerifiedEnd } from "./verify-work.ts";

/** Records that an attempt runs, unless its limits leave no money for it. */
export async function recordStart(
  phase: Phase,
  start: Start,
  application: Application,
): Promise<{ readonly after: NebulaRecord } & Grant> {
  const limits = { nebula: application.sources.nebula, maxWorkers: application.options.maxWorkers };
  let grant: Grant = {};
  const { after, isOurs } = await changeRecord(phase, application, (current) => {
    grant = grantFor(phase, current, limits);
    if (grant.refusal !== undefined) return { record: current };
    return startedRecord(current, phase, { ...start, budgetUsd: grant.budgetUsd });
  });
  return { after, ...grant, ...(!isOurs && { refusal: "another machine has taken it over" }) };
}

/** Leaves a phase waiting and says why. */
export async function holdPhase(phase: Phase, error: string, application: Application): Promise<void> {
  const { record, schedule, onEvent, own } = application;
  await record.change((current) => {
    const owned = ownedRecord(current, phase.id, own);
    if (owned === undefined) return current;
    const { claimedBy: _, ...held } = runOf(owned, phase.id)!;
    return { ...current, phases: { ...current.phases, [phase.id]: { ...held, error } } };
  });
  schedule.hold(phase.id);
  onEvent({ event: "notice", phase: phase.id, message: `not started: ${error}` });
}

/** Whether the phase still belongs to this run. */
export async function isOurs({ id }: Phase, { record, own }: Application): Promise<boolean> {
  const current = await record.read();
  return current !== undefined && runOf(current, id)?.claimedBy === own.id;
}

/** Returns the record in which the phase belongs to this run, or undefined if it belongs to another one. */
export function ownedRecord(current: NebulaRecord, id: string, own: OwnRun): NebulaRecord | undefined {
  const record = own.remote === undefined ? claimedRecord(current, id, own.id) : current;
  return runOf(record, id)?.claimedBy === own.id ? record : undefined;
}

export async function recordFailure(
  phase: Phase,
  failure: Omit<Ended, "state">,
  application: Application,
): Promise<void> {
  const { schedule, onEvent } = application;
  const blocked = schedule.end(phase.id, "failed");
  await recordEnd(phase, { ...failure, state: "failed", blocked }, application);
  for (const each of blocked) onEvent({ event: "blocked", phase: each, by: phase.id });
}

/** Describes a failure with the last 5 lines of output. */
export function explainFailure({
  error = "The agent failed.",
  hint,
  stderr,
  answer,
  verdict,
}: Pick<VerifiedEnd, "error" | "hint" | "stderr" | "answer" | "verdict">): string {
  if (verdict !== undefined) return error;
  // The agent ended by itself, so its last output is not about the failure.
  if (hint !== undefined) return `${error} ${hint}`;
  const output = { stderr, stdout: answer };
  const stream = findSpokenStream(output);
  if (stream === undefined) return error;
  return `${error}\n${output[stream].trimEnd().split("\n").slice(-5).join("\n").slice(-1_000)}`;
}

export type Ended = Omit<End, "date"> & { readonly state: "completed" | "failed" | "waiting" };

/** Records the end of a phase, and reports it. Returns false, and does neither, if another run has taken the phase. */
export async function recordEnd(phase: Phase, end: Ended, application: Application): Promise<boolean> {
  const date = new Date().toISOString().slice(0, 10);
  const change = (current: NebulaRecord) => endedRecord(current, phase, { ...end, date });
  const { after, isOurs } = await changeRecord(phase, application, change);
  if (!isOurs) return false;
  // A person is asked about the work next.
  if (end.awaits === "review") return true;
  const { state, seconds, error, usage, costUsd, checks, isContinued } = end;
  const { outcome, attemptFolder, promptTokens = 0 } = runOf(after, phase.id) ?? {};
  const { options, sources, onEvent } = application;
  const place = { ...options, directory: sources.nebula.directory };
  onEvent({
    event: "ended",
    phase: phase.id,
    state,
    ...(outcome !== undefined && { outcome }),
    seconds,
    promptTokens,
    ...(usage !== undefined && { usage }),
    ...(costUsd !== undefined && { costUsd }),
    ...(checks !== undefined && { checks }),
    ...(isContinued && { isContinued }),
    error,
    ...(state === "failed" && findOutputFile(attemptFolder, place)),
  });
  return true;
}

/** Changes the record in one step if the phase still belongs to this run, and reports what did not fit into the
 *  fabric. Otherwise changes nothing, and `isOurs` is false. */
async function changeRecord(
  phase: Phase,
  { record, onEvent, own }: Application,
  change: (current: NebulaRecord) => ChangedRecord,
): Promise<{ readonly after: NebulaRecord; readonly isOurs: boolean }> {
  let [isOurs, omitted]: [boolean, string?] = [false];
  const after = await record.change((current) => {
    const owned = ownedRecord(current, phase.id, own);
    isOurs = owned !== undefined;
    const changed = owned === undefined ? { record: current } : change(owned);
    omitted = changed.omitted;
    return changed.record;
  });
  if (omitted !== undefined) onEvent({ event: "notice", phase: phase.id, message: omitted });
  return { after, isOurs };
}

export function readCounts(record: NebulaRecord, id: string): { attempt: number; promptTokens: number } {
  const { attempts = 0, promptTokens = 0 } = runOf(record, id) ?? {};
  return { attempt: attempts, promptTokens };
}
