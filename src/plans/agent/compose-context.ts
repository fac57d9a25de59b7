import { join } from "node:path";
import type { Call } from "../../cli/command.ts";
import { readTextInput } from "../../core/messages/messages-text.ts";
import { countNoun, formatNumber, printable, wholeNumber } from "../../core/text/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import { chooseCounter } from "../../host/config/choose-counters.ts";
import { loadConfig, type ProjectScan, scanProject } from "../../host/index.ts";
import { noteLeftOut } from "../../host/trust/require-trust.ts";
import {
  type ComposedContext,
  type ComposedLayer,
  type ContextLayers,
  type ContextShares,
  createPromptComposer,
  renderSnapshot,
} from "../compose/index.ts";
import type { LoadsItself } from "./choose-agent.ts";
import { leaveOutConventions } from "./index.ts";

export interface ContextAccount extends Omit<ComposedContext, "text"> {
  readonly maxTokens: number;
  readonly counter: string;
}

export interface AccountedContext {
  readonly text: string;
  readonly account: ContextAccount;
  /** How many missing parts of the project layer are entries of the tree; the others are lines. */
  readonly omittedEntries: number;
  /** Conventions that the agent loads by itself, so they are not in the snapshot. */
  readonly leftOut?: readonly string[] | undefined;
}

/** Composes the layers of the command line within the budget, and reports what was cut. */
export async function composeContext(call: Call<LayerFlags>, settings: ContextSettings): Promise<AccountedContext> {
  const { counter, maxTokens } = settings;
  const { scan, leftOut, ...layers } = await readLayers(call, maxTokens);
  const { composed, omittedEntries } =
    scan === undefined
      ? { composed: createPromptComposer(settings).compose(layers), omittedEntries: 0 }
      : composeSnapshot(scan, layers, settings);
  const { text, tokens, ...facts } = composed;
  return { text, account: { tokens, maxTokens, counter: counter.name, ...facts }, omittedEntries, leftOut };
}

/** If the snapshot does not fit, renders it again for the tokens that it gets, which loses less than a cut. */
function composeSnapshot(
  scan: ProjectScan,
  layers: ContextLayers,
  settings: ContextSettings,
): { composed: ComposedContext; omittedEntries: number } {
  const { counter, maxTokens } = settings;
  const budget = createPromptComposer(settings);
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

/** Scans a project. Prints progress and unreadable files to stderr, with `shownAs` before file names. */
export async function scanDirectory(
  directory: string,
  call: Pick<Call, "cwd" | "env" | "output">,
  shownAs = ".",
): Promise<ProjectScan> {
  const { env, output } = call;
  output.progress("listing files");
  const onProgress = (paths: number) => output.progress(`listed ${countNoun(paths, "file")}`);
  const { values: secrets, leftOut } = await loadConfig({ cwd: directory, env });
  noteLeftOut(
    leftOut.filter(({ key }) => key === "allow"),
    call,
  );
  const scan = await scanProject(directory, { env, secrets, onProgress });
  for (const { path, reason } of scan.problems) output.note(`${printable(join(shownAs, path))}: ${reason}`);
  return scan;
}

/** Layers as options: files, standard input, a snapshot of the project. */
export interface LayerFlags {
  readonly project?: string | undefined;
  readonly snapshot?: boolean | undefined;
  /** Whether the agent loads conventions by itself, so that the snapshot leaves them out. */
  readonly loadsItself?: LoadsItself | undefined;
  readonly fabric?: string | undefined;
  readonly prior?: string | undefined;
}

interface LayerInputs extends ContextLayers {
  /** The scan of the current project if its snapshot is the project layer. */
  readonly scan?: ProjectScan | undefined;
  readonly leftOut: readonly string[];
}

/** Reads files even if the budget is 0, so that a wrong name is always an error. */
async function readLayers(call: Call<LayerFlags>, maxTokens: number): Promise<LayerInputs> {
  const { project, snapshot, loadsItself, fabric, prior } = call.options;
  const read = async (name: string | undefined) =>
    name === undefined ? undefined : (await readTextInput(name, call)).text;
  const scanned = snapshot && maxTokens > 0 ? await scanDirectory(call.cwd, call) : undefined;
  const known = scanned && leaveOutConventions(scanned, loadsItself);
  return {
    scan: known?.scan,
    leftOut: known?.leftOut ?? [],
    project: await read(project),
    fabric: await read(fabric),
    priorWork: await read(prior),
  };
}

export interface ContextFlags {
  readonly "max-context-tokens"?: string | undefined;
  readonly counter?: string | undefined;
  readonly model?: string | undefined;
}

interface ContextSettings {
  readonly counter: Counter;
  readonly maxTokens: number;
  readonly shares: ContextShares;
}

/** Reads settings from the command line, or else from the configuration. Without a counter in either, uses
 *  `fallback`. */
export async function readContextSettings(
  call: Call<ContextFlags>,
  fallback: string = "bytes/4",
): Promise<ContextSettings> {
  const { "max-context-tokens": asked } = call.options;
  const maxAsked = asked === undefined ? undefined : wholeNumber(asked, "max-context-tokens", 0);
  const { context } = (await loadConfig(call)).values;
  const { project, fabric, prior_work: priorWork } = context.shares;
  return {
    counter: await chooseCounter(call, fallback),
    maxTokens: maxAsked ?? context.max_tokens,
    shares: { project, fabric, priorWork },
  };
}

type Described = Omit<AccountedContext, "text">;

/** Describes each layer in one line. Returns nothing for a whole context unless `evenIfWhole` is set. */
export function notesOnContext(
  { account, omittedEntries, leftOut = [] }: Described,
  { evenIfWhole = false }: { readonly evenIfWhole?: boolean } = {},
): string[] {
  const { tokens, maxTokens, counter, layers, overflow } = account;
  if (!evenIfWhole && !layers.some(({ truncated }) => truncated)) return [];
  const lines = layers.map((layer) => {
    const entries = layer.name === "project" ? omittedEntries : 0;
    const cut = layer.truncated ? `, truncated, ${omittedParts(layer, entries)} omitted` : "";
    return `${layerName(layer.name)}: ${countNoun(layer.tokens, "token")}${cut}`;
  });
  const all = `context: ${formatNumber(tokens)} of ${countNoun(maxTokens, "token")} (${counter})`;
  const known = leftOut.length === 0 ? [] : [`not in the snapshot, because the agent loads it: ${leftOut.join(", ")}`];
  return [all, ...lines, ...known, ...(overflow > 0 ? [missing(overflow)] : [])];
}

/** Uses the words of the markers in the text. */
function omittedParts({ name, omitted }: ComposedLayer, entries: number): string {
  const others = countNoun(omitted - entries, name === "fabric" ? "item" : "line");
  if (entries === 0) return others;
  const ofTree = entries === 1 ? "1 entry" : `${formatNumber(entries)} entries`;
  return omitted === entries ? ofTree : `${ofTree} and ${others}`;
}

/** The name of a layer for people. */
export function layerName(name: ComposedLayer["name"]): string {
  return name === "priorWork" ? "prior work" : name;
}

/** Describes discoveries that did not fit. */
export function missing(overflow: number): string {
  return `${countNoun(overflow, "token")} of discoveries did not fit`;
}
