/** Decides which phase may run: a state machine without agents, clock or store. A phase may start when all its
 *  dependencies have completed. A failed phase blocks all phases that need it, directly or not, and nothing else. */
import type { PhaseState } from "../compose/index.ts";

export interface ScheduledPhase {
  readonly id: string;
  readonly dependsOn: readonly string[];
}

export interface Schedule {
  /** Takes the first phase that may start and marks it as running. */
  next(): string | undefined;
  /** Ends a running phase. Returns the phases that can no longer run because of it. */
  end(id: string, state: "completed" | "failed"): readonly string[];
  /** Lets a running phase start again, at its place in the order. */
  again(id: string): void;
  /** Puts a running phase on hold: it is not offered again. */
  hold(id: string): void;
  /** Leaves a running phase to another machine, which was faster. */
  leave(id: string): void;
  /** Updates the state of a phase that does not run here. */
  see(id: string, state: "running" | "waiting" | "completed" | "failed"): void;
}

/** Creates a schedule. `phases` are sorted by who starts first. Their states so far are waiting, running or
 *  completed. */
export function createSchedule(
  phases: readonly ScheduledPhase[],
  statesSoFar: ReadonlyMap<string, PhaseState> = new Map(),
): Schedule {
  const states = new Map<string, PhaseState>(phases.map(({ id }) => [id, statesSoFar.get(id) ?? "waiting"]));
  const places = new Map(phases.map(({ id }, place) => [id, place]));
  const dependents = new Map<string, string[]>();
  for (const { id, dependsOn } of phases) {
    for (const each of new Set(dependsOn)) dependents.set(each, [...(dependents.get(each) ?? []), id]);
  }
  const missing = new Map<string, number>();
  const ready: number[] = [];
  const offer = (id: string) => {
    const place = places.get(id)!;
    const before = ready.findIndex((each) => each > place);
    ready.splice(before === -1 ? ready.length : before, 0, place);
  };
  for (const { id, dependsOn } of phases) {
    const open = new Set(dependsOn.filter((each) => states.get(each) !== "completed"));
    missing.set(id, open.size);
    if (open.size === 0 && states.get(id) === "waiting") offer(id);
  }
  const meet = (id: string) => {
    const left = missing.get(id)! - 1;
    missing.set(id, left);
    if (left === 0 && states.get(id) === "waiting") offer(id);
  };

  const elsewhere = new Set<string>();
  const withdraw = (id: string) => {
    const index = ready.indexOf(places.get(id)!);
    if (index !== -1) ready.splice(index, 1);
  };
  const end = (id: string, state: "completed" | "failed") => {
    states.set(id, state);
    if (state === "failed") return blockDependents(id, { dependents, states });
    for (const dependent of dependents.get(id) ?? []) meet(dependent);
    return [];
  };
  const again = (id: string) => {
    states.set(id, "waiting");
    if (missing.get(id) === 0) offer(id);
  };

  return {
    end,
    again,
    next() {
      const place = ready.shift();
      if (place === undefined) return undefined;
      const { id } = phases[place]!;
      states.set(id, "running");
      return id;
    },
    hold: (id) => void states.set(id, "waiting"),
    leave: (id) => void elsewhere.add(id),
    see(id, state) {
      const known = states.get(id);
      const isHere = known === "running" && !elsewhere.has(id);
      if (isHere || known === "completed" || known === state) return;
      if (state === "waiting") {
        if (elsewhere.delete(id)) again(id);
        return;
      }
      withdraw(id);
      if (state === "running") {
        if (known === "waiting") states.set(id, "running");
        elsewhere.add(id);
        return;
      }
      elsewhere.delete(id);
      end(id, state);
    },
  };
}

/** Returns the blocked phases in the order in which they are reached. Completed phases stay completed. */
function blockDependents(
  id: string,
  {
    dependents,
    states,
  }: { readonly dependents: ReadonlyMap<string, readonly string[]>; readonly states: Map<string, PhaseState> },
): string[] {
  const blocked: string[] = [];
  const pending = [...(dependents.get(id) ?? [])];
  for (let each = pending.shift(); each !== undefined; each = pending.shift()) {
    if (states.get(each) !== "waiting") continue;
    states.set(each, "blocked");
    blocked.push(each);
    pending.push(...(dependents.get(each) ?? []));
  }
  return blocked;
}

export interface Pool {
  readonly schedule: Schedule;
  readonly maxWorkers: number;
  /** Runs a phase to its end and updates the schedule. Rejects only if the whole run cannot continue. */
  run(id: string): Promise<void>;
  /** Asks whether the phase may start; undefined if no approval is needed. Other phases run while people think. */
  ask(id: string): Promise<boolean> | undefined;
  /** Ends all running phases. Nothing starts after that. */
  readonly stop: AbortController;
  /** Absent if no other machine works on the same phases. */
  readonly others?: Others | undefined;
}

/** Machines that work on the same phases. */
export interface Others {
  /** Tells the schedule what they did, and returns whether one of them has a phase that others may need. */
  areBusy(): Promise<boolean>;
  /** Resolves when something may have changed. */
  change(): Promise<void>;
}

/** Runs up to `maxWorkers` phases at a time until none may start. `running` are phases that an earlier run started. */
export async function runPool(pool: Pool, running: readonly Promise<void>[] = []): Promise<void> {
  const { schedule, maxWorkers, stop, others } = pool;
  const active = new Set<Promise<void>>();
  const working = new Set<Promise<void>>();
  const admitted = new Set<string>();
  const track = (work: Promise<void>, sets: readonly Set<Promise<void>>[]) => {
    // Failed work stays in the sets, so that the next `Promise.race` over them rejects with its error.
    const tracked: Promise<void> = work.then(() => {
      for (const set of sets) set.delete(tracked);
    });
    for (const set of sets) set.add(tracked);
  };
  const start = (id: string) => {
    const answer = admitted.has(id) ? undefined : pool.ask(id);
    if (answer === undefined) return track(pool.run(id), [active, working]);
    const admit = async () => {
      if (!(await answer)) return schedule.hold(id);
      admitted.add(id);
      schedule.again(id);
    };
    track(admit(), [active]);
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
    const change = () => (others === undefined ? [] : [others.change()]);
    const isDone = async () => {
      if (others === undefined || stop.signal.aborted) return true;
      const areBusy = await others.areBusy();
      startAll();
      return active.size === 0 && !areBusy;
    };
    for (startAll(); active.size > 0 || !(await isDone()); startAll()) await Promise.race([...active, ...change()]);
  } catch (error) {
    stop.abort();
    await Promise.allSettled(active);
    throw error;
  }
}
