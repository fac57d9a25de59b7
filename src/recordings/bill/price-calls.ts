/** Prices calls. Copies of a call in other sessions are not billed again. */

import { type ModelPrice, type Prices, type UsageStep, usdOfStep } from "../../core/billing/index.ts";
import { createPriceTable } from "../sessions/recorded-usage.ts";
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
  const timeAt = ({ calls }: SessionFacts, index: number): number => calls.at(index)?.time ?? 0;
  const sorted = sessions.toSorted(
    (left, right) => timeAt(left, 0) - timeAt(right, 0) || timeAt(left, -1) - timeAt(right, -1),
  );
  return sorted.map(createSessionBiller(prices));
}

/** Returns a function that bills the sessions it is given in order. */
export function createSessionBiller(prices: Prices): (facts: SessionFacts) => BilledSession {
  const seen = new Map<Agent, Set<string>>();
  const findPrice = createPriceTable(prices);
  return (facts) => {
    const ids = seen.get(facts.agent) ?? new Set();
    seen.set(facts.agent, ids);
    const calls = facts.calls.map((fact): BilledCall => {
      const isCopy = ids.has(fact.id);
      if (!isCopy) ids.add(fact.id);
      const found = findPrice(fact);
      // A provider's default is a guess.
      const price = found.isDefault ? undefined : found;
      return { fact, isCopy, total: countInput(fact), price, usd: price && priceCall(fact, price) };
    });
    return { facts, calls };
  };
}

export function priceCall(fact: CallFact, price: ModelPrice): number {
  const extra = fact.extra?.reduce((sum, step) => sum + usdOfStep(step, price), 0) ?? 0;
  return usdOfStep(fact, price) + extra;
}

export function countInput({ read, write5m, write1h, uncached }: UsageStep): number {
  return read + write5m + write1h + uncached;
}
