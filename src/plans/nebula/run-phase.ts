/** Runs one phase from its prompt to its end. It writes, in this order: that the phase runs and where; the answer;
 *  its end with all reports in one step. After a kill between any two, a later run knows what to do. */

import { basename } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { didYouMean, formatNumber, messageOf } from "../../core/text/index.ts";
import {
  type AgentLimits,
  type AgentRun,
  agentPresets,
  createEventReader,
  judgeEnd,
  readScopeState,
  startAgent,
} from "../agent/index.ts";
import type { FabricReport } from "../compose/index.ts";
import type { Application } from "./application.ts";
import type { AdoptedAgent } from "./begin-run.ts";
import { claimedRecord, unclaimedRecord } from "./leases.ts";
import type { Phase } from "./nebula.ts";
import { type NebulaRecord, type PhaseRun, readAnswer, runOf, writeAnswer } from "./nebula-record.ts";
import { openGit, snapshotTree } from "./open-git.ts";
import { type FabricBlocks, followUpPrompt, type PhasePrompt, parseFabricBlock, phasePrompt } from "./phase-prompt.ts";
import type { End } from "./record-changes.ts";
import {
  explainFailure,
  holdPhase,
  isOurs,
  ownedRecord,
  readCounts,
  recordEnd,
  recordFailure,
  recordStart,
} from "./record-phase.ts";
import { dollars, spentOn } from "./spending.ts";
import { type VerifiedEnd, verifyWork, type Work } from "./verify-work.ts";

/** Runs a phase until its end is in the record and in the schedule, unless another machine was faster. */
export async function runPhase(phase: Phase, application: Application): Promise<void> {
  const { schedule, stop, record, own } = application;
  const claimed = await claimPhase(phase, application);
  if (claimed === undefined) return schedule.leave(phase.id);
  const prepared = await preparePhase(phase, claimed, application);
  if (prepared === "done") return;
  if (typeof prepared === "string") return holdPhase(phase, prepared, application);
  if (stop.signal.aborted) {
    await record.change((current) => unclaimedRecord(current, phase.id, own.id));
    return schedule.hold(phase.id);
  }
  return startPhase(phase, { ...prepared, last: runOf(claimed, phase.id) }, application);
}

/** Starts the next attempt of a phase that belongs to this run. */
async function tryAgain(phase: Phase, application: Application): Promise<void> {
  const current = (await application.record.read())!;
  const prepared = await preparePhase(phase, current, application);
  if (prepared === "done") return;
  if (typeof prepared === "string") return holdPhase(phase, prepared, application);
  if (application.stop.signal.aborted) return application.schedule.hold(phase.id);
  return startPhase(phase, { ...prepared, last: runOf(current, phase.id) }, application);
}

/** Claims a phase. Returns undefined if another run has claimed it or has already run it. Every write stores the whole
 *  record, so a run that works alone writes its claim only later, together with the start. */
async function claimPhase({ id }: Phase, { record, own }: Application): Promise<NebulaRecord | undefined> {
  if (own.remote === undefined) {
    const current = await record.read();
    return current && ownedRecord(current, id, own);
  }
  let isClaimed = false;
  const after = await record.change((current) => {
    const next = claimedRecord(current, id, own.id);
    isClaimed = next !== current;
    return next;
  });
  return isClaimed ? after : undefined;
}

interface Prepared {
  readonly folder: string;
  readonly scopeState: PhaseRun["scopeState"];
  readonly base: string | undefined;
  readonly prompt: PhasePrompt;
  /** The session that goes on. Absent if the agent begins with the whole task. */
  readonly session: PhaseRun["session"];
}

/** Composes the prompt of a phase and opens its folder. Returns a sentence if the remote cannot be reached, and `done` if
 *  a lost machine had merged its work. */
async function preparePhase(phase: Phase, before: NebulaRecord, application: Application): Promise<Prepared | string> {
  const { worktrees, own, options, sources, onEvent } = application;
  const last = runOf(before, phase.id);
  const lost = own.remote === undefined ? undefined : last?.lost;
  try {
    // The last attempt ran on another machine, so a worktree here is out of date.
    if (lost !== undefined) await worktrees?.close(phase);
    if (lost !== undefined && (await worktrees?.takeOver(phase, lost))) {
      const message = `its work was merged before ${lost.machine} was lost, so it does not run again`;
      onEvent({ event: "notice", phase: phase.id, message });
      const answer = (await readAnswer(options.store, { key: sources.key, phase: phase.id })) ?? "";
      await recordCompleted(phase, { outcome: "completed", answer, seconds: 0 }, application);
      return "done";
    }
    const { isNew, ...opened } = await openFolder(phase, last, application);
    const shared = application.sourcesOf(phase);
    // A session can continue only on the machine, and in the folder, where it began.
    const isHere = last?.machine?.id === own.machine.id && last.agent === options.agent && !isNew;
    const session = isHere && last.feedback !== undefined ? last.session : undefined;
    const prompt =
      session === undefined
        ? await phasePrompt(phase, before, shared, last?.feedback)
        : followUpPrompt(last?.feedback ?? "", shared.counter);
    return { ...opened, prompt, session };
  } catch (error) {
    if (own.remote === undefined) throw error;
    return messageOf(error);
  }
}

async function startPhase(
  phase: Phase,
  { prompt, folder, scopeState, base, session, last }: Prepared & { readonly last: PhaseRun | undefined },
  application: Application,
): Promise<void> {
  const { onEvent, attempts, stop, options, own, watched, sources } = application;
  const attemptFolder = attempts.newFolder(phase.id, (last?.attempts ?? 0) + 1);
  const model = options.model(phase);
  const start = {
    promptTokens: prompt.tokens,
    attemptFolder,
    scopeState,
    base,
    session,
    agent: options.agent,
    model,
    claimedBy: own.id,
    machine: own.machine,
  };
  const { after, refusal, budgetUsd } = await recordStart(phase, start, application);
  if (refusal !== undefined) return holdPhase(phase, refusal, application);
  onEvent({
    event: "started",
    phase: phase.id,
    ...readCounts(after, phase.id),
    adopted: false,
    truncated: prompt.layers.filter((layer) => layer.truncated).map(({ name }) => name),
    overflow: prompt.overflow,
  });
  const agent = startAgent({
    command: options.command(phase, { budgetUsd, folder, session: session?.id }),
    prompt: prompt.text,
    folder: attemptFolder,
    cwd: folder,
    // `plimsoll fabric` reads these variables.
    env: {
      ...options.env,
      PLIMSOLL_NEBULA: sources.nebula.directory,
      PLIMSOLL_PHASE: phase.id,
      PLIMSOLL_STORE: options.storeFile,
      ...(model !== undefined && { PLIMSOLL_MODEL: model }),
      ...attempts.environment(attemptFolder),
    },
    repeats: options.agent === undefined ? undefined : agentPresets[options.agent]?.repeats,
    timeoutMs: options.timeoutMs,
    maxOutputBytes: options.maxOutputBytes,
    signal: AbortSignal.any([stop.signal, watched.signalOf(phase.id)]),
    onOutput: createTelling(phase, options.agent, onEvent),
  });
  const isOld = last?.attemptFolder !== undefined && (last.machine === undefined || last.machine.id === own.machine.id);
  await Promise.all([
    followPhase(phase, { ...agent, attemptFolder }, application),
    isOld ? attempts.remove(last.attemptFolder!) : undefined,
  ]);
}

/** Opens the folder of a phase. `scopeState` describes the files of its scope before the first attempt in this folder,
 *  and `base` all files: a later attempt may finish what a killed one began, so it is compared with that state, too. */
async function openFolder(
  phase: Phase,
  last: PhaseRun | undefined,
  application: Application,
): Promise<Pick<Prepared, "folder" | "scopeState" | "base"> & { readonly isNew: boolean }> {
  const { worktrees, options } = application;
  const { scope } = phase;
  const folder = findFolder(phase, application);
  // If the last attempt was on another machine, the worktree here is older and is removed.
  const isElsewhere = last?.machine !== undefined && last.machine.id !== application.own.machine.id;
  if (isElsewhere || !last?.attempts) await worktrees?.close(phase);
  const opened = await worktrees?.open(phase);
  const isNew = opened?.isNew ?? isElsewhere;
  const isLooked = scope.length > 0 || phase.gate !== "trust" || phase.reviewer !== undefined;
  const known = isNew ? undefined : last;
  const base = opened?.base ?? known?.base ?? (isLooked ? await snapshotTree(folder, options.env) : undefined);
  if (scope.length === 0) return { folder, scopeState: undefined, base, isNew };
  const state = known?.scopeState;
  const isSame = state?.scope.join("\n") === scope.join("\n") && state.folder === folder;
  const scopeState = isSame ? state : { scope, folder, hash: await readScopeState(folder, scope) };
  return { folder, scopeState, base, isNew };
}

function findFolder(phase: Phase, { worktrees, options }: Application): string {
  return worktrees?.folderOf(phase) ?? options.cwd;
}

/** Where all changes of a phase are. */
function findChanges(phase: Phase, { worktrees, options }: Application): string {
  return worktrees?.rootOf(phase) ?? options.cwd;
}

/** An agent with the folder of its attempt, if that is known. */
type FollowedAgent = AgentRun & { readonly attemptFolder?: string | undefined };

async function followPhase(phase: Phase, agent: FollowedAgent, application: Application): Promise<void> {
  const { isOurs, run, ...work } = await settleEnd(phase, agent, application);
  if (!isOurs) return giveUp(phase, application);
  const couldNotContinue = run?.session !== undefined && work.end.outcome === "failed" && work.end.usage === undefined;
  if (couldNotContinue && !application.stop.signal.aborted) {
    const why = `its session could not go on, so the agent begins with the whole task: ${work.end.error ?? ""}`;
    application.onEvent({ event: "notice", phase: phase.id, message: why });
    return continuePhase(phase, { ...work.end, session: null }, application);
  }
  const signal = application.stop.signal;
  const { session: id, totals, ...end } = await verifyWork(phase, { ...work, run, signal }, application);
  const session = id === undefined ? undefined : { id, ...totals };
  return endAttempt(phase, { ...end, ...(session !== undefined && { session }) }, application);
}

type AttemptEnd = Omit<VerifiedEnd, "session" | "totals" | "feedback"> & Pick<End, "session" | "feedback">;

/** Accepts the work of an attempt, or tells the agent what is wrong, as often as the phase allows. */
async function endAttempt(phase: Phase, end: AttemptEnd, application: Application): Promise<void> {
  const { sources, options, onEvent, record } = application;
  if (end.outcome === "completed") {
    await writeAnswer(options.store, { key: sources.key, phase: phase.id }, end.answer);
    if (phase.gate === "watch") {
      const { base } = runOf((await record.read())!, phase.id) ?? {};
      onEvent({ event: "shown", phase: phase.id, folder: findChanges(phase, application), base });
    }
    return acceptPhase(phase, end, application);
  }
  if (end.outcome === "interrupted") {
    // An interrupted phase waits for the next run.
    await recordEnd(phase, { ...end, state: "waiting" }, application);
    return application.schedule.hold(phase.id);
  }
  if (end.feedback) return refuseWork(phase, end, application);
  const outcome = end.verdict ?? end.outcome;
  return recordFailure(phase, { ...end, outcome, error: explainFailure(end) }, application);
}

/** Starts another attempt, whose prompt says what is wrong, or fails the phase if it had all of its attempts. */
async function refuseWork(phase: Phase, end: AttemptEnd, application: Application): Promise<void> {
  const { record, own } = application;
  const current = await record.read();
  const { cycles = 1 } = (current && ownedRecord(current, phase.id, own) && runOf(current, phase.id)) ?? {};
  const most = phase.maxReviewCycles || defaultCycles;
  if (cycles < most) return continuePhase(phase, end, application);
  const tried = most === 1 ? "" : ` It had ${most} attempts (max_review_cycles); --resume gives it more.`;
  const error = `${end.error}${end.error?.includes("\n") ? "\n" : ""}${tried}`;
  return recordFailure(phase, { ...end, outcome: end.verdict ?? end.outcome, error }, application);
}

/** Attempts of a phase that does not say how many it may have. */
const defaultCycles = 3;

async function continuePhase(phase: Phase, end: AttemptEnd, application: Application): Promise<void> {
  const outcome = end.verdict ?? end.outcome;
  const next = { ...end, outcome, state: "waiting" as const, isContinued: true };
  const isRecorded = await recordEnd(phase, next, application);
  return isRecorded ? tryAgain(phase, application) : giveUp(phase, application);
}

/** Drops what was done here for a phase that another machine has taken over. */
async function giveUp(phase: Phase, { worktrees, schedule, onEvent }: Application): Promise<void> {
  await worktrees?.close(phase);
  schedule.leave(phase.id);
  const message = "another machine has taken it over, so what was done here does not count";
  onEvent({ event: "notice", phase: phase.id, message });
}

/** Ends the processes that an agent left behind, and decides how the agent ended. An earlier run may have started it.
 *  `isOurs` says whether the phase still belongs to this run. */
async function settleEnd(
  phase: Phase,
  agent: FollowedAgent,
  application: Application,
): Promise<Omit<Work, "signal"> & { readonly isOurs: boolean }> {
  const { record, options, attempts, own } = application;
  const end = await agent.end;
  if (agent.attemptFolder !== undefined) await attempts.endLeftovers(agent.attemptFolder);
  const current = await record.read();
  const run = current && runOf(current, phase.id);
  const { scope, hash, folder = findFolder(phase, application) } = run?.scopeState ?? {};
  const isUnchanged = scope !== undefined && (await readScopeState(folder, scope)) === hash;
  const { prices } = options;
  const judged = judgeEnd(end, { agent: run?.agent, model: run?.model, prices, before: run?.session });
  const work = { end: judged, run, folder, isUnchanged, isOurs: run?.claimedBy === own.id };
  const spent = spentOn(run) + (judged.costUsd ?? 0);
  const isCheap = spent <= (phase.maxBudgetUsd ?? Number.POSITIVE_INFINITY);
  if (judged.outcome !== "completed" || isCheap || isUnchanged) return work;
  const error = `The phase cost ${dollars(spent)}, more than its limit of ${dollars(phase.maxBudgetUsd!)}.`;
  const hint = "Raise max_budget_usd and use --resume.";
  return { ...work, end: { ...judged, outcome: "over_budget", error, hint } };
}

/** Waits for an agent of the last run. If it failed while no run was watching, its phase runs again. */
export async function followAdopted(phase: Phase, agent: AdoptedAgent, application: Application): Promise<void> {
  const { record, onEvent, schedule } = application;
  const current = await record.read();
  if (current !== undefined)
    onEvent({ event: "started", phase: phase.id, ...readCounts(current, phase.id), adopted: true });
  const end = await agent.end;
  const wasMissed = !agent.wasRunning || end.outcome === "lost";
  const attemptFolder = current && runOf(current, phase.id)?.attemptFolder;
  const followed = { ...agent, attemptFolder };
  if (!wasMissed || end.outcome === "completed") return followPhase(phase, followed, application);
  const { end: missed } = await settleEnd(phase, followed, application);
  const { session: _, ...ended } = missed;
  await recordEnd(phase, { ...ended, state: "waiting" }, application);
  schedule.again(phase.id);
}

/** Continues a phase that waits: asks for the approval that was missing, or tries a failed merge again. A person may
 *  have merged it meanwhile. */
export async function reviewAgain(phase: Phase, application: Application): Promise<void> {
  const { options, sources, record } = application;
  const answer = (await readAnswer(options.store, { key: sources.key, phase: phase.id })) ?? "";
  const { seconds = 0, history, awaits, session } = runOf((await record.read())!, phase.id) ?? {};
  const { usage, costUsd, checks } = history?.at(-1) ?? {};
  const end = { outcome: "completed" as const, answer, seconds, usage, costUsd, checks, session };
  return awaits === "merge" ? recordCompleted(phase, end, application) : acceptPhase(phase, end, application);
}

type Answered = Pick<AttemptEnd, "outcome" | "seconds" | "usage" | "costUsd" | "answer" | "checks" | "session">;

/** Completes a phase, after a person has approved its work if its gate asks for that. */
async function acceptPhase(phase: Phase, end: Answered, application: Application): Promise<void> {
  const { options, schedule, onEvent, record, worktrees } = application;
  const { id, gate } = phase;
  if (gate !== "review" && gate !== "approve") return recordCompleted(phase, end, application);
  // Recorded first: a kill during the question must not run the phase again.
  await recordEnd(phase, { ...end, state: "waiting", awaits: "review" }, application);
  const { base } = runOf((await record.read())!, id) ?? {};
  const answer = await options.approve(phase, { folder: findChanges(phase, application), base, answer: end.answer });
  if (answer === true) return recordCompleted(phase, end, application);
  if (answer === false) {
    onEvent({ event: "held", phase: id, gate });
    return schedule.hold(id);
  }
  const again = { ...end, stderr: "", code: 0, outcome: "failed" as const, verdict: "rejected" };
  if (answer.action === "skip")
    return recordFailure(phase, { ...end, outcome: "skipped", error: "A person has skipped it." }, application);
  if (answer.action === "retry") {
    await worktrees?.close(phase);
    const error = "A person asks for another try.";
    return continuePhase(phase, { ...again, error, session: null, feedback: null }, application);
  }
  const { words } = answer;
  const error = `A person says no: ${words}`;
  const feedback = `A person has looked at your work and says no:\n\n${words}\n\nChange your work accordingly.`;
  return refuseWork(phase, { ...again, error, feedback }, application);
}

/** Records the reports of a completed phase. */
async function recordCompleted(phase: Phase, end: Answered, application: Application): Promise<void> {
  const { schedule, sources, onEvent } = application;
  const refusal = await keepWork(phase, application);
  if (refusal !== undefined) {
    if (!(await isOurs(phase, application))) return giveUp(phase, application);
    return refuseMerge(phase, { ...end, outcome: "failed", code: 0, stderr: "", error: refusal }, application);
  }
  const blocks = await parseFabricBlock(end.answer);
  const report = noteProblems(blocks, phase.id);
  const isResolving = (report.resolved ?? []).length > 0;
  const known = isResolving ? ((await application.record.read())?.fabric.discoveries ?? []) : [];
  const isRecorded = await recordEnd(phase, { ...end, state: "completed", report }, application);
  if (!isRecorded) return giveUp(phase, application);
  await application.worktrees?.close(phase);
  schedule.end(phase.id, "completed");
  const notices = [
    ...(end.answer.trim() === "" ? ["its answer is empty, so phases that depend on it get nothing"] : []),
    ...blocks.problems.slice(0, maxProblems),
    ...(blocks.problems.length > maxProblems
      ? [`… and ${formatNumber(blocks.problems.length - maxProblems)} more`]
      : []),
    ...findUnknownIds(blocks.report, {
      phases: sources.nebula.phases.map(({ id }) => id),
      discoveries: known.map(({ id }) => id),
    }),
  ];
  for (const message of notices) onEvent({ event: "notice", phase: phase.id, message });
}

/** Lets the agent resolve a conflict with the work of others, or a person if that is not possible. */
async function refuseMerge(phase: Phase, end: AttemptEnd, application: Application): Promise<void> {
  const { cycles = 1 } = runOf((await application.record.read())!, phase.id) ?? {};
  const isConflict = /\bconflict in /.test(end.error ?? "");
  const isLeft = cycles < (phase.maxReviewCycles || defaultCycles);
  const canTry = isConflict && isLeft && application.options.allow(phase) !== "read";
  const taken = canTry ? await application.worktrees?.takeIn(phase).catch(() => undefined) : undefined;
  if (taken === undefined) {
    const awaits = application.worktrees === undefined ? undefined : ("merge" as const);
    const outcome = isConflict ? "conflict" : "failed";
    return recordFailure(phase, { ...end, outcome, awaits }, application);
  }
  const feedback = `Other work has been merged meanwhile, and it conflicts with yours. It is now in your folder.\n\nConflict in: ${taken.join(", ")}\n\nEdit each of these files so that both changes have their effect, and remove the marks (<<<<<<<, =======, >>>>>>>). Use no git commands.`;
  return continuePhase(phase, { ...end, verdict: "conflict", feedback }, application);
}

/** Merges or commits the work of a phase. Returns a sentence if that is not possible. */
async function keepWork(phase: Phase, application: Application): Promise<string | undefined> {
  const { worktrees, options, record } = application;
  try {
    if (worktrees !== undefined) {
      const { attemptFolder = "" } = runOf((await record.read())!, phase.id) ?? {};
      const work = { attempt: basename(attemptFolder), isOurs: () => isOurs(phase, application) };
      return await worktrees.merge(phase, work);
    }
    if (options.commit) await openGit(options.cwd, options.env).commitAll(phase);
    return undefined;
  } catch (error) {
    const what = options.remote === undefined ? "committed" : "committed and pushed";
    return `Its changes could not be ${what}: ${messageOf(error)}`;
  }
}

/** Adds a note about unreadable fabric blocks. They do not fail the phase, and others see that they need not wait for
 *  the report. */
function noteProblems({ report, problems: [first, ...more] }: FabricBlocks, id: string): FabricReport {
  if (first === undefined) return report ?? {};
  const how = report === undefined ? "could not be read" : "could be read only partly";
  const others = more.length === 0 ? "" : `, and ${formatNumber(more.length)} more`;
  const text = `the report of phase ${id} ${how}: ${first}${others}`;
  return { ...report, notes: [...(report?.notes ?? []), { kind: "failure", text }] };
}

/** How many problems of each kind are reported. */
const maxProblems = 20;

/** Returns a sentence for each id in a report that names no existing phase or discovery. */
function findUnknownIds(
  { discoveries = [], resolved = [] }: FabricReport = {},
  known: { readonly phases: readonly string[]; readonly discoveries: readonly string[] },
): string[] {
  const lists = discoveries.map(({ affects = [] }) => [affects].flat().join());
  const affected = new Set(lists.flatMap((list) => list.split(/\s*,\s*/)));
  affected.delete("");
  const unknownPhases = [...affected].filter((id) => !known.phases.includes(id));
  const unknownDiscoveries = resolved.filter((id) => !known.discoveries.includes(id));
  return [
    ...unknownPhases.slice(0, maxProblems).map((id) => {
      const meant = didYouMean(id, known.phases);
      return `it reports a discovery that affects "${id}", which is not a phase of this nebula${meant === undefined ? "" : `. ${meant}`}`;
    }),
    ...unknownDiscoveries
      .slice(0, maxProblems)
      .map((id) => `it resolves "${id}", which is not a discovery of this nebula`),
  ];
}

/** Returns a function that reads the events of an agent and reports what it does. Undefined for other agents. */
function createTelling(
  { id }: Phase,
  agent: string | undefined,
  onEvent: Application["onEvent"],
): AgentLimits["onOutput"] {
  const preset = agent === undefined ? undefined : agentPresets[agent];
  if (preset === undefined) return undefined;
  const reader = createEventReader(preset.prints);
  const decoders = { stdout: new StringDecoder("utf8"), stderr: new StringDecoder("utf8") };
  return (name, chunk) => {
    const lines = reader.read(name, decoders[name].write(chunk));
    const { usage, costUsd } = reader.report() ?? {};
    const facts = { ...(usage !== undefined && { usage }), ...(costUsd !== undefined && { costUsd }) };
    for (const line of lines) onEvent({ event: "doing", phase: id, ...line, ...facts });
  };
}
