/** The window is hard: what is left when cutting by age was not enough. Each step is taken only while the request is too large. */
import type { Draft } from "../draft.ts";
import type { Turn } from "../turns.ts";
import { clearNewest, clearTurn, everything, inNeed } from "./clear.ts";
import { collapseTurn, keepRolesApart, stubAnswer } from "./collapse.ts";
import type { Scope } from "./scope.ts";
import { shortenNewest } from "./shorten.ts";

export interface Squeeze {
  /** Where to stop giving up older content. */
  readonly goal: number;
  /** What the newest exchange gives way for. */
  readonly most: number;
}

export function squeeze(draft: Draft, scope: Scope, { goal, most }: Squeeze): void {
  const older = scope.turns.slice(0, -1);
  const eachOlder = (step: (turn: Turn) => void): void => {
    for (const turn of older) {
      if (draft.size <= goal) return;
      step(turn);
      draft.moveBoundary(turn.next);
    }
  };
  eachOlder((turn) => clearTurn(draft, turn, scope, inNeed));
  eachOlder((turn) => collapseTurn(draft, turn, scope));
  keepRolesApart(draft);
  eachOlder((turn) => clearTurn(draft, turn, scope, everything));
  eachOlder((turn) => stubAnswer(draft, turn, scope));
  if (draft.size <= most) return;
  shortenNewest(draft, most, scope);
  clearNewest(draft, scope, { most, clearing: everything });
  clearNewest(draft, scope, { most, clearing: { ...everything, lastThinking: true } });
}
