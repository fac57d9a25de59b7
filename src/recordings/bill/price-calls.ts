/** Prices calls. Copies of a call in other sessions are not billed again. */

import {
  type ModelPrice,
  type PriceOptions,
  type Prices,
  priceOf,
  providerOfModel,
  type UsageStep,
  usdOfStep,
} from "../../core/billing/index.ts";
import type { Agent, CallFact, SessionFacts } from "../sessions/session-facts.ts";

/** A session whose calls have prices. */
export interface BilledSession {
  readonly facts: SessionFacts;
  readonly calls: readonly BilledCall[];
}

export interface BilledCall {
  readonly fact: CallFact;
  /** Whether an earlier session has the call too. */
  readonly isCopy: boolean;
  /** Input tokens. */
  readonly total: number;
  /** Absent if the model has no price of its own. */
  readonly usd?: number | undefined;
  readonly price?: ModelPrice | undefined;
}

/** Bills each call once, in the session that had it first. */
export function billSessions(sessions: readonly SessionFacts[], prices: Prices = {}): readonly BilledSession[] {
  const sorted = sessions.toSorted((left, right) => startOf(left) - startOf(right) || endOf(left) - endOf(right));
  return sorted.map(createSessionBiller(prices));
}

/** Returns a function that bills the sessions it is given in order. */
export function createSessionBiller(prices: Prices): (facts: SessionFacts) => BilledSession {
  const seen = new Map<Agent, Set<string>>();
  const priceOfCall = createPriceTable(prices);
  return (facts) => {
    const ids = seen.get(facts.agent) ?? new Set();
    seen.set(facts.agent, ids);
    const calls = facts.calls.map((fact): BilledCall => {
      const isCopy = ids.has(fact.id);
      if (!isCopy) ids.add(fact.id);
      const found = priceOfCall(fact);
      // A provider's default is a guess.
      const price = found.isDefault ? undefined : found;
      return { fact, isCopy, total: inputTokensOf(fact), price, usd: price && usdOfCall(fact, price) };
    });
    return { facts, calls };
  };
}

function startOf({ calls }: SessionFacts): number {
  return calls[0]?.time ?? 0;
}

function endOf({ calls }: SessionFacts): number {
  return calls.at(-1)?.time ?? 0;
}

/** Returns a function that finds the price of a call on its day. Most calls have the price of the call before. */
export function createPriceTable(prices: Prices): (call: CallFact) => ModelPrice {
  const known = new Map<string, ModelPrice>();
  let last: { readonly model: string; readonly day: number; readonly price: ModelPrice } | undefined;
  return (call) => {
    const { model, time, tariff } = call;
    const day = Math.floor(time / dayMs);
    if (last !== undefined && tariff === undefined && last.model === model && last.day === day) return last.price;
    const key = `${model} ${day} ${tariff?.speed} ${tariff?.inferenceGeo}`;
    const price = known.get(key) ?? priceOf({ ...whatIsPriced(call), prices });
    known.set(key, price);
    if (tariff === undefined) last = { model, day, price };
    return price;
  };
}

const dayMs = 24 * 60 * 60 * 1000;

/** Returns what the price of a call depends on. */
export function whatIsPriced({ model, time, tariff }: CallFact): PriceOptions {
  // A recording without times has 0.
  return { provider: providerOfModel(model) ?? "anthropic", model, timeMs: time === 0 ? undefined : time, ...tariff };
}

export function usdOfCall(fact: CallFact, price: ModelPrice): number {
  const extra = fact.extra?.reduce((sum, step) => sum + usdOfStep(step, price), 0) ?? 0;
  return usdOfStep(fact, price) + extra;
}

export function inputTokensOf({ read, write5m, write1h, uncached }: UsageStep): number {
  return read + write5m + write1h + uncached;
}
