import type { Allow } from "../../host/index.ts";

/** A plan of phases as read from its folder. */
export interface Nebula {
  /** The absolute path of its folder. */
  readonly directory: string;
  readonly name: string;
  readonly description: string;
  /** What the whole plan should achieve. Every prompt contains it. */
  readonly goals: readonly string[];
  /** Rules for every phase. Every prompt contains them. */
  readonly constraints: readonly string[];
  /** Where agents work, as written: relative to where the command runs. */
  readonly workingDirectory?: string | undefined;
  /** Settings for all phases. */
  readonly execution: Execution;
  /** The phases, in the order of their files' names. */
  readonly phases: readonly Phase[];
}

export interface Execution {
  readonly maxWorkers?: number | undefined;
  /** 0 sends each task without context. */
  readonly maxContextTokens?: number | undefined;
  readonly gate?: Gate | undefined;
  readonly model?: string | undefined;
  readonly allow?: Allow | undefined;
  /** The most that all phases of a run may cost together, in dollars. */
  readonly maxBudgetUsd?: number | undefined;
  readonly check?: readonly string[] | undefined;
  readonly checkTimeoutMs?: number | undefined;
  readonly scopePolicy?: ScopePolicy | undefined;
  readonly maxReviewCycles?: number | undefined;
  readonly reviewer?: Reviewer | undefined;
}

/** Whether a change outside of the scope is only named, or fails the phase. */
export type ScopePolicy = "warn" | "fail";

/** The agent that reads the work of a phase before it counts. */
export interface Reviewer {
  /** A known agent. By default that of the phase. */
  readonly agent?: string | undefined;
  readonly model?: string | undefined;
}

/** One step of a nebula, which one agent does. */
export interface Phase {
  readonly id: string;
  readonly title: string;
  /** The absolute path of its file. */
  readonly file: string;
  /** The text below the front matter, without white space at its ends. */
  readonly body: string;
  /**
   * Ids of the phases that must complete before this one starts, each once. Includes phases that name this one in
   * `blocks`.
   */
  readonly dependsOn: readonly string[];
  /** Glob patterns of the files that it changes, as written. */
  readonly scope: readonly string[];
  /** Whether its scope may overlap with that of a phase that runs at the same time. */
  readonly allowScopeOverlap?: boolean | undefined;
  /** Its own gate, or else that of the nebula, or else `trust`. */
  readonly gate: Gate;
  /** Its own model, or else that of the nebula. */
  readonly model?: string | undefined;
  /** What its agent may do: its own level, or else that of the nebula. */
  readonly allow?: Allow | undefined;
  /** The most that all its attempts may cost together, in dollars. */
  readonly maxBudgetUsd?: number | undefined;
  /** Commands that must succeed after the agent has ended. Without them nothing is checked. */
  readonly check?: readonly string[] | undefined;
  /** How long one of them may run, in milliseconds. */
  readonly checkTimeoutMs?: number | undefined;
  /** @default "warn" */
  readonly scopePolicy?: ScopePolicy | undefined;
  /** How many attempts a phase has until its work is accepted: the first one, and others that are told what is wrong.
   *  @default 3 */
  readonly maxReviewCycles?: number | undefined;
  readonly reviewer?: Reviewer | undefined;
  readonly type?: string | undefined;
  /** Phases with a smaller number start first if several could start. */
  readonly priority: number;
  readonly labels: readonly string[];
  readonly assignee?: string | undefined;
}

/** Whether a phase waits for approval by a person. */
export type Gate = (typeof gates)[number];

export const gates = ["trust", "review", "approve", "watch"] as const;

/** Milliseconds of a time such as `1h30m`. Undefined for 0, which means the default. */
export function readDuration(written: string | undefined): number | undefined {
  const units: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1e3, m: 6e4, h: 3.6e6 };
  const parts = [...(written ?? "").matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)/g)];
  return parts.reduce((sum, [, count, unit = ""]) => sum + Number(count) * units[unit]!, 0) || undefined;
}

/** Groups phases into waves that can run together: each wave depends only on earlier ones. Within a wave, sorts by
 *  priority, smaller first, then by id. */
export function groupWaves(phases: readonly Phase[]): Phase[][] {
  const dependents = new Map<string, Phase[]>(phases.map(({ id }) => [id, []]));
  const missing = new Map<string, number>();
  for (const phase of phases) {
    const known = phase.dependsOn.filter((id) => dependents.has(id));
    missing.set(phase.id, known.length);
    for (const id of known) dependents.get(id)!.push(phase);
  }
  const waves: Phase[][] = [];
  let next = phases.filter(({ id }) => missing.get(id) === 0);
  while (next.length > 0) {
    const wave = next.sort((one, two) => one.priority - two.priority || (one.id < two.id ? -1 : 1));
    waves.push(wave);
    next = [];
    for (const dependent of wave.flatMap(({ id }) => dependents.get(id)!)) {
      const left = missing.get(dependent.id)! - 1;
      missing.set(dependent.id, left);
      if (left === 0) next.push(dependent);
    }
  }
  return waves;
}

/** Returns these phases and all that depend on them, directly or not, in the order of `phases`. */
export function withDependents(phases: readonly Phase[], ids: readonly string[]): Phase[] {
  const found = new Set(ids);
  for (const phase of groupWaves(phases).flat()) if (phase.dependsOn.some((id) => found.has(id))) found.add(phase.id);
  return phases.filter(({ id }) => found.has(id));
}

/** The ids that each phase depends on. */
export type DependencyGraph = ReadonlyMap<string, readonly string[]>;

export interface DependencyWalk {
  /** Each cycle starts with its smallest id. Every id depends on the next one, and the last on the first. */
  readonly cycles: readonly (readonly string[])[];
  /** How many more there are. */
  readonly moreCycles: number;
  /** All ids; without cycles, each after its dependencies. */
  readonly order: readonly string[];
}

/** Walks the graph in the order of the ids. Each dependency that leads back to a phase on the current path gives one
 *  cycle. Returns the first 20. Listing all cycles could take exponential time. */
export function walkDependencies(graph: DependencyGraph): DependencyWalk {
  const cycles: string[][] = [];
  const order: string[] = [];
  let moreCycles = 0;
  /** Index of an id on the path, or `done`. */
  const places = new Map<string, number>();
  const done = -1;
  // Not recursive: a chain of phases may be longer than the stack. `left` are dependencies that were not visited yet,
  // the smallest id last.
  const path: { readonly id: string; readonly left: string[] }[] = [];
  const enter = (id: string) => {
    places.set(id, path.length);
    path.push({ id, left: [...(graph.get(id) ?? [])].sort().reverse() });
  };
  const meet = (id: string) => {
    const place = places.get(id);
    if (place === undefined) enter(id);
    else if (place !== done && cycles.length === 20) moreCycles++;
    else if (place !== done) {
      const cycle = path.slice(place).map((step) => step.id);
      const smallest = cycle.reduce((best, each, index) => (each < cycle[best]! ? index : best), 0);
      cycles.push([...cycle.slice(smallest), ...cycle.slice(0, smallest)]);
    }
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

/** Returns a function that says whether one of two phases depends on the other, directly or not. `order` lists
 *  dependencies first. Phases on a cycle count as connected. */
export function createReach(graph: DependencyGraph, order: readonly string[]): (one: string, two: string) => boolean {
  const numbers = new Map(order.map((id, index) => [id, index]));
  const dependencies = order.map((id) => (graph.get(id) ?? []).map((on) => numbers.get(on)!));
  const words = Math.ceil(order.length / 32);
  const rows = new Uint32Array(order.length * words);
  // One pass is enough without cycles; the next pass confirms it.
  while (addOnce(rows, dependencies, words));
  const has = (from: number, to: number) => (rows[from * words + (to >>> 5)]! & (1 << (to & 31))) !== 0;
  return (one, two) => {
    const [a, b] = [numbers.get(one)!, numbers.get(two)!];
    return has(a, b) || has(b, a);
  };
}

/** Adds dependencies of dependencies once. A row has a bit for each dependency. */
function addOnce(rows: Uint32Array, dependencies: readonly (readonly number[])[], words: number): boolean {
  let changed = false;
  for (const [from, direct] of dependencies.entries()) {
    const row = rows.subarray(from * words, (from + 1) * words);
    for (const to of direct) {
      const other = rows.subarray(to * words, (to + 1) * words);
      for (let word = 0; word < words; word++) {
        const before = row[word]!;
        row[word] = before | other[word]! | (word === to >>> 5 ? 1 << (to & 31) : 0);
        changed ||= row[word] !== before;
      }
    }
  }
  return changed;
}
