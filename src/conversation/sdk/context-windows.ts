/** The context windows of known models, and what of a window a request and its answer may use. */
import { invalidArgument } from "../../core/errors.ts";
import { normaliseModel } from "../../core/tokens/index.ts";
import { defaultReserve } from "../history/index.ts";
import type { LearnedLimits } from "./learned.ts";

/** The limits of a request and its answer, in tokens. */
export interface Limits {
  readonly contextWindow: number;
  /** The most that a request should have, if the window is larger. */
  readonly workingBudget: number | undefined;
  /** Kept free for the answer. */
  readonly reserve: number;
}

interface LimitOptions {
  /** By default the model's. */
  readonly contextWindow?: number | undefined;
  readonly workingBudget?: number | undefined;
  /** By default room for the answer, within bounds. */
  readonly reserve?: number | undefined;
  readonly model?: string | undefined;
  /** The longest answer that the request allows. */
  readonly maxOutputTokens: number;
  /** What refusals showed. */
  readonly learned?: LearnedLimits | undefined;
}

/** Keeps room for the longest answer, because older models refuse a request that might leave too little (Anthropic,
 *  "Context windows", 2026-11). Keeps at most half of the window, because clients often request the longest possible
 *  answer. */
export function limitsFor(options: LimitOptions): Limits {
  const { contextWindow: given, reserve, model, maxOutputTokens, learned = {} } = options;
  const window = given === undefined ? contextWindowOf(model) : { tokens: given, maxInput: given };
  const tokens = Math.min(window.tokens, learned.contextWindow ?? window.tokens);
  const asked = Math.max(reserve ?? defaultReserve(tokens, sizeClass(maxOutputTokens)), learned.reserve ?? 0);
  // A window that turned out to be smaller may be smaller than the reserve.
  const kept = tokens < window.tokens ? Math.min(asked, Math.floor(tokens / 2)) : asked;
  const whole = Math.min(tokens, window.maxInput + kept);
  const isLarge = given === undefined && window.tokens >= largeWindow;
  const workingBudget = options.workingBudget ?? (isLarge ? defaultWorkingBudget : undefined);
  return { contextWindow: whole, workingBudget, reserve: kept };
}

/** Rounds up to a power of two times 1,000. A client that changes its `max_tokens` a little then always gets the same
 *  budget, also from a process that knows nothing of its earlier requests. */
function sizeClass(tokens: number): number {
  return tokens <= 0 ? 0 : 1_000 * 2 ** Math.ceil(Math.log2(tokens / 1_000));
}

// Chosen by `npm run bench:defaults`; docs/history.md has the numbers. In a smaller window the whole window is used.
const largeWindow = 400_000;
const defaultWorkingBudget = 200_000;

/** The context window of a model. */
interface ContextWindow {
  /** Tokens of a request and its answer together. */
  readonly tokens: number;
  /** The most tokens that the request may have, if the rest is for the answer alone. */
  readonly maxInput: number;
}

/** Looks up the window by the model's id. Throws if no row matches, because a guess could be wrong. */
export function contextWindowOf(model: string | undefined): ContextWindow {
  const id = normaliseModel(model ?? "");
  const row = windows.find(([pattern]) => pattern.test(id));
  if (row === undefined) {
    const name = model === undefined ? "the model" : `model "${model}"`;
    throw invalidArgument(`the context window of ${name} is not known`, "Pass contextWindow, in tokens.");
  }
  const [, tokens, maxInput = tokens] = row;
  return { tokens, maxInput };
}

type Row = readonly [pattern: RegExp, tokens: number, maxInput?: number];

// The first match wins; patterns are for normalised names. A window that needs a beta header is not assumed. Left out,
// because one answer fills them: gpt-4 and older.
const windows: readonly Row[] = [
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
