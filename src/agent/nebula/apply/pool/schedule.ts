/** What may run when: a state machine over phases, without agents, clock or store. A phase may start when all that it depends on has
 *  completed; one that failed blocks those that need it, through any number of steps, and nothing else. */
import type { PhaseState } from "../../../../compose/index.ts";

export interface ScheduledPhase {
  readonly id: string;
  readonly dependsOn: readonly string[];
}

export interface Schedule {
  /** Takes the first phase that may start: it is running from then on. */
  next(): string | undefined;
  /** Ends a running phase. Gives the phases that can no longer run because of it. */
  end(id: string, state: "completed" | "failed"): readonly string[];
  /** A running phase may start anew, at its place in the order. */
  again(id: string): void;
  /** A running phase waits for something else than its dependencies: it is not offered again. */
  hold(id: string): void;
}

/** `phases` in the order in which they should start where several may. Their states so far are waiting, running or completed. */
export function createSchedule(
  phases: readonly ScheduledPhase[],
  statesSoFar: ReadonlyMap<string, PhaseState> = new Map(),
): Schedule {
  const states = new Map<string, PhaseState>(phases.map(({ id }) => [id, statesSoFar.get(id) ?? "waiting"]));
  const places = new Map(phases.map(({ id }, place) => [id, place]));
  const dependents = dependentsOf(phases);
  const missing = new Map<string, number>();
  const ready: number[] = [];
  const offer = (id: string) => insertSorted(ready, places.get(id)!);
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

  return {
    next() {
      const place = ready.shift();
      if (place === undefined) return undefined;
      const { id } = phases[place]!;
      states.set(id, "running");
      return id;
    },
    end(id, state) {
      states.set(id, state);
      if (state === "failed") return block(id, { dependents, states });
      for (const dependent of dependents.get(id) ?? []) meet(dependent);
      return [];
    },
    again(id) {
      states.set(id, "waiting");
      if (missing.get(id) === 0) offer(id);
    },
    hold: (id) => void states.set(id, "waiting"),
  };
}

function dependentsOf(phases: readonly ScheduledPhase[]): ReadonlyMap<string, readonly string[]> {
  const dependents = new Map<string, string[]>();
  for (const { id, dependsOn } of phases) {
    for (const each of new Set(dependsOn)) dependents.set(each, [...(dependents.get(each) ?? []), id]);
  }
  return dependents;
}

function insertSorted(places: number[], place: number): void {
  const before = places.findIndex((each) => each > place);
  places.splice(before === -1 ? places.length : before, 0, place);
}

interface Graph {
  readonly dependents: ReadonlyMap<string, readonly string[]>;
  readonly states: Map<string, PhaseState>;
}

/** In the order in which they are reached. One that has completed in an earlier run stays completed. */
function block(id: string, { dependents, states }: Graph): string[] {
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
