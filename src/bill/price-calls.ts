/** Prices calls. Copies of a call in other sessions are not billed again. */

import { type ModelPrice, type Prices, priceOf, providerOfModel, type UsageStep, usdOfStep } from "../billing/index.ts";
import type { Agent, CallFact, SessionFacts } from "./session-facts.ts";

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
  const priceOfModel = createPriceTable(prices);
  return (facts) => {
    const ids = seen.get(facts.agent) ?? new Set();
    seen.set(facts.agent, ids);
    const calls = facts.calls.map((fact): BilledCall => {
      const isCopy = ids.has(fact.id);
      if (!isCopy) ids.add(fact.id);
      const price = priceOfModel(fact.model);
      return { fact, isCopy, total: inputTokensOf(fact), price, usd: price && usdOf(fact, price) };
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

/** Returns the price of a model, or undefined if it has none of its own: a provider's default is a guess. */
function createPriceTable(prices: Prices): (model: string) => ModelPrice | undefined {
  const known = new Map<string, ModelPrice | undefined>();
  return (model) => {
    if (!known.has(model)) known.set(model, ownPrice(model, prices));
    return known.get(model);
  };
}

function ownPrice(model: string, prices: Prices): ModelPrice | undefined {
  const provider = providerOfModel(model) ?? "anthropic";
  const price = priceOf({ provider, model, prices });
  return price.isDefault ? undefined : price;
}

function usdOf(fact: CallFact, price: ModelPrice): number {
  const extra = fact.extra?.reduce((sum, step) => sum + usdOfStep(step, price), 0) ?? 0;
  return usdOfStep(fact, price) + extra;
}

export function inputTokensOf({ read, write5m, write1h, uncached }: UsageStep): number {
  return read + write5m + write1h + uncached;
}
