/** Runs one phase from its prompt to its end. It writes, in this order: that the phase runs and where; the answer;
 *  its end with all reports in one step. After a kill between any two, a later run knows what to do. */

import { basename } from "node:path";
import { didYouMean, formatNumber, messageOf } from "../../core/text/index.ts";
import { type Environment, readGit } from "../../host/index.ts";
import {
  type AgentEnd,
  type AgentRun,
  findSpokenStream,
  judgeEnd,
  readScopeState,
  startAgent,
} from "../agent/index.ts";
import type { FabricReport } from "../compose/index.ts";
import type { Application } from "./application.ts";
import { findOutputFile } from "./attempt-folders.ts";
import type { AdoptedAgent } from "./begin-run.ts";
import { claimedRecord, type OwnRun, unclaimedRecord } from "./leases.ts";
import type { Phase } from "./nebula.ts";
import { type NebulaRecord, type PhaseRun, readAnswer, runOf, writeAnswer } from "./nebula-record.ts";
import { openGit } from "./open-git.ts";
import { type FabricBlocks, type PhasePrompt, parseFabricBlock, phasePrompt } from "./phase-prompt.ts";
import { type ChangedRecord, type End, endedRecord, type Start, startedRecord } from "./record-changes.ts";
import { dollars, type Grant, grantFor, spentOn } from "./spending.ts";

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

/** Returns the record in which the phase belongs to this run, or undefined if it belongs to another one. */
function ownedRecord(current: NebulaRecord, id: string, own: OwnRun): NebulaRecord | undefined {
  const record = own.remote === undefined ? claimedRecord(current, id, own.id) : current;
  return runOf(record, id)?.claimedBy === own.id ? record : undefined;
}

interface Prepared {
  readonly folder: string;
  readonly scopeState: PhaseRun["scopeState"];
  readonly prompt: PhasePrompt;
}

/** Composes the prompt of a phase and opens its folder. Returns a sentence if the remote cannot be reached, and `done` if
 *  a lost machine had merged its work. */
async function preparePhase(phase: Phase, before: NebulaRecord, application: Application): Promise<Prepared | string> {
  const { worktrees, own, options, sources, onEvent } = application;
  const last = runOf(before, phase.id);
  const lost = own.remote === undefined ? undefined : last?.lost;
  try {
    // A worktree here is older than the last attempt.
    if (lost !== undefined) await worktrees?.close(phase);
    if (lost !== undefined && (await worktrees?.takeOver(phase, lost))) {
      const message = `its work was merged before ${lost.machine} was lost, so it does not run again`;
      onEvent({ event: "notice", phase: phase.id, message });
      const answer = (await readAnswer(options.store, { key: sources.key, phase: phase.id })) ?? "";
      await recordCompleted(phase, { outcome: "completed", answer, seconds: 0 }, application);
      return "done";
    }
    const opened = await openFolder(phase, last, application);
    return { ...opened, prompt: await phasePrompt(phase, before, application.sourcesOf(phase)) };
  } catch (error) {
    if (own.remote === undefined) throw error;
    return messageOf(error);
  }
}

async function startPhase(
  phase: Phase,
  { prompt, folder, scopeState, last }: Prepared & { readonly last: PhaseRun | undefined },
  application: Application,
): Promise<void> {
  const { onEvent, attempts, stop, options, own, watched, sources } = application;
  const attemptFolder = attempts.newFolder(phase.id, (last?.attempts ?? 0) + 1);
  const model = options.model(phase);
  const start = {
    promptTokens: prompt.tokens,
    attemptFolder,
    scopeState,
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
    command: options.command(phase, { budgetUsd, folder }),
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
    timeoutMs: options.timeoutMs,
    maxOutputBytes: options.maxOutputBytes,
    signal: AbortSignal.any([stop.signal, watched.signalOf(phase.id)]),
  });
  const isOld = last?.attemptFolder !== undefined && (last.machine === undefined || last.machine.id === own.machine.id);
  await Promise.all([
    followPhase(phase, { ...agent, attemptFolder }, application),
    isOld ? attempts.remove(last.attemptFolder!) : undefined,
  ]);
}

/** Opens the folder of a phase. `scopeState` describes the files of its scope before the first attempt in this folder:
 *  a later attempt may finish what a killed one began, so it is compared with that state, too. */
async function openFolder(
  phase: Phase,
  last: PhaseRun | undefined,
  application: Application,
): Promise<Omit<Prepared, "prompt">> {
  const { worktrees, bases, options, stop } = application;
  const { scope } = phase;
  const folder = findFolder(phase, application);
  const isWatched = phase.gate === "review" || phase.gate === "watch";
  // A worktree on this machine is then not from the last attempt, so it is removed.
  const isElsewhere = last?.machine !== undefined && last.machine.id !== application.own.machine.id;
  if (isElsewhere || !last?.attempts) await worktrees?.close(phase);
  const opened = await worktrees?.open(phase);
  if (opened !== undefined) bases.set(phase.id, opened.base);
  else if (isWatched) bases.set(phase.id, await readHead(folder, options.env, stop.signal));
  if (scope.length === 0) return { folder, scopeState: undefined };
  const known = opened?.isNew ? undefined : last?.scopeState;
  const isSame = known?.scope.join("\n") === scope.join("\n") && known.folder === folder;
  return { folder, scopeState: isSame ? known : { scope, folder, hash: await readScopeState(folder, scope) } };
}

function findFolder(phase: Phase, { worktrees, options }: Application): string {
  return worktrees?.folderOf(phase) ?? options.cwd;
}

/** Returns the commit that is checked out, or undefined outside of a repository. */
async function readHead(root: string, env: Environment, signal: AbortSignal): Promise<string | undefined> {
  const git = await readGit({ root, env, signal }, ["rev-parse", "--verify", "--quiet", "HEAD"]);
  if ("refused" in git) return undefined;
  let text = "";
  for await (const chunk of git.output) text += chunk.toString("latin1");
  return (await git.end).code === 0 ? text.trim() : undefined;
}

/** Records that an attempt runs, unless its limits leave no money for it. */
async function recordStart(
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
async function holdPhase(phase: Phase, error: string, application: Application): Promise<void> {
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

/** An agent with the folder of its attempt, if that is known. */
type FollowedAgent = AgentRun & { readonly attemptFolder?: string | undefined };

async function followPhase(phase: Phase, agent: FollowedAgent, application: Application): Promise<void> {
  const { end, isOurs } = await settleEnd(phase, agent, application);
  if (!isOurs) return giveUp(phase, application);
  if (end.outcome === "completed") {
    const { sources, options, onEvent, bases } = application;
    await writeAnswer(options.store, { key: sources.key, phase: phase.id }, end.answer);
    if (phase.gate === "watch")
      onEvent({ event: "shown", phase: phase.id, folder: findFolder(phase, application), base: bases.get(phase.id) });
    return acceptPhase(phase, end, application);
  }
  if (end.outcome !== "interrupted") return recordFailure(phase, { ...end, error: describeFailure(end) }, application);
  // An interrupted phase waits for the next run.
  await recordEnd(phase, { ...end, state: "waiting" }, application);
  return application.schedule.hold(phase.id);
}

/** Whether the phase still belongs to this run. */
async function isOurs({ id }: Phase, { record, own }: Application): Promise<boolean> {
  const current = await record.read();
  return current !== undefined && runOf(current, id)?.claimedBy === own.id;
}

/** Drops what was done here for a phase that another machine has taken over. */
async function giveUp(phase: Phase, { worktrees, schedule, onEvent }: Application): Promise<void> {
  await worktrees?.close(phase);
  schedule.leave(phase.id);
  const message = "another machine has taken it over, so what was done here does not count";
  onEvent({ event: "notice", phase: phase.id, message });
}

/** Ends what the agent of a phase left behind, and judges how it really ended, also if an earlier run started it.
 *  `isOurs` says whether the phase still belongs to this run. */
async function settleEnd(
  phase: Phase,
  agent: FollowedAgent,
  application: Application,
): Promise<{ readonly end: AgentEnd; readonly isOurs: boolean }> {
  const { record, options, attempts, own } = application;
  const end = await agent.end;
  if (agent.attemptFolder !== undefined) await attempts.endLeftovers(agent.attemptFolder);
  const current = await record.read();
  const run = current && runOf(current, phase.id);
  const { scope, hash, folder = findFolder(phase, application) } = run?.scopeState ?? {};
  const isUnchanged = scope !== undefined && (await readScopeState(folder, scope)) === hash;
  const { prices } = options;
  const unchangedScope = isUnchanged ? scope : undefined;
  const judged = judgeEnd(end, { agent: run?.agent, model: run?.model, prices, unchangedScope });
  const spent = spentOn(run) + (judged.costUsd ?? 0);
  const isOurs = run?.claimedBy === own.id;
  const isCheap = spent <= (phase.maxBudgetUsd ?? Number.POSITIVE_INFINITY);
  if (judged.outcome !== "completed" || isCheap) return { end: judged, isOurs };
  const error = `The phase cost ${dollars(spent)}, more than its limit of ${dollars(phase.maxBudgetUsd!)}.`;
  const hint = "Raise max_budget_usd and use --resume.";
  return { end: { ...judged, outcome: "over_budget", error, hint }, isOurs };
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
  await recordEnd(phase, { ...missed, state: "waiting" }, application);
  schedule.again(phase.id);
}

/** Asks about finished work that nobody had approved when the last run ended. */
export async function reviewAgain(phase: Phase, application: Application): Promise<void> {
  const { options, sources, record } = application;
  const answer = (await readAnswer(options.store, { key: sources.key, phase: phase.id })) ?? "";
  const { seconds = 0, history } = runOf((await record.read())!, phase.id) ?? {};
  const { usage, costUsd } = history?.at(-1) ?? {};
  return acceptPhase(phase, { outcome: "completed", answer, seconds, usage, costUsd }, application);
}

type Answered = Pick<AgentEnd, "outcome" | "seconds" | "usage" | "costUsd" | "answer">;

/** Completes a phase, after a person has approved its work if its gate is `review`. */
async function acceptPhase(phase: Phase, end: Answered, application: Application): Promise<void> {
  const { options, schedule, onEvent, bases } = application;
  const { id, gate } = phase;
  const work = { folder: findFolder(phase, application), base: bases.get(id), answer: end.answer };
  if (gate !== "review") return recordCompleted(phase, end, application);
  // Recorded first: a kill during the question must not run the phase again.
  await recordEnd(phase, { ...end, state: "waiting", awaits: "review" }, application);
  if (await options.approve(phase, work)) return recordCompleted(phase, end, application);
  onEvent({ event: "held", phase: id, gate });
  schedule.hold(id);
}

/** Records the reports of a completed phase. */
async function recordCompleted(phase: Phase, end: Answered, application: Application): Promise<void> {
  const { schedule, sources, onEvent } = application;
  const refusal = await keepWork(phase, application);
  if (refusal !== undefined) {
    if (!(await isOurs(phase, application))) return giveUp(phase, application);
    return recordFailure(phase, { ...end, outcome: "failed", error: refusal }, application);
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

/** Returns a sentence for each phase or discovery in a report that does not exist. */
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

async function recordFailure(phase: Phase, failure: Omit<Ended, "state">, application: Application): Promise<void> {
  const { schedule, onEvent } = application;
  const blocked = schedule.end(phase.id, "failed");
  await recordEnd(phase, { ...failure, state: "failed", blocked }, application);
  for (const each of blocked) onEvent({ event: "blocked", phase: each, by: phase.id });
}

/** Describes a failure with the last 5 lines of output. */
function describeFailure({ error = "The agent failed.", hint, stderr, answer }: AgentEnd): string {
  // The agent ended by itself, so its last output is not about the failure.
  if (hint !== undefined) return `${error} ${hint}`;
  const output = { stderr, stdout: answer };
  const stream = findSpokenStream(output);
  if (stream === undefined) return error;
  return `${error}\n${output[stream].trimEnd().split("\n").slice(-5).join("\n").slice(-1_000)}`;
}

type Ended = Omit<End, "date"> & { readonly state: "completed" | "failed" | "waiting" };

/** Records the end of a phase, and reports it. Returns false, and does neither, if another run has taken the phase. */
async function recordEnd(phase: Phase, end: Ended, application: Application): Promise<boolean> {
  const date = new Date().toISOString().slice(0, 10);
  const change = (current: NebulaRecord) => endedRecord(current, phase, { ...end, date });
  const { after, isOurs } = await changeRecord(phase, application, change);
  if (!isOurs) return false;
  // A person is asked about the work next.
  if (end.awaits !== undefined) return true;
  const { state, seconds, error, usage, costUsd } = end;
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

function readCounts(record: NebulaRecord, id: string): { attempt: number; promptTokens: number } {
  const { attempts = 0, promptTokens = 0 } = runOf(record, id) ?? {};
  return { attempt: attempts, promptTokens };
}
