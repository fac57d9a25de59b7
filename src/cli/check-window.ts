import { ContextError } from "../errors.ts";
import { formatNumber } from "../text/index.ts";

export interface WindowParts {
  /** Tokens kept free for the answer. */
  readonly reserve: number;
  /** Tokens of system text and tools that are in no message. */
  readonly prefixTokens: number;
}

/** Refuses a window that leaves nothing for messages, by the name of what takes it. */
export function checkWindow(window: number, { reserve, prefixTokens }: WindowParts): void {
  if (window > reserve + prefixTokens) return;
  const all = [
    { name: "reserve", tokens: reserve, option: "--reserve" },
    { name: "prefix", tokens: prefixTokens, option: "--prefix-tokens" },
  ];
  const alone = all.filter(({ tokens }) => tokens >= window);
  const parts = alone.length > 0 ? alone : all;
  const named = parts.map(({ name, tokens }) => `the ${name} of ${formatNumber(tokens)}`).join(" and ");
  const verb = parts.length === 1 ? "takes" : "take";
  throw new ContextError("usage", `${named} ${verb} the whole window of ${formatNumber(window)}`, {
    hint: `Lower ${parts.map(({ option }) => option).join(" or ")}.`,
  });
}
