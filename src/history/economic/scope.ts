/** What one pass may touch, and how. Made anew for each pass: it looks at the whole history once. */
import type { CountedPart } from "../../messages/index.ts";
import type { Decide, Draft } from "../draft.ts";
import { callsOf, type DescribePart, type FindCall } from "../placeholders.ts";
import {
  answerOf,
  type Exchange,
  exchangeOf,
  hasCalls,
  type PartPlace,
  type Turn,
  turnsOf,
} from "../turns.ts";

export interface Scope {
  readonly turns: readonly Turn[];
  /** Index of the first message of the last assistant turn. */
  readonly lastTurn: number;
  /** Index of the first message after it: what the assistant has not seen yet. */
  readonly newest: number;
  isPinned(index: number): boolean;
  /** The decision to put a placeholder, undefined where the part must stay. */
  placeholder(part: CountedPart): Decide | undefined;
  hasCalls(turn: Turn): boolean;
  /** What the turn told the person. */
  answer(turn: Turn): readonly PartPlace[];
  /** The turn with its results, where they may go as a whole. */
  exchange(turn: Turn): Exchange | undefined;
}

export interface ScopeOptions {
  readonly excludeTools: ReadonlySet<string>;
  readonly isPinned: (message: object, index: number) => boolean;
  readonly describe: DescribePart;
}

export function createScope({ messages }: Draft, options: ScopeOptions): Scope {
  const turns = turnsOf(messages);
  // Made only where somebody asks: it looks at every part of the history.
  let calls: FindCall | undefined;
  const callOf: FindCall = (part) => {
    calls ??= callsOf(messages);
    return calls(part);
  };
  const isPinned = (index: number): boolean => {
    const source = messages[index]?.source;
    return source !== undefined && options.isPinned(source, index);
  };
  const isExcluded = (part: CountedPart): boolean => {
    if (options.excludeTools.size === 0) return false;
    const name = (callOf(part) ?? part).toolName;
    return name !== undefined && options.excludeTools.has(name);
  };
  return {
    turns,
    lastTurn: turns.at(-1)?.start ?? 0,
    newest: turns.at(-1)?.end ?? 0,
    isPinned,
    placeholder: (part) => (isExcluded(part) ? undefined : options.describe(part, callOf)),
    hasCalls: (turn) => hasCalls(messages, turn),
    answer: (turn) => answerOf(messages, turn),
    exchange(turn) {
      const exchange = exchangeOf(messages, turn);
      // A system message within a conversation needs the message before it.
      const isNeeded = messages.slice(turn.end, turn.next).some(({ original }) => original.role === "system");
      if (exchange === undefined || isNeeded) return undefined;
      for (let index = exchange.turn.start; index < turn.end; index++) {
        if (isPinned(index) || messages[index]?.original.parts.some(isExcluded)) return undefined;
      }
      return exchange.results.some(({ message }) => isPinned(message)) ? undefined : exchange;
    },
  };
}
