/** Who works on which phase: functions from one record to the next. A run has one lease for all its phases. A phase
 *  belongs to the run that has claimed it, until the phase ends or the run is lost. */
import { basename } from "node:path";
import { isAlive, type Machine, ownIdentity } from "../../host/index.ts";
import { type Lease, mapRuns, type NebulaRecord, type PhaseRun, runOf } from "./nebula-record.ts";

/** A run of a nebula on this machine. */
export interface OwnRun {
  /** Random, so that every run has an id of its own. */
  readonly id: string;
  readonly machine: Machine;
  /** A name made from the folder and the store. On one machine, only one run at a time can have it. */
  readonly place: string;
  readonly leaseMs: number;
  /** The git remote, if the run shares its work. */
  readonly remote?: string | undefined;
  /** A hash of the plan. */
  readonly plan: string;
}

/** Returns the leases of other runs, by their ids. */
export function otherLeases({ leases = {} }: NebulaRecord, run: string): [id: string, lease: Lease][] {
  return Object.entries(leases).filter(([id]) => id !== run);
}

/** Adds the lease of a run, or renews it, and gives it the phases in `kept`. */
export function leasedRecord(record: NebulaRecord, own: OwnRun, kept: ReadonlySet<string> = new Set()): NebulaRecord {
  const { id, machine, place, leaseMs, remote, plan } = own;
  const lease = {
    machine,
    place,
    process: ownIdentity(),
    beats: (leaseOf(record, id)?.beats ?? 0) + 1,
    leaseMs,
    renewed: new Date().toISOString(),
    ...(remote !== undefined && { remote }),
    plan,
  };
  const claimed = mapRuns(record, (run, phase) => (kept.has(phase) ? { ...run, claimedBy: id } : run));
  return { ...claimed, ...(remote !== undefined && { remote }), leases: { ...record.leases, [id]: lease } };
}

/** Renews the lease of a run. Returns the same record if the run has no lease any more. */
export function renewedRecord(record: NebulaRecord, own: OwnRun): NebulaRecord {
  return leaseOf(record, own.id) === undefined ? record : leasedRecord(record, own);
}

export function leaseOf({ leases = {} }: NebulaRecord, run: string): Lease | undefined {
  return Object.hasOwn(leases, run) ? leases[run] : undefined;
}

/** Whether a run of this machine has ended without giving up its lease. If the lease has the same place as this run,
 *  its run has ended, because only one run at a time can have a place. */
export function isDeadHere({ machine, place, process }: Lease, own: OwnRun): boolean {
  return machine.id === own.machine.id && (place === own.place || !isAlive(process));
}

/** Claims a waiting phase for a run that has a lease. Returns the same record if the phase does not wait, or waits for a
 *  review. */
export function claimedRecord(record: NebulaRecord, id: string, by: string): NebulaRecord {
  const run = leaseOf(record, by) && runOf(record, id);
  if (run === undefined || run.state !== "waiting" || run.awaits !== undefined || isClaimed(record, run)) return record;
  return { ...record, phases: { ...record.phases, [id]: { ...run, claimedBy: by } } };
}

/** Whether a run that has a lease has claimed the phase. */
export function isClaimed(record: NebulaRecord, { claimedBy }: PhaseRun): boolean {
  return claimedBy !== undefined && leaseOf(record, claimedBy) !== undefined;
}

/** Ends the lease of a run that has nothing left to do. Its phases belong to nobody. */
export function endedLease(record: NebulaRecord, run: string): NebulaRecord {
  return withoutLeases(
    mapRuns(record, (each) => (each.claimedBy === run ? withoutClaim(each) : each)),
    [run],
  );
}

/** Ends the leases of lost runs. Their phases wait again, except those in `kept`, which this machine continues. */
export function lostLeases(
  record: NebulaRecord,
  runs: readonly string[],
  kept: ReadonlySet<string> = new Set(),
): NebulaRecord {
  const isLost = (id: string, { claimedBy }: PhaseRun) =>
    claimedBy !== undefined && runs.includes(claimedBy) && !kept.has(id);
  const lost = mapRuns(record, (run, id) => (isLost(id, run) ? lostRun(run) : run));
  return withoutLeases(lost, runs);
}

function lostRun(run: PhaseRun): PhaseRun {
  const { attemptFolder, awaits, ...rest } = withoutClaim(run);
  const hasStarted = run.state === "running" || awaits !== undefined;
  // Its folder is on the other machine.
  const lost = hasStarted &&
    attemptFolder !== undefined && { attempt: basename(attemptFolder), machine: run.machine?.name ?? "" };
  return { ...rest, state: hasStarted ? "waiting" : run.state, ...(lost && { lost }) };
}

/** Gives a phase back that its run has claimed and cannot start. */
export function unclaimedRecord(record: NebulaRecord, id: string, run: string): NebulaRecord {
  return mapRuns(record, (each, other) => (other === id && each.claimedBy === run ? withoutClaim(each) : each));
}

function withoutClaim({ claimedBy: _, ...run }: PhaseRun): PhaseRun {
  return run;
}

function withoutLeases({ leases = {}, ...record }: NebulaRecord, runs: readonly string[]): NebulaRecord {
  const left = Object.entries(leases).filter(([id]) => !runs.includes(id));
  return left.length === 0 ? record : { ...record, leases: Object.fromEntries(left) };
}
