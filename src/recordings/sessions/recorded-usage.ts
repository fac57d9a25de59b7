/** Sums the usage that programs recorded. Programs write the usage of one answer on several lines, and copies of a
 *  session repeat it. Each answer counts once, with its last and largest report. Some requests have no answer in a file,
 *  such as those for a summary: if the program recorded its own sum, the difference is added. */

import {
  costOfUsage,
  type ModelPrice,
  type PriceOptions,
  type Prices,
  priceOf,
  priceUsage,
  providerOfModel,
  type Tariff,
  tariffOfUsage,
  type UsageCost,
} from "../../core/billing/index.ts";
import type { Fields } from "../../core/text/index.ts";

/** What a program recorded about the tokens of one answer. */
export interface UsageRecord {
  /** The provider's id of the answer, or the program's own. Records with the same id report the same answer. */
  readonly id: string;
  readonly model?: string | undefined;
  readonly time?: number | undefined;
  /** As Anthropic or OpenAI report usage. */
  readonly usage: object;
  /** What the answer cost, if the caller knows it already. */
  readonly cost?: AnswerCost | undefined;
  /** The session to which the answer belongs, if the program records sums. */
  readonly session?: string | undefined;
  /** The program's own sum over the session so far, by model. Such a record reports no answer. */
  readonly sums?: Readonly<Record<string, object>> | undefined;
}

export interface UsageTotals extends Omit<UsageCost, "price"> {
  /** The number of answers. */
  readonly answers: number;
}

export interface UsageSum {
  /** Adds a record. Returns whether its answer is new. */
  add(record: UsageRecord): boolean;
  totals(): UsageTotals;
  /** Returns the input cost of each answer, in the order in which they came. */
  costs(): readonly number[];
}

export interface UsageSumOptions {
  /** The model whose prices apply to every answer. By default each answer's own model. */
  readonly model?: string | undefined;
  readonly prices?: Prices | undefined;
}

export function createUsageSum({ model, prices }: UsageSumOptions = {}): UsageSum {
  const answers = new Map<string, AnswerCost>();
  const sessions = createSessionSums();
  const findPrice = createPriceTable(prices);
  const priceRecord = (record: UsageRecord): UsageCost | undefined => {
    const { usage, time = 0 } = record;
    const name = model ?? record.model;
    // If the model's name does not show the provider, the usage does.
    const isKnown = name !== undefined && providerOfModel(name) !== undefined;
    if (!isKnown) return costOfUsage(usage, { model: name, prices, timeMs: record.time });
    const tariff = tariffOfUsage(usage);
    const isUsual = tariff.speed === undefined && tariff.inferenceGeo === undefined;
    return priceUsage(usage, findPrice({ model: name, time, tariff: isUsual ? undefined : tariff }));
  };
  return {
    add(record) {
      sessions.add(record);
      if (record.sums !== undefined) return false;
      const known = answers.get(record.id);
      const cost = record.cost ?? priceRecord(record);
      // While an answer is streamed, early lines report only a part of its output.
      if (cost !== undefined && countTokens(cost) >= countTokens(known)) answers.set(record.id, cost);
      return known === undefined && cost !== undefined;
    },
    totals() {
      const rest = sessions.missing(answers).flatMap(([own, usage]) => {
        return costOfUsage(usage, { model: model ?? own, prices }) ?? [];
      });
      const total = {
        answers: answers.size,
        read: 0,
        write5m: 0,
        write1h: 0,
        uncached: 0,
        total: 0,
        output: 0,
        cost: 0,
        outputCost: 0,
        usd: 0,
      };
      for (const each of [...answers.values(), ...rest]) {
        total.read += each.read;
        total.write5m += each.write5m;
        total.write1h += each.write1h;
        total.uncached += each.uncached;
        total.total += each.total;
        total.output += each.output;
        total.cost += each.cost;
        total.outputCost += each.outputCost;
        total.usd += each.usd;
      }
      return total;
    },
    costs: () => [...answers.values()].map(({ cost }) => cost),
  };
}

type AnswerCost = Omit<UsageCost, "price">;

/** What the price of a call depends on. */
interface PricedCall {
  readonly model: string;
  /** In milliseconds since 1970. A recording without times has 0. */
  readonly time: number;
  readonly tariff?: Tariff | undefined;
}

/** Returns a function that finds the price of a call on its day. Most calls have the price of the call before. */
export function createPriceTable(prices: Prices = {}): (call: PricedCall) => ModelPrice {
  const known = new Map<string, ModelPrice>();
  let last: { readonly model: string; readonly day: number; readonly price: ModelPrice } | undefined;
  return (call) => {
    const { model, time, tariff } = call;
    const day = Math.floor(time / dayMs);
    if (last !== undefined && tariff === undefined && last.model === model && last.day === day) return last.price;
    const key = `${model} ${day} ${tariff?.speed} ${tariff?.inferenceGeo}`;
    const price = known.get(key) ?? priceOf({ ...describePrice(call), prices });
    known.set(key, price);
    if (tariff === undefined) last = { model, day, price };
    return price;
  };
}

const dayMs = 24 * 60 * 60 * 1000;

/** Returns how to look up the price of a call. */
export function describePrice({ model, time, tariff }: PricedCall): PriceOptions {
  return { provider: providerOfModel(model) ?? "anthropic", model, timeMs: time === 0 ? undefined : time, ...tariff };
}

/** The sums that programs recorded, and the answers that they cover. */
function createSessionSums() {
  const sums = new Map<string, Readonly<Record<string, object>>>();
  /** The model of each answer of a session. */
  const answersBySession = new Map<string, Map<string, string>>();
  /** The first session that had an answer. A fork copies the answers of its session, and continues its sum. */
  const owners = new Map<string, string>();
  const findFamily = (session: string): string => {
    const [first] = answersBySession.get(session)?.keys() ?? [];
    return (first === undefined ? undefined : owners.get(first)) ?? session;
  };
  return {
    add({ id, session, sums: own, model = "" }: UsageRecord): void {
      if (session === undefined) return;
      if (own !== undefined) {
        sums.set(session, own);
        return;
      }
      const known = answersBySession.get(session) ?? new Map<string, string>();
      answersBySession.set(session, known.set(id, model));
      if (!owners.has(id)) owners.set(id, session);
    },
    /** Returns what the sums have more than the answers, by model. */
    missing(answers: ReadonlyMap<string, AnswerCost>): readonly (readonly [model: string, usage: object])[] {
      const largest = new Map<string, readonly [string, MissingTokens]>();
      for (const [session, models] of sums) {
        const own = [...(answersBySession.get(session) ?? [])];
        // A sum that does not know the model of an answer may have it under another name.
        const names = new Set(Object.keys(models).map(bareModel));
        if (own.some(([id, model]) => answers.has(id) && !names.has(bareModel(model)))) continue;
        for (const [model, sum] of Object.entries(models)) {
          const ids = own.filter(([, each]) => bareModel(each) === bareModel(model)).map(([id]) => id);
          const rest = subtractAnswers(
            sum as Fields,
            ids.flatMap((id) => answers.get(id) ?? []),
          );
          const key = `${findFamily(session)} ${model}`;
          if (sumTokens(rest) > sumTokens(largest.get(key)?.[1])) largest.set(key, [model, rest]);
        }
      }
      return [...largest.values()].map(([model, rest]) => [model, usageApart(rest)]);
    },
  };
}

/** A model's id without its date and its window. */
export function bareModel(model: string): string {
  return model.replace(/\[\w+\]$/, "").replace(/-\d{8}$/, "");
}

interface MissingTokens {
  readonly input: number;
  readonly read: number;
  readonly write: number;
  readonly output: number;
}

function subtractAnswers(sum: Fields, answers: readonly AnswerCost[]): MissingTokens {
  const beyond = (name: string, known: (answer: AnswerCost) => number): number => {
    const whole = Number(sum[name] ?? 0);
    return Math.max(
      0,
      answers.reduce((left, answer) => left - known(answer), whole),
    );
  };
  return {
    input: beyond("inputTokens", ({ uncached }) => uncached),
    read: beyond("cacheReadInputTokens", ({ read }) => read),
    write: beyond("cacheCreationInputTokens", ({ write5m, write1h }) => write5m + write1h),
    output: beyond("outputTokens", ({ output }) => output),
  };
}

function sumTokens(rest: MissingTokens | undefined): number {
  return rest === undefined ? 0 : rest.input + rest.read + rest.write + rest.output;
}

function countTokens(cost: AnswerCost | undefined): number {
  return cost === undefined ? 0 : cost.total + cost.output;
}

/** Input tokens with the cached ones apart, as Anthropic reports them. */
export function usageApart(tokens: {
  readonly input: unknown;
  readonly read: unknown;
  readonly write: unknown;
  readonly output: unknown;
}): object {
  return {
    input_tokens: tokens.input,
    cache_read_input_tokens: tokens.read,
    cache_creation_input_tokens: tokens.write,
    output_tokens: tokens.output,
  };
}

/** Input tokens that include the cached ones, as OpenAI reports them. */
export function usageTogether(tokens: {
  readonly input: unknown;
  readonly read: unknown;
  readonly write?: unknown;
  readonly output: unknown;
}): object {
  return {
    input_tokens: tokens.input,
    input_tokens_details: { cached_tokens: tokens.read, cache_write_tokens: tokens.write },
    output_tokens: tokens.output,
  };
}
