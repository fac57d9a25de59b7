import { defaultReserve } from "../../history/index.ts";
import { contextWindowOf } from "./context-windows.ts";

/** What a request and its answer may have, in tokens. */
export interface Limits {
  readonly contextWindow: number;
  /** Kept free for the answer. */
  readonly reserve: number;
}

export interface LimitOptions {
  /** Absent: that of the model. */
  readonly contextWindow?: number | undefined;
  /** Absent: the longest answer, within bounds. */
  readonly reserve?: number | undefined;
  readonly model?: string | undefined;
  /** The longest answer that was asked for. */
  readonly maxOutputTokens: number;
}

/** Room is kept for the longest answer, since older models refuse a request that might leave too little (Anthropic, "Context windows",
 *  2026-11), yet never more than half of the window: clients like to ask for all that a model can say. */
export function limitsFor({ contextWindow: given, reserve, model, maxOutputTokens }: LimitOptions): Limits {
  const window = given === undefined ? contextWindowOf(model) : { tokens: given, maxInput: given };
  const kept = reserve ?? defaultReserve(window.tokens, maxOutputTokens);
  return { contextWindow: Math.min(window.tokens, window.maxInput + kept), reserve: kept };
}
