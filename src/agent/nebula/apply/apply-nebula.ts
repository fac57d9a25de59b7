/** Applies a nebula: its phases in the order of their dependencies, several at a time, each told what is around it. */
import { setMaxListeners } from "node:events";
import { ContextError } from "../../../errors.ts";
import { withLock } from "../../../workspace/index.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import { wavesOf } from "../files/waves.ts";
import { nebulaKey, runKey } from "../record/nebula-key.ts";
import { openNebulaRecord } from "../record/nebula-record.ts";
import type { Application } from "./application.ts";
import type { ApplyReport } from "./apply-event.ts";
import { type ApplyOptions, type SettledOptions, settleOptions } from "./apply-options.ts";
import { beginRun } from "./begin-run.ts";
import { promptSources } from "./phase-prompt.ts";
import { runPool } from "./pool/run-pool.ts";
import { createSchedule } from "./pool/schedule.ts";
import { followAdopted, runPhase } from "./run-phase.ts";
import { standingOf } from "./standing.ts";
import { attemptsFolderOf } from "./state/attempt-folders.ts";

/** Comes back when nothing more can run, with how every phase stands. A second run of the same nebula with the
 *  same store is refused while one goes on. */
export async function applyNebula(nebula: Nebula, options: ApplyOptions): Promise<ApplyReport> {
  const settled = settleOptions(nebula, options);
  const { env, storeFile } = settled;
  const runs = runKey(nebula.directory, storeFile);
  const heldError = (holder: string) =>
    new ContextError("write_failed", `${holder} is applying the nebula ${nebula.name} already`, {
      hint: "Wait for its end, or end it.",
    });
  return withLock(`nebula ${runs}`, { env, waitMs: 0, heldError }, () =>
    applyAlone(nebula, attemptsFolderOf(runs, env), settled),
  );
}

async function applyAlone(
  nebula: Nebula,
  attemptsFolder: string,
  options: SettledOptions,
): Promise<ApplyReport> {
  const { tell, maxWorkers } = options;
  const stop = linkedStop(options.signal);
  const key = nebulaKey(nebula.directory);
  const record = openNebulaRecord(options.store, key);
  const begun = await beginRun(nebula, { key, record, attemptsFolder, options, signal: stop.signal });
  const order = wavesOf(nebula.phases).flat();
  const states = Object.entries(begun.record.phases).map(([id, { state }]) => [id, state] as const);
  const schedule = createSchedule(order, new Map(states));
  const { problems, ...shared } = await promptSources(nebula, options);
  for (const { path, reason } of problems) tell({ event: "notice", message: `${path}: ${reason}` });
  const sources = { ...shared, key, store: options.store };
  const application: Application = { options, sources, record, attemptsFolder, schedule, stop, tell };
  const byId = new Map(order.map((phase) => [phase.id, phase]));
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
function linkedStop(signal: AbortSignal | undefined): AbortController {
  const stop = new AbortController();
  // Every agent listens: that is no leak.
  setMaxListeners(0, stop.signal);
  if (signal?.aborted) stop.abort();
  else signal?.addEventListener("abort", () => stop.abort(), { once: true });
  return stop;
}

function askFor(phase: Phase, { options, tell, stop }: Application): Promise<boolean> | undefined {
  const { id, gate } = phase;
  if (gate === "trust") return undefined;
  return options.approve(phase).then((yes) => {
    if (!yes && !stop.signal.aborted) tell({ event: "held", phase: id, gate });
    return yes;
  });
}
