/** The RFC over any message format: one boundary that only moves forward, placeholders for everything the assistant and its tools said
 *  before it. `rfc-headroom` is the same with a lower target, so that the boundary rests for several turns. */
import { decideParts, drop } from "../decide-parts.ts";
import type { Draft } from "../draft.ts";
import { plain } from "../placeholders.ts";
import { advanceBoundary, budgetThreshold, headroomTarget } from "../rfc/advance-boundary.ts";
import { estimateMessage } from "../rfc/estimate-message.ts";
import { finalEstimate } from "../rfc/estimate-tokens.ts";
import { createPreparation } from "../rfc/prepare-messages.ts";
import { dropBoundThinking } from "../thinking.ts";
import type { Policy, PolicyState } from "./policy.ts";

export interface RfcPolicyOptions {
  readonly keep: number;
  /** Share of the budget above which messages are trimmed. */
  readonly threshold: number;
  readonly state: PolicyState;
  /** Thinking is tied to all that comes before it: an edit takes along what follows. */
  readonly bindsThinking: boolean;
  /** Trims further than the threshold, and leaves alone what a placeholder would make longer. */
  readonly hasHeadroom: boolean;
}

export function createRfcPolicy(options: RfcPolicyOptions): Policy {
  const { keep, hasHeadroom } = options;
  const known: Estimates = { roles: [], full: [], trimmed: [] };
  let boundary = options.state.boundary ?? 0;
  let applied = 0;
  return {
    prepare: createPreparation(),
    get state() {
      return { boundary };
    },
    decide(draft, { budget, toolTokens, unchanged }) {
      estimateNew(known, draft, { unchanged, hasHeadroom });
      const { length } = draft.messages;
      const threshold = budgetThreshold(budget + toolTokens, options.threshold);
      const target = hasHeadroom ? headroomTarget(threshold) : threshold;
      const estimate = (rawTokens: number): number => finalEstimate(rawTokens) + toolTokens;
      const previous = hasHeadroom ? Math.min(boundary, length) : boundary;
      const next = advanceBoundary({ ...known, previous, keep, estimate, threshold, target });
      boundary = next.boundary;
      for (let index = Math.min(applied, unchanged); index < Math.min(boundary, length); index++) {
        if (!hasHeadroom || isLonger(known, index)) trimMessage(draft, index);
      }
      if (options.bindsThinking) dropBoundThinking(draft);
      applied = Math.min(boundary, length);
      draft.moveBoundary(applied);
      const { tokens } = next;
      return { threshold, boundary, excess: tokens > threshold ? { tokens, limit: threshold } : undefined };
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
