/** Phases by id, with the ids that they depend on. */
export type DependencyGraph = ReadonlyMap<string, readonly string[]>;

export interface Walk {
  /** Each begins with its smallest id; every id depends on the next one, and the last on the first. */
  readonly cycles: readonly (readonly string[])[];
  /** How many more there are. */
  readonly moreCycles: number;
  /** All ids; without cycles, each after those that it depends on. */
  readonly order: readonly string[];
}

/** Nobody mends more at once. */
const mostCycles = 20;

interface Step {
  readonly id: string;
  /** What is still to be looked at, the smallest id last. */
  readonly left: string[];
}

/** Finds one cycle for each dependency that closes one on a walk by id: without those dependencies none would be left. All cycles that
 *  there are can be more than anyone could count. */
export function walkDependencies(graph: DependencyGraph): Walk {
  const cycles: string[][] = [];
  const order: string[] = [];
  let moreCycles = 0;
  /** Where an id stands on the path; `done` after that. */
  const places = new Map<string, number>();
  // Not by recursion: a chain of phases may be longer than the stack is deep.
  const path: Step[] = [];
  const enter = (id: string) => {
    places.set(id, path.length);
    path.push({ id, left: [...(graph.get(id) ?? [])].sort().reverse() });
  };
  const meet = (id: string) => {
    const place = places.get(id);
    if (place === undefined) enter(id);
    else if (place !== done && cycles.length === mostCycles) moreCycles++;
    else if (place !== done) cycles.push(smallestFirst(path.slice(place).map((step) => step.id)));
  };
  for (const root of [...graph.keys()].sort()) {
    if (!places.has(root)) enter(root);
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const next = step.left.pop();
      if (next !== undefined) meet(next);
      else {
        order.push(step.id);
        places.set(step.id, done);
        path.pop();
      }
    }
  }
  return { cycles, moreCycles, order };
}

const done = -1;

function smallestFirst(cycle: readonly string[]): string[] {
  const smallest = cycle.reduce((best, id, index) => (id < cycle[best]! ? index : best), 0);
  return [...cycle.slice(smallest), ...cycle.slice(0, smallest)];
}
