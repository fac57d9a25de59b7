/** Composes layers into one prompt: allocate tokens, truncate, join, and shorten further until the joined text fits. */

import { invalidArgument } from "../../core/errors.ts";
import { argumentChecks, checkKeys } from "../../core/text/index.ts";
import { type Counter, plainCounter } from "../../core/tokens/index.ts";
import {
  countLines,
  createAnswersLayer,
  type FittedLayer,
  type Measure,
  type PriorAnswer,
  type PromptLayer,
  readWhole,
  truncateText,
  wholeLines,
  withoutEdges,
} from "./truncate-layer.ts";
import { createSectionsLayer } from "./truncate-sections.ts";

const layerNames = ["project", "fabric", "priorWork"] as const;
export type LayerName = (typeof layerNames)[number];

/** The share of the budget that each layer can count on, from 0 to 1. */
export type ContextShares = Readonly<Record<LayerName, number>>;

/** The texts to compose, in order of priority. They appear in the prompt in this order. */
export interface ContextLayers {
  /** What the project is, such as the text of `renderSnapshot`. */
  readonly project?: string | undefined;
  /** What other phases did and found, such as the text of `renderFabric`. */
  readonly fabric?: string | undefined;
  /**
   * What was done before: any text, or the answers of other agents. Answers get equal shares. A long one keeps its end,
   * and all are quoted, so that none of them can look like a task.
   */
  readonly priorWork?: string | readonly PriorAnswer[] | undefined;
}

/** The composed text and what had to be left out of it. */
export interface ComposedContext {
  /** All layers that fit, with a rule between them. */
  readonly text: string;
  /** Tokens of the whole text, never more than the budget. */
  readonly tokens: number;
  /** The layers that were given and are not empty. */
  readonly layers: readonly ComposedLayer[];
  /** How many items and lines of all layers are missing. */
  readonly omitted: number;
  /** Tokens by which the discoveries in the fabric did not fit. */
  readonly overflow: number;
}

export interface ComposedLayer {
  readonly name: LayerName;
  /** Tokens of this layer's text alone. */
  readonly tokens: number;
  readonly truncated: boolean;
  /** How many items (of the fabric) or lines (of other layers) are missing. */
  readonly omitted: number;
}

export interface ComposeOptions extends Measure {
  /** Shares that add up to 1. */
  readonly shares: ContextShares;
}

interface GivenLayer {
  readonly name: LayerName;
  readonly layer: PromptLayer;
}

/** Joins the layers within the budget, whatever the counter. A budget of 0 gives an empty text. */
function composeLayers(layers: ContextLayers, options: ComposeOptions): ComposedContext {
  const names = options.maxTokens === 0 ? [] : layerNames;
  const given = names.flatMap((name): GivenLayer | [] => {
    const text = layers[name] ?? "";
    if (typeof text !== "string") return text.length === 0 ? [] : { name, layer: createAnswersLayer(text, options) };
    // Blank layers are left out, so that no two rules stand next to each other.
    if (!/\S/.test(text)) return [];
    const create = name === "fabric" ? createSectionsLayer : createTextLayer;
    return { name, layer: create(text, options) };
  });
  const fitted = fitLayers(given, options);
  const text = join(fitted);
  const sum = (key: "omitted" | "overflow"): number => fitted.reduce((total, each) => total + each[key], 0);
  return {
    text,
    tokens: options.counter.count(text),
    layers: fitted.map(({ tokens, truncated, omitted }, index) => {
      return { name: given[index]!.name, tokens, truncated, omitted };
    }),
    omitted: sum("omitted"),
    overflow: sum("overflow"),
  };
}

/** Creates a layer of free text: project or prior work. A cut keeps its beginning. */
export function createTextLayer(text: string, measure: Measure): PromptLayer {
  const { counter } = measure;
  const whole = readWhole(text, measure);
  let lines: number | undefined;
  return {
    need: whole.need,
    least: 0,
    fit(limit) {
      const fitted = whole.within(limit);
      if (fitted !== undefined) return fitted;
      const body = withoutEdges(text);
      const cut = truncateText(body, { counter, limit, ending: "\n[truncated]" });
      lines ??= countLines(body);
      return {
        text: cut.text,
        tokens: counter.count(cut.text),
        truncated: true,
        omitted: lines - wholeLines(body, cut.kept),
        isBelowLeast: false,
        overflow: 0,
      };
    },
  };
}

/**
 * Returns the prompt for a task: the context, a rule, then the task. Without context it returns the task alone.
 *
 * @example
 * ```ts
 * import { withTask } from "plimsoll/compose";
 *
 * const prompt = withTask("## Project\n\n- Language: TypeScript", "Fix the failing test.");
 * ```
 */
export function withTask(context: string, task: string): string {
  return context === "" ? task : context + separator + task;
}

const separator = "\n\n---\n\n";

function join(fitted: readonly FittedLayer[]): string {
  return fitted.flatMap(({ text }) => (text === "" ? [] : text)).join(separator);
}

/** Fits all layers uncut if possible. Otherwise shortens prior work before any heading or discovery of the fabric. If
 *  that is not enough for the fabric, prior work gets only what the other layers leave. */
function fitLayers(given: readonly GivenLayer[], options: ComposeOptions): FittedLayer[] {
  const { counter, maxTokens } = options;
  if (given.every(({ layer }) => layer.need <= maxTokens)) {
    const whole = given.map(({ layer }) => layer.fit(layer.need));
    if (counter.count(join(whole)) <= maxTokens) return whole;
  }
  const fitted = fitSome(given, options);
  const last = given.at(-1);
  if (last?.name !== "priorWork" || !fitted.some(({ isBelowLeast }) => isBelowLeast)) return fitted;
  const others = fitSome(given.slice(0, -1), options);
  let limit = maxTokens - counter.count(join(others)) - counter.count(separator);
  for (let step = 1; limit > 0; step *= 2) {
    const all = [...others, last.layer.fit(limit)];
    const excess = counter.count(join(all)) - maxTokens;
    if (excess <= 0) return all;
    limit -= Math.max(excess, step);
  }
  return [...others, last.layer.fit(0)];
}

/** If a layer cannot fit even one word, drops the last layer, so that few tokens still give the first layers
 *  something. Drops the layer itself instead if its share is 0, if dropping the last one does not help, or if the
 *  discoveries stay whole only without it. */
function fitSome(given: readonly GivenLayer[], options: ComposeOptions): FittedLayer[] {
  const fitted = fitJoined(given, options);
  const [lost, last] = [fitted.findIndex(({ text }) => text === ""), given.length - 1];
  if (lost === -1 || last === 0) return fitted;
  if (lost === last || options.shares[given[lost]!.name] === 0) return fitWithout(given, lost, options);
  const losesDiscoveries = (layers: readonly FittedLayer[]) => layers.some(({ overflow }) => overflow > 0);
  const withoutLast = fitWithout(given, last, options);
  const helps = withoutLast[lost]!.text !== "";
  if (helps && !losesDiscoveries(withoutLast)) return withoutLast;
  const withoutLost = fitWithout(given, lost, options);
  return helps && losesDiscoveries(withoutLost) ? withoutLast : withoutLost;
}

function fitWithout(given: readonly GivenLayer[], left: number, options: ComposeOptions): FittedLayer[] {
  const others = given.filter((_, index) => index !== left);
  return fitSome(others, options).toSpliced(left, 0, given[left]!.layer.fit(0));
}

/** A joined text may have more tokens than the sum of its parts, so this grants less until it fits. */
function fitJoined(present: readonly GivenLayer[], options: ComposeOptions): FittedLayer[] {
  const { counter, maxTokens } = options;
  let total = maxTokens - counter.count(separator) * Math.max(0, present.length - 1);
  for (let step = 1; ; step *= 2) {
    const fitted = fitWithin(present, Math.max(0, total), options);
    const excess = counter.count(join(fitted)) - maxTokens;
    if (excess <= 0) return fitted;
    total -= Math.max(excess, step);
  }
}

/** Fits each layer into its grant, then gives unused tokens to truncated layers, the first one first. */
function fitWithin(present: readonly GivenLayer[], total: number, { shares }: ComposeOptions): FittedLayer[] {
  const demands = layerNames.map((name) => {
    const { need = 0, least = 0 } = present.find((each) => each.name === name)?.layer ?? {};
    return { need, least, share: shares[name] };
  });
  const grants = allocate(total, demands);
  const fitted = present.map(({ name, layer }) => layer.fit(grants[layerNames.indexOf(name)]!));
  for (const [index, { layer }] of present.entries()) {
    const unused = total - fitted.reduce((sum, { tokens }) => sum + tokens, 0);
    const { truncated, tokens } = fitted[index]!;
    if (truncated && unused > 0) fitted[index] = layer.fit(tokens + unused);
  }
  return fitted;
}

/** The tokens that a layer needs and can count on. */
export interface Demand {
  /** Tokens of the whole layer; infinite if it is larger than any grant. */
  readonly need: number;
  /** Below this many tokens the layer loses more than items, so later layers give up tokens for it. */
  readonly least: number;
  /** Share of the total, from 0 to 1. */
  readonly share: number;
}

/** Splits `total` in order: a layer gets its share and what the layers before it did not need. Then a layer below
 *  its `least` takes unused tokens, and after that tokens of later layers, the last one first. Grants never add up
 *  to more than `total`. */
export function allocate(total: number, demands: readonly Demand[]): number[] {
  let carried = 0;
  let left = total;
  const grants = demands.map(({ need, share }) => {
    const offered = Math.min(carried + Math.floor(total * share), left);
    const grant = Math.min(need, offered);
    carried = offered - grant;
    left -= grant;
    return grant;
  });
  for (const [index, { need, least }] of demands.entries()) {
    const missing = Math.min(need, least) - grants[index]!;
    if (missing <= 0) continue;
    let taken = Math.min(missing, total - grants.reduce((sum, grant) => sum + grant, 0));
    for (let later = grants.length - 1; later > index; later--) {
      const part = Math.min(missing - taken, grants[later]!);
      grants[later]! -= part;
      taken += part;
    }
    grants[index]! += taken;
  }
  return grants;
}

/** Fits layers of context into one token budget. */
export interface PromptComposer {
  /** The most tokens that a composed text has. */
  readonly maxTokens: number;
  /**
   * Returns the tokens that a layer always gets, however large the others are. A text of at most that size is never
   * cut.
   */
  shareOf(layer: LayerName): number;
  /**
   * Joins all layers into one text of at most `maxTokens`, separators and markers included. The same layers give the
   * same bytes.
   */
  compose(layers: ContextLayers): ComposedContext;
}

/** Options of `createPromptComposer`. */
export interface PromptComposerOptions {
  /**
   * Counts the tokens of the text.
   * @default the counter bytes/4
   */
  readonly counter?: Counter | undefined;
  /**
   * The most tokens that the composed text may have. 0 composes an empty text.
   * @default 10_000
   */
  readonly maxTokens?: number | undefined;
  /**
   * The part of the budget that each layer can count on, relative to the sum of all shares. Other layers use what a
   * layer does not need.
   * @default { project: 0.4, fabric: 0.4, priorWork: 0.2 }
   */
  readonly shares?: Partial<ContextShares> | undefined;
}

/**
 * Creates a composer that joins what an agent needs to know into one text within a token budget. If not everything
 * fits, it shortens the layers and reports what is missing.
 *
 * @example
 * ```ts
 * import { createCounter } from "plimsoll";
 * import { createPromptComposer, withTask } from "plimsoll/compose";
 *
 * const composer = createPromptComposer({ counter: await createCounter("bytes/4"), maxTokens: 2_000 });
 * const { text, tokens } = composer.compose({
 *   project: "## Project\n\n- Language: TypeScript",
 *   priorWork: "### model: Data model\n\nThe tables are in src/model.ts.",
 * });
 * console.log(tokens, withTask(text, "Write the server."));
 * ```
 */
export function createPromptComposer(options: PromptComposerOptions = {}): PromptComposer {
  checkKeys("options", options, ["counter", "maxTokens", "shares"]);
  const { counter = plainCounter, maxTokens = 10_000 } = options;
  argumentChecks.counter("counter", counter);
  argumentChecks.tokensFrom(0)("maxTokens", maxTokens);
  const settings = { counter, maxTokens, shares: readShares(options.shares ?? {}) };
  return {
    maxTokens,
    shareOf(layer) {
      const separators = counter.count(separator) * (layerNames.length - 1);
      return Math.floor(Math.max(0, maxTokens - separators) * settings.shares[layer]);
    },
    compose(layers) {
      checkKeys("layers", layers, layerNames);
      for (const name of layerNames) {
        const value = layers[name];
        const hasAnswers = name === "priorWork" && Array.isArray(value);
        if (value !== undefined && !hasAnswers) argumentChecks.text(name, value);
      }
      const answers = Array.isArray(layers.priorWork) ? layers.priorWork : [];
      for (const [index, answer] of answers.entries()) {
        checkKeys(`priorWork[${index}]`, answer, ["heading", "text"]);
        argumentChecks.text(`priorWork[${index}].heading`, answer.heading ?? null);
        argumentChecks.text(`priorWork[${index}].text`, answer.text ?? null);
      }
      return composeLayers(layers, settings);
    },
  };
}

/** Returns shares that add up to 1. */
function readShares(given: Partial<ContextShares>): ContextShares {
  checkKeys("shares", given, layerNames);
  const defaults = { project: 0.4, fabric: 0.4, priorWork: 0.2 };
  const shares = layerNames.map((name) => [name, given[name] ?? defaults[name]] as const);
  for (const [name, share] of shares) argumentChecks.share(`shares.${name}`, share);
  const sum = shares.reduce((total, [, share]) => total + share, 0);
  if (sum === 0) {
    throw invalidArgument(
      "all shares are 0",
      "Give at least one layer a share. To compose nothing, set maxTokens to 0.",
    );
  }
  return Object.fromEntries(shares.map(([name, share]) => [name, share / sum])) as ContextShares;
}
