import type { ComposedLayer, PhaseState } from "../../../compose/index.ts";
import type { Store } from "../../../store/index.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import { wavesOf } from "../files/waves.ts";
import { nebulaKey } from "../record/nebula-key.ts";
import { openNebulaRecord } from "../record/nebula-record.ts";
import { type ContextSettings, promptSources } from "./apply-nebula.ts";
import { phasePrompt } from "./phase-prompt.ts";
import { freshRecord, resumedRecord } from "./state/record-changes.ts";

/** What applying a nebula would do first: each phase as it would be told now, before any other has run. */
export interface ApplyPlan {
  readonly waves: readonly (readonly PlannedPhase[])[];
}

export interface PlannedPhase {
  readonly id: string;
  readonly title: string;
  /** `completed` phases would not run. */
  readonly state: PhaseState;
  readonly promptTokens: number;
  readonly layers: readonly ComposedLayer[];
  /** Tokens by which the discoveries of the fabric would not fit. */
  readonly overflow: number;
}

export interface PlanOptions extends ContextSettings {
  /** Absent where there is none yet: planning makes none. */
  readonly store?: Store | undefined;
  readonly resume: boolean;
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
    const { tokens: promptTokens, layers, overflow } = await phasePrompt(phase, record, sources);
    return { id, title, state: record.phases[id]?.state ?? "waiting", promptTokens, layers, overflow };
  };
  const waves: PlannedPhase[][] = [];
  for (const wave of wavesOf(nebula.phases)) {
    const planned: PlannedPhase[] = [];
    for (const phase of wave) planned.push(await plan(phase));
    waves.push(planned);
  }
  return { waves };
}
