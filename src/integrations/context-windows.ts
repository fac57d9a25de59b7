/** The context windows of known models, and what of a window a request and its answer may use. */
import { invalidArgument } from "../errors.ts";
import { defaultReserve } from "../history/index.ts";

/** The limits of a request and its answer, in tokens. */
export interface Limits {
  readonly contextWindow: number;
  /** Kept free for the answer. */
  readonly reserve: number;
  /** Whether the model accepts more than this, so that the working budget can grow. */
  readonly canGrow: boolean;
}

interface LimitOptions {
  /** By default the model's. */
  readonly contextWindow?: number | undefined;
  readonly workingBudget?: number | undefined;
  /** The factor on the working budget. */
  readonly growth: number;
  /** By default the longest answer, within bounds. */
  readonly reserve?: number | undefined;
  readonly model?: string | undefined;
  /** The longest answer that was requested. */
  readonly maxOutputTokens: number;
}

/** Keeps room for the longest answer, because older models refuse a request that might leave too little (Anthropic,
 *  "Context windows", 2026-11). Keeps at most half of the window, because clients often request the longest possible
 *  answer. */
export function limitsFor(options: LimitOptions): Limits {
  const { contextWindow: given, reserve, model, maxOutputTokens, growth } = options;
  const window = given === undefined ? contextWindowOf(model) : { tokens: given, maxInput: given };
  const kept = reserve ?? defaultReserve(window.tokens, maxOutputTokens);
  const whole = Math.min(window.tokens, window.maxInput + kept);
  const isLarge = given === undefined && window.tokens >= largeWindow;
  const budget = options.workingBudget ?? (isLarge ? defaultWorkingBudget : whole);
  const working = budget * growth + kept;
  return { contextWindow: Math.min(whole, working), reserve: kept, canGrow: working < whole };
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
  const id = model?.toLowerCase() ?? "";
  const row = windows.find(([pattern]) => pattern.test(id));
  if (row === undefined) {
    const name = model === undefined ? "the model" : `model "${model}"`;
    throw invalidArgument(`the context window of ${name} is not known`, "Pass contextWindow, in tokens.");
  }
  const [, tokens, maxInput = tokens] = row;
  return { tokens, maxInput };
}

type Row = readonly [pattern: RegExp, tokens: number, maxInput?: number];

// The first match wins. A window that needs a beta header is not assumed. Small old models that one answer fills are
// left out.
const windows: readonly Row[] = [
  [/(?:opus|sonnet|haiku|fable|mythos)-(?:[5-9]|\d\d)(?!\d)/, 1_000_000], // platform.claude.com, model pages, 2026-11
  [/(?:opus|sonnet)-4[-.][6-9](?!\d)/, 1_000_000], // the same: Opus 4.6 and 4.8, Sonnet 4.6
  [/claude/, 200_000], // the same: Haiku 4.5; others before Opus 4.6 as announced
  [/gpt-[4-9](?:\.\d+)?-chat|codex-spark/, 128_000], // sources disagree: the smaller figure
  [/gpt-5\.4-(?:mini|nano)/, 400_000, 272_000], // vercel.com/ai-gateway/models/gpt-5.4-mini, 2026-11; input as of GPT-5
  [/gpt-5\.[4-9]|gpt-(?:[6-9]|\d\d)(?!\d)/, 1_050_000, 922_000], // docs.litellm.ai, 2026-09; wavespeed.ai for GPT-5.4
  [/gpt-5/, 400_000, 272_000], // vercel.com/ai-gateway/models/gpt-5, 2026-11; 128,000 are for answers
  [/gpt-4\.1/, 1_000_000], // openai.com/index/gpt-4-1, 2025-04
  [/gpt-4o|gpt-4-turbo|o1-(?:mini|preview)/, 128_000], // learn.microsoft.com, Azure OpenAI models, 2025
  [/gpt-oss/, 131_072], // models.dev, 2025-08
  [/(?:^|[/.:])o[134](?![a-z\d])/, 200_000], // platform.openai.com/docs/models/o3, 2025-04
  [/gemini-[23]/, 1_048_576], // ai.google.dev/gemini-api/docs/models, 2026-05
];
