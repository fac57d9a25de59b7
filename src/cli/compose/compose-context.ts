import {
  type ComposedContext,
  type ComposedLayer,
  type ContextLayers,
  createContextBudget,
  type ProjectScan,
  renderSnapshot,
} from "../../compose/index.ts";
import type { Call } from "../command.ts";
import type { ContextSettings } from "./context-settings.ts";
import { type LayerFlags, readLayers } from "./layer-inputs.ts";

export interface ContextAccount extends Omit<ComposedContext, "text"> {
  readonly maxTokens: number;
  readonly counter: string;
}

export interface AccountedContext {
  readonly text: string;
  readonly account: ContextAccount;
  /** Of what the project layer leaves out, the entries of a snapshot's tree; all else are lines. */
  readonly omittedEntries: number;
}

/** The layers that the command line names, within the budget, and what became of each. */
export async function composeContext(
  call: Call<LayerFlags>,
  settings: ContextSettings,
): Promise<AccountedContext> {
  const { counter, maxTokens } = settings;
  const { scan, ...layers } = await readLayers(call, maxTokens);
  const { composed, omittedEntries } =
    scan === undefined
      ? { composed: createContextBudget(settings).compose(layers), omittedEntries: 0 }
      : composeSnapshot(scan, layers, settings);
  const { text, tokens, ...facts } = composed;
  return { text, account: { tokens, maxTokens, counter: counter.name, ...facts }, omittedEntries };
}

/** A snapshot knows better than any cut what it can do without: where it does not fit beside the others, it is rendered again for the
 *  room that it has. What it leaves out is left out of the layer. */
function composeSnapshot(
  scan: ProjectScan,
  layers: ContextLayers,
  settings: ContextSettings,
): { composed: ComposedContext; omittedEntries: number } {
  const { counter, maxTokens } = settings;
  const budget = createContextBudget(settings);
  const composeWithin = (limit: number) => {
    const snapshot = renderSnapshot(scan, { counter, maxTokens: limit });
    return { snapshot, composed: budget.compose({ ...layers, project: snapshot.text }) };
  };
  const first = composeWithin(maxTokens);
  const cut = first.composed.layers.find(({ name, truncated }) => name === "project" && truncated);
  const { snapshot, composed } = cut === undefined ? first : composeWithin(cut.tokens);
  const { truncated, omitted, omittedEntries } = snapshot;
  return { composed: truncated ? withOmitted(composed, omitted) : composed, omittedEntries };
}

function withOmitted(composed: ComposedContext, omitted: number): ComposedContext {
  const isProject = ({ name }: ComposedLayer) => name === "project";
  const { tokens, omitted: cut } = composed.layers.find(isProject) ?? { tokens: 0, omitted: 0 };
  const project = { name: "project", tokens, truncated: true, omitted: cut + omitted } as const;
  const others = composed.layers.filter((layer) => !isProject(layer));
  return { ...composed, layers: [project, ...others], omitted: composed.omitted + omitted };
}
