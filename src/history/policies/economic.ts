/** Late, deep, rarely: nothing happens until the history all but fills its budget, then one epoch cuts it far down, oldest first. Every
 *  decision stays, so that the provider's cache holds until the next epoch. A history has three zones, oldest first: exchanges that
 *  are gone, a short trace of exchanges with placeholders, and what is whole. */
import type { Draft } from "../draft.ts";
import { byAge, clearTurn, inNeed } from "../economic/clear.ts";
import { collapseTurn, keepRolesApart } from "../economic/collapse.ts";
import { createScope, type Scope, type ScopeOptions } from "../economic/scope.ts";
import { squeeze } from "../economic/squeeze.ts";
import { createTrace } from "../economic/trace.ts";
import { firstProtected } from "../economic/zone.ts";
import { dropBoundThinking } from "../thinking.ts";
import type { TrackedMessage } from "../tracked-history.ts";
import type { Turn } from "../turns.ts";
import type { Policy } from "./policy.ts";

/** Shares are of the message budget. */
export interface EconomicOptions extends ScopeOptions {
  readonly trigger: number;
  /** When the cache is lost anyway an epoch costs nothing extra: it may come earlier. 1: never earlier. */
  readonly coldTrigger: number;
  readonly lowWater: number;
  readonly protect: { readonly turns: number; readonly share: number };
  /** Thinking is tied to all that comes before it: an edit takes along what follows. */
  readonly bindsThinking: boolean;
}

export function createEconomicPolicy(options: EconomicOptions): Policy {
  return {
    decide(draft, { budget, isCold }) {
      const threshold = Math.floor(options.trigger * budget);
      const early = isCold ? Math.min(threshold, options.coldTrigger * budget) : threshold;
      if (draft.size <= early) return { threshold };
      const outgrownAt = firstBeyond(draft, budget);
      const isAdopted = draft.size > threshold && draft.adopt();
      if (!isAdopted || draft.size > threshold) runEpoch(draft, budget, options);
      if (options.bindsThinking) dropBoundThinking(draft);
      const excess = draft.size > budget ? { tokens: draft.size, limit: budget } : undefined;
      return { threshold, excess, outgrownAt };
    },
  };
}

/** The message up to which the history is larger than the budget, and was not before it. */
function firstBeyond({ messages, size }: Draft, budget: number): number | undefined {
  let found: number | undefined;
  for (let index = messages.length - 1, upTo = size; index >= 0 && upTo > budget; index--) {
    found = index;
    upTo -= (messages[index] as TrackedMessage).tokens;
  }
  return found;
}

function runEpoch(draft: Draft, budget: number, options: EconomicOptions): void {
  const { protect, trigger } = options;
  const scope = createScope(draft, options);
  const target = targetOf(draft, budget, options.lowWater);
  const limit = firstProtected(draft, scope, { turns: protect.turns, tokens: protect.share * budget });
  const pass = { draft, scope, budget };
  clearOldest(pass, limit, target);
  if (draft.size > runway * trigger * budget) makeRoom(pass, options, { limit, target });
  keepRolesApart(draft);
  if (draft.size > trigger * budget) squeeze(draft, scope, { goal: runway * trigger * budget, most: budget });
  skipSettled(draft, scope);
}

/** The longer a session is compared with its budget, the more of it is gone anyway and the more a deep cut pays. */
function targetOf(draft: Draft, budget: number, lowWater: number): number {
  return lowWater * Math.max(0.5, Math.min(1, budget / draft.originalSize)) * budget;
}

/** Share of the trigger: an epoch that lands above it would soon be followed by another one. */
const runway = 0.7;
/** Exchanges with placeholders may weigh this share of the budget. What they say of old work is worth little, and each call pays for it. */
const traceShare = 0.03;

interface Pass {
  readonly draft: Draft;
  readonly scope: Scope;
  readonly budget: number;
}

function clearOldest({ draft, scope, budget }: Pass, limit: number, target: number): void {
  const trace = createTrace(draft, scope, traceShare * budget);
  for (const [index, turn] of scope.turns.entries()) {
    if (turn.start < draft.boundary) continue;
    if (index >= limit || draft.size <= target) break;
    clearTurn(draft, turn, scope, byAge);
    draft.moveBoundary(turn.next);
    trace.add(turn);
  }
}

/** Cutting by age left too little room: no trace of old exchanges, then no old answers, then less protection. */
function makeRoom(pass: Pass, options: EconomicOptions, { limit, target }: Reach): void {
  const { draft, scope } = pass;
  const unprotected = scope.turns.slice(0, limit);
  for (const turn of unprotected) {
    if (draft.size <= target) break;
    if (turn.start >= draft.collapsed) collapse(draft, turn, scope);
  }
  for (const turn of unprotected) {
    if (draft.size <= target) break;
    clearTurn(draft, turn, scope, inNeed);
  }
  protectLess(pass, options);
}

/** Turns that are still protected, step by step. */
const shrinkingProtection = [5, 3, 2, 1];

function protectLess({ draft, scope, budget }: Pass, { protect, trigger }: EconomicOptions): void {
  const need = runway * trigger * budget;
  for (const turns of shrinkingProtection.filter((each) => each < protect.turns)) {
    const tokens = (protect.share * budget * turns) / protect.turns;
    for (const turn of scope.turns.slice(0, firstProtected(draft, scope, { turns, tokens }))) {
      if (draft.size <= need) return;
      if (turn.start < draft.boundary) continue;
      clearTurn(draft, turn, scope, inNeed);
      draft.moveBoundary(turn.next);
    }
  }
}

interface Reach {
  /** Number of turns, from the oldest, that are not protected. */
  readonly limit: number;
  readonly target: number;
}

function collapse(draft: Draft, turn: Turn, scope: Scope): void {
  collapseTurn(draft, turn, scope);
  draft.moveCollapsed(turn.next);
}

/** Answers and the person's own messages behind the last exchange that is gone will not change either: a cache marker may stand behind them. */
function skipSettled(draft: Draft, scope: Scope): void {
  const open = scope.turns.find((turn) => turn.start >= draft.collapsed && scope.hasCalls(turn));
  draft.moveCollapsed(Math.min(open?.start ?? draft.boundary, draft.boundary));
}
