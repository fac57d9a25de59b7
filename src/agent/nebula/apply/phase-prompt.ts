/** What the agent of a phase is told, and what all of a run are. */
import {
  type ComposedContext,
  type ContextBudget,
  createContextBudget,
  renderFabric,
  renderSnapshot,
  type ScanProblem,
  withTask,
} from "../../../compose/index.ts";
import type { Store } from "../../../store/index.ts";
import { closeFence } from "../../../text/index.ts";
import type { Counter } from "../../../tokens/index.ts";
import { scanProject } from "../../../workspace/index.ts";
import type { Nebula, Phase } from "../files/nebula.ts";
import { renderTask } from "../files/render-task.ts";
import { fabricOf, type NebulaRecord, runOf } from "../record/nebula-record.ts";
import { parseFabricBlock } from "../report/fabric-block.ts";
import type { ApplyOptions } from "./apply-options.ts";
import { readAnswer } from "./state/answers.ts";

export interface PromptSources {
  readonly nebula: Nebula;
  readonly key: string;
  readonly counter: Counter;
  /** Absent where no context is to be injected. */
  readonly budget?: ContextBudget | undefined;
  /** Rendered once a run: what does not change can be cached. */
  readonly project: string;
  /** Cut before it came into any layer. */
  readonly isProjectTruncated?: boolean | undefined;
  /** Absent where there is no store yet. */
  readonly store?: Pick<Store, "get"> | undefined;
}

export type ContextSettings = Pick<
  ApplyOptions,
  "counter" | "cwd" | "env" | "maxContextTokens" | "secrets" | "shares"
>;

export interface SharedSources
  extends Pick<PromptSources, "nebula" | "counter" | "budget" | "project" | "isProjectTruncated"> {
  /** What of the project could not be read. */
  readonly problems: readonly ScanProblem[];
}

/** What all prompts of a run share. The project is looked at once: what does not change can be cached. */
export async function promptSources(
  nebula: Nebula,
  {
    counter,
    cwd,
    env,
    secrets,
    shares,
    maxContextTokens = nebula.execution.maxContextTokens,
  }: ContextSettings,
): Promise<SharedSources> {
  if (maxContextTokens === 0) return { nebula, counter, project: "", problems: [] };
  const budget = createContextBudget({ counter, maxTokens: maxContextTokens, shares });
  const scan = await scanProject(cwd, { env, secrets });
  // What fits its share stays whole in every prompt: they all begin with the same bytes.
  const limit = { counter, maxTokens: budget.shareOf("project") };
  const { text: project, truncated: isProjectTruncated } = renderSnapshot(scan, limit);
  return { nebula, counter, budget, project, isProjectTruncated, problems: scan.problems };
}

export interface PhasePrompt {
  readonly text: string;
  /** Of all that is sent. */
  readonly tokens: number;
  readonly layers: ComposedContext["layers"];
  /** Tokens by which the discoveries of the fabric did not fit. */
  readonly overflow: number;
}

/** All that the agent of a phase is told: what is around it, within the budget, then its task, whole. */
export async function phasePrompt(
  phase: Phase,
  record: NebulaRecord,
  sources: PromptSources,
): Promise<PhasePrompt> {
  const { nebula, counter, budget, project } = sources;
  const task = renderTask(nebula, phase);
  if (budget === undefined) return { text: task, tokens: counter.count(task), layers: [], overflow: 0 };
  const fabric = renderFabric(fabricOf(record));
  const priorWork = await renderPriorWork(phase, record, sources);
  const composed = budget.compose({ project, fabric, priorWork });
  const text = withTask(composed.text, task);
  const layers = composed.layers.map((layer) =>
    layer.name === "project" && sources.isProjectTruncated ? { ...layer, truncated: true } : layer,
  );
  return { text, tokens: counter.count(text), layers, overflow: composed.overflow };
}

/** What the phases that this one depends on have answered, in the order in which it names them. */
async function renderPriorWork(
  phase: Phase,
  record: NebulaRecord,
  { key, nebula, store }: PromptSources,
): Promise<string> {
  const parts: string[] = [];
  for (const id of phase.dependsOn) {
    if (store === undefined || runOf(record, id)?.state !== "completed") continue;
    const answer = await readAnswer(store, { key, phase: id });
    const { title = id } = nebula.phases.find((each) => each.id === id) ?? {};
    if (answer === undefined) continue;
    const { rest } = await parseFabricBlock(answer);
    parts.push(`### ${id}: ${title}\n\n${closeFence(rest.trim())}`);
  }
  return parts.join("\n\n");
}
