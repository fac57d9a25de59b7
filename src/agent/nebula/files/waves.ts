import type { Phase } from "./nebula.ts";

/** Phases by what can run together: each wave needs only those before it. Inside a wave by priority, smaller first, then by id. */
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

function byPriority(one: Phase, two: Phase): number {
  return one.priority - two.priority || (one.id < two.id ? -1 : 1);
}
