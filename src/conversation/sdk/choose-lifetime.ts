/** Chooses how long the cache keeps what a call writes: Anthropic's 5 minutes, or an hour for a higher price.
 *
 *  A call that finds its beginning in the cache pays only for what it adds, and that decides the price of an hour too:
 *  a marker of one hour then keeps the whole request. So a few calls write for an hour, and the others for 5 minutes. After
 *  a pause, the next call reads up to the last of these few, and writes again only what came later.
 *
 *  Whatever the pauses are, a conversation never costs more than 1.02 of what it would have cost with 5 minutes, if the
 *  cache works as in `createCacheSimulator` and each request continues the last one to its end. With an hour everywhere
 *  it could cost less than that: no rule that does not know the pauses in advance stays close to both
 *  (`choose-lifetime.test.ts` shows it). So a conversation that pauses at its beginning may cost more than with an hour. */
import type { ModelPrice, Ttl } from "../../core/billing/index.ts";
import type { Store } from "../../core/store/index.ts";
import { isNumber, mapOf, objectOf, readJson } from "../../core/text/index.ts";
import { findStableMessage } from "./place-markers.ts";

/** What is known about the pauses and the cache of one conversation. */
export interface LifetimeState {
  /** When the last call started, and how many tokens it had. */
  readonly lastMs: number;
  readonly lastTokens: number;
  /** How many calls came after another one, and before how many of them the short lifetime had ended and the long one
   *  would not have. */
  readonly gaps: number;
  readonly pauses: number;
  /** The tokens that the cache has for an hour, and when they were last written or read. */
  readonly anchorTokens: number;
  readonly anchorMs: number;
  /** What pauses were expected to cost since these tokens were written, as full-price input tokens. */
  readonly exposure: number;
  /** What the next hours may cost: what hours have saved, and `shareForHours` of what the calls would have cost with 5
   *  minutes, less the price of the hours so far. */
  readonly credit: number;
  /** The share of the last call that would have found nothing in the cache with 5 minutes. One hour may cost that much
   *  in addition. The rest is not kept, because the calls that follow are much cheaper. */
  readonly coldCredit: number;
}

export interface LifetimeCall {
  readonly nowMs: number;
  /** All input tokens of the request. */
  readonly tokens: number;
  /** Whether the request differs from the last one before its end, as after a trim. */
  readonly isRewritten: boolean;
}

type LifetimePrice = Pick<ModelPrice, "read" | "write5m" | "write1h" | "rules">;

/** Returns the lifetime for what the call writes, and the state for the next call. An hour is chosen when pauses were
 *  expected to have cost as much as it costs: over equal calls, that is the least total of both. It must also be covered
 *  by the credit, and that bounds the loss if the pauses do not come. */
export function chooseLifetime(
  state: LifetimeState | undefined,
  call: LifetimeCall,
  price: LifetimePrice,
): { readonly ttl: Ttl; readonly state: LifetimeState } {
  const { nowMs, tokens } = call;
  const seen = countPauses(state, nowMs, price);
  const cached = findCached(state, call, price);
  const { anchorTokens, anchorMs } = cached;
  const isAging = nowMs - anchorMs >= price.rules.lifetimeMs["1h"] / 2;
  const lostByPause = tokens - (isAging ? 0 : anchorTokens);
  const pauseRate = (seen.pauses + assumedPauses) / (seen.gaps + assumedGaps);
  const exposure = (state?.exposure ?? 0) + pauseRate * (price.write5m - price.read) * lostByPause;
  const { credit, coldCredit } = addCredit(state, { ...cached, tokens }, price);
  const extra = (price.write1h - price.write5m) * (tokens - cached.found);
  const last = { lastMs: nowMs, lastTokens: tokens, ...seen };
  if (exposure < extra || credit + coldCredit < extra) {
    return { ttl: "5m", state: { ...last, anchorTokens, anchorMs, exposure, credit, coldCredit } };
  }
  const left = credit - Math.max(0, extra - coldCredit);
  const kept = { anchorTokens: tokens, anchorMs: nowMs, exposure: 0, credit: left, coldCredit: 0 };
  return { ttl: "1h", state: { ...last, ...kept } };
}

function countPauses(
  state: LifetimeState | undefined,
  nowMs: number,
  { rules }: LifetimePrice,
): Pick<LifetimeState, "gaps" | "pauses"> {
  if (state === undefined) return { gaps: 0, pauses: 0 };
  const gapMs = nowMs - state.lastMs;
  const isPause = gapMs >= rules.lifetimeMs["5m"] && gapMs < rules.lifetimeMs["1h"];
  return { gaps: state.gaps + 1, pauses: state.pauses + (isPause ? 1 : 0) };
}

interface Cached extends Pick<LifetimeState, "anchorTokens" | "anchorMs"> {
  /** How many tokens of the request the cache has. */
  readonly found: number;
  /** How many it would have if all calls had written for 5 minutes. */
  readonly foundWith5m: number;
}

function findCached(
  state: LifetimeState | undefined,
  { nowMs, tokens, isRewritten }: LifetimeCall,
  price: LifetimePrice,
): Cached {
  // A request that is smaller than what was kept is another one, or a history that was cut.
  if (state === undefined || isRewritten || tokens < state.anchorTokens) {
    return { found: 0, foundWith5m: 0, anchorTokens: 0, anchorMs: 0 };
  }
  const anchorTokens = hasAnchor(state, nowMs, price) ? state.anchorTokens : 0;
  const isWarm = nowMs - state.lastMs < price.rules.lifetimeMs["5m"];
  const foundWith5m = isWarm ? Math.min(tokens, state.lastTokens) : 0;
  const found = isWarm ? foundWith5m : anchorTokens;
  // The hour counts from the last call that read exactly this entry.
  return { found, foundWith5m, anchorTokens, anchorMs: found === anchorTokens ? nowMs : state.anchorMs };
}

function addCredit(
  state: LifetimeState | undefined,
  { tokens, found, foundWith5m }: Cached & { readonly tokens: number },
  { read, write5m }: LifetimePrice,
): Pick<LifetimeState, "credit" | "coldCredit"> {
  const { credit, coldCredit } = state ?? { credit: 0, coldCredit: 0 };
  const share = shareForHours * (read * foundWith5m + write5m * (tokens - foundWith5m));
  if (foundWith5m > 0) return { credit: credit + share, coldCredit };
  return { credit: credit + (write5m - read) * found, coldCredit: share };
}

/** Whether the cache still has what was written for an hour. */
export function hasAnchor(state: LifetimeState | undefined, nowMs: number, { rules }: LifetimePrice): boolean {
  return state !== undefined && state.anchorTokens > 0 && nowMs - state.anchorMs < rules.lifetimeMs["1h"];
}

const shareForHours = 0.02;

// Before anything is known, one pause in 50 calls. Agents that work alone then pay less than one percent more than with 5
// minutes, and the first pause of a person is seldom lost (`npm run bench:markers`). What is seen soon counts for more.
const assumedPauses = 0.1;
const assumedGaps = 5;

// The choice at each call of one conversation, from the pauses that were seen.

/** The lifetime of a call's markers, and the index of the sent message up to which the cache was written for an hour. */
export interface ChosenLifetime {
  readonly ttl: Ttl;
  readonly anchor: number | undefined;
}

export interface CacheLifetimes {
  /** Whether the cache has the beginning of the conversation for an hour. */
  hasAnchor(price: ModelPrice, nowMs: number): boolean;
  choose(call: {
    readonly price: ModelPrice;
    readonly nowMs: number;
    readonly messages: readonly object[];
    readonly tokens: number;
    readonly isRewritten: boolean;
  }): Promise<ChosenLifetime>;
}

/** With a store, a new process knows the pauses of the conversation. `forgetHistory` deletes from this collection. */
const collection = "history/lifetimes";

export async function openCacheLifetimes(store: Store | undefined, sessionId: string): Promise<CacheLifetimes> {
  const text = (await store?.get(collection, sessionId))?.value;
  const states = new Map<string, LifetimeState & { readonly anchorMessage: number }>(
    Object.entries(readJson(text, isStates) ?? {}),
  );
  return {
    hasAnchor: (price, nowMs) => hasAnchor(states.get(price.model ?? ""), nowMs, price),
    async choose({ price, messages, ...call }) {
      const model = price.model ?? "";
      const before = states.get(model);
      const { ttl, state } = chooseLifetime(before, call, price);
      const anchor = state.anchorTokens > 0 ? before?.anchorMessage : undefined;
      const anchorMessage = ttl === "1h" ? findStableMessage(messages) : (anchor ?? -1);
      states.set(model, { ...state, anchorMessage });
      await store?.put(collection, sessionId, JSON.stringify(Object.fromEntries(states)));
      return { ttl, anchor: anchor === undefined || anchor < 0 || call.isRewritten ? undefined : anchor };
    },
  };
}

const isStates = mapOf(
  objectOf({
    lastMs: isNumber,
    lastTokens: isNumber,
    gaps: isNumber,
    pauses: isNumber,
    anchorTokens: isNumber,
    anchorMs: isNumber,
    exposure: isNumber,
    anchorMessage: isNumber,
    credit: isNumber,
    coldCredit: isNumber,
  }),
);
