/** A cache that is written at markers and read by walking back from them. */
import { ContextError } from "../../errors.ts";
import type { InputTokens } from "../input-cost.ts";
import type { CacheRules } from "./cache-rules.ts";
import type { PrefixChain } from "./prefix-chain.ts";
import type { Breakpoint, CacheCall, PromptCache } from "./prompt-cache.ts";

export function createBreakpointCache(rules: CacheRules, minPrefix: number): PromptCache {
  const entries = new Map<number, Entry>();
  let left: { readonly entry: Entry; readonly tokens: number } | undefined;
  return {
    take(call) {
      const { chain, startMs } = call;
      const markers = checkMarkers(call, rules).filter(({ after }) => chain.tokens(after) >= minPrefix);
      const hit = findHit(entries, markers, { chain, startMs, lookback: rules.lookback });
      const read = hit === undefined ? 0 : chain.tokens(hit);
      const isBreak = left !== undefined && isLive(left.entry, startMs) && read < left.tokens;
      if (hit !== undefined) refresh(entries.get(chain.hash(hit))!, startMs);
      for (const marker of markers) write(entries, marker, { call, rules });
      const last = markers.at(-1);
      left = last && { entry: entries.get(chain.hash(last.after))!, tokens: chain.tokens(last.after) };
      return { ...charge(chain, markers, read), isBreak };
    },
  };
}

interface Entry {
  lifetimeMs: number;
  expiresMs: number;
  availableMs: number;
}

/** In order, each place once. More than a provider takes, or an order it refuses, is the caller's mistake. */
function checkMarkers({ chain, breakpoints }: CacheCall, rules: CacheRules): readonly Breakpoint[] {
  const sorted = breakpoints.toSorted((first, second) => first.after - second.after);
  const markers = sorted.filter(({ after }, index) => after !== sorted[index - 1]?.after);
  for (const [index, { after, ttl }] of sorted.entries()) {
    if (!Number.isInteger(after) || after < 0 || after >= chain.length) {
      fail(`a breakpoint after block ${after} of ${chain.length}`, "Breakpoints name blocks by index.");
    }
    if (ttl !== "5m" && ttl !== "1h") fail(`the lifetime ${JSON.stringify(ttl)}`, "Lifetimes are 5m, 1h.");
    if (ttl === "1h" && sorted[index - 1]?.ttl === "5m") {
      fail(`a 1h breakpoint after block ${after}, behind a 5m one`, "The longer lifetime comes first.");
    }
    if (ttl === "5m" && sorted[index - 1]?.after === after && sorted[index - 1]?.ttl === "1h") {
      fail(`two lifetimes after block ${after}`, "A block has one breakpoint.");
    }
  }
  if (markers.length > rules.maxBreakpoints) {
    fail(`${markers.length} breakpoints`, `The provider takes ${rules.maxBreakpoints}.`);
  }
  return markers;
}

function fail(what: string, hint: string): never {
  throw new ContextError("invalid_argument", `${what} cannot be billed`, { hint });
}

/** From the last marker to the first, the nearest live entry within reach. What one marker has looked at, the next does not. */
function findHit(
  entries: ReadonlyMap<number, Entry>,
  markers: readonly Breakpoint[],
  { chain, startMs, lookback }: { chain: PrefixChain; startMs: number; lookback: number },
): number | undefined {
  let next = Number.POSITIVE_INFINITY;
  for (const { after } of markers.toReversed()) {
    const end = chain.position(after) - lookback;
    for (next = Math.min(next, after); next >= 0 && chain.position(next) > end; next--) {
      const entry = entries.get(chain.hash(next));
      if (entry !== undefined && isLive(entry, startMs)) return next;
    }
  }
  return undefined;
}

function isLive(entry: Entry, startMs: number): boolean {
  return entry.availableMs <= startMs && startMs < entry.expiresMs;
}

/** A refresh keeps the lifetime that the entry was written with. */
function refresh(entry: Entry, startMs: number): void {
  entry.expiresMs = Math.max(entry.expiresMs, startMs + entry.lifetimeMs);
}

function write(
  entries: Map<number, Entry>,
  { after, ttl }: Breakpoint,
  { call, rules }: { call: CacheCall; rules: CacheRules },
): void {
  const { chain, startMs, firstByteMs } = call;
  const lifetimeMs = rules.lifetimeMs[ttl];
  const key = chain.hash(after);
  const entry = entries.get(key);
  if (entry === undefined || startMs >= entry.expiresMs) {
    entries.set(key, { lifetimeMs, expiresMs: startMs + lifetimeMs, availableMs: firstByteMs });
    return;
  }
  // Written by a request that is still under way: this one pays as well, and the one that answers first makes it readable.
  if (entry.availableMs > startMs) {
    entry.availableMs = Math.min(entry.availableMs, firstByteMs);
    entry.lifetimeMs = Math.max(entry.lifetimeMs, lifetimeMs);
  }
  refresh(entry, startMs);
}

/** With A tokens read, B up to the last 1-hour marker behind them, C up to the last marker: A is read, B − A written for an hour,
 *  C − B for five minutes, and the rest is not cached. */
function charge(chain: PrefixChain, markers: readonly Breakpoint[], read: number): InputTokens {
  const tokensAt = (marker: Breakpoint | undefined): number =>
    marker === undefined ? 0 : chain.tokens(marker.after);
  const end = Math.max(read, tokensAt(markers.at(-1)));
  const endOf1h = Math.max(read, tokensAt(markers.findLast(({ ttl }) => ttl === "1h")));
  const total = chain.length === 0 ? 0 : chain.tokens(chain.length - 1);
  return { read, write5m: end - endOf1h, write1h: endOf1h - read, uncached: total - end };
}
