/** A cache that nobody marks: whatever was sent before is read, up to where a request begins to differ. */
import type { CacheRules } from "./cache-rules.ts";
import type { PromptCache } from "./prompt-cache.ts";

export function createAutomaticCache(rules: CacheRules, minPrefix: number): PromptCache {
  const seen: Seen[] = [];
  const cacheable = (tokens: number): number => {
    const whole = tokens - (tokens % rules.stepTokens);
    return whole >= minPrefix ? whole : 0;
  };
  return {
    take({ chain, startMs, firstByteMs }) {
      const live = seen.filter((each) => each.availableMs <= startMs && startMs < each.expiresMs);
      const blocks = live.reduce((most, each) => Math.max(most, chain.commonBlocks(each.hashes)), 0);
      const read = blocks === 0 ? 0 : cacheable(chain.tokens(blocks - 1));
      const before = seen.at(-1);
      const isBreak = before !== undefined && live.at(-1) === before && read < before.tokens;
      const total = chain.length === 0 ? 0 : chain.tokens(chain.length - 1);
      seen.push({
        hashes: chain.snapshot(),
        tokens: cacheable(total),
        expiresMs: startMs + rules.lifetimeMs["5m"],
        availableMs: firstByteMs,
      });
      if (seen.length > mostSeen) seen.shift();
      return { read, write5m: 0, write1h: 0, uncached: total - read, isBreak };
    },
  };
}

/** A request that was sent; one of its prefixes is in the cache for each block. */
interface Seen {
  readonly hashes: Int32Array;
  readonly tokens: number;
  readonly expiresMs: number;
  readonly availableMs: number;
}

/** A conversation goes on from its last request, or from one shortly before it when it was rewound. */
const mostSeen = 16;
