/** Finds calls that read less from the provider's cache than the previous call left there, and says why. */

import { type InputTokens, inputCost, type ModelPrice } from "../../core/billing/index.ts";
import { formatNumber } from "../../core/text/index.ts";
import { bareModel } from "../sessions/recorded-usage.ts";
import type { CallFact, Mark, SessionFacts } from "../sessions/session-facts.ts";
import { type BilledCall, type BilledSession, countInput } from "./price-calls.ts";

export const causes = [
  "model",
  "compaction",
  "trimmed by Plimsoll",
  "system changed",
  "tools changed",
  "history edited",
  "expired",
  "rewound",
  "tools or system changed",
  "resumed",
  "thinking switched",
  "effort changed",
  "more than 20 blocks",
  "request shrank",
  "unexplained",
] as const;
export type Cause = (typeof causes)[number];

/** How a cause is known. `provider`: the provider named it. `usage`: recorded usage, times, models or requests show it.
 *  `inferred`: an event came before the call, and the cache is often lost after such events. */
export type Confidence = "provider" | "usage" | "inferred";

export interface Loss {
  readonly facts: SessionFacts;
  /** The index of the call in its session. */
  readonly call: number;
  readonly cause: Cause;
  /** Absent if the cause is not known. */
  readonly confidence?: Confidence | undefined;
  readonly time: number;
  /** Tokens that the previous call left and this one did not read. */
  readonly lost: number;
  /** Tokens that could have been read from the cache but were paid at a higher price. */
  readonly rewritten: number;
  /** What they cost beyond a read. Absent if the model has no price of its own. */
  readonly usd?: number | undefined;
  /** What happened since the previous call. */
  readonly detail: string;
}

/** A smaller difference is rounding, or a reminder that moved. Providers cache nothing smaller. */
const leastLost = 1024;

/** For each inferred cause: how many calls had its sign, and how many of those lost the cache. From 60 recordings of
 *  Claude Code with 8,513 calls (2026-11). Of all calls, 2.7 % do. */
export const inferredFrom: Readonly<Partial<Record<Cause, { readonly lost: number; readonly seen: number }>>> = {
  "thinking switched": { lost: 48, seen: 59 },
  resumed: { lost: 13, seen: 19 },
  "more than 20 blocks": { lost: 5, seen: 8 },
};

/** `trims` has the times at which Plimsoll trimmed the history of the session. */
export function findLosses(session: BilledSession, trims: readonly number[] = []): readonly Loss[] {
  const losses: Loss[] = [];
  for (const pair of comparePairs(session)) {
    const { before, call, left } = pair;
    const { fact } = call;
    const lost = left - fact.read;
    if (lost < leastLost || call.isCopy) continue;
    const rewritten = Math.max(0, Math.min(left, call.total) - fact.read);
    const wasTrimmed = trims.some((at) => at > before.fact.time && at <= fact.time);
    const [cause, confidence] = findCause(pair, wasTrimmed);
    losses.push({
      facts: session.facts,
      call: pair.index,
      cause,
      confidence,
      time: fact.time,
      lost,
      rewritten,
      detail: describeLoss(cause, pair),
      ...(call.price !== undefined && { usd: priceLoss(fact, rewritten, call.price) }),
    });
  }
  return losses;
}

/** A call with the one before it in its conversation. */
export interface CallPair {
  readonly before: BilledCall;
  readonly call: BilledCall;
  /** The index of the call in its session. */
  readonly index: number;
  /** The first call of the conversation. */
  readonly first: BilledCall;
  /** The tokens that the call before left in the cache. */
  readonly left: number;
  readonly lifetime: Lifetime;
}

export function* comparePairs({ calls }: BilledSession): Generator<CallPair> {
  const readsByChain = new Set<number>();
  const firsts = new Map<number, BilledCall>();
  for (const call of calls) {
    if (call.fact.read > 0) readsByChain.add(call.fact.chain);
    if (!firsts.has(call.fact.chain)) firsts.set(call.fact.chain, call);
  }
  const lifetimes = new Map<number, Lifetime>();
  for (const [index, call] of calls.entries()) {
    const { fact } = call;
    const before = calls[fact.previous];
    const lifetime = lifetimes.get(fact.chain) ?? noLifetime;
    lifetimes.set(fact.chain, updateLifetime(fact, lifetime));
    if (before === undefined) continue;
    const left = countLeft(before, readsByChain.has(fact.chain));
    yield { before, call, index, left, lifetime, first: firsts.get(fact.chain) ?? before };
  }
}

/** How long the cache entries of a conversation live: the shortest lifetime written since the last complete loss. */
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

type Finding = readonly [cause: Cause, confidence?: Confidence];

/** A change of the model and a compaction lose the cache however old it is. Then the provider's own diagnosis counts. An
 *  old cache is lost whatever else happens. */
function findCause(pair: CallPair, wasTrimmed: boolean): Finding {
  const { before, call } = pair;
  const { diagnosis = "", marks } = call.fact;
  const isDiagnosed = (as: string): Confidence => (diagnosis === as ? "provider" : "usage");
  if (bareModel(before.fact.model) !== bareModel(call.fact.model)) return ["model", isDiagnosed("model_changed")];
  if (marks.includes("compaction")) return ["compaction", isDiagnosed("messages_changed")];
  if (wasTrimmed) return ["trimmed by Plimsoll", isDiagnosed("messages_changed")];
  if (diagnosis === "messages_changed" && marks.includes("rewound")) return ["rewound", "provider"];
  const named = diagnosed[diagnosis];
  if (named !== undefined) return [named, "provider"];
  if (isExpired(pair)) return ["expired", isDiagnosed("previous_message_not_found")];
  if (marks.includes("rewound")) return ["rewound", "usage"];
  if (marks.includes("edited")) return ["history edited", "usage"];
  if (marks.includes("shape")) return ["tools or system changed", "usage"];
  return inferCause(pair);
}

/** What the provider's diagnosis means. `unavailable` says nothing, and `previous_message_not_found` only that the provider
 *  no longer knows the last answer
 *  (platform.claude.com/docs/en/build-with-claude/prompt-caching, diagnostics, 2026-10). */
const diagnosed: Readonly<Record<string, Cause>> = {
  // Also another speed of the same model.
  model_changed: "model",
  system_changed: "system changed",
  tools_changed: "tools changed",
  messages_changed: "history edited",
};

/** A cache that is too old has nothing of this conversation. Other conversations can keep alive at most what the first
 *  request held. */
function isExpired(pair: CallPair): boolean {
  const { before } = pair;
  const isWritten = before.fact.write5m + before.fact.write1h > 0;
  return measureGap(pair) > lifetimeMs(pair) && (losesMessages(pair) || !isWritten);
}

function losesMessages({ call, first }: CallPair): boolean {
  return call.fact.read <= first.total;
}

function inferCause(pair: CallPair): Finding {
  const { before, call } = pair;
  const has = (mark: Mark): boolean => call.fact.marks.includes(mark);
  if (has("resumed") || before.isCopy) return ["resumed", "inferred"];
  // These change the part before the messages, so no message can have been read from the cache.
  if (losesMessages(pair)) {
    if (has("thinking")) return ["thinking switched", "inferred"];
    if (has("effort")) return ["effort changed", "inferred"];
    if (has("restart")) return ["resumed", "inferred"];
    if (has("tool search")) return ["tools changed", "inferred"];
  }
  if (has("blocks") && call.fact.read <= before.fact.read) return ["more than 20 blocks", "inferred"];
  return call.total < before.total ? ["request shrank", "usage"] : ["unexplained"];
}

/** A lifetime is counted from the start of the request that wrote or read. */
export function measureGap({ before, call }: CallPair): number {
  return call.fact.start - before.fact.start;
}

/** Anthropic: as recorded. OpenAI promises 5 minutes before GPT-5.6 and 30 minutes since
 *  (developers.openai.com/api/docs/guides/prompt-caching, 2026-11); Gemini promises nothing. */
export function lifetimeMs({ call, lifetime }: CallPair): number {
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
  const { fact } = call;
  const gap = formatDuration(measureGap(pair));
  if (cause === "model") return `${before.fact.model} to ${fact.model}`;
  if (cause === "expired") {
    const kept = lifetimeMs(pair) / minuteMs;
    const written = lifetime.has1h || lifetime.has5m ? "written for" : "kept for";
    return `idle for ${gap}, ${written} ${kept === 60 ? "1 h" : `${kept} min`}`;
  }
  const after = fact.tool === undefined ? "a prompt" : `a result of ${fact.tool}`;
  const when = `${after}, ${gap} later`;
  if (cause === "unexplained") return `${when}; no cause in ${listEvidence(fact).join(", ")}`;
  if (cause === "rewound") return `went back to before ${when}`;
  if (cause === "resumed" && before.isCopy) return "continued in a copy of the session";
  if (cause === "request shrank") return `${formatNumber(before.total - call.total)} tokens fewer than before; ${when}`;
  const isRestart = fact.marks.includes("restart") && /resumed|system|tools/.test(cause);
  return `${isRestart ? "the program was restarted; " : ""}${when}`;
}

/** What was looked at. A recording that has no diagnosis says so. */
function listEvidence({ diagnosis = "none" }: CallFact): readonly string[] {
  const recorded = [
    "model",
    "times",
    "compactions",
    "rewinds",
    "thinking",
    "effort",
    "restarts",
    "tools",
    "blocks",
    "size",
  ];
  return [`the provider's diagnosis (${diagnosis})`, ...recorded];
}

function formatDuration(ms: number): string {
  if (ms < minuteMs) return `${Math.max(0, Math.round(ms / 1000))} s`;
  if (ms < 60 * minuteMs) return `${Math.round(ms / minuteMs)} min`;
  const hours = ms / (60 * minuteMs);
  return hours < 48 ? `${hours.toFixed(1)} h` : `${Math.round(hours / 24)} days`;
}
