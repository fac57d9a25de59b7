import { join } from "node:path";
import { countNoun, printable } from "../core/text/index.ts";
import type { Counter } from "../core/tokens/index.ts";
import {
  type Caller,
  type ConventionsFile,
  type CounterChoice,
  chooseCounter,
  loadConfig,
  noteLeftOut,
  type ProjectScan,
  scanProject,
} from "../host/index.ts";
import {
  type ComposedContext,
  type ComposedLayer,
  type ContextLayers,
  type ContextShares,
  createPromptComposer,
  leaveOutConventions,
  renderSnapshot,
} from "./compose/index.ts";

export interface AccountedContext {
  readonly text: string;
  readonly account: Omit<ComposedContext, "text"> & { readonly maxTokens: number; readonly counter: string };
  /** How many missing parts of the project layer are entries of the tree; the others are lines. */
  readonly omittedEntries: number;
  /** Conventions that the agent loads by itself, so they are not in the snapshot. */
  readonly leftOut?: readonly string[] | undefined;
}

/** Composes the layers within the budget, and reports what was cut. */
export async function composeContext(
  layers: ContextLayers,
  {
    snapshot = false,
    loadsItself,
    ...settings
  }: ContextSettings & {
    /** Whether a snapshot of the current project is the project layer. */
    readonly snapshot?: boolean | undefined;
    /** Whether the agent loads a convention file by itself, so that the snapshot leaves it out. */
    readonly loadsItself?: ((file: ConventionsFile) => boolean) | undefined;
  },
  caller: Caller,
): Promise<AccountedContext> {
  const { counter, maxTokens } = settings;
  const scanned = snapshot && maxTokens > 0 ? await scanDirectory(caller.cwd, caller) : undefined;
  const known = scanned && leaveOutConventions(scanned, loadsItself);
  const { composed, omittedEntries } =
    known === undefined
      ? { composed: createPromptComposer(settings).compose(layers), omittedEntries: 0 }
      : composeSnapshot(known.scan, layers, settings);
  const { text, tokens, ...facts } = composed;
  const account = { tokens, maxTokens, counter: counter.name, ...facts };
  return { text, account, omittedEntries, leftOut: known?.leftOut ?? [] };
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
  if (!truncated) return { composed, omittedEntries };
  const before = composed.layers.find(({ name }) => name === "project") ?? { tokens: 0, omitted: 0 };
  const project: ComposedLayer = {
    name: "project",
    tokens: before.tokens,
    truncated: true,
    omitted: before.omitted + omitted,
  };
  const others = composed.layers.filter(({ name }) => name !== "project");
  const counted = { ...composed, layers: [project, ...others], omitted: composed.omitted + omitted };
  return { composed: counted, omittedEntries };
}

/** Scans a project. Prints progress and unreadable files to stderr, with `shownAs` before file names. */
export async function scanDirectory(directory: string, caller: Caller, shownAs = "."): Promise<ProjectScan> {
  const { env, output } = caller;
  output.progress("listing files");
  const onProgress = (paths: number) => output.progress(`listed ${countNoun(paths, "file")}`);
  const { values: secrets, leftOut } = await loadConfig({ cwd: directory, env });
  noteLeftOut(leftOut, caller, "allow");
  const scan = await scanProject(directory, { env, secrets, onProgress });
  for (const { path, reason } of scan.problems) output.note(`${printable(join(shownAs, path))}: ${reason}`);
  return scan;
}

export interface ContextSettings {
  readonly counter: Counter;
  readonly maxTokens: number;
  readonly shares: ContextShares;
}

/** Reads settings from the options, or else from the configuration. Without a counter in either, uses `fallback`. */
export async function readContextSettings(
  caller: Caller & {
    readonly options: CounterChoice<string> & { readonly maxContextTokens?: number | undefined };
  },
  fallback: string = "bytes/4",
): Promise<ContextSettings> {
  const { context } = (await loadConfig(caller)).values;
  const { project, fabric, prior_work: priorWork } = context.shares;
  return {
    counter: await chooseCounter(caller, fallback),
    maxTokens: caller.options.maxContextTokens ?? context.max_tokens,
    shares: { project, fabric, priorWork },
  };
}
