/** The steps in which a record changes during a run: pure functions from one record to the next. */

import { formatNumber } from "../../core/text/index.ts";
import {
  addWhatFits,
  type Claim,
  emptyFabric,
  type Fabric,
  type FabricReport,
  type FittedReport,
  maxEntries,
  maxEntryLength,
  type PhaseState,
} from "../compose/index.ts";
import type { Nebula, Phase } from "./nebula.ts";
import { type AttemptRecord, mapRuns, type NebulaRecord, type PhaseRun, runOf } from "./nebula-record.ts";

const unstarted = { state: "waiting", attempts: 0, promptTokens: 0, seconds: 0 } as const;

/** Starts from the beginning. Keeps what people added to the fabric and drops what phases reported. */
export function freshRecord(record: NebulaRecord | undefined, nebula: Nebula): NebulaRecord {
  const phases = nebula.phases.map(({ id, title }) => [id, { title, ...unstarted }]);
  return {
    version: 1,
    name: nebula.name,
    directory: nebula.directory,
    phases: Object.fromEntries(phases),
    fabric: filterReports(record?.fabric ?? emptyFabric, (reporter) => reporter === person),
  };
}

/** Keeps what some reporters added to the fabric. */
function filterReports(fabric: Fabric, isKept: (reporter: string) => boolean): Fabric {
  return {
    ...fabric,
    entanglements: fabric.entanglements.filter(({ from }) => isKept(from)),
    claims: fabric.claims.filter(({ owner }) => isKept(owner)),
    discoveries: fabric.discoveries.filter(({ from }) => isKept(from)),
    notes: fabric.notes.filter(({ from }) => isKept(from)),
  };
}

/** Keeps phases that completed or are in `running`; all others wait again. Removes phases that are no longer in the
 *  nebula with their claims, and keeps their other reports. */
export function resumedRecord(
  record: NebulaRecord,
  nebula: Nebula,
  running: ReadonlySet<string> = new Set(),
): NebulaRecord {
  const phases = nebula.phases.map(({ id, title }): [string, PhaseRun] => {
    const run = runOf(record, id);
    if (run === undefined) return [id, { title, ...unstarted }];
    const { error: _, outcome: __, cycles, ...kept } = run;
    const rest = running.has(id) && cycles !== undefined ? { ...kept, cycles } : kept;
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
  return { version: 1, name: nebula.name, directory: nebula.directory, phases: runs, fabric };
}

/** Lets phases run again: they wait, and everything that they reported is removed. What their attempts cost stays,
 *  because limits count all attempts. */
export function resetRecord(record: NebulaRecord, ids: ReadonlySet<string>): NebulaRecord {
  if (ids.size === 0) return record;
  const fabric = filterReports(record.fabric, (reporter) => !ids.has(reporter));
  const reset = mapRuns(record, (run, id) => {
    const { title, attempts, history } = run;
    return ids.has(id) ? { ...unstarted, title, attempts, ...(history !== undefined && { history }) } : run;
  });
  return { ...reset, fabric };
}

/** Removes claims of the last attempt's scope that are no longer in the scope. Keeps what its agent claimed. */
function withoutOldScope(fabric: Fabric, { scope }: Phase, before: PhaseRun | undefined): Fabric {
  const claimed = new Set(before?.scopeClaims);
  const paths = new Set(scope.map((path) => path.trim()));
  return withoutClaims(fabric, ({ id, path }) => claimed.has(id) && !paths.has(path));
}

function withoutClaims(fabric: Fabric, isGone: (claim: Claim) => boolean): Fabric {
  const claims = fabric.claims.filter((claim) => !isGone(claim));
  return claims.length === fabric.claims.length ? fabric : { ...fabric, claims };
}

/** The reporter of entries by people, which `plimsoll fabric add` uses outside of a phase. */
export const person = "person";

export interface Start
  extends Pick<
    PhaseRun,
    "agent" | "model" | "budgetUsd" | "scopeState" | "claimedBy" | "machine" | "base" | "session"
  > {
  readonly promptTokens: number;
  readonly attemptFolder: string;
}

export interface ChangedRecord {
  readonly record: NebulaRecord;
  /** A sentence about what did not fit into the fabric. */
  readonly omitted?: string | undefined;
}

/** Starts an attempt of a phase, and replaces the claims of its last attempt by its scope. */
export function startedRecord(record: NebulaRecord, phase: Phase, start: Start): ChangedRecord {
  const { id, title, scope } = phase;
  const { attempts: earlier = 0, history, feedback, cycles = 0 } = runOf(record, id) ?? {};
  const attempts = earlier + 1;
  const claims = scope.filter((path) => path.trim() !== "" && path.length <= maxEntryLength);
  const report = { claims: claims.map((path) => ({ path })) };
  const before = withoutOldScope(record.fabric, phase, runOf(record, id));
  const { fabric, ids, omitted } = addReport(before, id, { report });
  const kept = {
    ...start,
    scopeClaims: ids.claims,
    cycles: cycles + 1,
    ...(feedback !== undefined && { feedback }),
    ...(history !== undefined && { history }),
  };
  const run: PhaseRun = { title, state: "running", attempts, seconds: 0, ...kept };
  return { record: { ...record, phases: { ...record.phases, [id]: run }, fabric }, omitted };
}

export interface End {
  readonly state: PhaseState;
  readonly seconds: number;
  readonly error?: string | undefined;
  readonly report?: FabricReport | undefined;
  /** Date of discoveries, as YYYY-MM-DD. */
  readonly date?: string | undefined;
  /** Phases that cannot run because of it. */
  readonly blocked?: readonly string[] | undefined;
  readonly outcome?: string | undefined;
  readonly usage?: AttemptRecord["usage"];
  readonly costUsd?: number | undefined;
  readonly awaits?: PhaseRun["awaits"];
  readonly checks?: AttemptRecord["checks"];
  /** Null ends the session of the phase. */
  readonly session?: PhaseRun["session"] | null;
  /** What the prompt of the next attempt says about this one. Null if nothing. */
  readonly feedback?: string | null | undefined;
  /** Whether this run starts the next attempt. */
  readonly isContinued?: boolean | undefined;
}

/** Leaves out fields without a value, which JSON would leave out, too. */
function defined<Value extends object>(value: Value): Partial<Value> {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Partial<Value>;
}

/** The reasons why an attempt does not count although its agent ended by itself. */
const rejections: readonly string[] = [
  "denied",
  "unchanged",
  "over_budget",
  "check_failed",
  "outside_scope",
  "findings",
  "rejected",
  "conflict",
  "skipped",
];

/** Records the end of a phase, its reports and the phases that it blocks, in one step. */
export function endedRecord(record: NebulaRecord, { id, title }: Phase, end: End): ChangedRecord {
  const { state, seconds, error, blocked = [], awaits } = end;
  const { error: _, outcome: __, awaits: ___, lost: ____, ...before } = runOf(record, id) ?? { title, ...unstarted };
  const { claimedBy, scopeState, base, session: lastSession, feedback: lastFeedback, ...rest } = before;
  // Nobody compares the files of a completed phase again, and every write stores the whole record.
  const kept = { ...rest, ...(state !== "completed" && scopeState !== undefined && { scopeState }) };
  // The agent ended by itself, and its work does not count.
  const outcomeOfPhase = rejections.includes(end.outcome ?? "") ? end.outcome : undefined;
  // The run that asks a person about the phase, or starts the next attempt, keeps it.
  const isKept = awaits !== undefined || end.isContinued === true;
  const ended = defined({ error, outcome: outcomeOfPhase, awaits, claimedBy: isKept ? claimedBy : undefined });
  const forNext = defined({
    base,
    session: (end.session === undefined ? lastSession : end.session) ?? undefined,
    feedback: (end.feedback === undefined ? lastFeedback : end.feedback) ?? undefined,
  });
  // An attempt that a person reviews ends twice, and its cost counts once.
  const earlier = (kept.history ?? []).filter(({ attempt }) => attempt !== kept.attempts);
  const { outcome = state, usage, costUsd, checks } = end;
  const { attempts, promptTokens } = kept;
  const attempt = { attempt: attempts, outcome, seconds, promptTokens, ...defined({ usage, costUsd, checks }) };
  // Only the newest attempts of a phase are kept.
  const history = [...earlier, attempt].slice(-100);
  const run: PhaseRun = { ...kept, state, seconds, ...ended, ...(state !== "completed" && forNext), history };
  const blockedRuns = blocked.map((each) => {
    const before = runOf(record, each) ?? { title: each, ...unstarted };
    return [each, { ...before, state: "blocked", error: `${id} did not complete.` }];
  });
  const phases = { ...record.phases, [id]: run, ...Object.fromEntries(blockedRuns) };
  const { fabric, omitted } = addReport(record.fabric, id, end);
  return { record: { ...record, phases, fabric }, omitted };
}

/** Adds a report. Leaves out what does not fit. Adds a note about that, if there is room for one. */
function addReport(
  fabric: Fabric,
  id: string,
  { report = {}, date }: Pick<End, "report" | "date">,
): Omit<FittedReport, "omitted"> & { readonly omitted?: string } {
  const fitted = addWhatFits(fabric, report, { from: id, date });
  const { ids } = fitted;
  const counts = Object.entries(fitted.omitted).filter(([, count]) => count > 0);
  if (counts.length === 0) return { fabric: fitted.fabric, ids };
  const kinds = counts.map(([kind, count]) => `${formatNumber(count)} of its ${kind}`).join(", ");
  const omitted = `the fabric is full. Left out: ${kinds}. It keeps at most ${formatNumber(maxEntries)} of each kind`;
  const note = { kind: "failure" as const, text: omitted };
  return { fabric: addWhatFits(fitted.fabric, { notes: [note] }, { from: id }).fabric, ids, omitted };
}
