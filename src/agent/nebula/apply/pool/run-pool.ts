import type { Schedule } from "./schedule.ts";

export interface Pool {
  readonly schedule: Schedule;
  readonly maxWorkers: number;
  /** Runs a phase to its end and tells the schedule. It rejects only where going on makes no sense. */
  run(id: string): Promise<void>;
  /** Asks whether the phase may start; nothing where nobody has to be asked. While people think, others run. */
  ask(id: string): Promise<boolean> | undefined;
  /** Ends what runs; from then on nothing starts. */
  readonly stop: AbortController;
}

/** Runs phases, so many at a time, until none may start. `running` are those that an earlier run started. */
export async function runPool(pool: Pool, running: readonly Promise<void>[] = []): Promise<void> {
  const { schedule, maxWorkers, stop } = pool;
  const active = new Set<Promise<void>>();
  const working = new Set<Promise<void>>();
  const admitted = new Set<string>();
  const track = (work: Promise<void>, sets: readonly Set<Promise<void>>[]) => {
    const tracked: Promise<void> = work.finally(() => {
      for (const set of sets) set.delete(tracked);
    });
    for (const set of sets) set.add(tracked);
  };
  const start = (id: string) => {
    const answer = admitted.has(id) ? undefined : pool.ask(id);
    if (answer === undefined) track(pool.run(id), [active, working]);
    else track(admit(id, answer, { schedule, admitted }), [active]);
  };
  const startAll = () => {
    while (working.size < maxWorkers && !stop.signal.aborted) {
      const id = schedule.next();
      if (id === undefined) return;
      start(id);
    }
  };
  for (const work of running) track(work, [active, working]);
  try {
    for (startAll(); active.size > 0; startAll()) await Promise.race(active);
  } catch (error) {
    stop.abort();
    await Promise.allSettled(active);
    throw error;
  }
}

interface Admission {
  readonly schedule: Schedule;
  readonly admitted: Set<string>;
}

async function admit(id: string, answer: Promise<boolean>, { schedule, admitted }: Admission): Promise<void> {
  if (!(await answer)) return schedule.hold(id);
  admitted.add(id);
  schedule.again(id);
}
