/** How a provider's prompt cache works, apart from what it costs. One entry a behaviour, with its source and month. */

export const providers = ["anthropic", "openai", "gemini"] as const;
export type Provider = (typeof providers)[number];

export type CacheRulesName = "anthropic" | "openai-automatic" | "openai-breakpoints" | "gemini-implicit";

export interface CacheRules {
  /** `breakpoints`: written and read where the request marks it. `automatic`: any prefix that was sent before. */
  readonly matching: "breakpoints" | "automatic";
  /** Positions that a read looks at from a breakpoint back, the breakpoint itself being the first. */
  readonly lookback: number;
  readonly maxBreakpoints: number;
  /** Reads come in multiples of this. */
  readonly stepTokens: number;
  /** From the start of the request that wrote or read. `5m` is the short lifetime of any provider, `1h` the long one. */
  readonly lifetimeMs: Lifetimes;
  /** No promise is made that a known prefix is read: a hit is an assumption. */
  readonly isAssumed: boolean;
}

/** What a breakpoint asks for. */
export type Ttl = "5m" | "1h";
export type Lifetimes = Readonly<Record<Ttl, number>>;

const minute = 60_000;
const hour = 60 * minute;

export const cacheRules: Readonly<Record<CacheRulesName, CacheRules>> = {
  // platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11
  anthropic: {
    matching: "breakpoints",
    lookback: 20,
    maxBreakpoints: 4,
    stepTokens: 1,
    lifetimeMs: { "5m": 5 * minute, "1h": hour },
    isAssumed: false,
  },
  // developers.openai.com/api/docs/guides/prompt-caching, 2026-11. Kept in memory for 5 to 60 minutes, or where the account
  // retains data for up to 24 hours: an hour lies between. Steps of 128 are the long-documented behaviour.
  "openai-automatic": {
    matching: "automatic",
    lookback: Number.POSITIVE_INFINITY,
    maxBreakpoints: 0,
    stepTokens: 128,
    lifetimeMs: { "5m": hour, "1h": 24 * hour },
    isAssumed: false,
  },
  // The `prompt_cache_options` of openai 6.49.0: four writes, no lookback limit, 30 minutes at least; 12 hours on GPT-6.1.
  "openai-breakpoints": {
    matching: "breakpoints",
    lookback: Number.POSITIVE_INFINITY,
    maxBreakpoints: 4,
    stepTokens: 1,
    lifetimeMs: { "5m": 30 * minute, "1h": 12 * hour },
    isAssumed: false,
  },
  // ai.google.dev/gemini-api/docs/caching, 2026-10: implicit, no lifetime and no hit is promised. An hour is a guess.
  "gemini-implicit": {
    matching: "automatic",
    lookback: Number.POSITIVE_INFINITY,
    maxBreakpoints: 0,
    stepTokens: 1,
    lifetimeMs: { "5m": hour, "1h": hour },
    isAssumed: true,
  },
};
