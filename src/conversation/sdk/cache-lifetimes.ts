/** How long the provider's cache keeps one conversation: chosen at each call from the pauses that were seen. */
import type { ModelPrice, Ttl } from "../../core/billing/index.ts";
import type { Store } from "../../core/store/index.ts";
import { isNumber, mapOf, objectOf, readJson } from "../../core/text/index.ts";
import { chooseLifetime, hasAnchor, type LifetimeState } from "./choose-lifetime.ts";
import { findStableMessage } from "./place-markers.ts";

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
