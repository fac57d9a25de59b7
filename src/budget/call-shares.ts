/** How calls that run side by side share the tool tier. Sizes are known only when results are there, so a call first takes what it may
 *  need at most, and settles for what it needs. */
import { leastAllocation } from "./ledger-options.ts";

/** One call's share of the tool tier, from its start to its result. */
export interface CallShare {
  /** The most that the call can get. */
  readonly mostTokens: number;
  /** Resolves with the tokens that the result may have. That is all it needs, unless the calls side by side need more than the tier has:
   *  then it is a fair share. A call that needs more than its fair share waits until the others know their sizes. `patience` is asked only
   *  then, and the call waits no longer than its promise. */
  settle(neededTokens: number, patience?: () => Promise<void>): Promise<number>;
  /** The result was recorded, or there will be none. */
  end(): void;
}

export interface CallShares {
  begin(mostTokens: number): CallShare;
  /** Tokens that running calls have been granted, or may still get. */
  held(): number;
}

interface OpenCall {
  readonly mostTokens: number;
  needed?: number;
  granted?: number;
  hasWaited?: boolean;
  grant?(tokens: number): void;
}

/** `room`: what the tier has beside the results that are recorded. */
export function createCallShares(room: () => number): CallShares {
  const open = new Set<OpenCall>();
  const settleAll = (): void => {
    const calls = [...open].filter(({ granted }) => granted === undefined);
    const waiting = calls.filter(({ needed }) => needed !== undefined);
    if (waiting.length === 0) return;
    const granted = sum([...open].map((call) => call.granted ?? 0));
    const level = fairLevel(
      room() - granted,
      calls.map(({ needed, mostTokens }) => needed ?? mostTokens),
    );
    const isAllKnown = waiting.length === calls.length;
    for (const call of waiting) {
      const isWhole = call.needed! <= level;
      if (isWhole || isAllKnown || call.hasWaited) call.granted = Math.min(call.needed!, level);
    }
    for (const call of waiting) if (call.granted !== undefined) call.grant?.(call.granted);
    // What a small result leaves may be enough for a larger one.
    if (waiting.some((call) => call.granted !== undefined)) settleAll();
  };
  return {
    held: () => sum([...open].map(({ granted, needed, mostTokens }) => granted ?? needed ?? mostTokens)),
    begin(mostTokens) {
      const call: OpenCall = { mostTokens };
      open.add(call);
      return {
        mostTokens,
        settle(needed, patience) {
          if (call.granted !== undefined) return Promise.resolve(call.granted);
          call.needed = needed;
          const settled = new Promise<number>((resolve) => {
            call.grant = resolve;
          });
          settleAll();
          if (call.granted === undefined) {
            void patience?.().then(() => {
              call.hasWaited = true;
              settleAll();
            });
          }
          return settled;
        },
        end() {
          if (open.delete(call)) settleAll();
        },
      };
    },
  };
}

/** The highest level at which the needs, each cut to it, are together within the room; never less than an error takes. */
function fairLevel(room: number, needs: readonly number[]): number {
  const sorted = [...needs].sort((left, right) => left - right);
  let left = room;
  for (const [index, need] of sorted.entries()) {
    const level = Math.floor(left / (sorted.length - index));
    if (need > level) return Math.max(leastAllocation, level);
    left -= need;
  }
  return Number.POSITIVE_INFINITY;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
