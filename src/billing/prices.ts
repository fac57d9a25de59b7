import { ContextError } from "../errors.ts";
import { type CacheRules, cacheRules, type Provider, providers } from "./cache/cache-rules.ts";
import { type PriceRow, priceRows } from "./prices.data.ts";

/** What one model costs, and how its cache works: a row of the table with the user's prices over it. */
export interface ModelPrice extends Omit<PriceRow, "model" | "rules"> {
  /** As it was asked for. */
  readonly model: string | undefined;
  /** The table's row: the beginning of the ids it is for, empty for the provider's default. */
  readonly row: string;
  /** No row knows the model: the provider's default row stands in. */
  readonly isDefault: boolean;
  readonly rules: CacheRules;
}

/** Prices of one's own, as in the configuration: a model's id, its beginning with a `*`, or a provider, to any of `priceKeys`. */
export type Prices = Readonly<Record<string, Readonly<Record<string, number>>>>;

export interface PriceOptions {
  readonly provider: Provider;
  readonly model?: string | undefined;
  readonly prices?: Prices | undefined;
}

/** The price of a model. An unknown one gets its provider's default row, and `isDefault` says so. */
export function priceOf(options: PriceOptions): ModelPrice {
  const { provider, model, prices = {} } = options;
  if (!providers.includes(provider)) {
    throw new ContextError("invalid_argument", `unknown provider ${JSON.stringify(provider)}`, {
      hint: `Providers are ${providers.join(", ")}.`,
    });
  }
  const row = rowOf(provider, model);
  const price = { ...row, model, row: row.model, isDefault: row.model === "", rules: cacheRules[row.rules] };
  return overridesFor(prices, options).reduce(override, price);
}

/** The provider of a model, undefined when its id tells nothing. */
export function providerOfModel(model: string): Provider | undefined {
  return namePatterns.find(([pattern]) => pattern.test(model.toLowerCase()))?.[1];
}

/** Keys of `Prices`. Prices are dollars a million tokens; a cache price that is left out keeps its ratio to `input`. */
export const priceKeys = [
  "input",
  "output",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "min_prefix",
  "lifetime_5m_seconds",
  "lifetime_1h_seconds",
] as const;

const namePatterns: readonly (readonly [RegExp, Provider])[] = [
  [/claude/, "anthropic"],
  [/gemini/, "gemini"],
  [/gpt|codex|(?:^|[/.:])o[1-9](?![a-z\d])/, "openai"],
];

function rowOf(provider: Provider, model: string | undefined): PriceRow {
  const name = model === undefined ? "" : modelName(model);
  const known = priceRows.filter((row) => row.provider === provider && beginsWith(name, row.model));
  return known.reduce((best, row) => (row.model.length > best.model.length ? row : best));
}

/** A model's id without a reseller's prefix, Claude's with family first and a point in the version, whoever wrote it:
 *  `us.anthropic.claude-3-5-haiku-20241022-v1:0` is `claude-haiku-3.5-20241022-v1:0`. */
function modelName(model: string): string {
  const id = model.toLowerCase().replace(/^.*?(?=claude|gemini|gpt|(?:^|[/.:])o[1-9])[/.:]?/, "");
  return id
    .replace(/^claude-(\d)(?:[-.](\d{1,2}))?-([a-z]+)/, (_id, major, minor, family) =>
      minor === undefined ? `claude-${family}-${major}` : `claude-${family}-${major}.${minor}`,
    )
    .replace(/^(claude-[a-z]+-\d{1,2})-(\d{1,2})(?!\d)/, "$1.$2");
}

/** `gpt-5` begins `gpt-5-2025-08-07`, and neither `gpt-5.6` nor `gpt-50`. */
function beginsWith(name: string, start: string): boolean {
  return start === "" || (name.startsWith(start) && !/^[\w.]/.test(name.slice(start.length)));
}

/** The user's prices that are for this model, the most general first. */
function overridesFor(prices: Prices, { provider, model = "" }: PriceOptions): Prices[string][] {
  const id = model.toLowerCase();
  const ranked = Object.entries(prices).flatMap(([key, values]) => {
    const name = key.toLowerCase();
    if (name === provider) return [{ rank: -1, values }];
    if (name.endsWith("*") && id.startsWith(name.slice(0, -1))) return [{ rank: name.length, values }];
    return name === id && id !== "" ? [{ rank: Number.POSITIVE_INFINITY, values }] : [];
  });
  return ranked.sort((first, second) => first.rank - second.rank).map(({ values }) => values);
}

function override(price: ModelPrice, values: Prices[string]): ModelPrice {
  for (const [key, value] of Object.entries(values)) checkValue(key, value);
  const input = values.input ?? price.input;
  const { lifetimeMs } = price.rules;
  return {
    ...price,
    input,
    output: values.output ?? price.output,
    read: ratio(values.cache_read, input) ?? price.read,
    write5m: ratio(values.cache_write_5m, input) ?? price.write5m,
    write1h: ratio(values.cache_write_1h, input) ?? price.write1h,
    minPrefix: values.min_prefix ?? price.minPrefix,
    rules: {
      ...price.rules,
      lifetimeMs: {
        "5m": milliseconds(values.lifetime_5m_seconds) ?? lifetimeMs["5m"],
        "1h": milliseconds(values.lifetime_1h_seconds) ?? lifetimeMs["1h"],
      },
    },
    isDefault: price.isDefault && values.input === undefined,
    source: `your own prices over ${price.source}`,
  };
}

function checkValue(key: string, value: unknown): void {
  if (!(priceKeys as readonly string[]).includes(key)) {
    throw new ContextError("invalid_argument", `unknown price "${key}"`, {
      hint: `Prices are ${priceKeys.join(", ")}.`,
    });
  }
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return;
  throw new ContextError("invalid_argument", `the price "${key}" must be a number from 0, got ${value}`);
}

/** Everything is billed in units of the input price, so a cache price beside a free input has no number. */
function ratio(cachePrice: number | undefined, input: number): number | undefined {
  if (cachePrice === undefined) return undefined;
  if (input > 0) return cachePrice / input;
  throw new ContextError("invalid_argument", `a cache price of ${cachePrice} needs an input price above 0`, {
    hint: "Set input too, or leave the cache prices out.",
  });
}

function milliseconds(seconds: number | undefined): number | undefined {
  return seconds === undefined ? undefined : seconds * 1000;
}
