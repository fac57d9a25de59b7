/** The RFC over any message format: one boundary that only moves forward, placeholders for everything the assistant and its tools said
 *  before it. `rfc-headroom` is the same with a lower target, so that the boundary rests for several turns. */
import { decideParts, drop } from "../decide-parts.ts";
import type { Draft } from "../draft.ts";
import { plain } from "../placeholders.ts";
import { advanceBoundary, budgetThreshold, firstBeyond, headroomTarget } from "../rfc/advance-boundary.ts";
import { estimateMessage } from "../rfc/estimate-message.ts";
import { finalEstimate } from "../rfc/estimate-tokens.ts";
import { createPreparation } from "../rfc/prepare-messages.ts";
import { dropBoundThinking } from "../thinking.ts";
import type { Policy } from "./policy.ts";

export interface RfcPolicyOptions {
  readonly keep: number;
  /** Share of the budget above which messages are trimmed. */
  readonly threshold: number;
  /** Thinking is tied to all that comes before it: an edit takes along what follows. */
  readonly bindsThinking: boolean;
  /** Trims further than the threshold, and leaves alone what a placeholder would make longer. */
  readonly hasHeadroom: boolean;
}

export function createRfcPolicy(options: RfcPolicyOptions): Policy {
  const { keep, hasHeadroom } = options;
  const known: Estimates = { roles: [], full: [], trimmed: [] };
  return {
    prepare: createPreparation(),
    decide(draft, { budget, toolTokens, unchanged }) {
      estimateNew(known, draft, { unchanged, hasHeadroom });
      const threshold = budgetThreshold(budget + toolTokens, options.threshold);
      const target = hasHeadroom ? headroomTarget(threshold) : threshold;
      const estimate = (rawTokens: number): number => finalEstimate(rawTokens) + toolTokens;
      const input = { ...known, previous: draft.boundary, keep, estimate, threshold, target };
      const { boundary, tokens } = advanceBoundary(input);
      const outgrownAt = boundary > draft.boundary ? firstBeyond(input) : undefined;
      for (let index = draft.boundary; index < boundary; index++)
        if (!hasHeadroom || isLonger(known, index)) trimMessage(draft, index);
      if (options.bindsThinking) dropBoundThinking(draft);
      draft.moveBoundary(boundary);
      return { threshold, outgrownAt, excess: tokens > threshold ? { tokens, limit: threshold } : undefined };
    },
  };
}

/** By message, so that a call costs what is new. */
interface Estimates {
  readonly roles: ("system" | "user" | "assistant" | "tool")[];
  readonly full: number[];
  readonly trimmed: number[];
}

function estimateNew(
  { roles, full, trimmed }: Estimates,
  { messages }: Draft,
  { unchanged, hasHeadroom }: { unchanged: number; hasHeadroom: boolean },
): void {
  roles.length = full.length = trimmed.length = Math.min(roles.length, unchanged);
  for (const { source, original } of messages.slice(roles.length)) {
    const estimate = estimateMessage(original, source);
    roles.push(estimate.role);
    full.push(estimate.full);
    trimmed.push(hasHeadroom ? Math.min(estimate.full, estimate.trimmed) : estimate.trimmed);
  }
}

function isLonger({ full, trimmed }: Estimates, index: number): boolean {
  return (full[index] ?? 0) > (trimmed[index] ?? 0);
}

function trimMessage(draft: Draft, index: number): void {
  decideParts(draft, index, (part, { original }) => {
    if (part.kind === "tool_result") return plain;
    if (original.role !== "assistant" && original.role !== "tool") return undefined;
    if (part.kind === "text") return plain;
    return part.kind === "thinking" && part.isBound !== true ? drop : undefined;
  });
}
