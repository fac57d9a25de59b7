/** Milliseconds of processor time, which other work on the machine disturbs less than it does the clock. */
export function processorTime(work: () => void): number {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1_000;
}

/** The least of several runs: what compiling and collecting add is not the work's. */
export function bestTime(runs: number, work: (run: number) => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs; run++)
    best = Math.min(
      best,
      processorTime(() => work(run)),
    );
  return best;
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
