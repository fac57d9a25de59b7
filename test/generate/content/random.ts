/** Chance that repeats itself: the same seed gives the same numbers everywhere. */
export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number;
  /** A whole number from `least` to `most`, both included. */
  whole(least: number, most: number): number;
  chance(share: number): boolean;
  pick<Value>(list: readonly Value[]): Value;
  /** Picks in proportion to weights. */
  pickWeighted<Value>(list: readonly (readonly [Value, number])[]): Value;
  size(size: Size): number;
}

/** Sizes as they occur in sessions: half below the median, a long tail above it (log-normal), never beyond `most`. */
export interface Size {
  readonly median: number;
  readonly spread: number;
  readonly most: number;
}

export function createRandom(seed: number): Random {
  const next = mulberry32(seed);
  const random: Random = {
    next,
    whole: (least, most) => least + Math.floor(next() * (most - least + 1)),
    chance: (share) => next() < share,
    pick: (list) => list[Math.floor(next() * list.length)]!,
    pickWeighted(list) {
      let left = next() * list.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [value, weight] of list) {
        left -= weight;
        if (left < 0) return value;
      }
      return list.at(-1)![0];
    },
    size({ median, spread, most }) {
      const drawn = Math.round(median * Math.exp(spread * bell(next)));
      return Math.max(1, Math.min(most, drawn));
    },
  };
  return random;
}

function mulberry32(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A number of the standard normal distribution (Box and Muller). */
function bell(next: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
}
