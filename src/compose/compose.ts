/** Layers into one prompt: allocate, truncate, join, and give way further until what is joined fits. */
import { allocate } from "./allocate.ts";
import type { FittedLayer, Layer, Measure } from "./truncate/layer.ts";
import { createSectionsLayer } from "./truncate/truncate-sections.ts";
import { createTextLayer } from "./truncate/truncate-text.ts";

export const layerNames = ["project", "fabric", "priorWork"] as const;
export type LayerName = (typeof layerNames)[number];

/** Of the budget, by layer. */
export type ContextShares = Readonly<Record<LayerName, number>>;

/** In the order of their priority, which is that of the text. */
export interface ContextLayers {
  readonly project?: string | undefined;
  readonly fabric?: string | undefined;
  readonly priorWork?: string | undefined;
}

export interface ComposedContext {
  readonly text: string;
  /** Of the whole text, as the counter counts it. Never more than the budget's. */
  readonly tokens: number;
  /** The layers that were given and are not empty. */
  readonly layers: readonly ComposedLayer[];
  readonly omitted: number;
  /** Tokens by which the discoveries of the fabric did not fit. */
  readonly overflow: number;
}

export interface ComposedLayer {
  readonly name: LayerName;
  /** Of its part of the text alone. */
  readonly tokens: number;
  readonly truncated: boolean;
  /** What is not in the text: items of the fabric, lines of the others. */
  readonly omitted: number;
}

export interface ComposeOptions extends Measure {
  /** They add up to 1. */
  readonly shares: ContextShares;
}

/** The layers, within the budget, whatever the counter. A budget of 0 composes nothing. */
export function composeLayers(layers: ContextLayers, options: ComposeOptions): ComposedContext {
  const given = options.maxTokens === 0 ? [] : readLayers(layers, options);
  const fitted = fitWhole(given, options) ?? fitInOrder(given, options);
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

interface GivenLayer {
  readonly name: LayerName;
  readonly layer: Layer;
}

function readLayers(layers: ContextLayers, measure: Measure): GivenLayer[] {
  return layerNames.flatMap((name) => {
    const text = layers[name] ?? "";
    // Blank is empty: nobody wants two rules with nothing between them.
    if (!/\S/.test(text)) return [];
    const create = name === "fabric" ? createSectionsLayer : createTextLayer;
    return { name, layer: create(text, measure) };
  });
}

/** What is left for it where all layers are there and too long. */
export function shareOf(name: LayerName, { counter, maxTokens, shares }: ComposeOptions): number {
  const separators = counter.count(separator) * (layerNames.length - 1);
  return Math.floor(Math.max(0, maxTokens - separators) * shares[name]);
}

/** A prompt: what there is to know, then what to do; the task alone where there is no context. */
export function withTask(context: string, task: string): string {
  return context === "" ? task : context + separator + task;
}

const separator = "\n\n---\n\n";

function join(fitted: readonly FittedLayer[]): string {
  return fitted.flatMap(({ text }) => (text === "" ? [] : text)).join(separator);
}

/** Undefined where not all of them fit as they are. */
function fitWhole(
  given: readonly GivenLayer[],
  { counter, maxTokens }: ComposeOptions,
): FittedLayer[] | undefined {
  if (given.some(({ layer }) => layer.need > maxTokens)) return undefined;
  const fitted = given.map(({ layer }) => layer.fit(layer.need));
  return counter.count(join(fitted)) <= maxTokens ? fitted : undefined;
}

/** Prior work gives way before any heading or discovery of the fabric does. Where that is not enough for them, it gets what they and
 *  the project leave. */
function fitInOrder(given: readonly GivenLayer[], options: ComposeOptions): FittedLayer[] {
  const fitted = fitSome(given, options);
  const last = given.at(-1);
  if (last?.name !== "priorWork" || !fitted.some(({ isBelowLeast }) => isBelowLeast)) return fitted;
  const others = fitSome(given.slice(0, -1), options);
  return [...others, fitBehind(others, last.layer, options)];
}

function fitBehind(
  others: readonly FittedLayer[],
  layer: Layer,
  { counter, maxTokens }: ComposeOptions,
): FittedLayer {
  let limit = maxTokens - counter.count(join(others)) - counter.count(separator);
  for (let step = 1; limit > 0; step *= 2) {
    const fitted = layer.fit(limit);
    const excess = counter.count(join([...others, fitted])) - maxTokens;
    if (excess <= 0) return fitted;
    limit -= Math.max(excess, step);
  }
  return layer.fit(0);
}

/** Where a layer would get too little for a single word, the last one gives up its place: of very few tokens, the first layers get
 *  something rather than none of them. A layer gives up its own where it has no share, where that does not help it, and for
 *  discoveries that are then whole: beside them nothing has more than its share. */
function fitSome(given: readonly GivenLayer[], options: ComposeOptions): FittedLayer[] {
  const fitted = fitJoined(given, options);
  const [lost, last] = [fitted.findIndex(({ text }) => text === ""), given.length - 1];
  if (lost === -1 || last === 0) return fitted;
  if (lost === last || options.shares[given[lost]!.name] === 0) return fitWithout(given, lost, options);
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

function losesDiscoveries(fitted: readonly FittedLayer[]): boolean {
  return fitted.some(({ overflow }) => overflow > 0);
}

/** Counts do not add up: what is joined may have more tokens than its parts, and less is shared out until it fits. */
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

/** To each layer its grant; then what is still unused goes to those that were truncated, the first one first. */
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
