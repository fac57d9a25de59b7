import type { Provider } from "./cache/cache-rules.ts";
import { type InputTokens, inputCost, outputCost } from "./input-cost.ts";
import { type ModelPrice, type Prices, priceOf, providerOfModel } from "./prices.ts";

/** What a response's `usage` says, by kind, and what that costs. */
export interface UsageCost extends InputTokens {
  /** All input tokens. */
  readonly total: number;
  readonly output: number;
  /** Of the input, in tokens of uncached input, as on a simulated bill. */
  readonly cost: number;
  /** Of the output, in the same units. */
  readonly outputCost: number;
  /** Input and output. */
  readonly usd: number;
  readonly price: ModelPrice;
}

export interface UsageOptions {
  /** Absent: told by the model, else by the shape of the usage. */
  readonly provider?: Provider | undefined;
  readonly model?: string | undefined;
  readonly prices?: Prices | undefined;
}

/** The cost of a response from the `usage` that Anthropic or OpenAI sent with it; undefined when it counts no tokens. What compactions
 *  took is added, since Anthropic leaves it out of the totals. */
export function costOfUsage(usage: unknown, options: UsageOptions = {}): UsageCost | undefined {
  const { model, prices } = options;
  const fields = fieldsOf(usage);
  const isOpenai = fields.prompt_tokens !== undefined || fields.input_tokens_details !== undefined;
  const told = model === undefined ? undefined : providerOfModel(model);
  const provider = options.provider ?? told ?? (isOpenai ? "openai" : "anthropic");
  const price = priceOf({ provider, model, prices });
  const steps = isOpenai ? [readOpenai(fields)] : [fields, ...compactionsOf(fields)].map(readAnthropic);
  const cost = steps.map((step) => costOfStep(step, price)).reduce(sum);
  return cost.total + cost.output === 0 ? undefined : cost;
}

type Fields = Readonly<Record<string, unknown>>;
type Step = InputTokens & { readonly output: number };

function fieldsOf(value: unknown): Fields {
  return Object(value) as Fields;
}

/** Compatible servers leave counts out or send null. */
function countIn(fields: Fields, name: string): number {
  const value = fields[name];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : 0;
}

/** `input_tokens` is only what follows the last breakpoint. Older answers do not tell the lifetimes apart: then it was the short one. */
function readAnthropic(usage: Fields): Step {
  const written = countIn(usage, "cache_creation_input_tokens");
  const byLifetime = fieldsOf(usage.cache_creation);
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

function compactionsOf({ iterations }: Fields): readonly Fields[] {
  return Array.isArray(iterations)
    ? iterations.map(fieldsOf).filter(({ type }) => type === "compaction")
    : [];
}

/** The totals hold what was read and written: chat calls them `prompt_tokens`, responses `input_tokens`. */
function readOpenai(usage: Fields): Step {
  const isChat = usage.prompt_tokens !== undefined;
  const total = countIn(usage, isChat ? "prompt_tokens" : "input_tokens");
  const details = fieldsOf(isChat ? usage.prompt_tokens_details : usage.input_tokens_details);
  const read = Math.min(total, countIn(details, "cached_tokens"));
  const write5m = Math.min(total - read, countIn(details, "cache_write_tokens"));
  const output = countIn(usage, isChat ? "completion_tokens" : "output_tokens");
  return { read, write5m, write1h: 0, uncached: total - read - write5m, output };
}

/** Each step is a prompt of its own, long or not. */
function costOfStep(step: Step, price: ModelPrice): UsageCost {
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
