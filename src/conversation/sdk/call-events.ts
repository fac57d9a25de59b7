/** What a person sees of the calls of a wrapped client: one event a call, and their sum. */

import {
  costOfUsage,
  inputCost,
  type ModelPrice,
  type Provider,
  providerOfModel,
  type UsageCost,
} from "../../core/billing/index.ts";
import { randomUUID } from "../../core/crypto.ts";
import { countSystem, countTools, type FormatName, takeSnapshot } from "../../core/messages/index.ts";
import { createEventWriter, type EventWriter, type Store } from "../../core/store/index.ts";
import type { Counter } from "../../core/tokens/index.ts";
import type { Reduction } from "../history/index.ts";
import { type CompareCosts, createCostComparison, type OwnMarkers } from "./compare-costs.ts";
import type { Refusal } from "./refusals.ts";

/** What `onCall` receives when a call has been answered. What is not known is undefined. */
export interface CallEvent {
  /** The id of the conversation. */
  readonly sessionId: string;
  /** A random id of the call. The events of the store have it too. */
  readonly callId: string;
  readonly model: string | undefined;
  /** When the request was ready to be sent, and when its answer had been read, in milliseconds since 1970. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** All input tokens. */
  readonly sentTokens: number;
  /** Input tokens that were read from the provider's cache. */
  readonly readTokens: number | undefined;
  /** Input tokens that were written to the provider's cache. */
  readonly writtenTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** True if the answer reported no usage, so that `sentTokens` is an estimate. */
  readonly isEstimate: boolean;
  /** What the call cost. */
  readonly usd: number | undefined;
  /** What the request would have cost as you passed it. Known only while a simulation of what was sent is within 5 % of
   *  what was billed, and if the model would have accepted the request. */
  readonly untrimmedUsd: number | undefined;
  /** Set if the call trimmed the history: because it was `full`, or early because the cache was lost anyway (`cold`). */
  readonly epoch: "full" | "cold" | undefined;
  /** Set if less was read than the previous call had left in the cache: why, and how many tokens. */
  readonly cacheBreak: { readonly cause: BreakCause; readonly tokens: number } | undefined;
  /** Set if the provider refused the request before, and this one was sent instead: what its refusal said. */
  readonly learned: Refusal | undefined;
}

/** Why a cache was lost. `epoch`: the history was trimmed. `expired`: it was too old. `model`: another model was asked.
 *  `system or tools`: these have changed. */
export type BreakCause = "epoch" | "expired" | "model" | "system or tools" | "unknown";

/** The calls of a wrapped client so far, added up. */
export interface CallSummary {
  /** Answered calls. */
  readonly calls: number;
  readonly sentTokens: number;
  readonly readTokens: number;
  readonly writtenTokens: number;
  readonly outputTokens: number;
  /** What the calls with a known price cost. */
  readonly usd: number;
  /** How many calls have no known price or reported no usage. They are missing in `usd`. */
  readonly unpricedCalls: number;
  /** How much less the calls cost than without Plimsoll. Negative if they cost more. Undefined if that is not known of
   *  any call. */
  readonly savedUsd: number | undefined;
  /** How many calls `savedUsd` covers. */
  readonly comparedCalls: number;
  /** How often a history was trimmed. */
  readonly epochs: number;
  /** How often a cache was lost, by cause. */
  readonly breaks: Readonly<Record<BreakCause, number>>;
  /** Requests that were not sent because they cannot fit, and requests that the provider refused as too long. */
  readonly refusals: number;
}

/** What every wrapped client has. */
export interface WithSummary {
  /** What Plimsoll adds to the client. */
  readonly plimsoll: {
    /** Returns the calls so far, added up. */
    summary(): CallSummary;
  };
}

export interface CallLog {
  /** Starts the log of one conversation. */
  conversation(sessionId: string): ConversationLog;
  /** Notes a request that was not sent or was refused as too long. */
  refused(sessionId: string, overflow: { readonly tokens: number; readonly limit: number }): void;
  /** Notes a callback or a store that failed. */
  failed(source: string): void;
  summary(): CallSummary;
}

export interface ConversationLog {
  /** Takes a call that is about to be sent. */
  start(call: LoggedCall): StartedCall;
}

export interface StartedCall {
  /** Takes the usage of the answer, or nothing if it has none. Later calls have no effect. */
  end(usage: unknown, learned?: Refusal): void;
}

export interface LoggedCall {
  readonly model: string | undefined;
  readonly format: FormatName;
  readonly system?: unknown;
  readonly tools?: readonly object[] | null | undefined;
  readonly counter: Counter;
  readonly reduction: Reduction;
  readonly isCold: boolean;
  /** How long the cache keeps what the call writes. */
  readonly cacheLifetimeMs: number;
  readonly ownMarkers?: OwnMarkers | undefined;
  /** The most tokens that the model accepts. */
  readonly windowTokens: number;
}

export function createCallLog(options: {
  /** The name of the integration. */
  readonly client: string;
  readonly store: Store | undefined;
  readonly now: () => number;
  readonly onCall: (event: CallEvent) => void;
  readonly onStoreFailure: (error: unknown) => void;
}): CallLog {
  const { client, store, now, onStoreFailure } = options;
  const writer = store && createEventWriter(store, { now, onFailure: onStoreFailure });
  const totals = createTotals();
  const write: EventWriter["write"] = (event) => writer?.write({ client, ...event });
  const onEnd = (event: CallEvent): void => {
    totals.add(event);
    write(formatEvent(event));
    options.onCall(event);
  };
  const source = "sdk";
  return {
    conversation: (sessionId) => openLog(sessionId, { now, onEnd, write }),
    refused(sessionId, { tokens, limit }) {
      totals.refuse();
      write({ source, sessionId, kind: "error", numbers: { name: "context_overflow", tokens, limit } });
    },
    failed: (name) => write({ source, kind: "error", numbers: { name } }),
    summary: totals.sum,
  };
}

/** What is known of the last answered call of a conversation. */
interface LastCall {
  readonly model: string | undefined;
  readonly startedAt: number;
  readonly prefix: number;
  /** Tokens that it left in the cache, and for how long. */
  readonly left: number;
  readonly lifetimeMs: number;
}

function openLog(
  sessionId: string,
  {
    now,
    onEnd,
    write,
  }: {
    readonly now: () => number;
    readonly onEnd: (event: CallEvent) => void;
    readonly write: EventWriter["write"];
  },
): ConversationLog {
  const readPrefix = createPrefixReader();
  const compare = createCostComparison();
  let last: LastCall | undefined;
  let hasRead = false;
  return {
    start(call) {
      const callId = randomUUID();
      const startedAt = now();
      const prefix = readPrefix(call);
      const { stats } = call.reduction;
      const epoch = isTrim(call.reduction) ? (call.isCold ? "cold" : "full") : undefined;
      if (epoch !== undefined) {
        const { before, after, budget, epochs } = stats;
        const numbers = { before, after, budget, epochs, reason: epoch };
        write({ source: "sdk", sessionId, callId, kind: "trim", numbers });
      }
      const before = last;
      let hasEnded = false;
      return {
        end(usage, learned) {
          if (hasEnded) return;
          hasEnded = true;
          const cost = priceUsage(usage, call, startedAt);
          hasRead ||= (cost?.read ?? 0) > 0;
          const cacheBreak = cost && findBreak({ call, cost, before, startedAt, prefix: prefix.version });
          if (cost !== undefined) {
            last = {
              model: call.model,
              startedAt,
              prefix: prefix.version,
              left: countLeft(cost, hasRead),
              lifetimeMs: call.cacheLifetimeMs,
            };
          }
          onEnd({
            sessionId,
            callId,
            model: call.model,
            startedAt,
            endedAt: now(),
            ...readTokens(cost, prefix.tokens + stats.after),
            usd: isPriced(cost) ? cost.usd : undefined,
            untrimmedUsd: isPriced(cost) ? estimateUntrimmed(compare, { call, cost, startedAt, prefix }) : undefined,
            epoch,
            cacheBreak,
            learned,
          });
        },
      };
    },
  };
}

/** Whether the call itself trimmed. A trim of earlier calls that another process sent keeps the cache. */
function isTrim({ isEpoch, derived }: Reduction): boolean {
  return isEpoch && derived?.keepsCache !== true;
}

interface Prefix {
  readonly tokens: number;
  /** Changes when system text or tools change. */
  readonly version: number;
}

/** Counts system text and tools, again only after they have changed. */
function createPrefixReader(): (call: LoggedCall) => Prefix {
  let known: (Prefix & { readonly isSame: (later: unknown) => boolean }) | undefined;
  return ({ system, tools, counter, format, model }) => {
    const fixed = { system, tools };
    const countPrefix = (): number => {
      try {
        const given = tools ?? [];
        const toolTokens = given.length === 0 ? 0 : countTools(given, counter, { format, model });
        return countSystem(system, counter) + toolTokens;
      } catch {
        // The policies of the RFC accept tools that nothing here can read.
        return 0;
      }
    };
    if (known?.isSame(fixed) === true) return known;
    known = { tokens: countPrefix(), version: (known?.version ?? 0) + 1, isSame: takeSnapshot(fixed) };
    return known;
  };
}

/** Reads the usage with the price of its model. */
function priceUsage(usage: unknown, { model, format }: LoggedCall, timeMs: number): UsageCost | undefined {
  const provider = (model === undefined ? undefined : providerOfModel(model)) ?? formatProviders[format];
  return costOfUsage(usage, { provider, model, timeMs });
}

const formatProviders: Readonly<Partial<Record<FormatName, Provider>>> = {
  anthropic: "anthropic",
  openai: "openai",
  responses: "openai",
  gemini: "gemini",
};

/** The default price of a provider says nothing about a model that no table knows. */
function isPriced(cost: UsageCost | undefined): cost is UsageCost {
  return cost !== undefined && !cost.price.isDefault;
}

function readTokens(
  cost: UsageCost | undefined,
  estimate: number,
): Pick<CallEvent, "sentTokens" | "readTokens" | "writtenTokens" | "outputTokens" | "isEstimate"> {
  if (cost === undefined || cost.total === 0) {
    const unknown = { readTokens: undefined, writtenTokens: undefined, outputTokens: cost?.output };
    return { sentTokens: estimate, ...unknown, isEstimate: true };
  }
  const { total, read, write5m, write1h, output } = cost;
  const written = write5m + write1h;
  return { sentTokens: total, readTokens: read, writtenTokens: written, outputTokens: output, isEstimate: false };
}

/** Providers without a price for writing cache every prompt, in steps. A server that never reports a read has no
 *  cache. */
function countLeft({ read, write5m, write1h, total, price }: UsageCost, hasRead: boolean): number {
  const { matching, stepTokens, isAssumed } = price.rules;
  if (isAssumed) return 0;
  if (matching === "breakpoints") return read + write5m + write1h;
  return hasRead ? Math.floor(total / stepTokens) * stepTokens : 0;
}

interface EndedCall {
  readonly call: LoggedCall;
  readonly cost: UsageCost;
  readonly startedAt: number;
}

/** A change of the model loses the cache however old it is, and an old cache is lost whatever else happens. */
function findBreak({
  call,
  cost,
  before,
  startedAt,
  prefix,
}: EndedCall & { readonly before: LastCall | undefined; readonly prefix: number }): CallEvent["cacheBreak"] {
  const tokens = Math.min(before?.left ?? 0, cost.total) - cost.read;
  if (before === undefined || tokens < minLost) return undefined;
  const cause = (): BreakCause => {
    if (before.model !== call.model) return "model";
    if (startedAt - before.startedAt > before.lifetimeMs) return "expired";
    if (isTrim(call.reduction)) return "epoch";
    return before.prefix === prefix ? "unknown" : "system or tools";
  };
  return { cause: cause(), tokens };
}

/** A smaller difference is rounding. Providers cache nothing smaller. */
const minLost = 1_024;

function estimateUntrimmed(
  compare: CompareCosts,
  { call, cost, startedAt, prefix }: EndedCall & { readonly prefix: Prefix },
): number | undefined {
  const { price }: { readonly price: ModelPrice } = cost;
  const { stats, isEpoch } = call.reduction;
  const { before, after } = stats;
  const input = compare({
    price,
    startMs: startedAt,
    fixedTokens: prefix.tokens,
    prefix: prefix.version,
    before,
    after,
    isEpoch,
    own: call.ownMarkers ?? { prefix: false, end: false, ttl: "5m" },
    billed: cost,
    windowTokens: call.windowTokens,
  });
  return input === undefined ? undefined : input + cost.usd - inputCost(cost, price).usd;
}

/** Returns the event as the store keeps it. */
function formatEvent(event: CallEvent): Parameters<EventWriter["write"]>[0] {
  const { sessionId, callId, model, startedAt, endedAt, cacheBreak, learned, isEstimate, epoch, ...numbers } = event;
  return {
    source: "sdk",
    sessionId,
    callId,
    kind: "call",
    numbers: {
      model,
      ms: endedAt - startedAt,
      isEstimate: isEstimate ? 1 : 0,
      epoch,
      ...numbers,
      break: cacheBreak?.cause.replaceAll(" ", "-"),
      lostTokens: cacheBreak?.tokens,
      refusal: learned?.kind,
    },
  };
}

function createTotals(): { add(event: CallEvent): void; refuse(): void; sum(): CallSummary } {
  const breaks: Record<BreakCause, number> = { epoch: 0, expired: 0, model: 0, "system or tools": 0, unknown: 0 };
  const sums = { calls: 0, sentTokens: 0, readTokens: 0, writtenTokens: 0, outputTokens: 0, usd: 0 };
  const counts = { unpricedCalls: 0, comparedCalls: 0, epochs: 0, refusals: 0 };
  let saved = 0;
  return {
    add(event) {
      sums.calls += 1;
      for (const name of ["sentTokens", "readTokens", "writtenTokens", "outputTokens", "usd"] as const) {
        sums[name] += event[name] ?? 0;
      }
      if (event.usd === undefined) counts.unpricedCalls += 1;
      if (event.epoch !== undefined) counts.epochs += 1;
      if (event.cacheBreak !== undefined) breaks[event.cacheBreak.cause] += 1;
      if (event.usd === undefined || event.untrimmedUsd === undefined) return;
      counts.comparedCalls += 1;
      saved += event.untrimmedUsd - event.usd;
    },
    refuse() {
      counts.refusals += 1;
    },
    sum: () => ({
      ...sums,
      ...counts,
      savedUsd: counts.comparedCalls === 0 ? undefined : saved,
      breaks: { ...breaks },
    }),
  };
}
