/** Finds calls that read less from the provider's cache than the previous call left there, and says why. */

import { type InputTokens, inputCost, type ModelPrice } from "../../core/billing/index.ts";
import { bareModel } from "../sessions/recorded-usage.ts";
import type { CallFact, Mark, SessionFacts } from "../sessions/session-facts.ts";
import { type BilledCall, type BilledSession, countInput } from "./price-calls.ts";

export const causes = [
  "expired",
  "model",
  "compaction",
  "resumed",
  "rewound",
  "history edited",
  "tools or system changed",
  "unexplained",
] as const;
export type Cause = (typeof causes)[number];

export interface Loss {
  readonly facts: SessionFacts;
  /** The index of the call in its session. */
  readonly call: number;
  readonly cause: Cause;
  readonly time: number;
  /** Tokens that the previous call left and this one did not read. */
  readonly lost: number;
  /** Tokens that were sent at a higher price although the previous call had left as many. */
  readonly rewritten: number;
  /** What they cost beyond a read. Absent if the model has no price of its own. */
  readonly usd?: number | undefined;
  /** What happened since the previous call. */
  readonly detail: string;
}

/** A smaller difference is rounding, or a reminder that moved. Providers cache nothing smaller. */
const leastLost = 1024;

export function findLosses({ facts, calls }: BilledSession): readonly Loss[] {
  const readsByChain = new Set<number>();
  for (const { fact } of calls) if (fact.read > 0) readsByChain.add(fact.chain);
  const lifetimes = new Map<number, Lifetime>();
  const losses: Loss[] = [];
  for (const [index, call] of calls.entries()) {
    const { fact, isCopy } = call;
    const before = calls[fact.previous];
    const lifetime = lifetimes.get(fact.chain) ?? noLifetime;
    lifetimes.set(fact.chain, updateLifetime(fact, lifetime));
    if (before === undefined || isCopy) continue;
    const left = countLeft(before, readsByChain.has(fact.chain));
    const lost = left - fact.read;
    if (lost < leastLost) continue;
    const rewritten = Math.max(0, Math.min(left, call.total) - fact.read);
    const pair = { before, call, lifetime };
    const cause = findCause(pair);
    losses.push({
      facts,
      call: index,
      cause,
      time: fact.time,
      lost,
      rewritten,
      detail: describeLoss(cause, pair),
      ...(call.price !== undefined && { usd: priceLoss(fact, rewritten, call.price) }),
    });
  }
  return losses;
}

/** How long the entries of a conversation live: the shortest lifetime that was written since all of them were lost. */
interface Lifetime {
  readonly has5m: boolean;
  readonly has1h: boolean;
}

const noLifetime: Lifetime = { has5m: false, has1h: false };

function updateLifetime({ read, write5m, write1h }: CallFact, before: Lifetime): Lifetime {
  const base = read === 0 ? noLifetime : before;
  const has5m = base.has5m || write5m > 0;
  const has1h = base.has1h || write1h > 0;
  return has5m === base.has5m && has1h === base.has1h ? base : { has5m, has1h };
}

/** What a call leaves in the cache. Providers without a write price cache every prompt, in steps of 128 tokens. A
 *  server that never reports a read has no cache. */
function countLeft({ fact, total }: BilledCall, isCaching: boolean): number {
  const written = fact.write5m + fact.write1h;
  if (!isCaching && written === 0) return 0;
  const isAutomatic = written === 0 && fact.uncached > 0 && !/claude/.test(fact.model);
  return isAutomatic ? Math.floor(total / stepTokens) * stepTokens : fact.read + written;
}

const stepTokens = 128;

interface CallPair {
  readonly before: BilledCall;
  readonly call: BilledCall;
  readonly lifetime: Lifetime;
}

/** A change of the model and a compaction lose the cache however old it is. An old cache is lost whatever else
 *  happens. */
function findCause(pair: CallPair): Cause {
  const { before, call } = pair;
  const has = (mark: Mark): boolean => call.fact.marks.includes(mark);
  if (bareModel(before.fact.model) !== bareModel(call.fact.model)) return "model";
  if (has("compaction")) return "compaction";
  if (measureGap(pair) > lifetimeMs(pair)) return "expired";
  if (has("rewound")) return "rewound";
  if (has("edited")) return "history edited";
  if (has("shape")) return "tools or system changed";
  if (has("resumed") || before.isCopy) return "resumed";
  return "unexplained";
}

/** A lifetime is counted from the start of the request that wrote or read. */
function measureGap({ before, call }: CallPair): number {
  return call.fact.start - before.fact.start;
}

/** Anthropic: as recorded. OpenAI promises 5 minutes before GPT-5.6 and 30 minutes since
 *  (developers.openai.com/api/docs/guides/prompt-caching, 2026-11); Gemini promises nothing. */
function lifetimeMs({ call, lifetime }: CallPair): number {
  if (lifetime.has5m && call.price?.rules.matching === "breakpoints" && call.price.provider === "openai") {
    return 30 * minuteMs;
  }
  return lifetime.has1h && !lifetime.has5m ? 60 * minuteMs : 5 * minuteMs;
}

const minuteMs = 60_000;

/** Compares what the call cost with a call that reads as much as was left. */
function priceLoss(fact: CallFact, rewritten: number, price: ModelPrice): number {
  const sent = countInput(fact) - fact.read;
  const share = sent === 0 ? 0 : Math.min(1, rewritten / sent);
  const hit: InputTokens = {
    read: fact.read + rewritten,
    write5m: fact.write5m * (1 - share),
    write1h: fact.write1h * (1 - share),
    uncached: fact.uncached * (1 - share),
  };
  return Math.max(0, inputCost(fact, price).usd - inputCost(hit, price).usd);
}

function describeLoss(cause: Cause, pair: CallPair): string {
  const { before, call, lifetime } = pair;
  const gap = formatDuration(measureGap(pair));
  if (cause === "model") return `${before.fact.model} to ${call.fact.model}`;
  if (cause === "expired") {
    const kept = lifetimeMs(pair) / minuteMs;
    const written = lifetime.has1h || lifetime.has5m ? "written for" : "kept for";
    return `idle for ${gap}, ${written} ${kept === 60 ? "1 h" : `${kept} min`}`;
  }
  const after = call.fact.tool === undefined ? "a prompt" : `a result of ${call.fact.tool}`;
  if (cause === "unexplained") return `no cause in the recording: ${after}, ${gap} later`;
  if (cause === "rewound") return `went back to before ${after}, ${gap} later`;
  if (cause === "resumed" && before.isCopy) return "continued in a copy of the session";
  return `${after}, ${gap} later`;
}

function formatDuration(ms: number): string {
  if (ms < minuteMs) return `${Math.max(0, Math.round(ms / 1000))} s`;
  if (ms < 60 * minuteMs) return `${Math.round(ms / minuteMs)} min`;
  const hours = ms / (60 * minuteMs);
  return hours < 48 ? `${hours.toFixed(1)} h` : `${Math.round(hours / 24)} days`;
}
