import type { Counter } from "../tokens/index.ts";
import { checkCounter, checkKeys, checkMaxTokens, checkText, invalid, shown } from "./check-arguments.ts";
import {
  type ComposedContext,
  type ContextLayers,
  type ContextShares,
  composeLayers,
  type LayerName,
  layerNames,
  shareOf,
} from "./compose.ts";

export interface ContextBudget {
  readonly maxTokens: number;
  /** Tokens that a layer can count on, however large the others are: what it is made to fit stays whole. */
  shareOf(layer: LayerName): number;
  /** One text of all layers that has at most `maxTokens`, separators and markers included. The same layers give the same bytes. */
  compose(layers: ContextLayers): ComposedContext;
}

export interface ContextBudgetOptions {
  readonly counter: Counter;
  /** Of the composed text; 10,000 if absent. 0 composes nothing. */
  readonly maxTokens?: number | undefined;
  /** What a layer may count on, each in relation to their sum; 0.4, 0.4 and 0.2 if absent. What it does not need goes to the others. */
  readonly shares?: Partial<ContextShares> | undefined;
}

const defaultMaxContextTokens = 10_000;

const defaultShares: ContextShares = { project: 0.4, fabric: 0.4, priorWork: 0.2 };

export function createContextBudget(options: ContextBudgetOptions): ContextBudget {
  checkKeys("options", options, ["counter", "maxTokens", "shares"]);
  const { counter, maxTokens = defaultMaxContextTokens } = options;
  checkCounter(counter);
  checkMaxTokens(maxTokens);
  const settings = { counter, maxTokens, shares: readShares(options.shares ?? {}) };
  return {
    maxTokens,
    shareOf: (layer) => shareOf(layer, settings),
    compose(layers) {
      checkKeys("layers", layers, layerNames);
      for (const name of layerNames) checkText(name, layers[name]);
      return composeLayers(layers, settings);
    },
  };
}

/** Made to add up to 1. */
function readShares(given: Partial<ContextShares>): ContextShares {
  checkKeys("shares", given, layerNames);
  const shares = layerNames.map((name) => [name, given[name] ?? defaultShares[name]] as const);
  for (const [name, share] of shares) {
    if (typeof share === "number" && share >= 0 && share <= 1) continue;
    throw invalid(`shares.${name} is ${shown(share)}`, "Use a number from 0 to 1.");
  }
  const sum = shares.reduce((total, [, share]) => total + share, 0);
  if (sum === 0) {
    throw invalid(
      "all shares are 0",
      "Give at least one layer a share, or leave them out and set maxTokens to 0 to compose nothing.",
    );
  }
  return Object.fromEntries(shares.map(([name, share]) => [name, share / sum])) as ContextShares;
}
