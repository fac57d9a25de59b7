import type { ComposedLayer, PhaseState } from "../../../compose/index.ts";
import type { Store } from "../../../store/index.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import { wavesOf } from "../files/waves.ts";
import { nebulaKey } from "../record/nebula-key.ts";
import { openNebulaRecord, runOf } from "../record/nebula-record.ts";
import { freshRecord, resumedRecord } from "../record/record-changes.ts";
import type { ApplyReport } from "./apply-event.ts";
import { type ContextSettings, phasePrompt, promptSources } from "./phase-prompt.ts";
import { standingOf } from "./standing.ts";

/** What applying a nebula would do first: each phase as it would be told now, before any other has run. Its `phases` are as of a run: how
 *  they would stand at its beginning. */
export interface ApplyPlan extends ApplyReport {
  readonly waves: readonly (readonly PlannedPhase[])[];
}

export interface PlannedPhase {
  readonly id: string;
  readonly title: string;
  /** `completed` phases would not run. */
  readonly state: PhaseState;
  /** Of a completed phase, those that it was told. */
  readonly promptTokens: number;
  /** Of a completed phase none. */
  readonly layers: readonly ComposedLayer[];
  /** Tokens by which the discoveries of the fabric would not fit. */
  readonly overflow: number;
}

export interface PlanOptions extends ContextSettings {
  /** Absent where there is none yet: planning makes none. */
  readonly store?: Store | undefined;
  /** Default: false. */
  readonly resume?: boolean | undefined;
}

/** Runs nothing and writes nothing. */
export async function planApply(nebula: Nebula, options: PlanOptions): Promise<ApplyPlan> {
  const { store, resume } = options;
  const key = nebulaKey(nebula.directory);
  const before = store === undefined ? undefined : await openNebulaRecord(store, key).read();
  const record = resume && before !== undefined ? resumedRecord(before, nebula) : freshRecord(before, nebula);
  const sources = { ...(await promptSources(nebula, options)), key, store };
  const plan = async (phase: Phase): Promise<PlannedPhase> => {
    const { id, title } = phase;
    const { state = "waiting", promptTokens = 0 } = runOf(record, id) ?? {};
    if (state === "completed") return { id, title, state, promptTokens, layers: [], overflow: 0 };
    const { tokens, layers, overflow } = await phasePrompt(phase, record, sources);
    return { id, title, state, promptTokens: tokens, layers, overflow };
  };
  const waves: PlannedPhase[][] = [];
  for (const wave of wavesOf(nebula.phases)) {
    const planned: PlannedPhase[] = [];
    for (const phase of wave) planned.push(await plan(phase));
    waves.push(planned);
  }
  const tokens = new Map(waves.flat().map(({ id, promptTokens }) => [id, promptTokens]));
  const { phases } = standingOf(nebula, record);
  return { phases: phases.map((phase) => ({ ...phase, promptTokens: tokens.get(phase.id)! })), waves };
}
