/** What bounds a target: the adapter's own budget, measured on the block, and the tool's limits, measured on what the tool reads. */
import type { Counter } from "../../tokens/index.ts";
import type { Adapter, ToolLimit } from "../adapter.ts";
import { measure } from "./measure.ts";

export interface Budget {
  readonly value: number;
  readonly unit: "bytes" | "tokens";
}

/** `max_bytes` counts before `max_tokens`. */
export function budgetOf({ maxBytes, maxTokens }: Adapter): Budget | undefined {
  if (maxBytes !== undefined && maxBytes > 0) return { value: maxBytes, unit: "bytes" };
  if (maxTokens !== undefined && maxTokens > 0) return { value: maxTokens, unit: "tokens" };
  return undefined;
}

/** The budget in bytes, 4 bytes a token as pack authors count; 0 for no budget, and for tokens of a counter that the user chose. */
export function budgetBytes(budget: Budget | undefined, counterChosen: boolean): number {
  if (budget === undefined || (budget.unit === "tokens" && counterChosen)) return 0;
  return budget.unit === "tokens" ? budget.value * 4 : budget.value;
}

/** Only a hard limit with better evidence than hearsay may take content away; the others are reported. */
export function isEnforced({ kind, evidence }: Pick<ToolLimit, "kind" | "evidence">): boolean {
  return kind === "hard" && evidence !== "third-party";
}

/** What a tool reads of a target, for each scope of a limit. */
export interface ReadTexts {
  /** The block alone: what is pasted into a field. */
  readonly field: () => string;
  readonly file: () => string;
  /** With which other files a tool reads this one, in each folder where it is started. */
  readonly chains: readonly MeasuredChain[];
}

/** The files that a tool reads when it is started in a folder. */
export interface MeasuredChain {
  readonly folder: string | undefined;
  /** How often the target is among them: a link is a second way into the same file. */
  readonly copies: number;
  /** Of all the other files, in the unit of the limit. */
  readonly others: number;
}

export interface LimitUse {
  readonly limit: ToolLimit;
  readonly used: number;
  readonly exceeded: boolean;
  /** Of a limit on the chain: where most is read. */
  readonly folder?: string | undefined;
}

export function useOf(limit: ToolLimit, texts: ReadTexts, counter: Counter): LimitUse {
  const own = measure(limit.scope === "field" ? texts.field() : texts.file(), limit.unit, counter);
  if (limit.scope !== "chain") return { limit, used: own, exceeded: own > limit.value };
  const sizeOf = ({ copies, others }: MeasuredChain) => own * copies + others;
  const heaviest = [...texts.chains].sort((a, b) => sizeOf(b) - sizeOf(a))[0];
  const used = heaviest === undefined ? 0 : sizeOf(heaviest);
  return { limit, used, exceeded: used > limit.value, folder: heaviest?.folder };
}

/** Whether a text is so large that no exact measure is needed: a byte is one byte at least, a character at most two units. */
export function isFarBeyond({ unit, value }: ToolLimit, body: string): boolean {
  if (unit === "bytes") return body.length > value;
  return unit === "chars" && body.length > 2 * value;
}

/** Whether a block exceeds the adapter's own budget. */
export function isOverBudget(
  block: () => string,
  budget: Budget | undefined,
  { counter, counterChosen }: { readonly counter: Counter; readonly counterChosen: boolean },
): boolean {
  if (budget === undefined) return false;
  const maxBytes = budgetBytes(budget, counterChosen);
  return maxBytes > 0 ? Buffer.byteLength(block()) > maxBytes : counter.count(block()) > budget.value;
}
