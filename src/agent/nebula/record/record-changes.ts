/** The steps in which a record changes while a nebula is applied, each one a whole: pure functions from a record to the next. */
import {
  type AddedReport,
  addWhatFits,
  type Claim,
  emptyFabric,
  type Fabric,
  type FabricReport,
  type FittedReport,
  maxEntries,
  maxEntryLength,
  type PhaseState,
} from "../../../compose/index.ts";
import { formatNumber } from "../../../text/index.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import { type NebulaRecord, type PhaseRun, runOf } from "./nebula-record.ts";

const unstarted = { state: "waiting", attempts: 0, promptTokens: 0, seconds: 0 } as const;

/** All from the beginning. What people added to the fabric stays, what phases reported goes: they will report anew. */
export function freshRecord(record: NebulaRecord | undefined, nebula: Nebula): NebulaRecord {
  const phases = nebula.phases.map(({ id, title }) => [id, { title, ...unstarted }]);
  const fabric = fabricOfPeople(record?.fabric ?? emptyFabric);
  return { ...headOf(nebula), phases: Object.fromEntries(phases), fabric };
}

/** What completed or is in `running` stays so; all else waits again. Phases that are gone go, and with them their claims, since nobody
 *  works there any more; what else they reported stays. */
export function resumedRecord(
  record: NebulaRecord,
  nebula: Nebula,
  running: ReadonlySet<string> = new Set(),
): NebulaRecord {
  const phases = nebula.phases.map(({ id, title }): [string, PhaseRun] => {
    const run = runOf(record, id);
    if (run === undefined) return [id, { title, ...unstarted }];
    const { error: _, ...rest } = run;
    const state = run.state === "completed" || running.has(id) ? run.state : "waiting";
    return [id, { ...rest, title, state }];
  });
  const runs = Object.fromEntries(phases);
  const owners = new Set([person, ...phases.map(([id]) => id)]);
  const waiting = nebula.phases.filter(({ id }) => runs[id]?.state === "waiting");
  const fabric = waiting.reduce(
    (sofar, phase) => withoutOldScope(sofar, phase, runs[phase.id]),
    withoutClaims(record.fabric, ({ owner }) => !owners.has(owner)),
  );
  return { ...headOf(nebula), phases: runs, fabric };
}

/** Without what its scope claimed at the start of the attempt before and does not have now. What its agent claimed stays. */
function withoutOldScope(fabric: Fabric, { scope }: Phase, before: PhaseRun | undefined): Fabric {
  const claimed = new Set(before?.scopeClaims);
  const paths = new Set(scope.map((path) => path.trim()));
  return withoutClaims(fabric, ({ id, path }) => claimed.has(id) && !paths.has(path));
}

function withoutClaims(fabric: Fabric, isGone: (claim: Claim) => boolean): Fabric {
  const claims = fabric.claims.filter((claim) => !isGone(claim));
  return claims.length === fabric.claims.length ? fabric : { ...fabric, claims };
}

function headOf({ name, directory }: Nebula): Pick<NebulaRecord, "version" | "name" | "directory"> {
  return { version: 1, name, directory };
}

/** Entries of people are from `person`; the same word names who `plimsoll fabric add` outside of a phase reports for. */
export const person = "person";

function fabricOfPeople(fabric: Fabric): Fabric {
  const isTheirs = ({ from }: { readonly from: string }) => from === person;
  return {
    entanglements: fabric.entanglements.filter(isTheirs),
    claims: fabric.claims.filter(({ owner }) => owner === person),
    discoveries: fabric.discoveries.filter(isTheirs),
    notes: fabric.notes.filter(isTheirs),
    lastIds: fabric.lastIds,
  };
}

export interface Start {
  readonly promptTokens: number;
  readonly attemptFolder: string;
}

export interface ChangedRecord {
  readonly record: NebulaRecord;
  /** In words what the fabric had no room for. */
  readonly omitted?: string | undefined;
}

/** The phase runs, one attempt more, and claims its scope in place of the one that the attempt before had. */
export function startedRecord(record: NebulaRecord, phase: Phase, start: Start): ChangedRecord {
  const { id, title, scope } = phase;
  const attempts = (runOf(record, id)?.attempts ?? 0) + 1;
  const claims = scope.filter((path) => path.trim() !== "" && path.length <= maxEntryLength);
  const report = { claims: claims.map((path) => ({ path })) };
  const before = withoutOldScope(record.fabric, phase, runOf(record, id));
  const { fabric, ids, omitted } = withReport(before, id, { report });
  const run: PhaseRun = { title, state: "running", attempts, seconds: 0, ...start, scopeClaims: ids.claims };
  return { record: { ...record, phases: { ...record.phases, [id]: run }, fabric }, omitted };
}

export interface End {
  readonly state: PhaseState;
  readonly seconds: number;
  readonly error?: string | undefined;
  readonly report?: FabricReport | undefined;
  /** Of today, for what the phase discovered: YYYY-MM-DD. */
  readonly date?: string | undefined;
  /** Those that cannot run because of it. */
  readonly blocked?: readonly string[] | undefined;
}

/** The phase's end, all that it reported and all that it blocks, in one step. */
export function endedRecord(record: NebulaRecord, { id, title }: Phase, end: End): ChangedRecord {
  const { state, seconds, error, blocked = [] } = end;
  const { error: _, ...kept } = runOf(record, id) ?? { title, ...unstarted };
  const run: PhaseRun = { ...kept, state, seconds, ...(error !== undefined && { error }) };
  const blockedRuns = blocked.map((each) => {
    const before = runOf(record, each) ?? { title: each, ...unstarted };
    return [each, { ...before, state: "blocked", error: `${id} did not complete.` }];
  });
  const phases = { ...record.phases, [id]: run, ...Object.fromEntries(blockedRuns) };
  const { fabric, omitted } = withReport(record.fabric, id, end);
  return { record: { ...record, phases, fabric }, omitted };
}

interface Reported extends AddedReport {
  readonly omitted?: string | undefined;
}

/** What the fabric has no room for must not undo the phase: it is left out, and that is noted where there is room for a note. */
function withReport(
  fabric: Fabric,
  id: string,
  { report = {}, date }: Pick<End, "report" | "date">,
): Reported {
  const fitted = addWhatFits(fabric, report, { from: id, date });
  const omitted = describeOmitted(fitted.omitted);
  const { ids } = fitted;
  if (omitted === undefined) return { fabric: fitted.fabric, ids };
  const note = { kind: "failure" as const, text: omitted };
  return { fabric: addWhatFits(fitted.fabric, { notes: [note] }, { from: id }).fabric, ids, omitted };
}

function describeOmitted(omitted: FittedReport["omitted"]): string | undefined {
  const counts = Object.entries(omitted).filter(([, count]) => count > 0);
  if (counts.length === 0) return undefined;
  const kinds = counts.map(([kind, count]) => `${formatNumber(count)} of its ${kind}`).join(", ");
  return `the fabric is full and does not have ${kinds}: it keeps ${formatNumber(maxEntries)} of a kind`;
}
