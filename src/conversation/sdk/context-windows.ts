/** The context windows of known models, and what of a window a request and its answer may use. */
import { invalidArgument } from "../../core/errors.ts";
import { normaliseModel } from "../../core/tokens/index.ts";
import { defaultReserve } from "../history/index.ts";
import { contextWindows } from "./context-windows.data.ts";
import type { LearnedLimits } from "./learned.ts";

/** The limits of a request and its answer, in tokens. */
export interface Limits {
  readonly contextWindow: number;
  /** The most that a request should have, if the window is larger. */
  readonly workingBudget: number | undefined;
  /** Kept free for the answer. */
  readonly reserve: number;
}

/** Keeps room for the longest answer, because older models refuse a request that might leave too little (Anthropic,
 *  "Context windows", 2026-11). Keeps at most half of the window, because clients often request the longest possible
 *  answer. */
export function computeLimits(options: {
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
}): Limits {
  const { contextWindow: given, reserve, model, maxOutputTokens, learned = {} } = options;
  const window = given === undefined ? findContextWindow(model) : { tokens: given, maxInput: given };
  const tokens = Math.min(window.tokens, learned.contextWindow ?? window.tokens);
  const asked = Math.max(reserve ?? defaultReserve(tokens, roundAnswer(maxOutputTokens)), learned.reserve ?? 0);
  // A window that turned out to be smaller may be smaller than the reserve.
  const kept = tokens < window.tokens ? Math.min(asked, Math.floor(tokens / 2)) : asked;
  const whole = Math.min(tokens, window.maxInput + kept);
  const isLarge = given === undefined && window.tokens >= largeWindow;
  const workingBudget = options.workingBudget ?? (isLarge ? defaultWorkingBudget : undefined);
  return { contextWindow: whole, workingBudget, reserve: kept };
}

/** Rounds up to a power of two times 1,000. A client that changes its `max_tokens` a little then always gets the same
 *  budget, also from a process that knows nothing of its earlier requests. */
function roundAnswer(tokens: number): number {
  return tokens <= 0 ? 0 : 1_000 * 2 ** Math.ceil(Math.log2(tokens / 1_000));
}

// Chosen by `npm run bench:defaults`; docs/history.md has the numbers. In a smaller window the whole window is used.
const largeWindow = 400_000;
const defaultWorkingBudget = 200_000;

/** Looks up the window by the model's id: the tokens of a request and its answer together, and the most tokens that the
 *  request may have, if the rest is for the answer alone. Throws if no row matches, because a guess could be wrong. */
export function findContextWindow(model: string | undefined): { readonly tokens: number; readonly maxInput: number } {
  const id = normaliseModel(model ?? "");
  const row = contextWindows.find(([pattern]) => pattern.test(id));
  if (row === undefined) {
    const name = model === undefined ? "the model" : `model "${model}"`;
    throw invalidArgument(`the context window of ${name} is not known`, "Pass contextWindow, in tokens.");
  }
  const [, tokens, maxInput = tokens] = row;
  return { tokens, maxInput };
}
