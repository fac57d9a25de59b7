/** Weighs tool results: how many tokens each had when it was first sent, how many calls carried it, and what that cost
 *  over its life in the context. Tokens are the recorded growth of the prompt, divided by length among what was new. */

import { inputCost } from "../../core/billing/index.ts";
import type { ResultFact, SessionFacts } from "../sessions/session-facts.ts";
import type { BilledCall, BilledSession } from "./price-calls.ts";

export interface WeighedResult {
  readonly facts: SessionFacts;
  readonly tool: string;
  readonly file?: string | undefined;
  /** The time of the first call that sent it. */
  readonly time: number;
  readonly tokens: number;
  /** Calls that sent it, including the first. */
  readonly carried: number;
  /** Over all of these calls. 0 for models without a price of their own. */
  readonly usd: number;
  /** Whether an earlier session sent it first. */
  readonly isCopy: boolean;
}

export function weighResults(session: BilledSession): readonly WeighedResult[] {
  const { facts, calls } = session;
  if (facts.results.length === 0) return [];
  const places = findPlaces(calls);
  const weighed: WeighedResult[] = [];
  for (const result of facts.results) {
    const first = calls[result.call];
    const chain = first && places.chains.get(first.fact.chain);
    if (first === undefined || chain === undefined) continue;
    const tokens = countTokens(result, first, calls[first.fact.previous]);
    const start = places.position[result.call] as number;
    const end = findEnd(chain, { call: result.call, start });
    const carried = chain.billed[end]! - chain.billed[start]!;
    const usd = tokens * (chain.unit[end]! - chain.unit[start + 1]! + (first.isCopy ? 0 : priceNew(first)));
    const { tool, file } = result;
    weighed.push({ facts, tool, file, time: first.fact.time, tokens, carried, usd, isCopy: first.isCopy });
  }
  return weighed;
}

/** One conversation. */
interface Chain {
  /** How many calls were billed before each place. */
  readonly billed: number[];
  /** Dollars for one carried token over all calls before each place. */
  readonly unit: number[];
  /** Where the history became shorter, and the last earlier call whose messages remained. */
  readonly cuts: { readonly place: number; readonly back: number }[];
}

/** Returns the place of each call in its conversation, and the conversations. */
function findPlaces(calls: readonly BilledCall[]): { position: readonly number[]; chains: ReadonlyMap<number, Chain> } {
  const chains = new Map<number, Chain>();
  const position: number[] = [];
  for (const call of calls) {
    const { chain: number, back, previous } = call.fact;
    const chain = chains.get(number) ?? { billed: [0], unit: [0], cuts: [] };
    chains.set(number, chain);
    const { billed, unit, cuts } = chain;
    const place = billed.length - 1;
    position.push(place);
    if (back !== undefined) cuts.push({ place, back });
    billed.push(billed[place]! + (call.isCopy ? 0 : 1));
    unit.push(unit[place]! + (call.isCopy ? 0 : priceCarried(call, calls[previous])));
  }
  return { position, chains };
}

/** The first later call from whose prompt the result of `call` is gone. */
function findEnd({ billed, cuts }: Chain, { call, start }: { call: number; start: number }): number {
  return cuts.find(({ place, back }) => place > start && back < call)?.place ?? billed.length - 1;
}

/** Images and compactions make the growth useless; then a usual ratio applies. */
function countTokens({ chars }: ResultFact, first: BilledCall, before: BilledCall | undefined): number {
  const { added, back } = first.fact;
  const growth = before === undefined || back !== undefined ? 0 : first.total - before.total;
  return Math.round(growth > 0 && added > 0 ? (growth * chars) / added : chars / usualCharsPerToken);
}

const usualCharsPerToken = 4;

/** Dollars for a token that is new in a call. */
function priceNew(call: BilledCall): number {
  const { fact, total, price } = call;
  if (price === undefined || total === 0) return 0;
  const sent = { ...fact, read: 0 };
  const tokens = total - fact.read;
  return tokens > 0 ? inputCost(sent, price).usd / tokens : inputCost(fact, price).usd / total;
}

/** Dollars for a token that the previous call had too: read, or written again. */
function priceCarried(call: BilledCall, before: BilledCall | undefined): number {
  const { fact, total, price } = call;
  const carried = Math.min(before?.total ?? 0, total);
  if (price === undefined || carried === 0) return 0;
  const read = Math.min(fact.read, carried);
  const readUsd = inputCost({ read, write5m: 0, write1h: 0, uncached: 0 }, price).usd;
  return (readUsd + (carried - read) * priceNew(call)) / carried;
}
