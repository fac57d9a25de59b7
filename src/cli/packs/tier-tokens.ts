import type { Pack } from "../../packs/index.ts";
import { type Tier, tiers } from "../../text/index.ts";
import type { Counter } from "../../tokens/index.ts";

export type TierTokens = Readonly<Record<Tier, number>>;

/** Tokens of a pack's own texts. A preamble is core; what inject makes of lists (patterns, errors, courses) is not counted. */
export function tierTokens({ preamble, constraints, context }: Pack, counter: Counter): TierTokens {
  const count = (tier: Tier) => {
    const texts = [...constraints, ...context].filter((segment) => segment.tier === tier);
    return counter.count([...(tier === "core" ? [preamble] : []), ...texts.map(({ text }) => text)].join(""));
  };
  return Object.fromEntries(tiers.map((tier) => [tier, count(tier)])) as unknown as TierTokens;
}
