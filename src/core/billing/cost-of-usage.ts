import type { Fields } from "../text/index.ts";
import { type ModelPrice, type Prices, type Provider, priceOf, providerOfModel, type Tariff } from "./prices.ts";

/** The tokens that a response's `usage` reports, by kind, and what they cost. */
export interface UsageCost extends InputTokens {
  /** All input tokens. */
  readonly total: number;
  /** All output tokens. */
  readonly output: number;
  /** The cost of the input, expressed as full-price input tokens. */
  readonly cost: number;
  /** The cost of the output, expressed as full-price input tokens. */
  readonly outputCost: number;
  /** The cost of input and output in dollars. */
  readonly usd: number;
  /** The price that was applied. */
  readonly price: ModelPrice;
}

/**
 * Returns the cost of a response from the `usage` that Anthropic or OpenAI sent with it, or the `usageMetadata` of
 * Gemini. Returns undefined if it counts no tokens. The tokens of compactions are added, because Anthropic leaves them out of the totals. If the usage says that
 * the request was fast or had to stay in one region, the price includes that.
 *
 * @example
 * ```ts
 * import { costOfUsage } from "plimsoll/billing";
 *
 * const usage = { input_tokens: 120, cache_read_input_tokens: 48_000, output_tokens: 900 };
 * console.log(costOfUsage(usage, { model: "claude-sonnet-5" })?.usd);
 * ```
 */
export function costOfUsage(
  usage: unknown,
  options: {
    /** Who sent the usage. By default it is derived from the model's id, then from the shape of the usage. */
    readonly provider?: Provider | undefined;
    /** The model's id. Without it, the provider's default price applies. */
    readonly model?: string | undefined;
    /** Your own prices, which take precedence over the table. */
    readonly prices?: Prices | undefined;
    /** When the call was made, in milliseconds since 1970. By default the newest price applies. */
    readonly timeMs?: number | undefined;
  } = {},
): UsageCost | undefined {
  const { model, prices, timeMs } = options;
  const named = model === undefined ? undefined : providerOfModel(model);
  const fields: Fields = Object(usage);
  const shown = fields.promptTokenCount !== undefined ? "gemini" : isOpenaiUsage(fields) ? "openai" : "anthropic";
  const provider = options.provider ?? named ?? shown;
  return priceUsage(usage, priceOf({ provider, model, prices, timeMs, ...tariffOfUsage(usage) }));
}

/** Returns the cost of a response at a known price. Returns undefined if its usage counts no tokens. */
export function priceUsage(usage: unknown, price: ModelPrice): UsageCost | undefined {
  const [first, ...rest] = stepsOfUsage(usage);
  const cost = rest.map((step) => computeCost(step, price)).reduce(sum, computeCost(first, price));
  return cost.total + cost.output === 0 ? undefined : cost;
}

/** The tokens of one prompt and its answer. */
export type UsageStep = InputTokens & { readonly output: number };

/** Returns the tokens that a `usage` of Anthropic, OpenAI or Gemini counts: those of the answer, then those of each
 *  compaction. */
export function stepsOfUsage(usage: unknown): readonly [UsageStep, ...UsageStep[]] {
  const fields: Fields = Object(usage);
  if (fields.promptTokenCount !== undefined) return [readGemini(fields)];
  if (isOpenaiUsage(fields)) return [readOpenai(fields)];
  const iterations = Array.isArray(fields.iterations) ? fields.iterations.map((each): Fields => Object(each)) : [];
  const compactions = iterations.filter(({ type }) => type === "compaction");
  return [readAnthropic(fields), ...compactions.map(readAnthropic)];
}

/** Returns what Anthropic's usage says of the request's speed and region. Other providers report neither. */
export function tariffOfUsage(usage: unknown): Tariff {
  const { speed, inference_geo: inferenceGeo } = Object(usage) as Fields;
  return {
    ...(typeof speed === "string" && { speed }),
    ...(typeof inferenceGeo === "string" && { inferenceGeo }),
  };
}

function isOpenaiUsage(fields: Fields): boolean {
  return fields.prompt_tokens !== undefined || fields.input_tokens_details !== undefined;
}

/** Compatible servers leave counts out or send null. */
function countIn(fields: Fields, name: string): number {
  const value = fields[name];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

/** `input_tokens` counts only what follows the last breakpoint. Older responses do not separate the lifetimes: then
 *  every write had the short one. */
function readAnthropic(usage: Fields): UsageStep {
  const written = countIn(usage, "cache_creation_input_tokens");
  const byLifetime: Fields = Object(usage.cache_creation);
  const write1h = countIn(byLifetime, "ephemeral_1h_input_tokens");
  const write5m = countIn(byLifetime, "ephemeral_5m_input_tokens");
  return {
    read: countIn(usage, "cache_read_input_tokens"),
    write5m: Math.max(write5m, written - write1h),
    write1h,
    uncached: countIn(usage, "input_tokens"),
    output: countIn(usage, "output_tokens"),
  };
}

/** The totals include what was read and written. Chat calls them `prompt_tokens`, responses `input_tokens`. Only
 *  responses separate the lifetimes of writes (openai 7.55.0): without that, every write had the short one. */
function readOpenai(usage: Fields): UsageStep {
  const isChat = usage.prompt_tokens !== undefined;
  const total = countIn(usage, isChat ? "prompt_tokens" : "input_tokens");
  const details: Fields = Object(isChat ? usage.prompt_tokens_details : usage.input_tokens_details);
  const read = Math.min(total, countIn(details, "cached_tokens"));
  const written = Math.min(total - read, countIn(details, "cache_write_tokens"));
  const write1h = Math.min(written, countIn(Object(details.cache_write_tokens_details), "ttl_12h_tokens"));
  const output = countIn(usage, isChat ? "completion_tokens" : "output_tokens");
  return { read, write5m: written - write1h, write1h, uncached: total - read - written, output };
}

/** The prompt includes what was read. Thoughts are billed as output (ai.google.dev/gemini-api/docs/thinking, 2026-10). */
function readGemini(usage: Fields): UsageStep {
  const total = countIn(usage, "promptTokenCount") + countIn(usage, "toolUsePromptTokenCount");
  const read = Math.min(total, countIn(usage, "cachedContentTokenCount"));
  const output = countIn(usage, "candidatesTokenCount") + countIn(usage, "thoughtsTokenCount");
  return { read, write5m: 0, write1h: 0, uncached: total - read, output };
}

/** Each step has its own prompt, which may be long. */
function computeCost(step: UsageStep, price: ModelPrice): UsageCost {
  const input = inputCost(step, price);
  const output = outputCost(step.output, input.total, price);
  return { ...step, ...input, outputCost: output.cost, usd: input.usd + output.usd, price };
}

function sum(first: UsageCost, second: UsageCost): UsageCost {
  return {
    read: first.read + second.read,
    write5m: first.write5m + second.write5m,
    write1h: first.write1h + second.write1h,
    uncached: first.uncached + second.uncached,
    total: first.total + second.total,
    output: first.output + second.output,
    cost: first.cost + second.cost,
    outputCost: first.outputCost + second.outputCost,
    usd: first.usd + second.usd,
    price: first.price,
  };
}

/** The input tokens of a request, by what they cost. */
export interface InputTokens {
  /** Read from the provider's cache. */
  readonly read: number;
  /** Written to the cache for the short lifetime. */
  readonly write5m: number;
  /** Written to the cache for the long lifetime. */
  readonly write1h: number;
  /** Billed at the full input price. */
  readonly uncached: number;
}

/** Computes what input tokens cost: in dollars, and as `cost` in full-price tokens, since a prompt of that many costs the
 *  same without a cache. Above the model's threshold for long prompts, every token costs more, which `cost` includes. */
export function inputCost(tokens: InputTokens, price: ModelPrice): Readonly<Record<"total" | "cost" | "usd", number>> {
  const { read, write5m, write1h, uncached } = tokens;
  const total = read + write5m + write1h + uncached;
  const cost =
    longFactors(total, price).input *
    (read * price.read + write5m * price.write5m + write1h * price.write1h + uncached);
  return { total, cost, usd: (cost * price.input) / million };
}

/** Computes what the answer to a prompt of `total` tokens costs, in the same units. It costs more after a long
 *  prompt. */
function outputCost(output: number, total: number, price: ModelPrice): { cost: number; usd: number } {
  const usd = (longFactors(total, price).output * output * price.output) / million;
  return { cost: price.input > 0 ? (usd * million) / price.input : 0, usd };
}

/** Computes what a prompt and its answer cost in dollars. */
export function usdOfStep(step: UsageStep, price: ModelPrice): number {
  const { total, usd } = inputCost(step, price);
  return usd + outputCost(step.output, total, price).usd;
}

const million = 1_000_000;

function longFactors(total: number, { longPrompt }: ModelPrice): { input: number; output: number } {
  return longPrompt !== undefined && total > longPrompt.above ? longPrompt : { input: 1, output: 1 };
}
