/** Prices calls. Copies of a call in other sessions are not billed again. */

import { type ModelPrice, type Prices, type UsageStep, usdOfStep } from "../../core/billing/index.ts";
import { createPriceTable } from "../sessions/recorded-usage.ts";
import type { CallFact, SessionFacts } from "../sessions/session-facts.ts";

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

/** Returns a function that bills the sessions it is given in order. A later copy of a call may report more of its output,
 *  if the first was recorded while the answer was streamed. Then the first call gets the larger report. */
export function createSessionBiller(prices: Prices): (facts: SessionFacts) => BilledSession {
  const seen = new Map<string, Writable<BilledCall>>();
  const findPrice = createPriceTable(prices);
  /** Returns the call of which this one is a copy. Some copies have the id of the message without that of the request. */
  const findFirst = (id: string, call: BilledCall): Writable<BilledCall> | undefined => {
    const [message, request] = id.split(" ");
    const first = seen.get(id) ?? seen.get(request === undefined ? `${message} *` : `${message}`);
    if (first !== undefined) return first;
    seen.set(id, call);
    if (request !== undefined) seen.set(`${message} *`, call);
    return undefined;
  };
  return (facts) => {
    const calls = facts.calls.map((fact): BilledCall => {
      const found = findPrice(fact);
      // A provider's default is a guess.
      const price = found.isDefault ? undefined : found;
      const call = { fact, isCopy: false, total: countInput(fact), price, usd: price && priceCall(fact, price) };
      const first = findFirst(`${facts.agent}:${fact.id}`, call);
      if (first === undefined) return call;
      if (call.total + fact.output > first.total + first.fact.output) {
        const { read, write5m, write1h, uncached, output, unreported } = fact;
        const reported = { ...first.fact, read, write5m, write1h, uncached, output, unreported };
        Object.assign(first, { fact: reported, total: call.total, usd: call.usd });
      }
      return { ...call, isCopy: true };
    });
    return { facts, calls };
  };
}

type Writable<Type> = { -readonly [Name in keyof Type]: Type[Name] };

export function priceCall(fact: CallFact, price: ModelPrice): number {
  const extra = fact.extra?.reduce((sum, step) => sum + usdOfStep(step, price), 0) ?? 0;
  return usdOfStep(fact, price) + extra;
}

export function countInput({ read, write5m, write1h, uncached }: UsageStep): number {
  return read + write5m + write1h + uncached;
}
