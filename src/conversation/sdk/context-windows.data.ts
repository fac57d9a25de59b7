/** The context windows of models, and the most tokens that a request may have, if that is less. */

// The first match wins; patterns are for normalised names. A window that needs a beta header is not assumed. Left out,
// because one answer fills them: gpt-4 and older.
export const contextWindows: readonly (readonly [pattern: RegExp, tokens: number, maxInput?: number])[] = [
  [/^claude-(?:opus|sonnet|haiku|fable|mythos)-(?:[5-9]|\d\d)(?!\d)/, 1_000_000], // platform.claude.com, model pages, 2026-11
  [/^claude-mythos-preview/, 1_000_000], // the same
  [/^claude-(?:opus|sonnet)-4\.[6-9](?!\d)/, 1_000_000], // the same: Opus 4.6 and 4.8, Sonnet 4.6
  [/^claude/, 200_000], // the same: Haiku 4.5; others before Opus 4.6 as announced
  [/^gpt-[4-9](?:\.\d+)?-chat|codex-spark/, 128_000], // sources disagree: the smaller figure
  [/^(?:gpt-)?chat-latest/, 400_000, 272_000], // pi-ai 1.5.2, second-hand, 2026-11; input as of GPT-5
  [/^gpt-5\.6-cyber/, 400_000, 272_000], // the same
  [/^gpt-5\.4-(?:mini|nano)/, 400_000, 272_000], // vercel.com/ai-gateway/models/gpt-5.4-mini, 2026-11; input as of GPT-5
  [/^gpt-5\.[4-9]|^gpt-(?:[6-9]|\d\d)(?!\d)/, 1_050_000, 922_000], // docs.litellm.ai, 2026-09; wavespeed.ai for GPT-5.4
  [/^gpt-5/, 400_000, 272_000], // vercel.com/ai-gateway/models/gpt-5, 2026-11; 128,000 are for answers
  [/^gpt-4\.1/, 1_000_000], // openai.com/index/gpt-4-1, 2025-04
  [/^gpt-4o|^gpt-4-turbo|^o1-(?:mini|preview)/, 128_000], // learn.microsoft.com, Azure OpenAI models, 2025
  [/^gpt-oss/, 131_072], // models.dev, 2025-08
  [/^o[134](?![a-z\d])/, 200_000], // platform.openai.com/docs/models/o3, 2025-04
  [/^codex-mini/, 200_000], // platform.openai.com/docs/models/codex-mini-latest, 2025-06
  [/^gemini-(?:[234](?![\d])|(?:pro|flash|flash-lite)-latest)/, 1_048_576], // ai.google.dev/gemini-api/docs/models, 2026-05; Gemini 4: pi-ai 1.5.2, 2026-11
  // The rest: pi-ai 1.5.2, second-hand, 2026-11.
  [/^grok-4\.[5-7](?!\d)/, 500_000],
  [/^grok-4\.3(?!\d)/, 1_000_000],
  [/^grok-4\.20(?!\d)/, 2_000_000],
  [/^deepseek-(?:v4|flash)/, 1_000_000],
  [/^deepseek-(?:v3|r1|chat)/, 128_000], // sources disagree: the smaller figure
  [/^kimi-k3/, 1_048_576],
  [/^kimi-k2\.[67]/, 262_144],
  [/^kimi-k2/, 131_072], // the first of them; later ones have more
  [/^qwen3\.[5-8]-(?:max|plus|flash|omni-flash)/, 1_000_000],
  [/^qwen3\.[5-8]-\d/, 256_000], // open weights, as the smallest service serves them
  [/^glm-5\.[23]/, 1_000_000],
  [/^glm-5/, 200_000],
  [/^glm-4\.[67](?!v|-flash)/, 200_000],
  [/^glm-4\.[567]/, 131_072],
];
