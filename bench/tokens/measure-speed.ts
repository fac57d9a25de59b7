/** Speed on text that a counter has not seen: warmed up on one half of the texts, timed once a round on the other half. */
import { type BenchCounter, REFERENCE } from "./counters.ts";
import { medianOf, processorTime } from "./processor-time.ts";
import { type BenchText, bytesOf, groupByCategory, splitInHalves } from "./texts.ts";

export interface SpeedRow {
  readonly counter: string;
  /** A category, or `all texts`. */
  readonly of: string;
  /** Median, slowest and fastest round, of processor time. */
  readonly megabytesPerSecond: number;
  readonly slowest: number;
  readonly fastest: number;
  /** Median of the rounds' own ratios: what slows a whole round down cancels out. */
  readonly ratio: number;
}

export const ALL_UNSEEN = "all texts";
const ROUNDS = 5;
/** Long enough for the compiler to have done its work. */
const WARM_UP_MS = 100;

export function measureSpeed(texts: readonly BenchText[], counters: readonly BenchCounter[]): SpeedRow[] {
  const { seen, unseen } = splitInHalves(texts);
  const groups = groupByCategory(unseen);
  const rounds = Array.from({ length: ROUNDS }, (_, round) => {
    // In turns from either end, so that none always comes first.
    const order = round % 2 === 0 ? counters : counters.toReversed();
    return new Map(order.map((counter) => [counter.name, timeUnseen(counter, seen, groups)]));
  });
  const sizes = new Map(groups.map(([category, group]) => [category, bytesOf(group)]));
  sizes.set(ALL_UNSEEN, bytesOf(unseen));
  return counters.flatMap(({ name }) => [...sizes].map(([of, bytes]) => speedRow(name, of, { bytes, rounds })));
}

/** Milliseconds by category. */
type Times = ReadonlyMap<string, number>;

function timeUnseen(
  counter: BenchCounter,
  seen: readonly BenchText[],
  groups: readonly (readonly [string, readonly BenchText[]])[],
): Times {
  counter.forget();
  for (let spent = 0; spent < WARM_UP_MS; ) spent += processorTime(() => countAll(counter, seen));
  const times = new Map<string, number>();
  let total = 0;
  for (const [category, group] of groups) {
    // The processor's clock does not tell less than a microsecond.
    const time = Math.max(
      0.001,
      processorTime(() => countAll(counter, group)),
    );
    times.set(category, time);
    total += time;
  }
  return times.set(ALL_UNSEEN, total);
}

function countAll(counter: BenchCounter, texts: readonly BenchText[]): void {
  for (const { text } of texts) counter.count(text);
}

interface Measured {
  readonly bytes: number;
  /** Times by counter, a map a round. */
  readonly rounds: readonly ReadonlyMap<string, Times>[];
}

function speedRow(counter: string, of: string, { bytes, rounds }: Measured): SpeedRow {
  const times = rounds.map((round) => round.get(counter)!.get(of)!);
  const speeds = times.map((time) => bytes / time / 1e3);
  const ratios = rounds.map((round, at) => round.get(REFERENCE)!.get(of)! / times[at]!);
  return {
    counter,
    of,
    megabytesPerSecond: medianOf(speeds),
    slowest: Math.min(...speeds),
    fastest: Math.max(...speeds),
    ratio: medianOf(ratios),
  };
}
