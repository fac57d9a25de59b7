/** Applies a nebula: its phases in the order of their dependencies, several at a time, each told what is around it. */
import { setMaxListeners } from "node:events";
import { createContextBudget, renderSnapshot, type ScanProblem } from "../../../compose/index.ts";
import { ContextError } from "../../../errors.ts";
import { scanProject, withLock } from "../../../workspace/index.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import { wavesOf } from "../files/waves.ts";
import { nebulaKey, runKey } from "../record/nebula-key.ts";
import { openNebulaRecord } from "../record/nebula-record.ts";
import type { Application, ApplyOptions } from "./application.ts";
import type { ApplyReport } from "./apply-event.ts";
import { beginRun } from "./begin-run.ts";
import type { PromptSources } from "./phase-prompt.ts";
import { runPool } from "./pool/run-pool.ts";
import { createSchedule } from "./pool/schedule.ts";
import { followAdopted, runPhase } from "./run-phase.ts";
import { standingOf } from "./standing.ts";
import { attemptsFolder } from "./state/attempt-folders.ts";

/** Comes back when nothing more can run, with how every phase stands. A second run of the same nebula with the
 *  same store is refused while one goes on. */
export async function applyNebula(nebula: Nebula, options: ApplyOptions): Promise<ApplyReport> {
  const runs = runKey(nebula.directory, options.storeFile);
  let isOurs = false;
  try {
    return await withLock(`nebula ${runs}`, { env: options.env, waitMs: 0 }, () => {
      isOurs = true;
      return applyAlone(nebula, attemptsFolder(runs, options.env), options);
    });
  } catch (error) {
    // The lock's own errors have a cause, except that somebody else holds it.
    if (isOurs || !(error instanceof ContextError) || error.cause !== undefined) throw error;
    const [holder = "another process"] = /process \d+( on \S+)?/.exec(error.message) ?? [];
    throw new ContextError("write_failed", `${holder} is applying the nebula ${nebula.name} already`, {
      hint: "Wait for its end, or end it.",
    });
  }
}

async function applyAlone(nebula: Nebula, attempts: string, options: ApplyOptions): Promise<ApplyReport> {
  const stop = linkedStop(options.signal);
  const key = nebulaKey(nebula.directory);
  const record = openNebulaRecord(options.store, key);
  const begun = await beginRun(nebula, { key, record, attempts, options, signal: stop.signal });
  const order = wavesOf(nebula.phases).flat();
  const states = Object.entries(begun.record.phases).map(([id, { state }]) => [id, state] as const);
  const schedule = createSchedule(order, new Map(states));
  const { problems, ...shared } = await promptSources(nebula, options);
  for (const { path, reason } of problems) options.tell({ event: "notice", message: `${path}: ${reason}` });
  const sources = { ...shared, key, store: options.store };
  const application: Application = { options, sources, record, attempts, schedule, stop, tell: options.tell };
  const byId = new Map(order.map((phase) => [phase.id, phase]));
  const { maxWorkers } = options;
  await runPool(
    {
      schedule,
      maxWorkers,
      stop,
      run: (id) => runPhase(byId.get(id)!, application),
      ask: (id) => askFor(byId.get(id)!, application),
    },
    [...begun.adopted].map(([phase, agent]) => followAdopted(phase, agent, application)),
  );
  return standingOf(nebula, (await record.read()) ?? begun.record);
}

/** Aborts with `signal`, and by itself where the run cannot go on. */
function linkedStop(signal: AbortSignal): AbortController {
  const stop = new AbortController();
  // Every agent listens: that is no leak.
  setMaxListeners(0, stop.signal);
  if (signal.aborted) stop.abort();
  else signal.addEventListener("abort", () => stop.abort(), { once: true });
  return stop;
}

export type ContextSettings = Pick<ApplyOptions, "counter" | "cwd" | "env" | "maxContextTokens" | "shares">;

export interface SharedSources
  extends Pick<PromptSources, "nebula" | "counter" | "budget" | "project" | "isProjectTruncated"> {
  /** What of the project could not be read. */
  readonly problems: readonly ScanProblem[];
}

/** What all prompts of a run share. The project is looked at once: what does not change can be cached. */
export async function promptSources(
  nebula: Nebula,
  { counter, cwd, env, maxContextTokens: maxTokens, shares }: ContextSettings,
): Promise<SharedSources> {
  if (maxTokens === 0) return { nebula, counter, project: "", problems: [] };
  const budget = createContextBudget({ counter, maxTokens, shares });
  const scan = await scanProject(cwd, { env });
  // What fits its share stays whole in every prompt: they all begin with the same bytes.
  const limit = { counter, maxTokens: budget.shareOf("project") };
  const { text: project, truncated: isProjectTruncated } = renderSnapshot(scan, limit);
  return { nebula, counter, budget, project, isProjectTruncated, problems: scan.problems };
}

function askFor(phase: Phase, { options, tell, stop }: Application): Promise<boolean> | undefined {
  const { id, gate } = phase;
  if (gate === "trust") return undefined;
  return options.approve(phase).then((yes) => {
    if (!yes && !stop.signal.aborted) tell({ event: "held", phase: id, gate });
    return yes;
  });
}
