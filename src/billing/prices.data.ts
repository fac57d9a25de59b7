/** What models cost. Edit this table by hand: one line per row, with the page that states the price and its month.
 *  `input` and `output` are dollars per million tokens; `read`, `write5m` and `write1h` are multiples of `input`, as in
 *  price lists. A row applies to ids that begin with `model`; the longest match wins. The row `""` is the provider's
 *  default for other models. */
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
const openaiPricing = "developers.openai.com/api/docs/pricing";
const geminiPricing = "ai.google.dev/gemini-api/docs/pricing";

const claude = { provider: "anthropic", read: 0.1, write5m: 1.25, write1h: 2, rules: "anthropic" } as const;
/** Before GPT-5.6, a write costs as much as other input. */
const early = { provider: "openai", read: 0.1, write5m: 1, write1h: 1, minPrefix: 1024, rules: "openai-automatic" } as const;
const late = { provider: "openai", read: 0.1, write5m: 1.25, write1h: 2.5, minPrefix: 1024, rules: "openai-breakpoints" } as const;
const gemini = { provider: "gemini", read: 0.1, write5m: 1, write1h: 1, minPrefix: 4096, rules: "gemini-implicit" } as const;
/** Above this many input tokens, the whole request costs more. */
const above272k = { above: 272_000, input: 2, output: 1.5 } as const;
const above200k = { above: 200_000, input: 2, output: 1.5 } as const;

export const priceRows: readonly PriceRow[] = [
  { ...claude, model: "", input: 2, output: 10, minPrefix: 1024, source: `as Sonnet 5.5: ${claudePricing}`, asOf: "2026-11" },
  { ...claude, model: "claude-fable-5.2", input: 8, output: 40, read: 0.025, minPrefix: 512, source: "docs.laozhang.ai, second-hand; minimum as Fable 5.1", asOf: "2026-11" },
  { ...claude, model: "claude-mythos-5.2", input: 8, output: 40, read: 0.025, minPrefix: 512, source: "priced as Fable 5.2, as the pair before it", asOf: "2026-11" },
  { ...claude, model: "claude-fable-5.1", input: 10, output: 50, read: 0.025, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-mythos-5.1", input: 10, output: 50, read: 0.025, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-fable-5", input: 10, output: 50, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-mythos-5", input: 10, output: 50, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-opus-5.5", input: 4, output: 20, read: 0.05, minPrefix: 512, source: `${claudePricing}; minimum second-hand`, asOf: "2026-10" },
  { ...claude, model: "claude-opus-5", input: 5, output: 25, minPrefix: 512, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-10" },
  { ...claude, model: "claude-opus-4.8", input: 5, output: 25, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-opus-4.7", input: 5, output: 25, minPrefix: 2048, source: `${claudePricing}; ${claudeCaching}; LiteLLM says 4,096 on Bedrock`, asOf: "2026-09" },
  { ...claude, model: "claude-opus-4.6", input: 5, output: 25, minPrefix: 4096, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-opus-4.5", input: 5, output: 25, minPrefix: 4096, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-opus-4.1", input: 15, output: 75, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-opus-4", input: 15, output: 75, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-opus-3", input: 15, output: 75, minPrefix: 1024, source: `${claudePricing}, before it was retired`, asOf: "2025-06" },
  { ...claude, model: "claude-sonnet-5.5", input: 2, output: 10, minPrefix: 1024, source: "platform.claude.com/docs/en/models/sonnet-5-5/overview; minimum as Sonnet 5", asOf: "2026-10" },
  { ...claude, model: "claude-sonnet-5", input: 2, output: 10, minPrefix: 1024, source: "platform.claude.com/docs/en/models/sonnet-5/overview", asOf: "2026-10" },
  { ...claude, model: "claude-sonnet-4.6", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}; 2,048 was measured (anthropic-sdk-python#1194)`, asOf: "2026-09" },
  { ...claude, model: "claude-sonnet-4.5", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-sonnet-4", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-sonnet-3.7", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}, before it was retired`, asOf: "2025-12" },
  { ...claude, model: "claude-sonnet-3.5", input: 3, output: 15, minPrefix: 1024, source: `${claudePricing}, before it was retired`, asOf: "2025-06" },
  { ...claude, model: "claude-haiku-5.5", input: 0.1, output: 0.5, minPrefix: 4096, longPrompt: { above: 100_000, input: 5, output: 5 }, source: "platform.claude.com/docs/en/models/haiku-5-5/overview; minimum as Haiku 4.5", asOf: "2026-10" },
  { ...claude, model: "claude-haiku-4.5", input: 1, output: 5, minPrefix: 4096, source: `${claudePricing}; ${claudeCaching}`, asOf: "2026-09" },
  { ...claude, model: "claude-haiku-3.5", input: 0.8, output: 4, minPrefix: 2048, source: `${claudePricing}; ${claudeCaching}`, asOf: "2025-12" },
  { ...claude, model: "claude-haiku-3", input: 0.25, output: 1.25, read: 0.12, write5m: 1.2, minPrefix: 2048, source: `${claudePricing}, in dollars: 0.30 and 0.03`, asOf: "2025-12" },

  { ...late, model: "", input: 2, output: 10, read: 0.05, longPrompt: above272k, source: `as GPT-6.1 Sol: ${openaiPricing}`, asOf: "2026-11" },
  { ...late, model: "gpt-6.1-sol", input: 2, output: 10, read: 0.05, longPrompt: above272k, source: "developers.openai.com/api/docs/models/gpt-6.1-sol, second-hand", asOf: "2026-10" },
  { ...late, model: "gpt-6.1-terra", input: 1, output: 5, read: 0.05, longPrompt: above272k, source: "docs.litellm.ai/blog/gpt-6-1-terra; apidog.com for writes", asOf: "2026-10" },
  { ...late, model: "gpt-6-astra", input: 10, output: 50, longPrompt: above272k, source: "docs.apiyi.com/models, second-hand", asOf: "2026-11" },
  { ...late, model: "gpt-6-sol", input: 2, output: 10, longPrompt: above272k, source: `${openaiPricing}, in codexometer v0.18.4`, asOf: "2026-09" },
  { ...late, model: "gpt-6-luna", input: 0.1, output: 0.5, longPrompt: above272k, source: `${openaiPricing}, in codexometer v0.18.4`, asOf: "2026-09" },
  { ...late, model: "gpt-5.6-sol", input: 4, output: 20, longPrompt: above272k, source: "developers.openai.com/api/docs/models/gpt-5.6-sol, second-hand", asOf: "2026-09" },
  { ...late, model: "gpt-5.6-terra", input: 2, output: 12, longPrompt: above272k, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...late, model: "gpt-5.6-luna", input: 0.2, output: 1.2, longPrompt: above200k, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...early, model: "gpt-5.5-pro", input: 30, output: 180, source: "docs.apiyi.com/models, second-hand", asOf: "2026-11" },
  { ...early, model: "gpt-5.5", input: 5, output: 30, longPrompt: above272k, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...early, model: "gpt-5.4-pro", input: 30, output: 180, source: "docs.apiyi.com/models, second-hand", asOf: "2026-11" },
  { ...early, model: "gpt-5.4-mini", input: 0.75, output: 4.5, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...early, model: "gpt-5.4-nano", input: 0.2, output: 1.25, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...early, model: "gpt-5.4", input: 2.5, output: 15, longPrompt: above272k, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...early, model: "gpt-5.3", input: 1.75, output: 14, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...early, model: "gpt-5.2", input: 1.75, output: 14, source: "docs.github.com, Copilot models and pricing", asOf: "2026-06" },
  { ...early, model: "gpt-5.1", input: 1.25, output: 10, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "gpt-5-pro", input: 15, output: 120, read: 1, source: `${openaiPricing}, which has no cached price`, asOf: "2025-12" },
  { ...early, model: "gpt-5-mini", input: 0.25, output: 2, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...early, model: "gpt-5-nano", input: 0.05, output: 0.4, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "gpt-5", input: 1.25, output: 10, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "gpt-4.1-mini", input: 0.4, output: 1.6, read: 0.25, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "gpt-4.1-nano", input: 0.1, output: 0.4, read: 0.25, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "gpt-4.1", input: 2, output: 8, read: 0.25, source: openaiPricing, asOf: "2026-06" },
  { ...early, model: "gpt-4o-mini", input: 0.15, output: 0.6, read: 0.5, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "gpt-4o", input: 2.5, output: 10, read: 0.5, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "o4-mini", input: 1.1, output: 4.4, read: 0.25, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "o3-mini", input: 1.1, output: 4.4, read: 0.5, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "o3", input: 2, output: 8, read: 0.25, source: openaiPricing, asOf: "2025-12" },
  { ...early, model: "o1", input: 15, output: 60, read: 0.5, source: openaiPricing, asOf: "2025-12" },

  { ...gemini, model: "", input: 0.75, output: 3.75, source: `as Gemini 3.8 Flash: ${geminiPricing}`, asOf: "2026-10" },
  { ...gemini, model: "gemini-4-argon", input: 2, output: 10, read: 0.05, source: `${geminiPricing}; until 2026-11-30, then twice that`, asOf: "2026-10" },
  { ...gemini, model: "gemini-3.8-flash", input: 0.75, output: 3.75, source: `${geminiPricing}; until 2026-12-31`, asOf: "2026-10" },
  { ...gemini, model: "gemini-3.7-flash", input: 0.75, output: 3.75, source: "docs.github.com, Copilot models and pricing; a promotion", asOf: "2026-09" },
  { ...gemini, model: "gemini-3.6-flash", input: 0.75, output: 3.75, source: "docs.github.com, Copilot models and pricing; a promotion", asOf: "2026-09" },
  { ...gemini, model: "gemini-3.5-flash", input: 1.5, output: 9, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...gemini, model: "gemini-3.1-pro", input: 2, output: 12, longPrompt: above200k, source: "docs.github.com, Copilot models and pricing", asOf: "2026-09" },
  { ...gemini, model: "gemini-2.5-pro", input: 1.25, output: 10, minPrefix: 2048, longPrompt: above200k, source: geminiPricing, asOf: "2025-12" },
  { ...gemini, model: "gemini-2.5-flash-lite", input: 0.1, output: 0.4, minPrefix: 2048, source: geminiPricing, asOf: "2025-12" },
  { ...gemini, model: "gemini-2.5-flash", input: 0.3, output: 2.5, minPrefix: 2048, source: geminiPricing, asOf: "2025-12" },
];
