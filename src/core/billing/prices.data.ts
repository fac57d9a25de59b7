/** What models cost. Edit this table by hand: one line per row, with the page that states the price and its month.
 *  `input` and `output` are dollars per million tokens; `read`, `write5m` and `write1h` are multiples of `input`, as in
 *  price lists. A row applies to names that begin with `model`; the longest match wins. The row `""` is the provider's
 *  default for other models. If a price changes, add a row with `from` after the old one: older calls keep theirs. */
import type { CacheRulesName, Provider } from "./prices.ts";

export interface PriceRow {
  readonly provider: Provider;
  readonly model: string;
  readonly input: number;
  readonly output: number;
  readonly read: number;
  readonly write5m: number;
  readonly write1h: number;
  /** The number of tokens below which the provider caches nothing, without an error. */
  readonly minPrefix: number;
  /** Factors on all prices of a request with more than `above` input tokens. */
  readonly longPrompt?: LongPrompt | undefined;
  /** The first day on which the price applies, in UTC. Absent: since the model exists. */
  readonly from?: string | undefined;
  /** The factor on all prices of a request with `speed: "fast"`. Absent: the model has no such mode. */
  readonly fast?: number | undefined;
  /** The factor on all prices of a request that stays in one region. */
  readonly regional?: number | undefined;
  readonly rules: CacheRulesName;
  readonly source: string;
  readonly asOf: string;
}

export interface LongPrompt {
  readonly above: number;
  readonly input: number;
  readonly output: number;
}

const claudePricing = "platform.claude.com/docs/en/about-claude/pricing";
const claudeCaching = "platform.claude.com/docs/en/build-with-claude/prompt-caching";
/** Anthropic's own notes for coding agents, in Claude Code 2.1.326. */
const claudeSkill = "claude-api skill of Claude Code 2.1.326";
const claudeFast = "platform.claude.com/docs/en/build-with-claude/fast-mode";
const openaiPricing = "developers.openai.com/api/docs/pricing";
const geminiPricing = "ai.google.dev/gemini-api/docs/pricing";
const copilot = "docs.github.com, Copilot models and pricing";
const piCatalogue = "catalogue of @earendil-works/pi-ai 1.5.2, second-hand";

/** Models before Claude 4.5 cost the same in each region (the page on prices, 2026-11). */
const claude3 = { provider: "anthropic", read: 0.1, write5m: 1.25, write1h: 2, rules: "anthropic" } as const;
const claude = { ...claude3, regional: 1.1 } as const;
/** Before GPT-5.6, a write costs as much as other input. */
const early = { provider: "openai", read: 0.1, write5m: 1, write1h: 1, minPrefix: 1024, rules: "openai-automatic" } as const;
/** The price list has no cached price, so a read costs as much as other input. */
const uncached = { ...early, read: 1 } as const;
/** A write for 30 minutes costs 1.25 times the input, one for 12 hours 2.5 times. */
const late = { provider: "openai", read: 0.1, write5m: 1.25, write1h: 2.5, minPrefix: 1024, rules: "openai-breakpoints" } as const;
const gemini = { provider: "gemini", read: 0.1, write5m: 1, write1h: 1, minPrefix: 4096, rules: "gemini-implicit" } as const;
/** These cache every prompt by themselves. Their minimum is not in our sources. */
const automatic = { write5m: 1, write1h: 1, minPrefix: 1024, rules: "other-automatic" } as const;
const xai = { ...automatic, provider: "xai" } as const;
const deepseek = { ...automatic, provider: "deepseek" } as const;
const moonshot = { ...automatic, provider: "moonshot" } as const;
const qwen = { ...automatic, provider: "qwen" } as const;
const zai = { ...automatic, provider: "zai" } as const;
/** Above this many input tokens, the whole request costs more. */
const above272k = { above: 272_000, input: 2, output: 1.5 } as const;
const above200k = { above: 200_000, input: 2, output: 1.5 } as const;
const grokAbove200k = { above: 200_000, input: 2, output: 2 } as const;

export const priceRows: readonly PriceRow[] = [
  { ...claude, model: "", input: 2, output: 10, read: 0.05, minPrefix: 512, source: `as Sonnet 5.5: ${claudePricing}`, asOf: "2026-11" },
  { ...claude, model: "claude-fable-5.2", input: 8, output: 40, read: 0.025, minPrefix: 512, fast: 2, source: claudeSkill, asOf: "2026-11" },
  { ...claude, model: "claude-mythos-5.2", input: 8, output: 40, read: 0.025, minPrefix: 512, source: claudeSkill, asOf: "2026-11" },
  { ...claude, model: "claude-fable-5.1", input: 10, output: 50, read: 0.025, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude, model: "claude-mythos-5.1", input: 10, output: 50, read: 0.025, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude, model: "claude-fable-5", input: 10, output: 50, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude, model: "claude-mythos-5", input: 10, output: 50, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-mythos-preview", input: 25, output: 125, minPrefix: 2048, source: `anthropic.com/glasswing, second-hand, cache prices as of its time; ${claudeCaching}`, asOf: "2026-04" },
  { ...claude, model: "claude-opus-5.5", input: 4, output: 20, read: 0.05, minPrefix: 512, fast: 2, source: `${claudePricing}; ${claudeCaching}; ${claudeSkill}`, asOf: "2026-11" },
  { ...claude, model: "claude-opus-5", input: 5, output: 25, minPrefix: 512, fast: 2, source: `${claudePricing}; ${claudeCaching}; fast: openrouter.ai/anthropic/claude-opus-5-fast`, asOf: "2026-10" },
  { ...claude, model: "claude-opus-4.8", input: 5, output: 25, minPrefix: 1024, fast: 2, source: `${claudePricing}; ${claudeCaching}; fast: thenegotiationexperts.com, second-hand`, asOf: "2026-10" },
  { ...claude, model: "claude-opus-4.7", input: 5, output: 25, minPrefix: 2048, fast: 6, source: `${claudePricing}; ${claudeCaching}; LiteLLM says 4,096 on Bedrock; fast: thenegotiationexperts.com, second-hand`, asOf: "2026-10" },
  { ...claude, model: "claude-opus-4.6", input: 5, output: 25, minPrefix: 4096, fast: 6, source: `${claudePricing}; ${claudeCaching}; ${claudeFast}`, asOf: "2026-10" },
  { ...claude, model: "claude-opus-4.5", input: 5, output: 25, minPrefix: 4096, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude3, model: "claude-opus-4.1", input: 15, output: 75, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude3, model: "claude-opus-4", input: 15, output: 75, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude3, model: "claude-opus-3", input: 15, output: 75, minPrefix: 1024, source: `${claudePricing}, before it was retired`, asOf: "2025-06" },
  { ...claude, model: "claude-sonnet-5.5", input: 2, output: 10, minPrefix: 512, fast: 2, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude, model: "claude-sonnet-5.5", from: "2026-10-07", input: 2, output: 10, read: 0.05, minPrefix: 512, fast: 2, source: `${claudePricing}; ${claudeCaching}; the day: PromptFuel v1.0.23`, asOf: "2026-10" },
  { ...claude, model: "claude-sonnet-5", input: 2, output: 10, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude, model: "claude-sonnet-4.6", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}; 2,048 was measured (anthropic-sdk-python#1194)`, asOf: "2026-10" },
  { ...claude, model: "claude-sonnet-4.5", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude3, model: "claude-sonnet-4", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude3, model: "claude-sonnet-3.7", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}, before it was retired`, asOf: "2025-12" },
  { ...claude3, model: "claude-sonnet-3.5", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}, before it was retired`, asOf: "2025-06" },
  { ...claude, model: "claude-haiku-5.5", input: 0.1, output: 0.5, minPrefix: 512, fast: 2, longPrompt: { above: 100_000, input: 5, output: 5 }, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude, model: "claude-haiku-4.5", input: 1, output: 5, minPrefix: 4096, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude3, model: "claude-haiku-3.5", input: 0.8, output: 4, minPrefix: 2048, source: `${claudePricing}; ${claudeCaching}`, asOf: "2025-12" },
  { ...claude3, model: "claude-haiku-3", input: 0.25, output: 1.25, read: 0.12, write5m: 1.2, minPrefix: 2048, source: `${claudePricing}, in dollars: 0.30 and 0.03`, asOf: "2025-12" },

  { ...late, model: "", input: 2, output: 10, read: 0.05, longPrompt: above272k, source: `as GPT-6.1 Sol: ${openaiPricing}`, asOf: "2026-11" },
  { ...late, model: "gpt-6.1-sol", input: 2, output: 10, read: 0.05, longPrompt: above272k, source: piCatalogue, asOf: "2026-11" },
  { ...late, model: "gpt-6.1-terra", input: 1, output: 5, read: 0.05, longPrompt: above272k, source: "docs.litellm.ai/blog/gpt-6-1-terra; apidog.com for writes", asOf: "2026-10" },
  { ...late, model: "gpt-6-astra", input: 10, output: 50, longPrompt: above272k, source: piCatalogue, asOf: "2026-11" },
  { ...late, model: "gpt-6-sol", input: 2, output: 10, longPrompt: above272k, source: `${openaiPricing}, in codexometer v0.18.4; ${piCatalogue}`, asOf: "2026-11" },
  { ...late, model: "gpt-6-luna", input: 0.1, output: 0.5, longPrompt: above272k, source: `${openaiPricing}, in codexometer v0.18.4; ${piCatalogue}`, asOf: "2026-11" },
  { ...late, model: "gpt-5.6-cyber", input: 12.5, output: 75, source: piCatalogue, asOf: "2026-11" },
  { ...late, model: "gpt-5.6-sol", input: 4, output: 20, longPrompt: above272k, source: piCatalogue, asOf: "2026-11" },
  { ...late, model: "gpt-5.6-terra", input: 2, output: 12, longPrompt: above272k, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...late, model: "gpt-5.6-luna", input: 0.2, output: 1.2, longPrompt: above272k, source: `${piCatalogue}; Copilot charges more from 200k`, asOf: "2026-11" },
  { ...uncached, model: "gpt-5.5-pro", input: 30, output: 180, longPrompt: above272k, source: piCatalogue, asOf: "2026-11" },
  { ...early, model: "gpt-5.5", input: 5, output: 30, longPrompt: above272k, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...uncached, model: "gpt-5.4-pro", input: 30, output: 180, longPrompt: above272k, source: piCatalogue, asOf: "2026-11" },
  { ...early, model: "gpt-5.4-mini", input: 0.75, output: 4.5, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-5.4-nano", input: 0.2, output: 1.25, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-5.4", input: 2.5, output: 15, longPrompt: above272k, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-5.3", input: 1.75, output: 14, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...uncached, model: "gpt-5.2-pro", input: 21, output: 168, source: piCatalogue, asOf: "2026-11" },
  { ...early, model: "gpt-5.2", input: 1.75, output: 14, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-5.1-codex-mini", input: 0.25, output: 2, source: "genai-prices 0.1.8, second-hand", asOf: "2026-09" },
  { ...early, model: "gpt-5.1", input: 1.25, output: 10, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...uncached, model: "gpt-5-pro", input: 15, output: 120, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-5-mini", input: 0.25, output: 2, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-5-nano", input: 0.05, output: 0.4, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-5", input: 1.25, output: 10, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "chat-latest", input: 5, output: 30, source: piCatalogue, asOf: "2026-11" },
  { ...early, model: "gpt-chat-latest", input: 5, output: 30, source: `OpenRouter's name of chat-latest: ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "codex-mini", input: 1.5, output: 6, read: 0.25, source: "genai-prices 0.1.8, second-hand", asOf: "2026-09" },
  { ...early, model: "gpt-4.1-mini", input: 0.4, output: 1.6, read: 0.25, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-4.1-nano", input: 0.1, output: 0.4, read: 0.25, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-4.1", input: 2, output: 8, read: 0.25, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-4o-mini", input: 0.15, output: 0.6, read: 0.5, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "gpt-4o", input: 2.5, output: 10, read: 0.5, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...uncached, model: "gpt-4-turbo", input: 10, output: 30, source: piCatalogue, asOf: "2026-11" },
  { ...uncached, model: "gpt-4", input: 30, output: 60, source: piCatalogue, asOf: "2026-11" },
  { ...early, model: "o4-mini", input: 1.1, output: 4.4, read: 0.25, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...uncached, model: "o3-pro", input: 20, output: 80, source: piCatalogue, asOf: "2026-11" },
  { ...early, model: "o3-mini", input: 1.1, output: 4.4, read: 0.5, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...early, model: "o3", input: 2, output: 8, read: 0.25, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...uncached, model: "o1-pro", input: 150, output: 600, source: piCatalogue, asOf: "2026-11" },
  { ...early, model: "o1", input: 15, output: 60, read: 0.5, source: `${openaiPricing}; ${piCatalogue}`, asOf: "2026-11" },

  { ...gemini, model: "", input: 0.75, output: 3.75, source: `as Gemini 3.8 Flash: ${geminiPricing}`, asOf: "2026-10" },
  { ...gemini, model: "gemini-4-argon", input: 2, output: 10, read: 0.05, source: `${geminiPricing}; a promotion until 2026-11-30`, asOf: "2026-11" },
  { ...gemini, model: "gemini-4-argon", from: "2026-12-01", input: 4, output: 20, read: 0.05, source: `${geminiPricing}: twice the promotion`, asOf: "2026-11" },
  { ...gemini, model: "gemini-3.8-flash", input: 0.75, output: 3.75, source: `${geminiPricing}; until 2026-12-31, then not announced`, asOf: "2026-11" },
  { ...gemini, model: "gemini-3.7-flash", input: 0.75, output: 3.75, source: `${copilot}; a promotion; ${piCatalogue}`, asOf: "2026-11" },
  { ...gemini, model: "gemini-3.6-flash", input: 0.75, output: 3.75, source: `${copilot}; a promotion; ${piCatalogue}`, asOf: "2026-11" },
  { ...gemini, model: "gemini-3.5-flash-lite", input: 0.3, output: 2.5, source: piCatalogue, asOf: "2026-11" },
  { ...gemini, model: "gemini-3.5-flash", input: 1.5, output: 9, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...gemini, model: "gemini-3.1-flash-lite", input: 0.25, output: 1.5, source: piCatalogue, asOf: "2026-11" },
  { ...gemini, model: "gemini-3.1-pro", input: 2, output: 12, longPrompt: above200k, source: `${copilot}; ${piCatalogue}`, asOf: "2026-11" },
  { ...gemini, model: "gemini-3-flash", input: 0.5, output: 3, source: piCatalogue, asOf: "2026-11" },
  { ...gemini, model: "gemini-pro-latest", input: 2, output: 12, longPrompt: above200k, source: piCatalogue, asOf: "2026-11" },
  { ...gemini, model: "gemini-flash-latest", input: 1.5, output: 9, source: piCatalogue, asOf: "2026-11" },
  { ...gemini, model: "gemini-flash-lite-latest", input: 0.25, output: 1.5, source: piCatalogue, asOf: "2026-11" },
  { ...gemini, model: "gemini-2.5-pro", input: 1.25, output: 10, minPrefix: 2048, longPrompt: above200k, source: `${geminiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...gemini, model: "gemini-2.5-flash-lite", input: 0.1, output: 0.4, minPrefix: 2048, source: `${geminiPricing}; ${piCatalogue}`, asOf: "2026-11" },
  { ...gemini, model: "gemini-2.5-flash", input: 0.3, output: 2.5, minPrefix: 2048, source: `${geminiPricing}; ${piCatalogue}`, asOf: "2026-11" },

  { ...xai, model: "", input: 2, output: 6, read: 0.25, longPrompt: grokAbove200k, source: `as Grok 4.7: ${piCatalogue}`, asOf: "2026-11" },
  { ...xai, model: "grok-4.7", input: 2, output: 6, read: 0.25, longPrompt: grokAbove200k, source: piCatalogue, asOf: "2026-11" },
  { ...xai, model: "grok-4.6", input: 2, output: 6, read: 0.25, longPrompt: grokAbove200k, source: piCatalogue, asOf: "2026-11" },
  { ...xai, model: "grok-4.5", input: 2, output: 6, read: 0.15, longPrompt: grokAbove200k, source: piCatalogue, asOf: "2026-11" },
  { ...xai, model: "grok-4.3", input: 1.25, output: 2.5, read: 0.16, longPrompt: grokAbove200k, source: piCatalogue, asOf: "2026-11" },

  { ...deepseek, model: "", input: 1.32, output: 3.96, read: 0.044 / 1.32, source: `as DeepSeek v4 pro: ${piCatalogue}`, asOf: "2026-11" },
  { ...deepseek, model: "deepseek-v4-pro", input: 1.32, output: 3.96, read: 0.044 / 1.32, source: piCatalogue, asOf: "2026-11" },
  { ...deepseek, model: "deepseek-flash", input: 0.3, output: 1.2, read: 0.02, source: piCatalogue, asOf: "2026-11" },

  { ...moonshot, model: "", input: 2, output: 10, read: 0.1, source: `as Kimi K3.1 Pro: ${piCatalogue}`, asOf: "2026-11" },
  { ...moonshot, model: "kimi-k3.1-pro-highspeed", input: 4, output: 20, read: 0.05, source: piCatalogue, asOf: "2026-11" },
  { ...moonshot, model: "kimi-k3.1-pro", input: 2, output: 10, read: 0.1, source: piCatalogue, asOf: "2026-11" },
  { ...moonshot, model: "kimi-k3", input: 3, output: 15, read: 0.1, source: piCatalogue, asOf: "2026-11" },
  { ...moonshot, model: "kimi-k2.7-code-highspeed", input: 1.9, output: 8, read: 0.2, source: piCatalogue, asOf: "2026-11" },
  { ...moonshot, model: "kimi-k2.7-code", input: 0.95, output: 4, read: 0.2, source: piCatalogue, asOf: "2026-11" },
  { ...moonshot, model: "kimi-k2.6", input: 0.95, output: 4, read: 0.16 / 0.95, source: piCatalogue, asOf: "2026-11" },

  { ...qwen, model: "", input: 2, output: 6, read: 0.125, source: `as Qwen3.8 Max: ${piCatalogue}`, asOf: "2026-11" },
  { ...qwen, model: "qwen3.8-max-prime", input: 4, output: 12, read: 0.125, source: `${piCatalogue}, on OpenRouter`, asOf: "2026-11" },
  { ...qwen, model: "qwen3.8-max", input: 2, output: 6, read: 0.125, source: `${piCatalogue}, on OpenRouter`, asOf: "2026-11" },
  { ...qwen, model: "qwen3.8-flash", input: 0.15, output: 0.47, read: 0.016 / 0.15, source: `${piCatalogue}, on OpenRouter`, asOf: "2026-11" },

  { ...zai, model: "", input: 1.4, output: 4.4, read: 0.26 / 1.4, source: `as GLM-5.3: ${piCatalogue}`, asOf: "2026-11" },
  { ...zai, model: "glm-5.3-prime", input: 2.8, output: 8.8, read: 0.2, source: `${piCatalogue}, on OpenRouter`, asOf: "2026-11" },
  { ...zai, model: "glm-5.3-flashx", input: 0.37, output: 1.25, read: 0.075 / 0.37, source: `${piCatalogue}, on OpenRouter`, asOf: "2026-11" },
  { ...zai, model: "glm-5.3-flash", input: 0.15, output: 0.5, read: 0.2, source: piCatalogue, asOf: "2026-11" },
  { ...zai, model: "glm-5.3", input: 1.4, output: 4.4, read: 0.26 / 1.4, source: piCatalogue, asOf: "2026-11" },
  { ...zai, model: "glm-5.2", input: 1.4, output: 4.4, read: 0.26 / 1.4, source: piCatalogue, asOf: "2026-11" },
  { ...zai, model: "glm-5-turbo", input: 1.2, output: 4, read: 0.2, source: piCatalogue, asOf: "2026-11" },
  { ...zai, model: "glm-4.7", input: 0.6, output: 2.2, read: 0.11 / 0.6, source: piCatalogue, asOf: "2026-11" },
];
