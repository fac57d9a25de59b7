/** Weighs what every request starts with: system text, tools and listings. The first call of a conversation shows how much
 *  that is, and each later call pays for it again. */

import { type InputTokens, inputCost } from "../../core/billing/index.ts";
import type { Offer } from "../sessions/session-facts.ts";
import type { BilledCall, BilledSession } from "./price-calls.ts";

export interface FixedPrefix {
  /** Conversations, those of sub-agents included. */
  readonly conversations: number;
  /** The tokens of one conversation, on average. */
  readonly tokens: number;
  /** Over all calls: the tokens by kind, and the dollars. */
  readonly sent: InputTokens;
  readonly usd: number;
  /** The parts of the prefix, from those sessions that record them. */
  readonly parts: readonly PrefixPart[];
  /** Sessions that do not record what they offered. */
  readonly silent: number;
  readonly offered: Readonly<Record<OfferKind, OfferedNames>>;
}

export interface PrefixPart {
  readonly name: string;
  /** On average, in the sessions that record it. */
  readonly tokens: number;
  readonly sessions: number;
  readonly usd: number;
}

export const offerKinds = ["tools", "skills", "agents", "servers"] as const;
export type OfferKind = (typeof offerKinds)[number];

export interface OfferedNames {
  /** How many times names of this kind were offered, over all sessions, and how many of those were used. */
  readonly offered: number;
  readonly used: number;
  /** Names that no session used, sorted by how many sessions offered them. */
  readonly unused: readonly { readonly name: string; readonly sessions: number }[];
}

/** The definitions of tools and the system text are in no recording of Claude Code. */
export const unrecordedPart = "system text and tools";

export function weighPrefix(sessions: readonly BilledSession[], isWanted: (call: BilledCall) => boolean): FixedPrefix {
  const sum = { conversations: 0, tokens: 0, usd: 0, silent: 0 };
  const sent = { read: 0, write5m: 0, write1h: 0, uncached: 0 };
  const parts = new Map<string, { tokens: number; sessions: number; usd: number }>();
  for (const session of sessions) {
    const { offer } = session.facts;
    let isSilent = true;
    for (const { number, tokens, usd } of weighConversations(session, { isWanted, sent })) {
      sum.conversations++;
      sum.tokens += tokens;
      sum.usd += usd;
      if (number !== 0) continue;
      isSilent = !hasListing(offer);
      for (const [name, own] of splitParts(tokens, offer)) {
        const part = parts.get(name) ?? { tokens: 0, sessions: 0, usd: 0 };
        part.tokens += own;
        part.sessions++;
        part.usd += tokens === 0 ? 0 : (usd * own) / tokens;
        parts.set(name, part);
      }
    }
    sum.silent += Number(isSilent);
  }
  const rows = [...parts].map(([name, part]) => ({ name, ...part, tokens: Math.round(part.tokens / part.sessions) }));
  return {
    ...sum,
    sent,
    tokens: sum.conversations === 0 ? 0 : Math.round(sum.tokens / sum.conversations),
    parts: rows.sort((left, right) => right.usd - left.usd),
    offered: Object.fromEntries(
      offerKinds.map((kind) => [kind, countOffers(sessions, kind)]),
    ) as FixedPrefix["offered"],
  };
}

interface ConversationPrefix {
  readonly number: number;
  readonly tokens: number;
  readonly usd: number;
}

function weighConversations(
  { facts, calls }: BilledSession,
  {
    isWanted,
    sent,
  }: { isWanted(call: BilledCall): boolean; readonly sent: { -readonly [Kind in keyof InputTokens]: number } },
): readonly ConversationPrefix[] {
  const chains = new Map<number, { tokens: number; usd: number; isUsed: boolean }>();
  for (const call of calls) {
    const { chain: number, added } = call.fact;
    const prompt = number === 0 && facts.offer ? (facts.offer.chars.prompt ?? 0) : added;
    const known = chains.get(number) ?? {
      tokens: Math.max(0, call.total - countTokens(prompt)),
      usd: 0,
      isUsed: false,
    };
    chains.set(number, known);
    if (call.isCopy || !isWanted(call)) continue;
    known.isUsed = true;
    const own = splitPrefix(call, known.tokens);
    known.usd += pricePrefix(call, own);
    for (const kind of ["read", "write5m", "write1h", "uncached"] as const) sent[kind] += own[kind];
  }
  return [...chains].flatMap(([number, { tokens, usd, isUsed }]) => (isUsed ? { number, tokens, usd } : []));
}

/** Splits the first tokens of a call into read, written and uncached. The cache matches from the start, so they are
 *  read first. */
function splitPrefix({ fact, total }: BilledCall, tokens: number): InputTokens {
  const own = Math.min(tokens, total);
  const read = Math.min(own, fact.read);
  const share = total === fact.read ? 0 : (own - read) / (total - fact.read);
  const { write5m, write1h, uncached } = fact;
  return { read, write5m: write5m * share, write1h: write1h * share, uncached: uncached * share };
}

/** A call's price may depend on the size of the whole prompt. */
function pricePrefix({ fact, price }: BilledCall, own: InputTokens): number {
  if (price === undefined) return 0;
  const rest = {
    read: fact.read - own.read,
    write5m: fact.write5m - own.write5m,
    write1h: fact.write1h - own.write1h,
    uncached: fact.uncached - own.uncached,
  };
  return inputCost(fact, price).usd - inputCost(rest, price).usd;
}

function hasListing(offer: Offer | undefined): boolean {
  return offer !== undefined && offerKinds.some((kind) => offer[kind].length > 0);
}

/** Estimated from the characters that are recorded. What is left is not recorded. */
function splitParts(tokens: number, offer: Offer | undefined): readonly (readonly [name: string, tokens: number])[] {
  const recorded = Object.entries(offer?.chars ?? {}).filter(([name, chars]) => name !== "prompt" && chars > 0);
  let left = tokens;
  const parts = recorded.map(([name, chars]) => {
    const own = Math.min(left, countTokens(chars));
    left -= own;
    return [name, own] as const;
  });
  return [...parts, [unrecordedPart, left]];
}

function countTokens(chars: number): number {
  return Math.round(chars / usualCharsPerToken);
}

const usualCharsPerToken = 4;

function countOffers(sessions: readonly BilledSession[], kind: OfferKind): OfferedNames {
  const counts = new Map<string, { offered: number; used: number }>();
  for (const { facts } of sessions) {
    const { offer } = facts;
    if (offer === undefined) continue;
    const used = new Set(kind === "skills" || kind === "agents" ? offer.used : facts.results.map(({ tool }) => tool));
    for (const name of offer[kind]) {
      const count = counts.get(name) ?? { offered: 0, used: 0 };
      count.offered++;
      count.used += Number(isUsed(name, kind, used));
      counts.set(name, count);
    }
  }
  const all = [...counts];
  return {
    offered: all.reduce((sum, [, { offered }]) => sum + offered, 0),
    used: all.reduce((sum, [, { used }]) => sum + used, 0),
    unused: all
      .filter(([, { used }]) => used === 0)
      .map(([name, { offered }]) => ({ name, sessions: offered }))
      .sort((left, right) => right.sessions - left.sessions || (left.name < right.name ? -1 : 1)),
  };
}

function isUsed(name: string, kind: OfferKind, used: ReadonlySet<string>): boolean {
  if (kind === "tools") return used.has(name);
  if (kind === "servers") return [...used].some((tool) => tool.startsWith(`mcp__${name}__`));
  return used.has(`${kind.slice(0, -1)} ${name}`);
}
