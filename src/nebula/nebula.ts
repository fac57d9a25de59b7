import type { Allow } from "../workspace/index.ts";

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
  readonly type?: string | undefined;
  /** Phases with a smaller number start first if several could start. */
  readonly priority: number;
  readonly labels: readonly string[];
  readonly assignee?: string | undefined;
}

/** Whether a phase waits for approval by a person. */
export type Gate = (typeof gates)[number];

export const gates = ["trust", "review", "approve", "watch"] as const;

/** Groups phases into waves that can run together: each wave depends only on earlier ones. Within a wave, sorts by
 *  priority, smaller first, then by id. */
export function wavesOf(phases: readonly Phase[]): Phase[][] {
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
    const wave = next.sort(byPriority);
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
  for (const phase of wavesOf(phases).flat()) if (phase.dependsOn.some((id) => found.has(id))) found.add(phase.id);
  return phases.filter(({ id }) => found.has(id));
}

function byPriority(one: Phase, two: Phase): number {
  return one.priority - two.priority || (one.id < two.id ? -1 : 1);
}
