/** Applies a nebula: runs its phases in the order of their dependencies, several at a time. */

import { createHash, randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { join } from "node:path";
import { ContextError, invalidArgument } from "../../core/errors.ts";
import { createEventWriter, type EventWriter, type Store } from "../../core/store/index.ts";
import { type Counter, plainCounter } from "../../core/tokens/index.ts";
import { ownMachine, type ScanProblem, scanProject, stateDirectory, withLock } from "../../host/index.ts";
import { defaultAgentLimits } from "../agent/index.ts";
import {
  type ComposedLayer,
  createPromptComposer,
  leaveOutConventions,
  type PhaseState,
  renderSnapshot,
} from "../compose/index.ts";
import type { Application, ApplyEvent, ApplyOptions, ApplyReport, SettledOptions } from "./application.ts";
import { openAttempts } from "./attempt-folders.ts";
import { type Beginning, beginRun } from "./begin-run.ts";
import { openGitRemote } from "./git-remote.ts";
import { leaseOf, type OwnRun } from "./leases.ts";
import { createReach, groupWaves, type Nebula, type Phase } from "./nebula.ts";
import { movedKey, runKey, storedKey } from "./nebula-key.ts";
import { type NebulaRecord, openNebulaRecord, runOf } from "./nebula-record.ts";
import { openGit } from "./open-git.ts";
import { type PhasePrompt, type PromptSources, phasePrompt } from "./phase-prompt.ts";
import { freshRecord, resetRecord, resumedRecord } from "./record-changes.ts";
import { followAdopted, reviewAgain, runPhase } from "./run-phase.ts";
import { createSchedule, runPool } from "./schedule.ts";
import type { Sharing } from "./shared-branch.ts";
import { spentOn } from "./spending.ts";
import { watchRun } from "./watch-run.ts";
import { nameBranches, openWorktrees, type Worktrees } from "./worktrees.ts";

/**
 * Runs the phases of a nebula with agents, in the order of their dependencies and several at a time. Each agent gets
 * its task and what the other phases did. Returns the state of every phase when nothing more can run. Throws if another
 * process is applying the same nebula with the same store.
 *
 * @example
 * ```ts
 * import { resolve } from "node:path";
 * import { createCounter } from "plimsoll";
 * import { applyNebula, loadNebula } from "plimsoll/nebula";
 * import { openSqliteStore } from "plimsoll/store/sqlite";
 *
 * const { nebula, problems } = await loadNebula("plan");
 * if (nebula === undefined) throw new Error(problems.map(({ message }) => message).join("\n"));
 *
 * const storeFile = resolve("state.db");
 * const store = await openSqliteStore({ path: storeFile });
 * const { phases } = await applyNebula(nebula, {
 *   store,
 *   storeFile,
 *   counter: await createCounter("bytes/4"),
 *   command: ({ model }) => (model === "large" ? "claude -p --model=opus" : "claude -p"),
 *   cwd: process.cwd(),
 * });
 * console.log(phases.map(({ id, state }) => `${id} ${state}`));
 * await store.close();
 * ```
 */
export async function applyNebula(nebula: Nebula, options: ApplyOptions): Promise<ApplyReport> {
  for (const id of [...(options.rerun ?? []), ...(options.only ?? [])]) {
    if (nebula.phases.some((phase) => phase.id === id)) continue;
    throw invalidArgument(`the nebula has no phase ${JSON.stringify(id)}`, "Use the id of a phase.");
  }
  const settled = settleApplyOptions(nebula, options);
  const { env, storeFile } = settled;
  const place = runKey(nebula.directory, storeFile);
  const heldError = (holder: string) =>
    new ContextError("write_failed", `${holder} is already applying the nebula ${nebula.name}`, {
      hint: "Wait until it ends, or stop it.",
    });
  return withLock(`nebula ${place}`, { env, waitMs: 0, heldError }, async () => {
    // What all machines of a run must agree on: the phases, what they need and what they do.
    const plan = nebula.phases.map(({ id, title, dependsOn, scope, gate, body }) => {
      return [id, title, dependsOn, scope, gate, body];
    });
    const own = {
      id: randomBytes(8).toString("hex"),
      machine: await ownMachine(env, "create"),
      place,
      leaseMs: settled.leaseMs,
      remote: settled.remote,
      plan: createHash("sha256").update(JSON.stringify(plan)).digest("hex").slice(0, 16),
    };
    return applyHere(nebula, own, settled);
  });
}

/** Applies a nebula. The caller makes sure that no other process of this machine applies it with the same folder and
 *  store. */
async function applyHere(
  nebula: Nebula,
  own: OwnRun,
  { onEvent: tell, ...settled }: SettledOptions,
): Promise<ApplyReport> {
  const events = createEventWriter(settled.store, { now: Date.now, onFailure: () => {} });
  const onEvent = (event: ApplyEvent) => {
    tell(event);
    storeEvent(event, events, { agent: settled.agent, project: nebula.name });
  };
  const options = { ...settled, onEvent };
  const { env, cwd } = options;
  const stop = new AbortController();
  // Every agent adds a listener, so Node's warning about a leak would be wrong.
  setMaxListeners(0, stop.signal);
  if (options.signal?.aborted) stop.abort();
  else options.signal?.addEventListener("abort", () => stop.abort(), { once: true });
  const folder = join(stateDirectory(env), "remotes", own.place);
  const remote = own.remote === undefined ? undefined : await openGitRemote(own.remote, { root: cwd, env, folder });
  const key = await movedKey(options.store, nebula, env);
  const record = openNebulaRecord(options.store, key);
  const attempts = openAttempts(own.place, env);
  const hasBranch = remote !== undefined && (await remote.fetch(nameBranches(nebula.name).branch)) !== undefined;
  const begun = await beginRun(nebula, { key, record, attempts, options, signal: stop.signal, own, hasBranch });
  const watched = watchRun({ own, record, stop, onEvent });
  try {
    const sharing = remote && { remote, joins: begun.joins };
    const worktrees = await prepareFolders(nebula, begun.record, { ...options, own, sharing });
    const application = { options, record, attempts, stop, onEvent, worktrees, own, watched };
    await runPhases(nebula, begun, { ...application, key }).finally(() => worktrees?.end());
  } finally {
    await watched.end();
    await events.settled();
  }
  return reportStates(nebula, (await record.read()) ?? begun.record);
}

/** Adds an attempt that has ended, or an error of the API, to the events of the store: names and numbers only. */
function storeEvent(
  event: ApplyEvent,
  events: EventWriter,
  { agent, project }: { readonly agent: string | undefined; readonly project: string },
): void {
  const about = { source: "nebula", client: agent, project };
  if (event.event === "doing" && event.kind === "trouble")
    events.write({
      ...about,
      kind: "error",
      callId: event.phase,
      numbers: { status: /\b[45]\d\d\b/.exec(event.text)?.[0] },
    });
  if (event.event !== "ended") return;
  const { phase, state, outcome = state, seconds, promptTokens, costUsd, checks, usage } = event;
  const numbers = { outcome, seconds, promptTokens, costUsd, checks, ...usage };
  events.write({ ...about, kind: "attempt", callId: phase, numbers });
}

/** Runs all phases that can run. */
async function runPhases(
  nebula: Nebula,
  begun: Beginning,
  { key, ...prepared }: Omit<Application, "sources" | "sourcesOf" | "schedule"> & { readonly key: string },
): Promise<void> {
  const { options, onEvent, stop, own, watched } = prepared;
  const order = groupWaves(nebula.phases).flat();
  const isReviewed = ({ id }: Phase) => {
    const { awaits, claimedBy } = runOf(begun.record, id) ?? {};
    return awaits !== undefined && claimedBy === own.id;
  };
  const reviews = order.filter(isReviewed);
  const states = Object.entries(begun.record.phases).map(([id, { state, claimedBy }]): [string, PhaseState] => {
    if (reviews.some((phase) => phase.id === id)) return [id, "running"];
    // The schedule learns from the record what runs elsewhere.
    const isElsewhere = state === "running" && claimedBy !== own.id;
    const canStart = options.only === undefined || options.only.includes(id);
    if (!isElsewhere && state !== "waiting") return [id, state];
    // Phases that may not start count as blocked.
    return [id, canStart ? "waiting" : "blocked"];
  });
  const schedule = createSchedule(order, new Map(states));
  watched.follow(schedule, begun.record);
  const { problems, sourcesOf: shared } = await readPromptSources(nebula, options);
  for (const { path, reason } of problems) onEvent({ event: "notice", message: `${path}: ${reason}` });
  const sourcesOf = (phase?: Phase) => ({ ...shared(phase), key, store: options.store });
  const application: Application = { ...prepared, sources: sourcesOf(), sourcesOf, schedule };
  const byId = new Map(order.map((phase) => [phase.id, phase]));
  const pool = {
    schedule,
    maxWorkers: options.maxWorkers,
    stop,
    ...(own.remote !== undefined && { others: watched }),
    run: (id: string) => runPhase(byId.get(id)!, application),
    ask(id: string) {
      const phase = byId.get(id)!;
      if (phase.gate !== "approve") return undefined;
      return options.approve(phase).then((answer) => {
        const isApproved = answer === true;
        if (!isApproved && !stop.signal.aborted) onEvent({ event: "held", phase: id, gate: phase.gate });
        return isApproved;
      });
    },
  };
  await runPool(pool, [
    ...[...begun.adopted].map(([phase, agent]) => followAdopted(phase, agent, application)),
    ...reviews.map((phase) => reviewAgain(phase, application)),
  ]);
}

/** Opens the worktrees, or reports which phases could get in each other's way in one folder. */
async function prepareFolders(
  nebula: Nebula,
  record: NebulaRecord,
  options: SettledOptions & { readonly own: OwnRun; readonly sharing: Sharing | undefined },
): Promise<Worktrees | undefined> {
  const { worktreeCopy: copy = [], cwd, env, resume, own, sharing } = options;
  const notice = (message: string) => options.onEvent({ event: "notice", message });
  if (!options.worktrees) {
    if (options.commit && !resume) await openGit(cwd, env).refuseDirty();
    const problem = options.maxWorkers > 1 ? explainSharedFolder(nebula.phases) : undefined;
    if (problem !== undefined) notice(problem);
    return undefined;
  }
  const opened = await openWorktrees(nebula, { cwd, env, key: own.place, resume, copy, notice, sharing });
  const where = sharing === undefined ? "" : ` and pushed to ${sharing.remote.name}`;
  notice(`phases work in git worktrees, and their work is merged into the branch ${opened.branch}${where}`);
  // A killed run may have left the worktrees of completed phases.
  for (const phase of nebula.phases) if (runOf(record, phase.id)?.state === "completed") await opened.close(phase);
  return opened;
}

/** Returns a sentence if phases that could run at the same time have no scope, or scopes that may overlap. */
function explainSharedFolder(phases: readonly Phase[]): string | undefined {
  const graph = new Map(phases.map(({ id, dependsOn }) => [id, dependsOn]));
  const order = groupWaves(phases)
    .flat()
    .map(({ id }) => id);
  const isRelated = createReach(graph, order);
  const isLoose = ({ scope, allowScopeOverlap }: Phase) => scope.length === 0 || allowScopeOverlap === true;
  const loose = phases.filter(
    (phase) => isLoose(phase) && phases.some(({ id }) => id !== phase.id && !isRelated(id, phase.id)),
  );
  if (loose.length === 0) return undefined;
  const ids = [...loose.slice(0, 5).map(({ id }) => id), ...(loose.length > 5 ? ["…"] : [])].join(", ");
  return `${ids} ${loose.length > 1 ? "have" : "has"} no scope, or one that may overlap, and can run at the same time as other phases in one folder. Use --worktrees, or one worker`;
}

/** What applying a nebula would do first. Shows the prompts that phases would get now. `phases` has the states with
 *  which a run would start. */
export interface ApplyPlan extends ApplyReport {
  readonly waves: readonly (readonly PlannedPhase[])[];
}

export interface PlannedPhase {
  readonly id: string;
  readonly title: string;
  /** `completed` phases would not run. */
  readonly state: PhaseState;
  /** For a completed phase, the tokens of its last prompt. */
  readonly promptTokens: number;
  /** Empty for a completed phase. */
  readonly layers: readonly ComposedLayer[];
  /** Tokens by which the discoveries of the fabric would not fit. */
  readonly overflow: number;
}

export interface PlanOptions extends ContextSettings {
  /** Absent if there is no store yet. Planning does not create one. */
  readonly store?: Store | undefined;
  /** Plans to continue the last run. @default false */
  readonly resume?: boolean | undefined;
}

/**
 * Returns what `applyNebula` would do first: the phases in waves, and the size of each prompt as it would be now. Runs
 * nothing and writes nothing.
 *
 * @example
 * ```ts
 * import { createCounter } from "plimsoll";
 * import { loadNebula, planApply } from "plimsoll/nebula";
 *
 * const { nebula } = await loadNebula("plan");
 * if (nebula !== undefined) {
 *   const { waves } = await planApply(nebula, { counter: await createCounter("bytes/4"), cwd: process.cwd() });
 *   for (const wave of waves) console.log(wave.map(({ id, promptTokens }) => `${id}: ${promptTokens} tokens`));
 * }
 * ```
 */
export async function planApply(nebula: Nebula, options: PlanOptions): Promise<ApplyPlan> {
  const { store, resume, env = process.env } = options;
  const key = await storedKey(store, nebula, env);
  const before = store === undefined ? undefined : await openNebulaRecord(store, key).read();
  const record = resume && before !== undefined ? resumedRecord(before, nebula) : freshRecord(before, nebula);
  const { sourcesOf } = await readPromptSources(nebula, options);
  const plan = async (phase: Phase): Promise<PlannedPhase> => {
    const { id, title } = phase;
    const { state = "waiting", promptTokens = 0 } = runOf(record, id) ?? {};
    if (state === "completed") return { id, title, state, promptTokens, layers: [], overflow: 0 };
    const { tokens, layers, overflow } = await phasePrompt(phase, record, { ...sourcesOf(phase), key, store });
    return { id, title, state, promptTokens: tokens, layers, overflow };
  };
  const waves: PlannedPhase[][] = [];
  for (const wave of groupWaves(nebula.phases)) {
    const planned: PlannedPhase[] = [];
    for (const phase of wave) planned.push(await plan(phase));
    waves.push(planned);
  }
  const tokens = new Map(waves.flat().map(({ id, promptTokens }) => [id, promptTokens]));
  const { phases } = reportStates(nebula, record);
  return { phases: phases.map((phase) => ({ ...phase, promptTokens: tokens.get(phase.id)! })), waves };
}

/** Returns the prompt that a phase would get if it ran now, even if it has completed, and the name of its counter. Runs
 *  nothing and writes nothing. */
export async function planPrompt(
  nebula: Nebula,
  phase: Phase,
  options: PlanOptions,
): Promise<PhasePrompt & { readonly counter: string }> {
  const { store, env = process.env } = options;
  const key = await storedKey(store, nebula, env);
  const before = store === undefined ? undefined : await openNebulaRecord(store, key).read();
  const waiting = before && resetRecord(before, new Set([phase.id]));
  const record = waiting === undefined ? freshRecord(before, nebula) : resumedRecord(waiting, nebula);
  const sources = (await readPromptSources(nebula, options)).sourcesOf(phase);
  const prompt = await phasePrompt(phase, record, { ...sources, key, store });
  return { ...prompt, counter: sources.counter.name };
}

/** Returns the state of every phase, in the order in which they start. Without a record nothing has run. */
export function reportStates({ phases }: Nebula, record: NebulaRecord | undefined): ApplyReport {
  return {
    phases: groupWaves(phases)
      .flat()
      .map(({ id }) => {
        const run = record && runOf(record, id);
        const { state = "waiting", attempts = 0, promptTokens = 0, seconds = 0, history = [] } = run ?? {};
        const { outcome, error, claimedBy } = run ?? {};
        const lease = record && claimedBy !== undefined ? leaseOf(record, claimedBy) : undefined;
        const machine = lease?.machine ?? run?.machine;
        return {
          id,
          state,
          ...(outcome !== undefined && { outcome }),
          ...(history.at(-1)?.checks !== undefined && { checks: history.at(-1)?.checks }),
          attempts,
          promptTokens,
          seconds,
          ...(history.some(({ costUsd }) => costUsd !== undefined) && { costUsd: spentOn(run) }),
          ...(machine !== undefined && { machine }),
          ...(lease !== undefined && { lease: { renewed: lease.renewed, seconds: lease.leaseMs / 1000 } }),
          ...(history.length > 0 && { history }),
          ...(error !== undefined && { error }),
        };
      }),
  };
}

export function settleApplyOptions({ execution }: Nebula, options: ApplyOptions): SettledOptions {
  if (options.remote !== undefined && options.worktrees !== true) {
    throw invalidArgument(
      "a run that several machines share needs a git worktree for each phase",
      "Use --worktrees together with --remote.",
    );
  }
  // At most a day.
  const [minLeaseMs, maxLeaseMs] = [500, 86_400_000];
  const { leaseMs = 60_000 } = options;
  if (!(leaseMs >= minLeaseMs && leaseMs <= maxLeaseMs))
    throw invalidArgument(`the lease has ${leaseMs} ms`, `Use ${minLeaseMs} to ${maxLeaseMs} ms.`);
  return {
    ...options,
    env: options.env ?? process.env,
    counter: options.counter ?? plainCounter,
    model: options.model ?? (({ model }) => model),
    maxWorkers: options.maxWorkers ?? execution.maxWorkers ?? 1,
    timeoutMs: options.timeoutMs ?? defaultAgentLimits.timeoutMs,
    maxOutputBytes: options.maxOutputBytes ?? defaultAgentLimits.maxOutputBytes,
    resume: options.resume ?? (options.rerun !== undefined || options.only !== undefined),
    approve: options.approve ?? (async () => false),
    allow: options.allow ?? (({ allow }) => allow),
    leaseMs,
    onEvent: options.onEvent ?? (() => {}),
  };
}

/** Reads what all prompts of a run share. The project is scanned once, and rendered once for each counter, so that it
 *  can be cached. `sourcesOf` returns the sources of a phase, or without an argument those of the first phase.
 *  `problems` are parts of the project that could not be read. */
export async function readPromptSources(
  nebula: Nebula,
  options: ContextSettings,
): Promise<{
  sourcesOf(phase?: Phase): Omit<PromptSources, "key" | "store">;
  readonly problems: readonly ScanProblem[];
}> {
  const { cwd, env, secrets, shares, loadsItself, counter = plainCounter } = options;
  const { maxContextTokens = nebula.execution.maxContextTokens } = options;
  const [first] = nebula.phases;
  // A phase always has a counter; a nebula without phases needs none.
  const findCounter = (phase = first) => (typeof counter === "function" ? counter(phase!) : counter);
  if (maxContextTokens === 0)
    return { sourcesOf: (phase) => ({ nebula, counter: findCounter(phase), project: "" }), problems: [] };
  const { scan } = leaveOutConventions(await scanProject(cwd, { env, secrets }), loadsItself);
  const render = (counter: Counter) => {
    const budget = createPromptComposer({ counter, maxTokens: maxContextTokens, shares });
    // A text that fits its share stays whole, so all prompts start with the same bytes.
    const limit = { counter, maxTokens: budget.shareOf("project") };
    const { text: project, truncated: isProjectTruncated } = renderSnapshot(scan, limit);
    return { nebula, counter, budget, project, isProjectTruncated };
  };
  const rendered = new Map<string, ReturnType<typeof render>>();
  const sourcesOf = (phase?: Phase) => {
    const chosen = findCounter(phase);
    const known = rendered.get(chosen.name) ?? render(chosen);
    rendered.set(chosen.name, known);
    return known;
  };
  return { sourcesOf, problems: scan.problems };
}

type ContextSettings = Pick<
  ApplyOptions,
  "counter" | "cwd" | "env" | "maxContextTokens" | "secrets" | "shares" | "loadsItself"
>;
