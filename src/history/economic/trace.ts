/** The exchanges that have placeholders. When they weigh more than they may, the oldest of them collapse. */
import type { Draft } from "../draft.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { Turn } from "../turns.ts";
import { collapseTurn } from "./collapse.ts";
import type { Scope } from "./scope.ts";

export interface Trace {
  /** Takes in a turn that was just cleared. */
  add(turn: Turn): void;
}

export function createTrace(draft: Draft, scope: Scope, mostTokens: number): Trace {
  const { messages, collapsed, boundary } = draft;
  const held = scope.turns.filter(({ start }) => start >= collapsed && start < boundary);
  let tokens = 0;
  for (const turn of held) tokens += weightOf(messages, turn);
  const shrink = (): void => {
    while (tokens > mostTokens) {
      const oldest = held.shift();
      if (oldest === undefined) return;
      tokens -= weightOf(messages, oldest);
      collapseTurn(draft, oldest, scope);
      draft.moveCollapsed(oldest.next);
    }
  };
  shrink();
  return {
    add(turn) {
      held.push(turn);
      tokens += weightOf(messages, turn);
      shrink();
    },
  };
}

/** What a turn and its results weigh as they are sent; what a person wrote in between does not count. */
function weightOf(messages: readonly TrackedMessage[], { start, next }: Turn): number {
  let weight = 0;
  for (let index = start; index < next; index++) {
    const { original, tokens, sent } = messages[index] as TrackedMessage;
    if (sent === undefined) continue;
    weight += tokens;
    if (original.role === "assistant") continue;
    for (const part of original.parts) if (part.kind !== "tool_result") weight -= part.tokens;
  }
  return weight;
}
