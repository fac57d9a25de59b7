/** How parallel calls share the tool tier. The size of a result is known only when it arrives. So a call first reserves
 *  the most that it may need, and later settles for what it needs. */

/** One call's share of the tool tier, from its start to its result. */
export interface CallShare {
  /** The most tokens that the call can get. */
  readonly mostTokens: number;
  /** Resolves with the tokens that the result may have. If the parallel calls need more than the tier has, that is a
   *  fair share; otherwise it is all that the result needs. A call that needs more than its fair share waits until the
   *  others know their sizes, at most until the promise of `patience` resolves. */
  settle(neededTokens: number, patience?: () => Promise<void>): Promise<number>;
  /** Ends the call, after its result was recorded or if there will be no result. */
  end(): void;
}

interface OpenCall {
  readonly mostTokens: number;
  needed?: number;
  granted?: number;
  hasWaited?: boolean;
  grant?(tokens: number): void;
}

/** `room` returns what the tier has beside the recorded results. Each call gets at least `minTokens`. */
export function createCallShares(
  room: () => number,
  minTokens: number,
): {
  begin(mostTokens: number): CallShare;
  /** Returns the tokens that running calls were granted or may still get. */
  held(): number;
} {
  const open = new Set<OpenCall>();
  const settleAll = (): void => {
    const calls = [...open].filter(({ granted }) => granted === undefined);
    const waiting = calls.filter(({ needed }) => needed !== undefined);
    if (waiting.length === 0) return;
    const granted = sum([...open].map((call) => call.granted ?? 0));
    const needs = calls.map(({ needed, mostTokens }) => needed ?? mostTokens);
    const level = Math.max(minTokens, findFairLevel(room() - granted, needs));
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

/** Returns the highest level at which all needs, each cut to the level, fit into the room. */
function findFairLevel(room: number, needs: readonly number[]): number {
  const sorted = [...needs].sort((left, right) => left - right);
  let left = room;
  for (const [index, need] of sorted.entries()) {
    const level = Math.floor(left / (sorted.length - index));
    if (need > level) return level;
    left -= need;
  }
  return Number.POSITIVE_INFINITY;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
