/** The newest part of a history, which is trimmed last. */
import type { Draft } from "../draft.ts";
import type { Scope } from "./scope.ts";

export interface Protection {
  /** Assistant turns, counted from the end. */
  readonly turns: number;
  readonly tokens: number;
}

/** Index of the first protected turn: the newest one always, and older ones while they are no more than allowed and weigh, with all that
 *  follows, no more tokens than allowed. */
export function firstProtected({ messages }: Draft, { turns }: Scope, protection: Protection): number {
  let first = turns.length;
  let tokens = 0;
  let read = messages.length;
  while (first > 0 && turns.length - first < protection.turns) {
    const { start } = turns[first - 1] as Scope["turns"][number];
    while (read > start) tokens += messages[--read]?.tokens ?? 0;
    if (first < turns.length && tokens > protection.tokens) break;
    first--;
  }
  return Math.min(first, Math.max(0, turns.length - 1));
}
