import { ContextError } from "../../errors.ts";
import type { LargePart, Overflow } from "../../history/index.ts";
import type { Limits } from "./limits.ts";

/** The error for a request that cannot be made to fit: what is too large, by how much, and what could be done. */
export function overflowError(overflow: Overflow, { contextWindow, reserve }: Limits): ContextError {
  const { tokens, limit, largest } = overflow;
  const taken = Math.max(0, contextWindow - reserve - limit);
  const rest = `a window of ${contextWindow} less ${reserve} for the answer and ${taken} for system text, tools and margin`;
  const named = largest.length === 0 ? "" : ` Largest: ${largest.map(describe).join(", ")}.`;
  const message = `the smallest request has ${tokens} tokens of messages, and ${limit} fit (${rest}).${named}`;
  return new ContextError("context_overflow", message, {
    hint: 'Make what is named smaller, raise contextWindow or lower reserve; onOverflow: "pass" sends it all the same.',
  });
}

function describe({ path, role, kind, tokens }: LargePart): string {
  return `${path} (${role} ${kind.replace("_", " ")}, ${tokens} tokens)`;
}
