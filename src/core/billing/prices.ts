import { ContextError } from "../errors.ts";
import { isAmount, refuseUnknownOptions, refuseValue } from "../text/index.ts";
import { findModelRow, normaliseModel } from "../tokens/index.ts";
import { type PriceRow, priceRows } from "./prices.data.ts";

/** What one model costs and how its cache works. `input` and `output` include what a fast or regional request costs
 *  more. */
export interface ModelPrice extends Omit<PriceRow, "model" | "rules" | "fast" | "regional"> {
  /** The model's id as it was passed in. */
  readonly model: string | undefined;
  /** The prefix of model ids that the price row is for. Empty for the provider's default row. */
  readonly row: string;
  /** True if no row matches the model and the provider's default row applies. */
  readonly isDefault: boolean;
  readonly rules: CacheRules;
}

/** Your own prices: by model id, by the beginning of one with `*`, or by provider. Prices are dollars per million
 *  tokens; the keys are `input`, `output`, `cache_read`, `cache_write_5m` and `cache_write_1h`, and for the cache
 *  `min_prefix`, `lifetime_5m_seconds` and `lifetime_1h_seconds`. */
export type Prices = Readonly<Record<string, Readonly<Record<string, number>>>>;

/** What of a request can make it cost more than the list price. */
export interface Tariff {
  /** `"fast"` costs more with the models that have such a mode.
   * @default "standard" */
  readonly speed?: string | undefined;
  /** Where the request had to be computed: the parameter `inference_geo`. `"us"` costs more.
   * @default "global" */
  readonly inferenceGeo?: string | undefined;
}

/** Which price `priceOf` looks up. */
export interface PriceOptions extends Tariff {
  /** Who serves the model. */
  readonly provider: Provider;
  /** The model's id, as the provider, Bedrock, Vertex or a router writes it. Without it, the provider's default price
   *  applies. */
  readonly model?: string | undefined;
  /** Your own prices, which take precedence over the table. They are taken as they are, for every speed and region. */
  readonly prices?: Prices | undefined;
  /** When the call was made, in milliseconds since 1970: prices change. By default the newest price applies, even if it
   *  is only announced. */
  readonly timeMs?: number | undefined;
}

/**
 * Returns the price of a model. A model that the table does not know gets its provider's default price, with
 * `isDefault`.
 *
 * @example
 * ```ts
 * import { priceOf } from "plimsoll/billing";
 *
 * const { input, output, asOf } = priceOf({ provider: "anthropic", model: "claude-sonnet-5" });
 * console.log(`${input} and ${output} dollars per million tokens, as of ${asOf}`);
 * ```
 */
export function priceOf(options: PriceOptions): ModelPrice {
  const { provider, model, prices = {} } = options;
  if (!providers.includes(provider)) {
    throw new ContextError("invalid_argument", `unknown provider ${JSON.stringify(provider)}`, {
      hint: `Providers are ${providers.join(", ")}.`,
    });
  }
  const { fast, regional, ...row } = findPriceRow(options);
  // Routers have a name of its own for the mode: `anthropic/claude-opus-5-fast`.
  const isFast = options.speed === "fast" || (model !== undefined && normaliseModel(model).endsWith("-fast"));
  // Bedrock's names begin with the region, or with `global` (docs.aws.amazon.com/bedrock, inference profiles, 2026-11).
  const isRegional =
    options.inferenceGeo === "us" || /(?:^|[/:])(?!global\.)[a-z-]+\.anthropic\.claude/i.test(model ?? "");
  const factor = (isFast ? (fast ?? 1) : 1) * (isRegional ? (regional ?? 1) : 1);
  const price = {
    ...row,
    model,
    row: row.model,
    isDefault: row.model === "",
    rules: cacheRules[row.rules],
    input: row.input * factor,
    output: row.output * factor,
  };
  return findOverrides(prices, options).reduce(override, price);
}

/** Returns the provider of a model, or undefined if its id does not show it. */
export function providerOfModel(model: string): Provider | undefined {
  const name = normaliseModel(model);
  return namePatterns.find(([pattern]) => pattern.test(name))?.[1];
}

/** The keys of `Prices`. Prices are dollars per million tokens. A cache price that is left out keeps its ratio to
 *  `input`. */
const priceKeys = [
  "input",
  "output",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "min_prefix",
  "lifetime_5m_seconds",
  "lifetime_1h_seconds",
] as const;

// In normalised names. The first match wins.
const namePatterns: readonly (readonly [RegExp, Provider])[] = [
  [/^claude/, "anthropic"],
  [/^gemini/, "gemini"],
  [/^grok/, "xai"],
  [/^deepseek/, "deepseek"],
  [/^kimi/, "moonshot"],
  [/^qwen/, "qwen"],
  [/^glm/, "zai"],
  [/gpt|codex|^chat-latest|^o[1-9](?![a-z\d])/, "openai"],
];

function findPriceRow({ provider, model = "", timeMs = Number.POSITIVE_INFINITY }: PriceOptions): PriceRow {
  // Dates are in order, so that the last one of a model is the newest.
  const inForce = priceRows.filter(({ provider: own, from }) => {
    return own === provider && (from === undefined || Date.parse(from) <= timeMs);
  });
  return findModelRow(model, inForce) as PriceRow;
}

/** Returns the user's prices that apply to this model, the most general first. */
function findOverrides(prices: Prices, { provider, model = "" }: PriceOptions): Prices[string][] {
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
  refuseUnknownOptions(values, priceKeys, { noun: "price", all: "Prices are" });
  for (const [key, value] of Object.entries(values)) {
    if (!isAmount(value)) refuseValue(`the price "${key}"`, value, { wanted: "a number from 0" });
  }
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

/** Costs are expressed in units of the input price, so a cache price has no meaning if input is free. */
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

export const providers = ["anthropic", "openai", "gemini", "xai", "deepseek", "moonshot", "qwen", "zai"] as const;
/** A company whose API bills the request. */
export type Provider = (typeof providers)[number];

export type CacheRulesName =
  | "anthropic"
  | "openai-automatic"
  | "openai-breakpoints"
  | "gemini-implicit"
  | "other-automatic";

/** How a provider's prompt cache works, apart from its prices. */
export interface CacheRules {
  /** `breakpoints`: the cache is written and read where the request marks it. `automatic`: any prefix that was sent
   *  before can be read. */
  readonly matching: "breakpoints" | "automatic";
  /** How many positions a read looks back from a breakpoint, including the breakpoint. */
  readonly lookback: number;
  readonly maxBreakpoints: number;
  /** Reads are multiples of this. */
  readonly stepTokens: number;
  /** Counted from the start of the request that wrote or read. `5m` is the short lifetime of any provider, `1h` the
   *  long one. */
  readonly lifetimeMs: Readonly<Record<Ttl, number>>;
  /** Whether the provider promises no hits, so that a read is an assumption. */
  readonly isAssumed: boolean;
}

/** The lifetime that a breakpoint asks for. */
export type Ttl = "5m" | "1h";

const minute = 60_000;
const hour = 60 * minute;

/** A cache that is said to exist, and nothing else. */
const withoutPromise: CacheRules = {
  matching: "automatic",
  lookback: Number.POSITIVE_INFINITY,
  maxBreakpoints: 0,
  stepTokens: 1,
  lifetimeMs: { "5m": hour, "1h": hour },
  isAssumed: true,
};

/** Each entry names its source and month. */
const cacheRules: Readonly<Record<CacheRulesName, CacheRules>> = {
  // platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11
  anthropic: {
    matching: "breakpoints",
    lookback: 20,
    maxBreakpoints: 4,
    stepTokens: 1,
    lifetimeMs: { "5m": 5 * minute, "1h": hour },
    isAssumed: false,
  },
  // developers.openai.com/api/docs/guides/prompt-caching, 2026-11. Kept in memory for 5 to 60 minutes, or up to 24
  // hours if the account retains data; an hour is in between. Steps of 128 are the long-documented behaviour.
  "openai-automatic": {
    matching: "automatic",
    lookback: Number.POSITIVE_INFINITY,
    maxBreakpoints: 0,
    stepTokens: 128,
    lifetimeMs: { "5m": hour, "1h": 24 * hour },
    isAssumed: false,
  },
  // The `prompt_cache_options` of openai 7.55.0, 2026-11: four writes, the latest 80 breakpoints without a lookback limit,
  // 30 minutes or 12 hours.
  "openai-breakpoints": {
    matching: "breakpoints",
    lookback: Number.POSITIVE_INFINITY,
    maxBreakpoints: 4,
    stepTokens: 1,
    lifetimeMs: { "5m": 30 * minute, "1h": 12 * hour },
    isAssumed: false,
  },
  // ai.google.dev/gemini-api/docs/caching, 2026-10: implicit caching promises neither a lifetime nor a hit. An hour
  // is a guess.
  "gemini-implicit": withoutPromise,
  // xAI, DeepSeek, Moonshot, Alibaba and Z.ai cache by themselves and say no lifetime (the catalogue of
  // @earendil-works/pi-ai 1.5.2, 2026-11). An hour is a guess.
  "other-automatic": withoutPromise,
};
